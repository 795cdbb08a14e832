"""Files of many kinds in each channel: the person and the model are told the same of what was left out."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import httpx
import pytest

from bot.settings import Settings
from bot.testing.world import World, eventually
from tests.contracts.test_discord import ANA as IN_DISCORD
from tests.contracts.test_discord import DiscordDriver
from tests.contracts.test_slack import ANA as IN_SLACK
from tests.contracts.test_slack import SlackDriver
from tests.contracts.test_telegram import ANA as IN_TELEGRAM
from tests.contracts.test_telegram import TelegramDriver
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls
from tests.tools.yardstick import Case, hidden, open_document, pages, pdf, pictures, sheets, texts, word

pytestmark = [pytest.mark.platform, pytest.mark.slow]

MODULES = (word, open_document, sheets, texts, pages, pdf, pictures, hidden)
YARDSTICK = {case.name: case for module in MODULES for case in module.cases()}
MAX_FILE_BYTES = 10_000_000
NAMED = {
    "contract.docx": "word deleted by tracking",
    "template.docx": "word content control",
    "model.xlsx": "xlsx hidden sheet",
    "sums.xlsx": "xlsx formula without a value",
    "talk.pptx": "pptx hidden slide",
    "scan.pdf": "pdf with scanned pages",
    "form.pdf": "pdf with a field filled in",
    "locked.pdf": "pdf with a password",
    "letter.odt": "odt picture",
    "table.ods": "ods hidden row and comment",
    "show.odp": "odp hidden slide",
    "note.rtf": "RTF with a picture",
    "export.csv": "text in cp1251: Добрый день!",
    "page.html": "page with pictures",
    "photo.heic": "picture of HEIC",
    "hidden.html": "sheet hides by .x{display:none}",
    "faint.docx": 'word faint by <w:color w:val="FFFFFF"/>',
    "cells.xlsx": "xlsx hides by white",
    "off.pptx": "pptx text that is off the slide",
    "scan-text.pdf": "pdf invisible text",
    "white.html": "page hides by color:white",
    "mail.eml": "e-mail",
    "preview.eml": "e-mail with a hidden preview",
    "hidden.epub": "book that hides a passage",
    "all.zip": "archive",
    "broken.docx": "word damaged",
    "empty.txt": "empty file",
    "old.doc": "doc of the old format",
}
HUGE = Case("huge", lambda: b"x" * (MAX_FILE_BYTES + 1), fault="it is larger than 10 MB")
PICTURES = {"photo.heic"}
"""The scripted model takes none."""
SENT = {"huge.txt": HUGE} | {name: YARDSTICK[case] for name, case in NAMED.items()}
BRIEFLY = ["contract.docx", "photo.heic", "scan.pdf", "locked.pdf", "all.zip", "huge.txt"]
"""One of each answer: read, read in part, not seen, not opened, too large. In Slack all of them are sent."""
TOGETHER = 3  # files of one message

Send = Callable[[Mapping[str, bytes]], Awaitable[None]]


async def check(
    world: World, send: Send, list_told: Callable[[], list[str]], names: Sequence[str] = BRIEFLY
) -> None:
    """Send files, some in each message, and compare what the model has with what the person was told."""
    for at in range(0, len(names), TOGETHER):
        some = names[at : at + TOGETHER]
        seen = len(world.model.seen)
        await send({name: SENT[name].make() for name in some})
        await eventually(lambda seen=seen: len(world.model.seen) > seen, "the model")
        await world.app.dispatcher.wait_until_idle()
        await eventually(lambda some=some: is_told(list_told(), some), f"words on {some}")
        given = world.model.was_told()
        for name in some:
            compare(name, given, "\n".join(list_told()))


def is_told(told: list[str], names: list[str]) -> bool:
    """Whether the person was told of each file that was not read in full."""
    lacking = [name for name in names if name not in "\n".join(told) and has_account(SENT[name], name)]
    return not lacking


def has_account(case: Case, name: str) -> bool:
    return bool(case.notes or case.fault or name in PICTURES)


def compare(name: str, given: str, told: str) -> None:
    case, block = SENT[name], block_of(name, given)
    fault = re.search(r"It can't be read: (.*)\.\]", block)
    note = re.search(r"\n\| \[([A-Z].*\.)\]\n", block) if case.notes else None
    wanted = [("can't read", f"{fault[1]}.")] if fault else []
    wanted += [("read", note[1])] if note else []
    wanted += [("can't read", "my model takes no pictures.")] if "You can not see it." in block else []
    assert re.findall(rf"I (can't read|read) {re.escape(name)}[.:] (.*)", told) == wanted
    assert case.fault in (fault[1] if fault else "")
    assert ("You can not see it." in block) == (name in PICTURES)
    for words in case.notes:
        assert words in (note[1] if note else ""), name
    for words in case.reads:
        assert words.strip() in block.replace("\n| ", "\n"), name
    for words in case.never:
        assert words not in block, name


def block_of(name: str, given: str) -> str:
    """What the model has of one file: the line on it, and its text as data from outside."""
    [found] = re.findall(rf"^\[From a file[^“\n]*“{re.escape(name)}”.*(?:\n\|.*)*", given, re.MULTILINE)
    return f"{found}\n"


async def test_in_slack(slack: SlackDriver) -> None:
    async def send(files: Mapping[str, bytes]) -> None:
        sent = [slack.slack.attach(name, data) for name, data in files.items()]
        await slack.slack.mention(IN_SLACK, "look", files=sent)

    await check(slack.world, send, lambda: list(slack.texts()), list(SENT))


async def test_in_telegram(telegram: TelegramDriver) -> None:
    async def send(files: Mapping[str, bytes]) -> None:
        album = {"media_group_id": "-".join(files)}
        for name, data in files.items():
            document = telegram.telegram.attach(name, data)
            await telegram.telegram.say(IN_TELEGRAM, None, document=document, **album)

    shown = telegram.telegram.shown
    await check(telegram.world, send, lambda: [each.text for each in shown(IN_TELEGRAM)])


async def test_in_discord(discord: DiscordDriver) -> None:
    async def send(files: Mapping[str, bytes]) -> None:
        await discord.discord.command(IN_DISCORD, "nod", "ask look", files=files)

    await check(discord.world, send, lambda: list(discord.texts()))


async def test_in_the_console(database_of: Urls, clock: FakeClock) -> None:
    def settings() -> Settings:
        return Settings(_env_file=None, NOD_DATABASE_URL=database_of("nod"), NOD_PORT=0)

    world = World(settings, lambda _: None, clock, make_tables)
    await world.start()
    shown: list[str] = []
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{world.app.web.port}", timeout=60) as client:

        async def send(files: Mapping[str, bytes]) -> None:
            form = [("files", (name, data)) for name, data in files.items()]
            answer = await client.post("/api/chat", data={"message": "look"}, files=form)
            ident = re.findall(r'"conversation_id": ?"([^"]+)"', answer.text)[0]
            said = (await client.get(f"/api/conversations/{ident}/messages")).json()["messages"]
            shown.extend(each["text"] for each in said if each["role"] == "notice")

        await check(world, send, lambda: shown)
    await world.stop()
