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

from bot.agent.demo.model import DemoModel
from bot.app.app import App
from bot.app.assembly import build
from bot.domain.audit import Act
from bot.domain.chat import Address, Message
from bot.domain.people import Actor, Person
from bot.domain.times import now
from bot.features.memory.facts import About, Fact
from bot.features.memory.rows import add_fact
from bot.settings import Settings
from bot.store import migrations, proposals
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.locks.process_lock import FileLock
from tests.cli.conftest import Demo, Shell
from tests.cli.test_demo import said
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.telegram_server import TOKEN, FakeTelegram
from tests.tools.mcp.conftest import HttpLamps
from tests.tools.mcp.servers import hostile, lamps
from tests.tools.mcp.servers.gatekeeper import Gatekeeper

pytestmark = pytest.mark.slow


async def _ask(database: Path, *messages: str) -> list[str]:
    """Have a Nod that is not running any longer propose things; returns the proposals' ids."""
    app: App = build(
        Settings.load(NOD_DATABASE_URL=f"sqlite:///{database}", NOD_PORT=0, NOD_ADMINS="cli:operator"),
        model=DemoModel(pace=0),
    )
    async with app.running(ticking=False):
        for number, message in enumerate(messages):
            actor = Actor("http", "ana", "Ana")
            await app.core.assistant.handle(
                Message(Address("http", f"ana/{number}"), actor, message, f"e{number}")
            )
            await app.dispatcher.wait_until_idle()
        found = await app.database.read(proposals.list_in_states, ["proposed"])
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


def test_pending_shows_risk_and_age_and_has_the_first_to_expire_first(shell: Shell, parked: list[str]):
    tamper(shell, "UPDATE proposal SET expires_at = '2099-01-01' WHERE id = ?", parked[0])
    first, second = shell.nod("pending").stdout.splitlines()
    assert [first.split()[0], second.split()[0]] == parked[::-1]
    assert re.search(
        r"  write  +expires in 24 h  +Create issue .*\(asked by Ana, (just now|\d+ min ago)\)", first
    )


def test_pending_has_one_line_for_a_batch_and_says_where_its_time_is_over(shell: Shell, parked: list[str]):
    tamper(shell, "UPDATE proposal SET expires_at = '2026-01-01', batch = ?", parked[0])
    tamper(shell, "UPDATE proposal SET position = 1 WHERE id = ?", parked[1])
    [only] = shell.nod("pending").stdout.splitlines()
    assert only.startswith(f"{parked[0]}  write")
    assert "was due to expire" in only
    assert ", and 1 more of its batch  (asked by Ana" in only


@pytest.mark.parametrize(
    "words", [("pending",), ("team",), ("audit",), ("audit", "show", ""), ("tools", "list")], ids=" ".join
)
def test_lists_are_json_for_programs(shell: Shell, parked: list[str], words: tuple[str, ...]):
    printed = shell.nod(*(word or parked[0] for word in words), "--json")
    rows = json.loads(printed.stdout)
    assert isinstance(rows, list)
    if words == ("pending",):
        assert [(row["id"], row["risk"], row["requester"]) for row in rows] == [
            (ident, "write", "Ana") for ident in parked
        ]
        assert rows[0]["tool_arguments"]["title"] == "First"


def test_looking_leaves_the_folder_as_it_was(shell: Shell, parked: list[str]):
    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in shell.folder.iterdir()}

    was = files()
    for words in ("pending", "team", f"show {parked[0]}", "audit", "audit verify", "tools list", "doctor"):
        assert shell.nod(*words.split(), NOD_PORT="0").exit_code == 0, words
        assert files() == was, words


@pytest.mark.parametrize(
    "words", ["tools call nope {}", "tools call list_issues", "tools list", "doctor", "-h"]
)
def test_no_command_makes_a_database_by_looking(shell: Shell, words: str):
    shell.nod(*words.split(), NOD_PORT="0")
    assert list(shell.folder.iterdir()) == []


def test_show_takes_the_first_characters_of_an_id(shell: Shell, parked: list[str]):
    shown = shell.nod("show", parked[0][:10].upper())
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"{parked[0]}: Waiting for a decision.")
    assert "First" in shown.stdout


@pytest.mark.parametrize(
    ("prefix", "word"), [("zzzz", "there is no proposal zzzz"), ("", "give at least 4 characters")]
)
def test_an_id_that_is_not_one_is_told(shell: Shell, parked: list[str], prefix: str, word: str):
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
                    f"UPDATE {table} SET {column} = ? WHERE {column} = ?",
                    (f"abcd{number}", ident),
                )
    refused = shell.nod("approve", "abcd")
    assert refused.exit_code == 1
    assert "abcd matches several proposals" in refused.stderr
    assert len(shell.nod("pending").stdout.splitlines()) == 2


def test_a_decision_without_a_running_server_is_kept_and_recorded(shell: Shell, parked: list[str]):
    declined = shell.nod("decline", parked[0], "not now")
    assert (declined.exit_code, declined.stdout) == (0, "Declined.\n")
    approved = shell.nod("approve", f" {parked[1]} ")
    assert approved.exit_code == 0
    assert approved.stdout.endswith(": Approved.\n")
    again = shell.nod("approve", parked[0])
    assert again.exit_code == 1
    assert again.stdout.startswith("Already declined by operator")
    history = shell.nod("audit", "show", parked[0])
    assert history.exit_code == 0
    assert "propose by nod" in history.stdout
    assert "decline by cli:operator (not now) → declined" in history.stdout
    assert history.stdout.endswith("Audit log verified: nothing missing or altered.\n")


def test_who_may_not_decide_is_told_the_fix_and_it_stays_open(shell: Shell, parked: list[str]):
    refused = shell.nod("approve", parked[0], NOD_ADMINS="slack:T1/U1")
    assert refused.exit_code == 1
    assert "you act as cli:operator here; an admin can add it to NOD_ADMINS" in refused.stderr
    assert parked[0] in shell.nod("pending").stdout


def test_the_person_who_tries_the_demo_may_approve_a_deletion(demo: Demo):
    with demo.running.client() as client:
        events = said(client, "delete #5")
        (ident,) = [e["proposal"]["id"] for e in events if e["type"] == "proposal_opened"]
        assert client.post(f"/api/proposals/{ident}/approve?wait=20", json={}).json()["ok"] is True


def test_the_running_server_executes_what_the_command_approves(demo: Demo):
    with demo.running.client() as client:
        events = said(client, "close #2")
        (ident,) = [e["proposal"]["id"] for e in events if e["type"] == "proposal_opened"]
        with client.stream("GET", "/api/events") as feed:
            lines = feed.iter_lines()
            next(lines)
            assert demo.shell.nod("approve", ident, "--demo").stdout.endswith(": Approved.\n")
            assert any('"state":"succeeded"' in line for line in lines)
    assert "approve by http:local" in demo.shell.nod("audit", "--demo").stdout


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
    assert shell.nod("audit").stdout.endswith("Audit log verified: nothing missing or altered.\n")
    tamper(shell, statement)
    told = shell.nod("audit")
    assert told.exit_code == 1
    assert "nod: the audit log does not verify: " in told.stderr
    assert all(ident in told.stderr for ident in parked)


def test_a_tampered_record_is_told_by_the_audit_of_one(shell: Shell, parked: list[str]):
    tamper(shell, "UPDATE audit SET reason = 'x' WHERE proposal_id = ?", parked[0])
    assert shell.nod("audit", "show", parked[0]).exit_code == 1
    assert shell.nod("audit", "show", parked[1]).exit_code == 1  # no part of an altered log is verified


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
    assert shell.nod("pending").stdout == "Nothing is waiting for a decision.\n"


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
    assert "will be created on first start" in checked.stdout
    assert "warn model: the scripted demo model answers" in checked.stdout
    assert "warn admins: no one" in checked.stdout
    assert list(shell.folder.iterdir()) == []
    shell.nod("db", "upgrade")
    assert f"schema {migrations.find_newest_version()}" in shell.nod("doctor", NOD_PORT="0").stdout


def test_a_folder_where_the_database_should_be_is_told_without_a_traceback(shell: Shell):
    (shell.folder / "nod.db").mkdir(mode=0o700)
    assert "nod.db can't be read (unable to open database file)." in shell.nod("doctor", NOD_PORT="0").stdout


def test_doctor_says_why_a_start_could_not_lock_the_database_and_checks_the_rest(shell: Shell):
    shell.nod("db", "upgrade")
    with FileLock(shell.folder / "nod.db"):
        lock = shell.folder / "nod.db.lock"
    (shell.folder / "copy.db").hardlink_to(shell.folder / "nod.db")
    linked = shell.nod("doctor", NOD_PORT="0").stdout
    assert "nod.db has 2 names (hard links)" in linked
    (shell.folder / "copy.db").unlink()
    lock.unlink()
    lock.mkdir()
    unopened = shell.nod("doctor", NOD_PORT="0").stdout
    assert "nod.db.lock (Is a directory)" in unopened
    for checked in (linked, unopened):
        assert checked.count("FAIL") == 1
        assert "warn admins: no one" in checked


def test_doctor_says_that_a_running_nod_at_any_free_port_was_not_asked(shell: Shell):
    shell.nod("db", "upgrade")
    with FileLock(shell.folder / "nod.db"):
        checked = shell.nod("doctor", NOD_PORT="0")
    assert checked.exit_code == 0, checked.stdout
    assert "warn running nod: it took any free port (NOD_PORT=0), so it was not asked." in checked.stdout


def test_doctor_names_each_fault_with_its_fix(shell: Shell):
    (shell.folder / "nod.db").write_bytes(b"not a database at all" * 100)
    (shell.folder / "nod.db").chmod(0o600)
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


def test_doctor_warns_of_an_admin_of_a_channel_that_is_not_set_up(shell: Shell):
    shown = shell.nod("doctor", NOD_PORT="0", NOD_ADMINS="cli:operator,telegram:@ana").stdout
    assert "warn admins telegram:@ana: Telegram is not set up, so no one can act as them" in shown


def test_doctor_warns_where_others_reach_nod_without_a_proxy(shell: Shell):
    given = {"NOD_PORT": "0", "NOD_HOST": "0.0.0.0", "NOD_HTTP_TOKENS": "ana:0123456789abcdef"}  # noqa: S104
    warning = "warn address 0.0.0.0: others reach it without a proxy."
    assert warning in shell.nod("doctor", **given).stdout
    for fine in ({"NOD_HTTP_TRUSTED_PROXIES": "10.0.0.1"}, {"NOD_HOST": "127.0.0.1"}):
        assert "without a proxy" not in shell.nod("doctor", **given | fine).stdout


def test_doctor_warns_of_a_webhook_secret_that_the_libraries_of_receivers_cannot_read(shell: Shell):
    warning = "warn webhooks: libraries of Standard Webhooks can't read NOD_WEBHOOK_SECRET"
    assert warning in shell.nod("doctor", NOD_PORT="0", NOD_WEBHOOK_SECRET="0123456789abcdef").stdout
    assert (
        "webhooks"
        not in shell.nod("doctor", NOD_PORT="0", NOD_WEBHOOK_SECRET="whsec_MDEyMzQ1Njc4OQ==").stdout
    )


def test_a_reply_says_what_to_type_in_a_shell_and_for_a_chat_as_chats_take_it(shell: Shell):
    shell.nod("db", "upgrade")
    refused = shell.nod("approvals", "rules").output
    assert "nod approvals rules is for admins. Ask one of them, or use nod approvals help." in refused
    usage = shell.nod("approvals", "ttl", NOD_ADMINS="cli:operator").output
    assert "Usage: nod approvals ttl 4h" in usage
    assert "`" not in usage
    code = shell.nod("link").stdout
    assert re.search(r"send /nod link (\w+) \(Telegram: /link \1\) from your other account", code)
    assert "Ask for one with nod link." in shell.nod("link", "yes", "slack:T1/U1").output


def test_doctor_tells_wrong_values_and_still_looks_at_the_rest(shell: Shell):
    checked = shell.nod("doctor", NOD_PORT="eighty", NOD_MODEL_STRICT="perhaps", NOD_PROT="1")
    assert checked.exit_code == 1
    assert "FAIL NOD_PORT: 'eighty' is not a number" in checked.stdout
    assert "FAIL NOD_MODEL_STRICT: 'perhaps' is neither true nor false. Use true or false" in checked.stdout
    assert "did you mean NOD_PORT?" in checked.stdout
    assert "ok   database" in checked.stdout


def test_doctor_tells_a_locked_or_unwritable_database(shell: Shell):
    checked = shell.nod("doctor", NOD_PORT="0", NOD_DATABASE_URL="sqlite:///no/such/nod.db")
    assert checked.exit_code == 1
    assert "choose a writable folder" in checked.stdout


def test_doctor_alongside_a_running_nod_takes_its_port_for_its_own(shell: Shell):
    demo = shell.start("demo", PORT="0")
    port = demo.url.rpartition(":")[2]
    checked = shell.nod("doctor", NOD_DATABASE_URL="sqlite:///nod-demo.db", NOD_PORT=port)
    assert checked.exit_code == 0, checked.stdout
    assert "a nod is running on this database" in checked.stdout


def test_doctor_asks_a_running_nod_when_it_heard_its_platforms(shell: Shell):
    async def check() -> tuple[str, str]:
        telegram = FakeTelegram()
        given = {
            "TELEGRAM_API_URL": await telegram.start(),
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "NOD_ADMINS": "telegram:7",
            "NOD_PORT": "0",
        }
        nod = await asyncio.to_thread(shell.start, "run", **given)
        given["NOD_PORT"] = nod.url.rpartition(":")[2]
        heard = (await asyncio.to_thread(shell.nod, "doctor", **given)).stdout
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            given["NOD_PORT"] = str(silent.getsockname()[1])
            lost = (await asyncio.to_thread(shell.nod, "doctor", **given)).stdout
        await telegram.stop()
        return heard, lost

    heard, lost = asyncio.run(check())
    assert re.search(r"^ok   running nod, telegram: heard \d+ s ago$", heard, re.MULTILINE), heard
    assert re.search(r"^FAIL running nod: http://127.0.0.1:\d+ can't be reached", lost, re.MULTILINE), lost


def test_doctor_asks_the_configured_model_server_and_no_other(shell: Shell):
    async def check(key: str) -> str:
        async with OpenAIServer() as server:
            given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": key, "NOD_PORT": "0"}
            return (await asyncio.to_thread(shell.nod, "doctor", **given)).stdout

    assert "it answers, but lists no models" in asyncio.run(check("test-key"))


def test_doctor_starts_each_mcp_server_and_tells_which_do_not_answer_and_why(shell: Shell):
    here = str(Path(lamps.__file__).parents[4])
    server = {"command": sys.executable, "args": [lamps.__file__, "."], "env": {"PYTHONPATH": here}}
    servers = {"lamps": server, "closed": {**server, "allow": []}, "lost": {"command": "no-such-program"}}
    (shell.folder / "tools.json").write_text(
        '[{"name": "evil"}, {"name": "good", "inputSchema": {"type": "object"}},'
        f' {{"name": "wordy", "description": "{"so " * 500}", "inputSchema": {{"type": "object"}}}}]'
    )
    servers["hostile"] = {"command": sys.executable, "args": [hostile.__file__, "tools.json"]}
    (shell.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    checked = shell.nod("doctor", NOD_PORT="0", NOD_MCP_CONFIG="mcp.json")
    assert checked.exit_code == 1
    assert re.search(r"^ok   MCP server lamps: offers \d+ tools$", checked.stdout, re.MULTILINE)
    assert 'ok   MCP server closed: offers no tools; look at its "allow" and "deny"' in checked.stdout
    assert "FAIL MCP server lost: NOD_MCP_CONFIG: there is no program or file 'no-such-pr" in checked.stdout
    left_out = "evil is left out: inputSchema: This is needed.\n"
    found = f"offers 2 tools; {left_out.strip()}; models are not told all of hostile_wordy\n"
    assert f"warn MCP server hostile: {found}" in checked.stdout
    assert checked.stderr == ""
    listed = shell.nod("tools", "list", NOD_MCP_CONFIG="mcp.json")
    assert f"nod: the MCP server hostile: {left_out}" in listed.stderr
    untold = "nod: models are not told all of hostile_wordy: the end of its description\n"
    assert untold in listed.stderr

    servers["lamps"]["env"]["LAMP_TOKEN"] = "${LAMP_TOKEN}"
    (shell.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    checked = shell.nod("doctor", NOD_PORT="0", NOD_MCP_CONFIG="mcp.json")
    assert "FAIL tools: mcp.json: server 'lamps': env.LAMP_TOKEN: the environment" in checked.stdout


@pytest.mark.parametrize("url", ["unix:///tmp/no-such.sock", "nowhere", "tcp://127.0.0.1:1"])
def test_doctor_tells_a_docker_daemon_that_cannot_be_reached(shell: Shell, url):
    checked = shell.nod("doctor", NOD_PORT="0", NOD_DOCKER_URL=url)
    assert checked.exit_code == 1
    assert f"FAIL Docker at {url}: NOD_DOCKER_URL: The Docker daemon at {url} cannot be" in checked.stdout


def test_doctor_lists_own_tools_and_a_start_without_them_stops_with_one_line(shell: Shell):
    (shell.folder / "seats.py").write_text(
        "from bot.tools.decorator import tool\n\n@tool(writes=False)\nasync def look() -> str: ...\n"
    )
    # as the installed command: Python itself does not look in the current folder then
    found = shell.process("doctor", NOD_PORT="0", NOD_TOOLS="seats", PYTHONSAFEPATH="1")
    assert "ok   tools of seats: look" in found.stdout, found.stdout
    checked = shell.nod("doctor", NOD_PORT="0", NOD_TOOLS="seat")
    assert "FAIL tools: NOD_TOOLS: seat: there is no module seat; install it" in checked.stdout
    stopped = shell.nod("run", NOD_PORT="0", NOD_TOOLS="seat")
    assert (stopped.exit_code, stopped.stdout, stopped.stderr.count("\n")) == (1, "Starting…\n", 1)
    assert stopped.stderr.startswith("nod: NOD_TOOLS: seat: there is no module seat")
    (shell.folder / "seats.py").write_text(
        "from bot.tools.decorator import tool\n\n@tool(writes=False)\nasync def list_issues() -> str: ...\n"
    )
    taken = shell.process("run", NOD_PORT="0", NOD_TOOLS="seats")
    assert taken.returncode == 1
    assert (
        taken.stderr.strip()
        .splitlines()[-1]
        .startswith("nod: NOD_TOOLS: 'list_issues' in seats has the name")
    )


def test_a_database_without_its_schema_version_is_refused_in_one_line(shell: Shell):
    shell.nod("db", "upgrade")
    with closing(sqlite3.connect("nod.db")) as database, database:
        database.execute("DELETE FROM alembic_version")
    for words in (("doctor",), ("run",), ("db", "upgrade"), ("pending",)):
        told = shell.nod(*words, NOD_PORT="0")
        assert told.exit_code == 1
        assert "but no schema version. Restore a backup, or name an empty one." in told.output


def test_a_database_that_lost_a_table_does_not_start(shell: Shell):
    shell.nod("db", "upgrade")
    with closing(sqlite3.connect("nod.db")) as database, database:
        database.execute("DROP TABLE turn")
    for words in (("doctor",), ("run",)):
        told = shell.nod(*words, NOD_PORT="0")
        assert told.exit_code == 1
        assert "parts of it are missing (turn). Restore a backup." in told.output


def test_doctor_fails_for_secrets_that_others_can_read(shell: Shell):
    shell.nod("db", "upgrade")
    Path(".env").write_text("NOD_PORT=0\n")
    for name in (".env", "nod.db"):
        Path(name).chmod(0o640)
    checked = shell.nod("doctor", NOD_PORT="0")
    assert checked.exit_code == 1
    for name in (".env", "nod.db"):
        fix = f"FAIL file {name}: others on this machine can read it. Run: chmod 600 {name}"
        assert fix in checked.output
        Path(name).chmod(0o600)
    assert "others on this machine" not in shell.nod("doctor", NOD_PORT="0").output


def test_a_backup_is_made_of_a_running_nod_and_replaces_nothing(demo: Demo):
    shell = demo.shell
    given = {"NOD_DATABASE_URL": "sqlite:///nod-demo.db"}
    assert shell.nod("db", "backup", "copy.db", **given).stdout == "Copied nod-demo.db to copy.db.\n"
    again = shell.nod("db", "backup", "copy.db", **given)
    assert (again.exit_code, again.stderr) == (
        1,
        "nod: cannot write copy.db (File exists). Name a new file.\n",
    )
    copy = {"NOD_DATABASE_URL": "sqlite:///copy.db"}
    assert shell.nod("pending", **copy).stdout == "Nothing is waiting for a decision.\n"
    assert shell.nod("backup", "second.db", **given).stdout == "Copied nod-demo.db to second.db.\n"


async def test_doctor_says_where_no_one_is_signed_in_and_how_and_makes_no_file(shell: Shell):
    server = HttpLamps(shell.folder, Gatekeeper())
    await server.up()
    (shell.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"lamps": {"url": server.url}}}))
    given = {"NOD_PORT": "0", "NOD_MCP_CONFIG": "mcp.json", "NOD_PUBLIC_URL": "https://nod.example"}
    checked = await asyncio.to_thread(shell.nod, "doctor", **given)
    await server.down()
    words = "no one is signed in there. Run: nod mcp login lamps, or sign in at https://nod.example/#/rules"
    assert f"FAIL MCP server lamps: {words}\n" in checked.stdout
    assert not (shell.folder / "nod.db").exists()


def test_a_reply_names_the_commands_of_the_shell(shell: Shell, parked: list[str]):
    operator = Actor("cli", "operator")
    fact = Fact(0, "Ana likes tea.", (About.PERSON, str(operator)), operator, now(), None)
    database = Database(f"sqlite:///{shell.folder / 'nod.db'}")
    database.write_now(add_fact, fact, Author.of_person(Act.REMEMBER, operator, Person(operator.key)))
    database.close()
    assert "\nnod memory forget NUMBER forgets one." in shell.nod("memory").stdout
