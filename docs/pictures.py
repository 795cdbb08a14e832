# ruff: noqa: INP001 - a script, not a package
"""Make the pictures of README and docs from the real program: ``make pictures``.

The console is photographed in Chromium while it runs. The cards of Slack and Telegram are real blocks and
texts of a proposal that Nod made and ran, drawn as those apps draw them. Look at each before you commit it.
"""

import asyncio
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gallery import Clock, states
from markdown_it import MarkdownIt
from playwright.async_api import Browser, Page, async_playwright

from bot.agent.demo.model import DemoModel
from bot.app.assembly import build
from bot.channels.slack.card import render
from bot.channels.telegram.card import render_card
from bot.channels.telegram.markdown import from_markdown
from bot.channels.telegram.text import Rich
from bot.domain.cards import Card
from bot.domain.text import escape_markdown
from bot.features.issues.samples import store_samples
from bot.settings import Settings

_CSS = """
body{margin:0;padding:22px 26px;background:#fff;color:#1d1c1d;font:15px/1.46 Lato,Helvetica,Arial,sans-serif}
.post{display:flex;gap:10px;margin-bottom:18px}
.face{width:36px;height:36px;border-radius:8px;background:#1f3b4d;color:#fff;font-weight:700;flex:none}
.face{display:grid;place-items:center}.who{font-weight:900}.at{color:#616061;font-size:12px}
.app{font-size:10px;background:#e8e8e8;color:#616061;padding:1px 3px;border-radius:2px;margin:0 6px}
h3{margin:6px 0 2px;font-size:18px}
.ctx{color:#616061;font-size:12.5px;margin:4px 0}.ctx span{margin-right:14px}
p{margin:6px 0}s{color:#616061}a{color:#1264a3}.row{display:flex;flex-wrap:wrap;gap:8px}
.row{margin:10px 0 2px}button{white-space:nowrap}ol{margin:6px 0;padding-left:22px}
pre{background:#f8f8f8;border:1px solid #ddd;border-radius:4px;padding:8px;margin:4px 0;font-size:12px}
button{font:700 13px Lato,Arial,sans-serif;padding:6px 12px;border-radius:6px;border:1px solid #bbb}
button{background:#fff}.primary{background:#007a5a;border-color:#007a5a;color:#fff}
.danger{color:#e01e5a;border-color:#e01e5a}.side{display:flex;align-items:center;gap:16px}
.side button{font-size:12px;padding:3px 10px}
.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%}
"""


_GRID_CSS = """
.grid{column-gap:26px}section{break-inside:avoid;margin:0 0 22px}
section>h2{margin:0 0 6px;font-size:12px;letter-spacing:.06em;text-transform:uppercase;opacity:.75}
"""
_SIGNS = {
    "🟡": "#e8b400",
    "🔴": "#e01e5a",
    "🟢": "#2bac76",
    "✅": "#2bac76",
    "⚪": "#bbb",
    "⏳": "#1264a3",
    "❌": "#e01e5a",
    "🟠": "#e8912d",
    "📌": "#c9c9c9",
}


def _drawn(html: str) -> str:
    """Draw signs as dots, for machines without an emoji font."""
    for sign, color in _SIGNS.items():
        html = html.replace(sign, f'<i class=dot style="background:{color}"></i>')
    return html


def post(card: Card) -> str:
    """A card as Slack draws it."""
    return posted("".join(map(_block, render(card).blocks)))


def posted(inside: str) -> str:
    head = "<span class=who>Nod</span><span class=app>APP</span><span class=at>9:00 AM</span>"
    return f"<div class=post><div class=face>N</div><div>{head}{inside}</div></div>"


def page(*posts: str, css: str = _CSS) -> str:
    head = f"<!doctype html><meta charset=utf-8><title>Cards</title><style>{css}</style>"
    return _drawn(head + "".join(posts))


def columns(drawn: Mapping[str, str], count: int, css: str) -> str:
    """Drawings with what they show above them, side by side."""
    each = (f"<section><h2>{escape(name)}</h2>{html}</section>" for name, html in drawn.items())
    return page(f"<div class=grid style='columns:{count}'>{''.join(each)}</div>", css=css + _GRID_CSS)


def _block(block: dict[str, Any]) -> str:
    match block["type"]:
        case "header":
            return f"<h3>{escape(block['text']['text'])}</h3>"
        case "context":
            return f"<div class=ctx>{''.join(f'<span>{_text(e)}</span>' for e in block['elements'])}</div>"
        case "rich_text":
            return "".join(map(_part, block["elements"]))
        case "section":
            return f"<div class='ctx side'>{_text(block['text'])} {_element(block['accessory'])}</div>"
        case "actions":
            return f"<div class=row>{''.join(map(_element, block['elements']))}</div>"
        case other:
            raise ValueError(f"no drawing for {other}")


def _text(element: dict[str, Any]) -> str:
    shown = escape(element["text"])
    if shown.startswith("Expired"):  # seen on that day
        return re.sub(r" · &lt;!date.*", " · today at 9:44 AM", shown)
    return re.sub(r"&lt;!date\^(\d+)\^([^|]*)\|[^&]*&gt;", _moment, shown)


def _moment(found: re.Match[str]) -> str:
    """A time as Slack writes it for a reader in UTC on the day of the card."""
    at = datetime.fromtimestamp(int(found[1]), UTC)
    day = {0: "today", 1: "tomorrow"}.get((at.date() - Clock.now.date()).days, f"{at:%b} {at.day}")
    clock = f"{at:%I:%M %p}".lstrip("0")
    words = (
        found[2]
        .replace("{ago}", "42 seconds ago")
        .replace("{date_short_pretty}", day)
        .replace("{date_pretty}", day)
    )
    return words.replace("{time}", clock)


def _part(part: dict[str, Any]) -> str:
    if part["type"] == "rich_text_list":
        items = ("".join(map(_leaf, each["elements"])) for each in part["elements"])
        return f"<ol>{''.join(f'<li>{item}</li>' for item in items)}</ol>"
    inside = "".join(map(_leaf, part["elements"]))
    return f"<pre>{inside}</pre>" if part["type"].endswith("preformatted") else f"<p>{inside}</p>"


def _leaf(leaf: dict[str, Any]) -> str:
    shown = escape(leaf["text"]).replace("\n", "<br>")
    if leaf["type"] == "link":
        return f'<a href="#">{shown}</a>'
    for style, tag in (("bold", "b"), ("strike", "s"), ("italic", "i"), ("code", "code")):
        if style in leaf.get("style", {}):
            shown = f"<{tag}>{shown}</{tag}>"
    return shown


def _element(element: dict[str, Any]) -> str:
    if element["type"] == "overflow":
        return "<button>⋯</button>"
    return f'<button class="{element.get("style", "")}">{escape(element["text"]["text"])}</button>'


_CHAT_CSS = """
body{margin:0;padding:20px;background:#8fb3a1;color:#111;font:15px/1.4 Roboto,Helvetica,Arial,sans-serif}
.m{max-width:400px;margin-bottom:14px}.b{padding:9px 13px;border-radius:14px 14px 4px 4px;background:#fff}
.b{white-space:pre-wrap}pre{white-space:pre-wrap;margin:6px 0 0;font-size:13px}
code{color:#0b6b8f}.k{display:grid;gap:3px;margin-top:3px}.r{display:flex;gap:3px}
.r span{flex:1;padding:8px 6px;border-radius:6px;background:rgb(30 60 45/45%);color:#fff;font-weight:600}
.r span{text-align:center;font-size:14px}.success{background:#2b9a55!important}
.danger{background:#c94a44!important}
.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%}
"""
_MARKS = {"bold": "b", "italic": "i", "code": "code", "pre": "pre"}


def bubble(card: Card) -> str:
    """A card as Telegram draws it: text with entities, and the buttons below."""
    view = render_card(card)
    rows = view.keyboard.inline_keyboard if view.keyboard else ()
    buttons = "".join(f"<div class=r>{''.join(map(_key, row))}</div>" for row in rows)
    return said(view.rich, buttons)


def said(rich: Rich, buttons: str = "") -> str:
    return f"<div class=m><div class=b>{_styled(rich)}</div><div class=k>{buttons}</div></div>"


def _styled(rich: Rich) -> str:
    """Entities count in UTF-16 units. A time that the reader's app writes is written for UTC."""
    units = rich.text.encode("utf-16-le")

    def part(start: int, end: int) -> str:
        return escape(units[2 * start : 2 * end].decode("utf-16-le"))

    shown, at = "", 0
    for each in sorted(rich.entities, key=lambda entity: entity.offset):
        if each.offset < at:
            continue
        mark = _MARKS.get(each.type, "span")
        inner = part(each.offset, each.offset + each.length)
        if each.type == "date_time" and each.date_time_format == "r":
            inner = _from_now(each.unix_time)
        shown += part(at, each.offset) + f"<{mark}>{inner}</{mark}>"
        at = each.offset + each.length
    return shown + part(at, len(units) // 2)


def _from_now(at: datetime) -> str:
    days = round((at - Clock.now).total_seconds() / 86400)
    return {0: "42 seconds ago", 1: "in 24 hours"}.get(days, f"in {days} days")


def _key(button: Any) -> str:
    return f'<span class="{button.style or ""}">{escape(button.text)}</span>'


_CHROMIUM = "/usr/bin/chromium"
_ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
_FOLDER = Path(__file__).parent / "pictures"
_PAGES = (("rules", ".rule-form"), ("audit", "#audit-list td"))
_DESK, _PHONE = {"width": 1180, "height": 740}, {"width": 390, "height": 780}


async def _draw(browser: Browser, html: str, name: str, width: int, scale: int = 2) -> None:
    shown = await browser.new_page(viewport={"width": width, "height": 100}, device_scale_factor=scale)
    await shown.set_content(html)
    await shown.screenshot(path=_FOLDER / name, full_page=True)
    await shown.close()


async def _ask(page: Page, words: str, cards: int) -> None:
    await page.fill("#message", words)
    await page.keyboard.press("Enter")
    await page.locator("#thread .line-block:not(.live) .card.proposed").nth(cards - 1).wait_for()
    await page.locator("#working").wait_for(state="hidden")


async def _console(browser: Browser, url: str) -> None:
    page = await browser.new_page(viewport=_DESK)
    await page.goto(url)
    await page.locator(".example").first.wait_for()
    frames = [await page.screenshot()]
    await page.fill("#message", "Give #4 low priority and assign #3 to Ana")
    frames.append(await page.screenshot())
    await page.keyboard.press("Enter")
    cards = page.locator("#thread .line-block:not(.live) .card")
    await cards.nth(1).wait_for()
    frames.append(await page.screenshot())
    await cards.first.get_by_role("button", name=re.compile("^Approve:")).click()
    await cards.first.locator(".state.good").wait_for()
    frames.append(await page.screenshot())
    await cards.nth(1).get_by_role("button", name=re.compile("^Approve:")).click()
    await page.locator("#thread .assistant .said").filter(has_text="Done: assigned #3").wait_for()
    await page.get_by_role("button", name="Stop", exact=True).wait_for(state="hidden")
    frames.append(await page.screenshot())
    # where pictures do not move, the card is all people see
    (_FOLDER / "ask-to-done.png").write_bytes(animated([*frames[2:], *frames[:2]], seconds=2))
    await page.goto(f"{url}#/")
    await page.locator(".example").first.wait_for()
    await _ask(page, "Delete #5 and create an issue 'Printer is on fire' with high priority", 2)
    await page.screenshot(path=_FOLDER / "console.png")
    for name, options in (
        ("inbox", {"viewport": _DESK}),
        ("inbox-dark", {"viewport": _DESK, "color_scheme": "dark"}),
        ("inbox-phone", {"viewport": _PHONE, "device_scale_factor": 2}),
    ):
        shown = await browser.new_page(**options)  # type: ignore[arg-type] # options of different types
        await shown.goto(f"{url}#/inbox")
        await shown.locator(".row").nth(1).wait_for()
        if name == "inbox-phone":
            await shown.locator(".row a").first.click()
            await shown.locator("#inbox-detail .card").wait_for()
        await shown.screenshot(path=_FOLDER / f"{name}.png")
    await page.goto(f"{url}#/inbox")
    card = page.locator("#inbox-detail .card")
    await card.locator(".menu summary").click()
    await card.get_by_role("button", name=re.compile("^Ask:")).click()
    await page.keyboard.type("What exactly would change?")
    await page.keyboard.press("Enter")
    await card.locator(".answer li").first.wait_for()
    await page.screenshot(path=_FOLDER / "inbox-ask.png")
    for each, ready in _PAGES:
        await page.goto(f"{url}#/{each}")
        await page.locator(ready).first.wait_for()
        await page.screenshot(path=_FOLDER / f"{each}.png")


def animated(frames: Sequence[bytes], seconds: int) -> bytes:
    """Pictures of one size as one that moves: an animated PNG, which any browser shows.

    See https://www.w3.org/TR/png-3/#apng-frame-based-animation.
    """
    kept, number = [frames[0][:8]], 0
    for position, frame in enumerate(frames):
        chunks = [*_chunks(frame)]
        size = struct.pack(">II", *struct.unpack(">II", chunks[0][1][:8]))
        if position == 0:
            kept += [_chunk(*chunks[0]), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
        timing = struct.pack(">IIHHBB", 0, 0, seconds, 1, 0, 0)
        kept.append(_chunk(b"fcTL", struct.pack(">I", number) + size + timing))
        number += 1
        for kind, data in chunks:
            if kind != b"IDAT":
                continue
            if position == 0:
                kept.append(_chunk(kind, data))
            else:
                kept.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
                number += 1
    return b"".join([*kept, _chunk(b"IEND", b"")])


def _chunks(png: bytes) -> Sequence[tuple[bytes, bytes]]:
    found, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        found.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    return found


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


async def main() -> None:
    """Write every picture."""
    _FOLDER.mkdir(exist_ok=True)
    made, question = await states()
    waiting, done = made["waiting"], made["done"]
    answer = f"“{escape_markdown(question.text)}”\n\n{question.answer}"
    made.pop("command")
    rows = {"asked about": posted(MarkdownIt().render(answer)), **{n: post(c) for n, c in made.items()}}
    bubbles = {"asked about": said(from_markdown(answer)), **{n: bubble(c) for n, c in made.items()}}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        await _draw(browser, page(post(waiting), post(done)), "slack.png", 640)
        await _draw(browser, page(bubble(waiting), bubble(done), css=_CHAT_CSS), "telegram.png", 440)
        await _draw(browser, columns(rows, 2, _CSS), "slack-states.png", 1180, scale=1)
        await _draw(browser, columns(bubbles, 3, _CHAT_CSS), "telegram-states.png", 1180, scale=1)
        with TemporaryDirectory() as folder:
            settings = Settings.load(
                NOD_DATABASE_URL=f"sqlite:///{folder}/nod.db",
                NOD_PORT=0,
                NOD_ADMINS=("http:local",),
                NOD_LOG_LEVEL="error",
            )
            app = build(settings, model=DemoModel(0.001), demo=True)
            async with app.running():
                await app.database.write(store_samples, datetime.now(UTC))
                await _console(browser, f"http://127.0.0.1:{app.web.port}/")
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
