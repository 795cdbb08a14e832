"""``nod token new|list|revoke``, next to a running server and without one."""

import json

import httpx
import pytest

from tests.cli.conftest import Shell

pytestmark = pytest.mark.slow


def test_a_token_is_made_listed_and_revoked_next_to_a_running_server(shell: Shell):
    running = shell.start("demo", "--port", "0")
    made = shell.nod("token", "new", "ci", "--demo")
    token = made.stdout.strip()
    assert (made.exit_code, token.startswith("nod_"), token in made.stderr) == (0, True, False)
    label = token.split("_")[1]
    assert f"nod token revoke {label}" in made.stderr

    def asked() -> httpx.Response:
        with running.client() as client:
            return client.get("/api/me", headers={"Authorization": f"Bearer {token}"})

    assert asked().json()["account"] == "http:ci"
    assert f"{label}  http:ci  by http:local" in shell.nod("token", "list", "--demo").stdout
    (listed,) = json.loads(shell.nod("token", "list", "--demo", "--json").stdout)
    assert (listed["label"], listed["account"]) == (label, "http:ci")
    assert shell.nod("token", "revoke", label, "--demo").stdout == f"Revoked {label} of http:ci.\n"
    assert asked().status_code == 401
    again = shell.nod("token", "revoke", label, "--demo")
    assert (again.exit_code, again.stderr) == (1, f"nod: there is no token {label}. See: nod token list\n")
    assert shell.nod("token", "list", "--demo").stdout.startswith("There are no tokens.")


def test_a_token_of_the_environment_is_listed_and_revoked_there(shell: Shell):
    assert shell.nod("db", "upgrade").exit_code == 0
    named = {"NOD_HTTP_TOKENS": "ana:0123456789abcdef", "NOD_ADMINS": "http:ana,http:ci"}
    assert "http:ana  in NOD_HTTP_TOKENS" in shell.nod("token", "list", **named).stdout
    refused = shell.nod("token", "revoke", "ana", **named)
    assert (refused.exit_code, "remove it there" in refused.stderr) == (1, True)
    assert "no token has that name; nod token new NAME makes one" in shell.nod("doctor", **named).stdout
    shell.nod("token", "new", "ci", **named)
    told = shell.nod("doctor", **named).stdout
    assert "ok   tokens: 1 in NOD_HTTP_TOKENS, 1 made with nod token new" in told
    assert "no token has that name" not in told
