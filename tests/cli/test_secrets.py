"""``nod secrets``: a key that is taken, and one that is not."""

import pytest

from tests.cli.conftest import Shell

pytestmark = pytest.mark.slow


def test_a_new_key_is_taken_and_rotating_says_that_older_ones_may_go(shell: Shell):
    key = shell.nod("secrets", "new").stdout.strip()
    assert shell.nod("db", "upgrade", NOD_SECRET_KEY=key).exit_code == 0
    done = shell.nod(
        "secrets", "rotate", NOD_SECRET_KEY=f"{shell.nod('secrets', 'new').stdout.strip()},{key}"
    )
    assert done.stdout.splitlines() == [
        "Encrypted with the newest key: 0.",
        "Once every process has the newest key, you can remove the older ones.",
    ]
    assert (
        "ok   secrets in the database: encrypted with NOD_SECRET_KEY"
        in shell.nod("doctor", NOD_SECRET_KEY=key).stdout
    )


def test_what_is_no_key_stops_the_start_with_what_makes_one(shell: Shell):
    refused = shell.nod("secrets", "rotate", NOD_SECRET_KEY="too-short")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "nod: NOD_SECRET_KEY: write what nod secrets new prints; older keys may follow after a comma\n",
    )
    missing = shell.nod("secrets", "rotate")
    assert missing.stderr == "nod: NOD_SECRET_KEY: needed to encrypt with. Make one: nod secrets new\n"
