"""``nod tools list/show/call``: reads answer, writes ask, with and without a running server."""

import json
import re
import shutil

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_commands import asked  # noqa: F401 - a database with issues in it

pytestmark = pytest.mark.slow

NEW = '{"title": "From the shell"}'


@pytest.fixture
def ready(shell: Shell, asked) -> Shell:  # noqa: F811 - the fixture by its name
    shell.environment["NOD_ADMINS"] = "cli:operator"
    shutil.copy(asked[0], shell.folder / "nod.db")
    return shell


def test_the_list_has_every_tool_a_model_is_offered_with_its_group_and_risk(shell: Shell):
    done = shell.nod("tools", "list")
    assert done.exit_code == 0
    lines = {row.split()[0]: row.split()[1:3] for row in done.stdout.splitlines()}
    assert lines["create_issue"] == ["issues", "write"]
    assert lines["list_issues"] == ["issues", "read"]
    assert lines["delete_issue"] == ["issues", "destructive"]
    assert "request_approval" not in lines
    assert not (shell.folder / "nod.db").exists()


def test_a_line_that_a_program_reads_is_cut_nowhere(ready: Shell):
    done = ready.process("tools", "list", COLUMNS="60")
    (row,) = (row for row in done.stdout.splitlines() if row.startswith("create_issue "))
    assert row.endswith("Search first: it may exist already.")


def test_one_tool_is_shown_whole(shell: Shell):
    done = shell.nod("tools", "show", "create_issue")
    assert "risk: write, asks first" in done.stdout
    assert '"title": {' in done.stdout
    assert "risk: read, runs immediately" in shell.nod("tools", "show", "list_issues").stdout


@pytest.mark.parametrize("name", ["nothing", "request_approval"])
def test_a_tool_that_is_not_there_or_hidden_is_one_line(ready: Shell, name):
    for words in (("show", name), ("call", name)):
        done = ready.nod("tools", *words)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == f"nod: there is no tool {name}; see: nod tools list\n"


def test_a_server_that_cannot_be_reached_is_told_alongside_the_tools_there_are(ready: Shell):
    servers = {"mcpServers": {"lost": {"command": "no-such-program"}}}
    (ready.folder / "mcp.json").write_text(json.dumps(servers))
    for words in (("list",), ("show", "lost_x"), ("call", "lost_x")):
        done = ready.nod("tools", *words, NOD_MCP_CONFIG="mcp.json")
        assert done.stderr.startswith("nod: the MCP server lost is unavailable (there is no program or file")
        assert ("list_issues" in done.stdout) == (done.exit_code == 0) == (words == ("list",))


def test_a_read_answers_immediately(ready: Shell):
    done = ready.nod("tools", "call", "list_issues")
    assert done.exit_code == 0
    assert done.stdout.strip()[0] in "[{"
    assert ready.nod("pending").stdout.count("cli") == 0


def test_a_write_becomes_a_proposal_that_says_how_to_approve_it(ready: Shell):
    done = ready.nod("tools", "call", "create_issue", NEW)
    assert done.exit_code == 0
    ident, approve = re.findall(r"\b[0-9a-f]{16}\b", done.stdout)
    assert ident == approve
    assert f"nod approve {ident}" in done.stdout
    assert ident in ready.nod("pending").stdout
    assert ready.nod("approve", ident).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [("{", "this is not JSON"), ("[]", "write a JSON object"), ('{"titel": "x"}', "titel")],
)
def test_what_does_not_fit_is_one_line_and_proposes_nothing(ready: Shell, arguments, words):
    done = ready.nod("tools", "call", "create_issue", arguments)
    assert done.exit_code == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "From the shell" not in ready.nod("pending").stdout


def test_with_wait_it_tells_how_it_ended(ready: Shell):
    ready.start("run", NOD_PORT="0", NOD_ADMINS="cli:operator", NOD_LOG_LEVEL="error")
    waiting = ready.begin("tools", "call", "create_issue", NEW, "--wait")
    ident = waiting.stdout.readline().partition(":")[0]
    assert ready.nod("approve", ident).exit_code == 0
    rest, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert "Approved by operator." in rest
    assert "From the shell" in ready.nod("tools", "call", "list_issues").stdout


def test_with_wait_a_decline_is_told_and_is_no_success(ready: Shell):
    waiting = ready.begin("tools", "call", "create_issue", NEW, "--wait")
    ident = waiting.stdout.readline().partition(":")[0]
    assert ready.nod("decline", ident, "not now").exit_code == 0
    rest, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 1
    assert "not now" in rest
