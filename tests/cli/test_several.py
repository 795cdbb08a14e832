"""Several processes need PostgreSQL, and say so."""

import pytest

from tests.cli.conftest import Shell

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("words", ["worker", "run --no-work"])
def test_on_sqlite_one_process_does_everything(shell: Shell, words: str) -> None:
    done = shell.nod(*words.split(), NOD_ADMINS="cli:operator", NOD_MODEL="m", OPENAI_API_KEY="k")
    assert done.exit_code == 1
    assert done.stderr == (
        f"nod: NOD_DATABASE_URL: nod {words} needs PostgreSQL. On SQLite one nod run does everything.\n"
    )
