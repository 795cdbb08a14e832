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


def test_the_token_of_an_agent_lists_its_tools_and_opens_nothing_before_its_persons_yes(shell: Shell):
    running = shell.start("demo", "--port", "0")
    made = shell.nod(
        "token", "new", "claude-code", "--tools", "*_issues", "--as", "http:local", "--for", "30d", "--demo"
    )
    token = made.stdout.strip()
    assert (made.exit_code, token.startswith("noda_"), token in made.stderr) == (0, True, False)
    assert "list_issues" in made.stderr
    assert "fetch" not in made.stderr
    ident = made.stderr.partition("nod approve ")[2].split()[0]
    label = token.split("_")[1]
    assert f"{label}  agents/claude-code" in shell.nod("token", "list", "--demo").stdout
    assert "not allowed yet" in shell.nod("token", "list", "--demo").stdout
    (listed,) = json.loads(shell.nod("token", "list", "--demo", "--json").stdout)
    assert (listed["agent"], listed["for"], listed["agreed"]) == ("claude-code", "http:local", False)
    with running.client() as client:
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get("/api/tools", headers=headers).status_code == 403
        asked = client.get(f"/api/proposals/{ident}").json()["proposal"]
        assert asked["headline"]
        said = client.post(
            f"/api/proposals/{ident}/approve", params={"wait": 10}, json={"seen": asked["seen"]}
        )
        assert said.json()["proposal"]["state"] == "succeeded", said.text
        names = {each["name"] for each in client.get("/api/tools", headers=headers).json()["tools"]}
        assert "list_issues" in names
        assert all(name.endswith("_issues") for name in names)
    assert shell.nod("token", "revoke", label, "--demo").stdout == f"Revoked {label} of agents/claude-code.\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--tools", ""), None),
        (("--tools", "x", "--for", "500d"), "366 days"),
        (("--tools", "x", "--for", "soon"), "write a duration"),
        (("--tools", "x", "--as", "nobody"), "no one here has that name"),
        (("--tools", "x", "--as", "slack:"), "'slack:' is not an account"),
        (("--as", "http:ana"), "Name at least one tool"),
    ],
)
def test_what_is_no_token_of_an_agent_is_refused_in_words(
    shell: Shell, words: tuple[str, ...], why: str | None
):
    assert shell.nod("db", "upgrade").exit_code == 0
    made = shell.nod("token", "new", "claude-code", *words)
    if why is None:
        assert made.stdout.startswith("nod_")
    else:
        assert (made.exit_code, why in made.stderr, made.stdout) == (1, True, "")
