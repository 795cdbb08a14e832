"""The yardstick of files: each is read right, or what was left out of it is said."""

import ast
import asyncio
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from bot.domain.attachments import FileContent
from bot.tools.documents import MAX_TEXT_CHARS, Documents
from tests.tools.yardstick import Case, hidden, open_document, pages, pdf, pictures, sheets, texts, word

pytestmark = pytest.mark.slow

CASES = [
    case
    for each in (word, open_document, sheets, texts, pages, pdf, pictures, hidden)
    for case in each.cases()
]


def test_the_yardstick_is_long_enough() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(CASES) >= 450


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_file_is_read_or_what_was_left_out_is_said(case: Case) -> None:
    found = await Documents().read(case.make())
    assert case.fault in found.fault
    assert bool(found.fault) == bool(case.fault)
    for words in case.reads:
        assert words in found.text
    for words in case.notes:
        assert words in found.note
    for words in case.never:
        assert words not in found.text_for_model
    if case.size:
        assert seen(found).size == case.size


async def test_sixteen_bits_of_grey_keep_their_levels() -> None:
    for kind in ("PNG", "TIFF"):
        drawn = seen(await Documents().read(pictures.deep(kind))).convert("L")
        levels = [drawn.getpixel((at, 20)) for at in (0, 64, 128, 192, 255)]
        assert all(abs(level - at) <= 4 for level, at in zip(levels, (0, 64, 128, 192, 255), strict=True))


async def test_levels_beyond_sixteen_bits_are_scaled_by_their_range() -> None:
    measured = Image.new("F", (256, 40))
    measured.putdata([60_000 + 40.0 * column for _ in range(40) for column in range(256)])
    drawn = seen(await Documents().read(pictures.saved(measured, "TIFF"))).convert("L")
    assert drawn.getpixel((0, 20)) < 8
    assert 120 < drawn.getpixel((128, 20)) < 136
    assert drawn.getpixel((255, 20)) > 247


def test_the_page_on_files_names_each_kind_that_is_left_out() -> None:
    root = Path(__file__).parent.parent.parent
    rows = [
        row.split("|")
        for row in (root / "docs" / "files.md").read_text().splitlines()
        if row.startswith("| ")
    ]
    named = {kind.strip() for row in rows[1:] for kind in row[3].split(",")}
    assert named == {
        kind for path in (root / "bot" / "tools" / "reading").rglob("*.py") for kind in kinds(path)
    }


def kinds(path: Path) -> set[str]:
    """What a module leaves out, by the words of its calls and of the tables that it counts by."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "count_left_out"
        ):
            found |= {each.value for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)}
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_COUNTED":
            found |= {each.value for each in node.value.values}
    return {each for each in found if " " in each or each.isalpha()} - {"image"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: word.document(word.paragraph("x"), more={"word/media/a.bin": bytes(120_000_000)}),
        lambda: word.packed(
            {f"{number}.txt": "x" for number in range(3_000)} | {"mimetype": "application/epub+zip"}
        ),
        lambda: sheets.book(
            sheets.data(
                *(
                    sheets.row(n, *(sheets.cell(f"{chr(65 + c)}{n}", "1") for c in range(20)))
                    for n in range(1, 50_001)
                )
            )
        ),
        lambda: pdf.document(*["x"] * 10_000),
        lambda: b"[" * 3_000_000,
        lambda: b'{"nbformat": 4, "cells": ' + b"[" * 1_000_000,
        lambda: b"<html>" + b"<div>" * 1_000_000,
        lambda: rb"{\rtf1 " + b"{" * 1_000_000,
        lambda: (
            b"From: a\nSubject: b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"
            + b"--x\n\n" * 200_000
        ),
        lambda: sheets.book(
            "",
            more={
                "xl/sharedStrings.xml": "<!DOCTYPE s [<!ENTITY a '"
                + "x" * 100_000
                + "'>]><s>"
                + "&a;" * 50_000
                + "</s>"
            },
        ),
    ],
    ids=[
        "bomb",
        "entries",
        "a million cells",
        "pages",
        "brackets",
        "notebook",
        "tags",
        "groups",
        "parts",
        "entities",
    ],
)
async def test_what_has_no_end_is_bounded_and_told(make: Callable[[], bytes]) -> None:
    data = make()
    async with asyncio.timeout(90):
        found = await Documents().read(data)
    assert len(found.text) <= MAX_TEXT_CHARS + 200
    assert found.fault or found.note or len(found.text) >= len(data) - 1


def seen(found: FileContent) -> Image.Image:
    assert found.data is not None
    return Image.open(BytesIO(found.data))
