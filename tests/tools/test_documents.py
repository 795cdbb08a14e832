"""What is in a file is read by its bytes, in a process of its own, or refused in words."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from io import BytesIO

import pytest
from PIL import Image

from bot.domain.attachments import DOCX, PDF, TEXT, XLSX, FileContent, type_of
from bot.tools.documents import MAX_TEXT_CHARS, Documents
from tests.kit import files

pytestmark = pytest.mark.slow

Make = Callable[[], bytes]
"""Large files, and those whose libraries are large, are made where they are read: each process collects."""


async def read(data: bytes) -> FileContent:
    return await Documents().read(data)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (partial(files.pdf, "Paid in full"), PDF, "[Page 1]\nPaid in full"),
        (partial(files.docx, "Hello", "World"), DOCX, "Hello\nWorld\nleft\tright"),
        (partial(files.xlsx, [["name", "sum"], ["Ana", 12.5]]), XLSX, "[Sheet Sheet]\nname\tsum\nAna\t12.5"),
        (lambda: b"<!DOCTYPE html><title>T</title><script>x</script><p>Seen", "text/html", "# T\nSeen"),
    ],
    ids=["pdf", "docx", "xlsx", "html"],
)
async def test_the_text_of_documents_is_read(make: Make, kind: str, text: str) -> None:
    data = make()
    assert await read(data) == FileContent(kind, text, "", data)


@pytest.mark.parametrize(
    "data", ["naïve,1\r\n".encode(), "naïve,1\r\n".encode("cp1252"), "naïve,1\r\n".encode("utf-16")]
)
async def test_plain_text_is_read_as_it_was_written(data: bytes) -> None:
    found = await read(data)
    assert found.kind == TEXT
    assert found.text == "naïve,1\r\n"
    assert found.data == data


async def test_of_a_long_text_the_beginning_is_read_and_said_to_be_that() -> None:
    found = await read(b"x" * (MAX_TEXT_CHARS + 10))
    assert found.text.startswith("x" * MAX_TEXT_CHARS + "\n[The rest of the file is left out")
    assert found.note == "Only its first 400,000 characters are read."


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (b"", "it is empty"),
        (b"\0\1\2", "it is of a kind I don't know"),
        (b"\0\0\0\x20ftypisom" + bytes(50), "it is a video"),
        (b"OggS" + bytes(50), "it is a recording"),
        (b"MZ" + bytes(50), "it is a program"),
        (b"PK\x03\x04 and nothing", "it is damaged, or not what it says it is"),
        (b"%PDF-1.7 and nothing", "it is damaged, or not what it says it is"),
        (partial(files.pdf, ""), "there is no text in it. Page 1 holds no text"),
        (
            lambda: files.xlsx([[1]], more={"xl/sharedBomb.xml": bytes(120_000_000)}),
            "it unpacks to more than I read",
        ),
        (partial(files.huge_picture, 30_000), "it has 30,000 by 30,000 pixels, more than I read"),
        (b"\x89PNG\r\n\x1a\n" + b"not at all", "it is damaged, or not what it says it is"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_can_not_be_read_is_said(made: bytes | Make, why: str) -> None:
    assert (await read(made if isinstance(made, bytes) else made())).fault == why


@pytest.mark.slow
async def test_a_document_that_never_ends_is_given_up() -> None:
    found = await read(files.pdf_of_many_objects(150_000))
    assert found.fault in (
        "it takes too long or too much memory to read",
        "it is damaged, or not what it says it is",
    )


async def test_a_spreadsheet_is_read_up_to_a_bound() -> None:
    found = await read(files.xlsx([[12345678] * 100] * 1_100))
    assert "more rows of this sheet are left out.]" in found.text
    assert found.note.startswith("Left out: ")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
async def test_a_picture_is_scaled_and_loses_where_it_was_taken(kind: str) -> None:
    data = files.picture(kind, (3_000, 200), place="Rathausplatz 7" if kind != "GIF" else "")
    found = await read(data)
    assert found.kind == "image/jpeg"
    assert found.data is not None
    assert b"Rathausplatz" not in found.data
    with Image.open(BytesIO(found.data)) as seen:
        assert seen.size == (1600, 107)
        assert not seen.getexif()


def test_what_a_file_is_its_bytes_say() -> None:
    assert type_of(files.picture()) == "image/png"
    assert type_of(b"<svg onload='x()'/>") == TEXT


def test_the_libraries_are_loaded_by_the_reader_alone() -> None:
    code = (
        "import asyncio, sys; import bot.app.assembly; from bot.tools.documents import Documents;"
        "asyncio.run(Documents().read(b'%PDF-1.4'));"
        "print({'pypdf', 'docx', 'openpyxl', 'PIL', 'lxml'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout == "set()\n"
