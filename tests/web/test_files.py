"""Files over the API: a form with them says something, and they are handed out as attachments alone."""

import pytest

from bot.domain.model import UserText
from tests.kit import files as sent
from tests.web.conftest import ANA, BEN, TOKENS, Json, Serve, Served

CSV = ("table.csv", b"name,sum\nAna,12\n", "image/svg+xml")


async def said(nod: Served, *files: tuple[str, bytes, str], **fields: str) -> list[Json]:
    form = {"data": fields, "files": [("files", each) for each in files]}
    async with nod.stream("POST", "/api/chat", **form) as stream:
        return await stream.rest()


def heard(nod: Served) -> str:
    return [entry.text for entry in nod.model.seen[-1] if isinstance(entry, UserText)][-1]


async def test_a_message_brings_files(serve: Serve) -> None:
    async with serve() as nod:
        accepted, waiting, *_, done = await said(nod, CSV, message="What is in it?")
        assert waiting["type"] != "error"
        assert done["type"] == "done"
        assert heard(nod).startswith("What is in it?\n\n[From a file")
        assert heard(nod).endswith("| name,sum\n| Ana,12")
        messages = await nod.client.get(f"/api/conversations/{accepted['conversation_id']}/messages")
        [line, _] = messages.json()["messages"]
        [file] = line["files"]
        assert file | {"id": ""} == {
            "id": "", "name": "table.csv", "size": 16, "kind": "text/plain", "fault": ""
        }  # fmt: skip


async def test_files_alone_continue_a_conversation(serve: Serve) -> None:
    async with serve() as nod:
        ident = (await nod.chat("Hi"))[0]["conversation_id"]
        events = await said(nod, CSV, CSV, conversation_id=ident)
        assert events[0]["conversation_id"] == ident
        assert heard(nod).count("| Ana,12") == 2


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.svg", b"<svg onload='alert(1)'/>", "application/octet-stream"),
        ("a.html", b"<!doctype html><p>Hi<script>alert(1)</script>", "application/octet-stream"),
        ("a.png", sent.picture(place="Rathausplatz"), "image/jpeg"),
    ],
)
async def test_a_file_is_handed_out_as_an_attachment(serve: Serve, name: str, data: bytes, kind: str) -> None:
    async with serve(NOD_HTTP_TOKENS=",".join(TOKENS), token=ANA) as nod:
        accepted, *_ = await said(nod, (name, data, "text/html"), message="Look")
        path = f"/api/conversations/{accepted['conversation_id']}"
        [file] = (await nod.client.get(f"{path}/messages")).json()["messages"][0]["files"]
        answer = await nod.client.get(f"{path}/files/{file['id']}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == kind
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        assert b"Rathausplatz" not in answer.content
        async with nod.caller(BEN) as ben:
            assert (await ben.get(f"{path}/files/{file['id']}")).status_code == 404


async def test_what_can_not_be_read_is_a_notice(serve: Serve) -> None:
    async with serve() as nod:
        accepted, *_ = await said(nod, ("clip.mp4", b"\0\0\0\x20ftypisom", "video/mp4"), message="Look")
        messages = await nod.client.get(f"/api/conversations/{accepted['conversation_id']}/messages")
        notices = [each["text"] for each in messages.json()["messages"] if each["role"] == "notice"]
        assert notices == ["I can't read clip.mp4: it is a video."]


@pytest.mark.parametrize(
    ("files", "status", "words"),
    [
        ([CSV] * 11, 400, "Too many files. Maximum number of files is 10."),
        ([("a.bin", bytes(10_000_000), "")] * 3, 413, "The body is larger than 19787 KiB"),
        ([], 422, "message"),
    ],
    ids=["many", "large", "none"],
)
async def test_too_much_is_refused_in_words(
    serve: Serve, files: list[tuple[str, bytes, str]], status: int, words: str
) -> None:
    async with serve() as nod:
        form = [("files", each) for each in files] or [("other", (None, "x"))]
        answer = await nod.client.post("/api/chat", files=form)
        assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


async def test_who_has_no_token_uploads_nothing(serve: Serve) -> None:
    async with serve(NOD_HTTP_TOKENS=",".join(TOKENS)) as nod:
        answer = await nod.client.post("/api/chat", files=[("files", CSV)])
        assert answer.status_code == 401


async def test_a_broken_form_is_refused(serve: Serve) -> None:
    async with serve() as nod:
        kind = {"content-type": "multipart/form-data"}
        answer = await nod.client.post("/api/chat", content=b"--x", headers=kind)
        assert answer.status_code == 400
        assert answer.json()["ok"] is False
