# ruff: noqa: INP001 - a script, not a package
"""Draw a card's real blocks as Slack does, for the README: ``python docs/render_card.py > card.html``.

A headless browser makes ``slack-card.png`` of it: ``chromium --headless --screenshot=docs/slack-card.png
--window-size=720,620 --hide-scrollbars card.html``.
"""

import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

from bot.channels.slack.card import render
from bot.domain.cards import Card, card_of
from bot.domain.people import Actor
from bot.domain.proposals import Deciders, Kind, PreviewField, Proposal, State
from bot.domain.risk import Level, Risk

_NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
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


_PROPOSAL = Proposal(
    id="7f3a",
    kind=Kind.CALL,
    conversation_id="c",
    message_id=1,
    call_id="1",
    position=0,
    tool_name="issue_update",
    tool_version="1",
    arguments={"number": 42},
    description="Change issue #42: Rain comes in at the north window",
    preview=(
        PreviewField("state", "open", "in progress"),
        PreviewField("priority", "normal", "high"),
        PreviewField("assignee", None, "ben"),
    ),
    risk=Risk(Level.WRITE, "it changes an issue others see"),
    reason="You asked me to get the leak fixed before Friday, and Ben has the roof this week.",
    requester=Actor("slack", "T1/U7", "Ana"),
    deciders=Deciders(requester=True, roles=("approver", "admin")),
    quorum=1,
    state=State.PROPOSED,
    round=1,
    version=1,
    digest="",
    created_at=_NOW,
    updated_at=_NOW,
    expires_at=_NOW + timedelta(hours=24),
)
_DONE = replace(
    _PROPOSAL,
    state=State.SUCCEEDED,
    decided_by="Ben",
    decided_from="slack",
    decided_at=_NOW + timedelta(minutes=4),
    result="#42 updated",
    result_url="https://issues.example.org/42",
)
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
    return re.sub(r"&lt;!date\^\d+\^[^|]*\|([^&]*)&gt;", r"\1", shown)


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
    sys.stdout.write(page(card_of(_PROPOSAL, {}), card_of(_DONE, {})))
