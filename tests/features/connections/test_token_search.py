"""No token stands anywhere but where it is encrypted: searched in every form, also in what is compressed."""

import base64
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import make_url

from bot.domain.connections import encodings_of
from bot.domain.proposal_states import State
from bot.store.backups import back_up
from bot.telemetry import logs
from bot.testing.world import Says
from tests.features.connections.conftest import Browser
from tests.features.connections.office import ANA, BEN, Office
from tests.kit import FakeClock, make_tables
from tests.kit.urls import plain
from tests.web.test_tracing import Collector

pytestmark = pytest.mark.slow

PG_DUMP = shutil.which("pg_dump") or "pg_dump"
_HEADS = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")  # of gzip, and of zlib's levels
_MOST = 5_000_000  # bytes that one stream may unfold to
CHILD = "import json, os; open('child.json', 'w').write(json.dumps(dict(os.environ)))"


def unfold(data: bytes) -> Iterator[bytes]:
    """The data, and whatever in it is compressed by zlib or gzip."""
    yield data
    for head in _HEADS:
        at = data.find(head)
        while at >= 0:
            try:
                found = zlib.decompressobj(wbits=47).decompress(data[at:], _MOST)
            except zlib.error:
                found = b""
            if len(found) > len(head):
                yield found
            at = data.find(head, at + 1)


def find(secrets: Iterable[str], data: bytes | str) -> list[str]:
    """The secrets that stand in the data in some form, by their first letters."""
    whole = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    parts = list(unfold(whole))
    return [
        secret[:6]
        for secret in secrets
        if any(form.encode() in part for form in encodings_of([secret]) for part in parts)
    ]


@pytest.mark.parametrize(
    "hide",
    [
        str.encode,
        lambda secret: quote(secret, safe="").encode(),
        lambda secret: base64.b64encode(f"Bearer {secret}".encode()),
        lambda secret: base64.urlsafe_b64encode(f"x{secret}".encode()),
        lambda secret: json.dumps({"a": secret}).encode(),
        lambda secret: b"..." + zlib.compress(secret.encode()) + b"...",
        lambda secret: b"..." + gzip.compress(secret.encode()),
        lambda secret: zlib.compress(base64.b64encode(secret.encode())),
    ],
)
def test_the_search_finds_what_is_hidden_from_it(hide) -> None:
    secret = 'mark-/+"é' + "x9Zk" * 8
    assert find([secret], hide(secret)) == [secret[:6]]
    assert find([secret], b"nothing") == []


def read_files(folder: Path) -> dict[str, bytes]:
    return {f"file {path.name}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tokens_of(office: Office) -> set[str]:
    """Every token that is out there now; a code is used up."""
    people = office.tracker.people
    return {*people.tokens, *people.renewals, *(each for each in office.hub.seen if each[:2] != "c-")}


def dump_postgres(url: str, folder: Path, form: str) -> bytes:
    """What a backup of this schema has: as statements, or compressed by PostgreSQL."""
    [schema] = re.findall(r"search_path%3D(\w+)", url) or re.findall(r"search_path=(\w+)", url)
    server = plain(str(make_url(url).set(query={})))
    made = [PG_DUMP, "--format", form, "--schema", schema, "--dbname", server]
    data = subprocess.run(made, check=True, capture_output=True).stdout  # noqa: S603 - of this machine
    (folder / f"backup.{form}").write_bytes(data)
    return data


def back_up_all(url: str, folder: Path) -> dict[str, bytes]:
    """The database as it is stored, and as backups keep it."""
    if not url.startswith("sqlite"):
        return {f"backup as {form}": dump_postgres(url, folder, form) for form in ("plain", "custom", "tar")}
    database = Path(url.removeprefix("sqlite:///"))
    back_up(database, folder / "copy.db", lambda *_: None)
    with sqlite3.connect(folder / "copy.db") as copy:
        statements = "\n".join(copy.iterdump())
    return {"database": database.read_bytes(), "backup as statements": statements.encode()}


async def ask_over_http(office: Office, chief: httpx.AsyncClient) -> str:
    """Connect an account over HTTP, and read and change with it; the export of that conversation."""
    office.tracker.people.user = "chief"
    link = (await chief.post("/api/connections/tracker/link")).json()["url"]
    async with httpx.AsyncClient(timeout=20) as browser:
        page = await Browser(str(chief.base_url).rstrip("/"), browser).sign_in(link)
    digits = page.text.split('class="digits"><strong>')[1][:6]
    confirmed = await chief.post("/api/connections/confirm", json={"digits": digits})
    assert "(chief)" in confirmed.text
    office.model.answers.extend((
        Says("I look.", (("tracker_list_issues", {}),)),
        Says("Shall I?", (("tracker_close_issue", {"number": 4, "approval_reason": "done"}),)),
    ))  # fmt: skip
    said = await chief.post("/api/chat", json={"message": "close 4"})
    conversation = json.loads(said.text.partition("data: ")[2].partition("\n")[0])["conversation_id"]
    await office.idle()
    [p] = [each for each in office.proposals(State.PROPOSED) if each.conversation_id == conversation]
    pressed = await chief.post(f"/api/proposals/{p.id}/approve?wait=20", json={})
    assert pressed.json()["proposal"]["state"] == "succeeded", pressed.text
    await office.idle()
    export = await chief.get(f"/api/conversations/{conversation}/export")
    assert "chief closed #4" in export.text
    return export.text


async def test_no_token_is_found_anywhere(
    database_url: str,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    logs.configure("debug")
    collector = Collector()
    make_tables(url := database_url)
    child = {"command": sys.executable, "args": ["-c", CHILD], "env": {"KEPT": "yes"}}
    more = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "NOD_ADMINS": "http:chief",
        "NOD_HTTP_TOKENS": "chief:the-chiefs-own-long-token",
    }
    office = Office(url, clock, tmp_path, more=more, servers={"child": child})
    tokens: set[str] = set()
    said: list[str] = []
    try:
        await office.open()
        for who in (ANA, BEN):
            for server in ("tracker", "hub"):
                said.append(await office.connect(who, server))
                tokens |= tokens_of(office)
        close = ("hub_close_issue", {"number": 1, "approval_reason": "done"})
        await office.whisper(ANA, "mine?", Says("I look.", (("tracker_list_issues", {}),)), Says("One."))
        await office.say(ANA, "close 1", Says("Shall I?", (close,)))
        [p] = await office.find_open()
        await office.press(ANA, "Approve", p)
        office.tracker.people.end_tokens()
        office.hub.end_tokens()
        await office.whisper(BEN, "mine?", Says("I look.", (("tracker_list_issues", {}),)), Says("One."))
        await office.whisper(BEN, "mine?", Says("I look.", (("hub_list_issues", {}),)), Says("One."))
        tokens |= tokens_of(office)
        said.append(await office.command(ANA, "/nod connections"))
        said.append(await office.command(ANA, "/nod connections end tracker"))
        headers = {"Authorization": "Bearer the-chiefs-own-long-token"}
        address = f"http://127.0.0.1:{office.app.web.port}"
        async with httpx.AsyncClient(base_url=address, headers=headers) as chief:
            listed = ("/api/connections", "/api/proposals", "/api/audit/export", "/api/mcp", "/api/status")
            said += [(await chief.get(path)).text for path in listed]
            said.append(await ask_over_http(office, chief))
            tokens |= tokens_of(office)
        await office.idle()
    finally:
        await office.close()
        collector.close()
    kept = back_up_all(url, tmp_path)
    captured = capfd.readouterr()
    places: dict[str, bytes | str] = {
        "logs": captured.out + captured.err,
        "prompts": str(office.model.seen),
        "Slack": str([(m.text, m.markdown, m.blocks) for m in office.slack.posted]) + str(office.slack.homes),
        "Telegram": str(office.telegram.messages),
        "answers": "\n".join(said),
        "traces": b"".join(each.SerializeToString() for each in collector.requests),
        "this environment": str(dict(os.environ)),
        **read_files(tmp_path),
        **kept,
    }
    assert "KEPT" in str(places["file child.json"])
    assert len(tokens) > 10
    assert {name: found for name, data in places.items() if (found := find(tokens, data))} == {}
    assert captured.err.count("\n") > 20
    assert collector.spans
