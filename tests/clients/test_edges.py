"""No consent comes out of an edge that stumbles: the hook, the shell command, the client, its adapters."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nod_client import AsyncNod, End, Nod, NodError, Unsendable
from nod_client.mcp import Approvals
from nod_client.shell import NOT_ASKED, main
from tests.clients.conftest import Ticks

HOOK = Path(__file__).parents[2] / "examples" / "hook.py"
CLIENT = str(HOOK.parents[1] / "clients" / "python")
TOKEN = "t" * 20
TOOL, INPUT = "Bash", {"command": "rm -rf build"}
DEEP = "[" * 100_000


def shown(**changed: Any) -> dict[str, Any]:
    """What Nod answers about an approved use of a tool, with some fields changed."""
    given = {
        "id": "r1",
        "end": "approved",
        "arguments": {"tool_name": TOOL, "input": INPUT},
        "expires_at": "2026-12-01T10:00:00+00:00",
        "decided_by": "ben",
        "edited_by": None,
        "decline_reason": None,
    }
    return given | changed


def answer(**changed: Any) -> bytes:
    return json.dumps({"ok": True, "proposal": shown(**changed)}).encode()


HALVES = ["\ud83d", "a\udc00b", "\udfff\ud800", "\U0001f600\ud83d"]
ODD_INPUTS: list[Any] = [
    *({"command": f"rm -rf build # {half}"} for half in HALVES),
    *({half: "x"} for half in HALVES),
    *({"edits": [{"new": half}]} for half in HALVES),
    {"n": float("nan")},
    {"n": float("inf")},
    {"n": [float("-inf")]},
]
ODD_STDIN = [
    *(json.dumps({"tool_name": TOOL, "tool_input": given}).encode() for given in ODD_INPUTS),
    *(json.dumps({"tool_name": half, "tool_input": {}}).encode() for half in HALVES),
    b"",
    b" ",
    b"\x00",
    b"\xff\xfe",
    b"null",
    b"true",
    b"1",
    b'"text"',
    b"[]",
    b"[1, 2]",
    b"{}",
    b"{",
    b'{"tool_name": "Bash"}',
    b'{"tool_input": {}}',
    b'{"tool_name": "Bash", "tool_input": null}',
    b'{"tool_name": "Bash", "tool_input": "text"}',
    b'{"tool_name": "Bash", "tool_input": 5}',
    b'{"tool_name": "Bash", "tool_input": [5]}',
    b'{"tool_name": {}, "tool_input": {}} x',
    b'{"tool_name": "Bash", "tool_input": {}} {"tool_name": "Bash"}',
    DEEP.encode(),
    b'{"tool_name": "Bash", "tool_input": {"a": ' + DEEP.encode(),
    b'{"tool_name": "Bash", "tool_input": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
    b'{"tool_name": "Bash", "tool_input": {"n": ' + b"9" * 5000 + b"}}",
    '{"tool_name": "Bash", "tool_input": {}}'.encode("utf-16")[1:],
]
NO_CONSENTS = [
    b"",
    b"null",
    b"[]",
    b"1",
    b'"approved"',
    b"<html>approved</html>",
    b"\xff\xfe\x00",
    b"{",
    DEEP.encode(),
    b'{"ok": true, "proposal": ' + DEEP.encode(),
    b"{}",
    b'{"ok": true}',
    b'{"ok": true, "proposal": null}',
    b'{"ok": true, "proposal": []}',
    b'{"ok": true, "proposal": "approved"}',
    b'{"ok": true, "proposal": {}}',
    b'{"ok": true, "proposal": {"end": "approved"}}',
    b'{"ok": false, "error": {"a": 1}, "fields": 5}',
    b'{"ok": 1, "proposal": {"end": "approved"}}',
    json.dumps({"ok": 1, "proposal": shown()}).encode(),
    json.dumps({"ok": "true", "proposal": shown()}).encode(),
    json.dumps({"ok": [True], "proposal": shown()}).encode(),
    json.dumps({"ok": True, "proposal": [shown()]}).encode(),
    *(
        answer(end=end)
        for end in ["APPROVED", "approved ", "Approved", "yes", "", None, True, 1, ["approved"]]
    ),
    *(answer(end=end) for end in ["declined", "expired", "cancelled", "failed", "outcome_unknown"]),
    *(
        answer(arguments=given)
        for given in [None, [], "x", {}, {"input": []}, {"input": None}, {"input": "x"}]
    ),
    answer(arguments={"tool_name": "Other", "input": INPUT}),
    answer(arguments={"tool_name": TOOL, "input": {"command": "rm -rf /"}}),
    answer(arguments={"tool_name": TOOL, "input": INPUT | {"more": 1}}),
    *(answer(id=ident) for ident in [None, 5, "", "../x", "a b", "a\r\nb", ["r1"]]),
    *(answer(expires_at=when) for when in [None, 5, "", "soon", "2026-13-01"]),
    *(answer(decided_by=who) for who in [5, [], {}, True]),
    *(answer(edited_by=who) for who in [5, [], {}, True, False]),
]


class AnyServer:
    """A server that answers each request with the body it was given, whatever was asked."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.status = 200
        self.url = ""
        self.asked = 0
        self.held: asyncio.Event | None = None  # is set by a request that is never answered

    async def reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            await reader.readexactly(length)
            if self.held is not None:
                self.held.set()
                await reader.read()  # until the caller leaves
            body = self.bodies[min(self.asked, len(self.bodies) - 1)]
            self.asked += 1
            head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    def say(self, *bodies: bytes, status: int = 200) -> None:
        self.bodies, self.status, self.asked = list(bodies), status, 0


@pytest.fixture
async def any_server() -> AsyncIterator[AnyServer]:
    made = AnyServer()
    server = await asyncio.start_server(made.reply, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


@pytest.fixture
async def nod(any_server: AnyServer) -> AsyncIterator[AsyncNod]:
    ticks = Ticks()
    async with AsyncNod(any_server.url, TOKEN, patience=5, clock=ticks, sleep=ticks.sleep) as made:
        yield made


class Tool:
    """An MCP client that counts the calls which reach it."""

    def __init__(self) -> None:
        self.calls: list[Mapping[str, Any]] = []

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        self.calls.append({"name": name, "arguments": arguments})


async def test_only_an_approval_of_what_was_asked_lets_a_call_through(any_server: AnyServer, nod: AsyncNod):
    tool = Tool()
    for body in NO_CONSENTS:
        any_server.say(body)
        with contextlib.suppress(NodError):
            assert (await Approvals(nod).call_tool(tool, TOOL, INPUT)).is_error
    assert tool.calls == []
    any_server.say(answer())
    await Approvals(nod).call_tool(tool, TOOL, INPUT)
    any_server.say(answer(arguments={"tool_name": TOOL, "input": {"command": "ls"}}, edited_by="ben"))
    await Approvals(nod).call_tool(tool, TOOL, INPUT)
    assert [call["arguments"] for call in tool.calls] == [INPUT, {"command": "ls"}]


async def test_an_answer_about_another_request_is_no_consent(any_server: AnyServer, nod: AsyncNod):
    any_server.say(answer(end="waiting"), answer(id="r2"))
    with pytest.raises(NodError, match="another request"):
        await nod.permit(TOOL, INPUT)


async def test_an_error_status_is_no_consent_whatever_its_body_says(any_server: AnyServer, nod: AsyncNod):
    for status in (302, 400, 403, 404, 409, 422, 429, 500, 503):
        any_server.say(b'{"ok": false, "error": "No."}', status=status)
        with pytest.raises(NodError):
            await nod.permit(TOOL, INPUT)


async def test_a_question_that_json_cant_hold_is_refused_before_it_is_sent(
    any_server: AnyServer, nod: AsyncNod
):
    any_server.say(answer())
    for given in ODD_INPUTS:
        with pytest.raises(Unsendable):
            await nod.permit(TOOL, given)
    for half in HALVES:
        with pytest.raises(Unsendable):
            await nod.ask(half)
    assert any_server.asked == 0


async def test_a_key_that_no_header_can_hold_is_still_one_key(any_server: AnyServer, nod: AsyncNod):
    any_server.say(answer())
    for key in ("größe", "a\nb", " a", "a\ud83d", "x\x00"):
        assert (await nod.permit(TOOL, INPUT, key=key)).end is End.APPROVED


async def test_a_body_without_end_is_given_up(any_server: AnyServer, nod: AsyncNod):
    any_server.say(b" " * (17 * 1024 * 1024))
    with pytest.raises(NodError, match="more than"):
        await nod.permit(TOOL, INPUT)


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("http://", "", "NOD_URL"),
        ("http://a:b:c", "", "NOD_URL"),
        ("ftp://x", "", "NOD_URL"),
        ("http://127.0.0.1:9", "half\ud83d", "NOD_TOKEN"),
        ("http://127.0.0.1:9", "a\nb", "NOD_TOKEN"),
    ],
)
def test_settings_that_can_reach_nothing_are_told_by_name(url: str, token: str, words: str):
    with pytest.raises(NodError, match=words):
        Nod(url, token)


def test_a_proxy_that_needs_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(NodError, match="proxy"):
        Nod("http://127.0.0.1:9", TOKEN)


FORKS = """
import os, runpy, sys
import nod_client
for name in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(name, os.O_RDONLY), 0)
        os.dup2(os.open(name + ".out", os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(os.open(name + ".err", os.O_WRONLY | os.O_CREAT), 2)
        runpy.run_path(sys.argv[1], run_name="__main__")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


async def run_hook(any_server: AnyServer, folder: Path, *given: bytes) -> list[tuple[int, str, str]]:
    """Return code, standard output and standard error of the hook for each input, from one warm process."""
    names = []
    for number, content in enumerate(given):
        (folder / str(number)).write_bytes(content)
        names.append(str(folder / str(number)))
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        FORKS,
        str(HOOK),
        *names,
        stdout=subprocess.PIPE,
        env={
            "NOD_URL": any_server.url,
            "NOD_TOKEN": TOKEN,
            "PYTHONPATH": CLIENT,
        },
    )
    codes = [int(line) for line in (await child.communicate())[0].split()]
    return [(code, *read_outputs(name)) for code, name in zip(codes, names, strict=True)]


def read_outputs(name: str) -> tuple[str, str]:
    return Path(name + ".out").read_text(), Path(name + ".err").read_text()


async def test_the_hook_blocks_whatever_it_is_given_that_no_one_approved(
    any_server: AnyServer, tmp_path: Path
):
    any_server.say(answer(end="declined"))
    for code, out, err in await run_hook(any_server, tmp_path, *ODD_STDIN, b" " * 10_000_000):
        assert code == 2
        assert out == ""
        assert err.startswith("Nod: the use is blocked. ")


async def test_the_hook_blocks_whatever_the_server_answers(any_server: AnyServer, tmp_path: Path):
    use = json.dumps({"tool_name": TOOL, "tool_input": INPUT}).encode()
    any_server.say(answer())
    [(code, out, _)] = await run_hook(any_server, tmp_path, use)
    assert (code, json.loads(out)["hookSpecificOutput"]["permissionDecision"]) == (0, "allow")
    any_server.say(*NO_CONSENTS)
    for code, out, _ in await run_hook(any_server, tmp_path, *[use] * len(NO_CONSENTS)):
        assert code == 2 or json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert any_server.asked == len(NO_CONSENTS)


async def test_the_hook_blocks_when_it_is_ended_while_it_waits(any_server: AnyServer):
    any_server.held = asyncio.Event()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        HOOK,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"NOD_URL": any_server.url, "NOD_TOKEN": TOKEN, "PYTHONPATH": CLIENT},
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps({"tool_name": TOOL, "tool_input": INPUT}).encode())
    child.stdin.close()
    await any_server.held.wait()
    child.terminate()
    out, err = await child.communicate()
    assert (child.returncode, out) == (2, b"")
    assert b"before anyone decided" in err


@pytest.mark.parametrize("redirect", ["", ">&-", ">/dev/full", "<&-"])
async def test_the_hook_blocks_where_its_surroundings_are_broken(
    any_server: AnyServer, tmp_path: Path, redirect: str
):
    any_server.say(answer())
    if not redirect:
        (tmp_path / "nod_client.py").write_text("raise ImportError('gone')\n")
    (tmp_path / "use").write_text(json.dumps({"tool_name": TOOL, "tool_input": INPUT}))
    child = await asyncio.create_subprocess_shell(
        f"{sys.executable} {HOOK} <{tmp_path}/use {redirect}",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"NOD_URL": any_server.url, "NOD_TOKEN": TOKEN, "PYTHONPATH": f"{tmp_path}:{CLIENT}"},
    )
    out, err = await child.communicate()
    assert (child.returncode, out) == (2, b"")
    assert err


async def test_the_shell_command_says_not_asked_where_no_one_can_read_what_was_approved(
    any_server: AnyServer,
):
    any_server.say(answer(arguments={"summary": "Deploy?"}))
    child = await asyncio.create_subprocess_shell(
        f"{sys.executable} -m nod_client.shell 'Deploy?' >/dev/full",
        stderr=subprocess.PIPE,
        env={"NOD_URL": any_server.url, "NOD_TOKEN": TOKEN, "PYTHONPATH": CLIENT},
    )
    await child.communicate()
    assert child.returncode == NOT_ASKED


def test_the_shell_command_tells_what_it_cant_send_from_a_no(
    any_server: AnyServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NOD_URL", any_server.url)
    for words in (["half\ud83d"], ["x", "--field", "a=\udc00"], ["x", "--details", "\ud83d"]):
        assert main(words) == NOT_ASKED
