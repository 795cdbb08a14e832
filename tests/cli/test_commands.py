"""``nod pending/show/approve/decline/audit/db/doctor``, with and without a running server."""

import asyncio
import json
import re
import shutil
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bot.agent.offline import OfflineModel
from bot.app import App, build
from bot.domain.chat import Address, Message
from bot.domain.people import Actor
from bot.settings import Settings
from bot.store import proposals
from tests.cli.conftest import Shell
from tests.cli.test_demo import said
from tests.fakes.openai_server import OpenAIServer
from tests.mcp.servers import lamps


async def _ask(database: Path, *messages: str) -> list[str]:
    """Have a Nod that is not running any more propose things; returns the proposals' ids."""
    app: App = build(
        Settings.load(NOD_DATABASE_URL=f"sqlite:///{database}", NOD_PORT=0, NOD_ADMINS="cli:operator"),
        model=OfflineModel(pace=0),
    )
    async with app.running(ticking=False):
        for number, message in enumerate(messages):
            actor = Actor("http", "ana", "Ana")
            await app.assistant.handle(
                Message(Address("http", f"ana/{number}"), actor, message, f"e{number}")
            )
            await app.dispatcher.idle()
        found = await app.database.read(proposals.in_states, ["proposed"])
        return [p.id for p in reversed(found)]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A database with two proposals, made once; every test works on a copy."""
    file = tmp_path_factory.mktemp("asked") / "nod.db"
    return file, asyncio.run(_ask(file, "create an issue 'First'", "create an issue 'Second'"))


@pytest.fixture
def parked(shell: Shell, asked: tuple[Path, list[str]]) -> list[str]:
    """Two proposals in ``nod.db``, and an operator who may decide them."""
    shell.environment["NOD_ADMINS"] = "cli:operator"
    shutil.copy(asked[0], shell.folder / "nod.db")
    return list(asked[1])


def tamper(shell: Shell, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(shell.folder / "nod.db")) as connection, connection:
        connection.execute(statement, values)


def test_pending_lists_what_waits_oldest_first(shell: Shell, parked: list[str]):
    listed = shell.nod("pending")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == parked
    assert "asked by Ana" in listed.stdout


def test_show_takes_the_first_characters_of_an_id(shell: Shell, parked: list[str]):
    shown = shell.nod("show", parked[0][:10].upper())
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"{parked[0]}: Waiting for a decision.")
    assert "First" in shown.stdout


@pytest.mark.parametrize(
    ("prefix", "word"), [("zzz", "there is no proposal zzz"), ("", "there is no proposal")]
)
def test_an_id_that_is_none_is_told(shell: Shell, parked: list[str], prefix: str, word: str):
    for command in ("show", "approve", "decline", "audit show"):
        refused = shell.nod(*command.split(), prefix)
        assert refused.exit_code == 1
        assert word in refused.stderr


def test_an_ambiguous_id_is_told_and_nothing_is_decided(shell: Shell, parked: list[str]):
    with closing(sqlite3.connect(shell.folder / "nod.db")) as connection, connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        for number, ident in enumerate(parked):
            for table, column in (("audit", "proposal_id"), ("proposal", "id")):
                connection.execute(
                    f"UPDATE {table} SET {column} = ? WHERE {column} = ?",  # noqa: S608 - our own names
                    (f"abc{number}", ident),
                )
    refused = shell.nod("approve", "abc")
    assert refused.exit_code == 1
    assert "abc could be several" in refused.stderr
    assert len(shell.nod("pending").stdout.splitlines()) == 2


def test_a_decision_without_a_running_server_is_kept_and_recorded(shell: Shell, parked: list[str]):
    declined = shell.nod("decline", parked[0], "not now")
    assert (declined.exit_code, declined.stdout) == (0, "Declined.\n")
    approved = shell.nod("approve", parked[1])
    assert (approved.exit_code, approved.stdout) == (0, "Approved.\n")
    again = shell.nod("approve", parked[0])
    assert again.exit_code == 1
    assert again.stdout.startswith("Already declined by operator")
    history = shell.nod("audit", "show", parked[0])
    assert history.exit_code == 0
    assert "propose by nod" in history.stdout
    assert "decline by cli:operator (not now) → declined" in history.stdout
    assert history.stdout.endswith("The record is whole.\n")


def test_who_may_not_decide_is_told_the_mend_and_it_stays_open(shell: Shell, parked: list[str]):
    refused = shell.nod("approve", parked[0], NOD_ADMINS="slack:T1/U1")
    assert refused.exit_code == 1
    assert "you act as cli:operator here; an admin can add it to NOD_ADMINS" in refused.stderr
    assert parked[0] in shell.nod("pending").stdout


def test_the_running_server_executes_what_the_command_approves(shell: Shell):
    demo = shell.start("demo", PORT="0")
    there = {"NOD_DATABASE_URL": "sqlite:///nod-demo.db", "NOD_ADMINS": "cli:operator"}
    with demo.client() as client:
        events = said(client, "close #2")
        (ident,) = [e["proposal"]["id"] for e in events if e["type"] == "action_proposed"]
        with client.stream("GET", "/api/events") as feed:
            lines = feed.iter_lines()
            next(lines)
            assert shell.nod("approve", ident, **there).stdout == "Approved.\n"
            assert any('"state": "succeeded"' in line for line in lines)
    assert "approve by cli:operator" in shell.nod("audit", **there).stdout
    assert demo.end() == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET actor = 'http:mallory'",
        "UPDATE audit SET version = version + 1",
        "DELETE FROM audit",
        "UPDATE proposal SET state = 'succeeded'",
        "UPDATE proposal SET arguments = '{}'",
        "DELETE FROM proposal",
    ],
)
def test_a_tampered_record_is_told_by_the_audit_of_all(shell: Shell, parked: list[str], statement: str):
    assert shell.nod("audit").stdout.endswith("The record is whole.\n")
    tamper(shell, statement)
    told = shell.nod("audit")
    assert told.exit_code == 1
    assert "nod: the audit was tampered with: proposal " in told.stderr
    assert all(ident in told.stderr for ident in parked)


def test_a_tampered_record_is_told_by_the_audit_of_one(shell: Shell, parked: list[str]):
    tamper(shell, "UPDATE audit SET reason = 'x' WHERE proposal_id = ?", parked[0])
    assert shell.nod("audit", "show", parked[0]).exit_code == 1
    assert shell.nod("audit", "show", parked[1]).exit_code == 0


def test_what_a_model_wrote_cannot_move_the_cursor_of_a_terminal(shell: Shell, parked: list[str]):
    with closing(sqlite3.connect(shell.folder / "nod.db")) as connection, connection:
        hostile = "close\n#1 \x1b[2Kdelete\u202e everything \x9b1A sk-abcdefghijklmnopqrstuvwx"
        connection.execute("UPDATE proposal SET description = ?", (hostile,))
    for words in (("pending",), ("show", parked[0])):
        shown = shell.nod(*words).stdout
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
        assert "sk-abc" not in shown
    assert len(shell.nod("pending").stdout.splitlines()) == 2


@pytest.mark.parametrize("words", [("pending",), ("show", "a"), ("approve", "a"), ("audit",)])
def test_a_look_at_a_file_that_is_not_there_makes_none(shell: Shell, words: tuple[str, ...]):
    refused = shell.nod(*words)
    assert refused.exit_code == 1
    assert "nod: NOD_DATABASE_URL: there is no file nod.db here" in refused.stderr
    assert not (shell.folder / "nod.db").exists()


def test_db_upgrade_makes_the_schema_and_says_which(shell: Shell):
    for _ in range(2):
        done = shell.nod("db", "upgrade")
        assert done.exit_code == 0
        assert re.fullmatch(r"The schema is at \w+\.\n", done.stdout)
    assert shell.nod("pending").stdout == "Nothing waits for a decision.\n"


def test_a_schema_from_a_newer_nod_is_one_line(shell: Shell):
    shell.nod("db", "upgrade")
    tamper(shell, "UPDATE alembic_version SET version_num = '9999'")
    refused = shell.nod("pending")
    assert refused.exit_code == 1
    (line,) = refused.stderr.splitlines()
    assert "newer nod" in line
    assert "newer nod" in shell.nod("doctor").stdout


def test_doctor_finds_a_sound_place_sound_and_changes_nothing(shell: Shell):
    checked = shell.nod("doctor", NOD_PORT="0")
    assert checked.exit_code == 0, checked.stdout
    assert "FAIL" not in checked.stdout
    assert "it will be made at the first start" in checked.stdout
    assert "offline demo model" in checked.stdout
    assert list(shell.folder.iterdir()) == []
    shell.nod("db", "upgrade")
    assert "schema 0001" in shell.nod("doctor", NOD_PORT="0").stdout


def test_doctor_names_each_fault_with_its_mend(shell: Shell):
    (shell.folder / "nod.db").write_bytes(b"not a database at all" * 100)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        checked = shell.nod(
            "doctor", NOD_PORT=str(port), NOD_PROT="1", OPENAI_BASE_URL="http://127.0.0.1:1/v1"
        )
    assert checked.exit_code == 1
    faults = [line for line in checked.stdout.splitlines() if line.startswith("FAIL")]
    assert len(faults) == 4
    assert "setting NOD_PROT: there is no such setting; did you mean NOD_PORT?" in faults[0]
    assert "file is not a database" in faults[1]
    assert f"NOD_PORT: cannot listen on 127.0.0.1:{port}" in faults[2]
    assert "OPENAI_BASE_URL: cannot be reached" in faults[3]


def test_doctor_tells_a_locked_or_unwritable_database(shell: Shell):
    checked = shell.nod("doctor", NOD_PORT="0", NOD_DATABASE_URL="sqlite:///no/such/nod.db")
    assert checked.exit_code == 1
    assert "NOD_DATABASE_URL: name a folder to write in" in checked.stdout


def test_doctor_beside_a_running_nod_takes_its_port_for_its_own(shell: Shell):
    demo = shell.start("demo", PORT="0")
    port = demo.url.rpartition(":")[2]
    checked = shell.nod("doctor", NOD_DATABASE_URL="sqlite:///nod-demo.db", NOD_PORT=port)
    assert checked.exit_code == 0, checked.stdout
    assert "a nod is running on this database" in checked.stdout


def test_doctor_asks_the_configured_model_server_and_no_other(shell: Shell):
    async def check(key: str) -> str:
        async with OpenAIServer() as server:
            given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": key, "NOD_PORT": "0"}
            return (await asyncio.to_thread(shell.nod, "doctor", **given)).stdout

    assert "it answers, and keeps no list of models" in asyncio.run(check("test-key"))


def test_doctor_starts_each_mcp_server_and_tells_which_do_not_answer_and_why(shell: Shell):
    here = str(Path(lamps.__file__).parents[3])
    server = {"command": sys.executable, "args": [lamps.__file__, "."], "env": {"PYTHONPATH": here}}
    servers = {"lamps": server, "closed": {**server, "allow": []}, "lost": {"command": "no-such-program"}}
    (shell.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    checked = shell.process("doctor", NOD_PORT="0", NOD_MCP_CONFIG="mcp.json")
    assert checked.returncode == 1
    assert re.search(r"^ok   MCP server lamps: offers \d+ tools$", checked.stdout, re.MULTILINE)
    assert 'ok   MCP server closed: offers no tools; look at its "allow" and "deny"' in checked.stdout
    assert "FAIL MCP server lost: NOD_MCP_CONFIG: there is no program or file 'no-such-pr" in checked.stdout
    assert checked.stderr == ""

    servers["lamps"]["env"]["LAMP_TOKEN"] = "${LAMP_TOKEN}"
    (shell.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    checked = shell.process("doctor", NOD_PORT="0", NOD_MCP_CONFIG="mcp.json")
    assert "FAIL tools: mcp.json: server 'lamps': env.LAMP_TOKEN: the environment" in checked.stdout


@pytest.mark.parametrize("url", ["unix:///tmp/no-such.sock", "nowhere", "tcp://127.0.0.1:1"])
def test_doctor_tells_a_docker_daemon_that_does_not_answer(shell: Shell, url):
    checked = shell.nod("doctor", NOD_PORT="0", NOD_DOCKER_URL=url)
    assert checked.exit_code == 1
    assert f"FAIL Docker at {url}: NOD_DOCKER_URL: The Docker daemon at {url} cannot be" in checked.stdout


def test_doctor_lists_own_tools_and_a_start_without_them_stops_with_one_line(shell: Shell):
    (shell.folder / "seats.py").write_text(
        "from bot.tools.tool import tool\n\n@tool(writes=False)\nasync def look() -> str: ...\n"
    )
    # as the installed command: Python itself does not look in the current folder then
    found = shell.process("doctor", NOD_PORT="0", NOD_TOOLS="seats", PYTHONSAFEPATH="1")
    assert "ok   tools of seats: look" in found.stdout, found.stdout
    checked = shell.process("doctor", NOD_PORT="0", NOD_TOOLS="seat")
    assert "FAIL tools: NOD_TOOLS: seat: there is no module seat; install it" in checked.stdout
    stopped = shell.process("run", NOD_PORT="0", NOD_TOOLS="seat")
    assert (stopped.returncode, stopped.stdout, stopped.stderr.count("\n")) == (1, "", 1)
    assert stopped.stderr.startswith("nod: NOD_TOOLS: seat: there is no module seat")
    (shell.folder / "seats.py").write_text(
        "from bot.tools.tool import tool\n\n@tool(writes=False)\nasync def list_issues() -> str: ...\n"
    )
    taken = shell.process("run", NOD_PORT="0", NOD_TOOLS="seats")
    assert taken.returncode == 1
    assert (
        taken.stderr.strip()
        .splitlines()[-1]
        .startswith("nod: NOD_TOOLS: 'list_issues' in seats has the name")
    )
