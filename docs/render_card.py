# ruff: noqa: INP001 - a script, not a package
"""Draw a real card as Slack does, for the README: ``python docs/render_card.py > card.html``.

Nod itself makes it: the offline model is asked for a change in the demo's issue tracker, and Ben approves it.

A headless browser makes ``slack-card.png`` of it: ``chromium --headless --screenshot=docs/slack-card.png
--window-size=720,380 --hide-scrollbars card.html``.
"""

import asyncio
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from tempfile import TemporaryDirectory
from typing import Any

from bot import logs
from bot.app import build
from bot.channels.slack.card import render
from bot.domain.cards import Card
from bot.domain.chat import Address, Message, Press
from bot.domain.people import Actor
from bot.domain.proposals import State
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store import proposals
from bot.tools.builtin.issues.seed import seed

_CSS = """
body{margin:0;padding:22px 26px;background:#fff;color:#1d1c1d;font:15px/1.46 Lato,Helvetica,Arial,sans-serif}
.post{display:flex;gap:10px;margin-bottom:18px}
.face{width:36px;height:36px;border-radius:8px;background:#1f3b4d;color:#fff;font-weight:700;flex:none}
.face{display:grid;place-items:center}.who{font-weight:900}.at{color:#616061;font-size:12px}
.app{font-size:10px;background:#e8e8e8;color:#616061;padding:1px 3px;border-radius:2px;margin:0 6px}
h3{margin:6px 0 2px;font-size:18px}
.ctx{color:#616061;font-size:12.5px;margin:4px 0}.ctx span{margin-right:14px}
p{margin:6px 0}s{color:#616061}a{color:#1264a3}.row{display:flex;gap:8px;margin:10px 0 2px}
pre{background:#f8f8f8;border:1px solid #ddd;border-radius:4px;padding:8px;margin:4px 0;font-size:12px}
button{font:700 13px Lato,Arial,sans-serif;padding:6px 12px;border-radius:6px;border:1px solid #bbb}
button{background:#fff}.primary{background:#007a5a;border-color:#007a5a;color:#fff}
.danger{color:#e01e5a;border-color:#e01e5a}.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%}
"""


_ANA = Actor("slack", "T1/U7", "Ana")
_BEN = Actor("slack", "T1/U8", "Ben")
_ASKED = "set #6 to urgent and give it to Ben"


async def cards() -> tuple[Card, Card]:
    """Give one card of Nod's own issue tracker as it waits, and as it looks once Ben has approved it."""
    with TemporaryDirectory() as folder:
        settings = Settings.load(
            NOD_DATABASE_URL=f"sqlite:///{folder}/nod.db",
            NOD_HOST="127.0.0.1",
            NOD_PORT=0,
            NOD_ADMINS=(str(_BEN),),
            NOD_LOG_LEVEL="error",
        )
        logs.configure(settings.log_level)
        clock = _Clock()
        app = build(settings, clock=clock)
        async with app.running(ticking=False):
            await app.database.write(seed, clock())
            thread = Address("slack", "T1/C1/1.1")
            await app.assistant.handle(Message(thread, _ANA, _ASKED, "1", private=False))
            await app.dispatcher.idle()
            [asked] = await app.database.read(proposals.in_states, [State.PROPOSED])
            _, waiting = await app.cards.card(asked.id)
            clock.now += timedelta(minutes=4)
            await app.assistant.handle(Press(_BEN, Verb.APPROVE, asked.id))
            await app.dispatcher.idle()
            _, done = await app.cards.card(asked.id)
            return waiting, done


@dataclass
class _Clock:
    now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


_SIGNS = {
    "🟡": "#e8b400",
    "🔴": "#e01e5a",
    "🟢": "#2bac76",
    "✅": "#2bac76",
    "⚪": "#bbb",
    "⏳": "#1264a3",
    "❌": "#e01e5a",
}


def _drawn(html: str) -> str:
    """Draw signs as dots, for machines without an emoji font."""
    for sign, color in _SIGNS.items():
        html = html.replace(sign, f'<i class=dot style="background:{color}"></i>')
    return html


def page(*cards: Card) -> str:
    posts = "".join(
        f"<div class=post><div class=face>N</div><div><span class=who>Nod</span><span class=app>APP</span>"
        f"<span class=at>9:00 AM</span>{''.join(map(_block, render(card).blocks))}</div></div>"
        for card in cards
    )
    style = f"<style>{_CSS}</style>"
    return _drawn(f"<!doctype html><meta charset=utf-8><title>A card</title>{style}{posts}")


def _block(block: dict[str, Any]) -> str:
    match block["type"]:
        case "header":
            return f"<h3>{escape(block['text']['text'])}</h3>"
        case "context":
            return f"<div class=ctx>{''.join(f'<span>{_text(e)}</span>' for e in block['elements'])}</div>"
        case "rich_text":
            return "".join(map(_part, block["elements"]))
        case "actions":
            return f"<div class=row>{''.join(map(_element, block['elements']))}</div>"
        case other:
            raise ValueError(f"no drawing for {other}")


def _text(element: dict[str, Any]) -> str:
    shown = escape(element["text"])
    return re.sub(r"&lt;!date\^(\d+)\^([^|]*)\|[^&]*&gt;", _moment, shown)


def _moment(found: re.Match[str]) -> str:
    """A time as Slack writes it for a reader in UTC on the day of the card."""
    at = datetime.fromtimestamp(int(found[1]), UTC)
    day = {0: "today", 1: "tomorrow"}.get((at.date() - _Clock.now.date()).days, f"{at:%b} {at.day}")
    clock = f"{at:%I:%M %p}".lstrip("0")
    words = found[2].replace("{date_short_pretty}", day).replace("{date_pretty}", day)
    return words.replace("{time}", clock)


def _part(part: dict[str, Any]) -> str:
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


if __name__ == "__main__":
    sys.stdout.write(page(*asyncio.run(cards())))
