"""The Block Kit pieces we build with. Hostile text goes only where Slack parses nothing.

Every piece keeps to its limit whatever it is given; ``rich`` splits into as many blocks as it needs.

What Slack refuses, as numbers; what could reach one of them is cut or split.

Each line names its source: [blocks] docs.slack.dev/reference/block-kit, [views] …/reference/views,
[chat] …/reference/methods/chat.postMessage and chat.startStream, [seen] found by asking Slack, [ours] a
choice of ours where Slack documents nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.channels.markdown import clean
from bot.channels.slack import text
from bot.domain.chat import make_choice_buttons
from bot.domain.direction import runs_right_to_left, set_apart
from bot.domain.times import format_local
from bot.domain.verbs import Sure

Block = dict[str, Any]
BLANK = "(empty)"
VALUE = "value"  # the action id of every input
BLOCKS_PER_VIEW = 100  # [blocks]
HEADER = 150  # [blocks] plain text of a header block
CONTEXT_ELEMENTS = 10  # [blocks]
RICH_TEXT = 3000  # [ours] text of one rich text block; undocumented, so as a section's
BUTTON_TEXT = 75  # [blocks]
URL = 3000  # [blocks]
OVERFLOW_OPTIONS = 5  # [blocks]
OPTION_TEXT = 75  # [blocks]
CONFIRM_TITLE = 100  # [blocks]
CONFIRM_TEXT = 300  # [blocks]
CONFIRM_BUTTON = 30  # [blocks]
LABEL = 150  # [ours] of an input
INPUT_VALUE = 3000  # [blocks] plain_text_input
VIEW_TITLE = 24  # [views] the same for submit and close
TASK_TITLE = 256  # [ours] a task chunk's title; undocumented
SESSION_TITLE = 200  # [chat] agents.sessions.setStatus


@dataclass(frozen=True, slots=True)
class Run:
    """Some text of one style; ``style`` is bold, strike, italic, code or nothing. ``url`` makes it a link."""

    text: str
    style: str = ""
    url: str = ""

    @property
    def shown(self) -> str:
        """The text as people read it: honest, and with a direction of its own."""
        return set_apart(clean(self.text))

    def element(self) -> Block:
        element: Block = {"type": "text", "text": self.shown}
        if self.url:
            element = {"type": "link", "url": self.url, "text": self.shown}
        if self.style:
            element["style"] = {self.style: True}
        return element


@dataclass(frozen=True, slots=True)
class ContextLine:
    """One line of runs, preformatted text as it is, or an item of a numbered list."""

    runs: tuple[Run, ...]
    preformatted: bool = False
    numbered: bool = False

    @property
    def width(self) -> int:
        return 1 + sum(text.width(run.shown) for run in self.runs)


def plain(content: str, limit: int) -> Block:
    shown, _ = text.cut(content, limit)
    marks = text.width(set_apart(shown)) - text.width(shown)
    if marks:
        shown = set_apart(text.cut(content, max(limit - marks, 1))[0])
    return {"type": "plain_text", "text": shown if shown.strip() else BLANK, "emoji": False}


def header(content: str) -> Block:
    return {"type": "header", "text": plain(text.link_text(content), HEADER)}


def mrkdwn_block(mrkdwn: str) -> Block:
    """Return a text with Slack's own marks in it, made by us of ids and of escaped words."""
    return {"type": "mrkdwn", "text": mrkdwn}


def context(*contents: str | Block) -> Block:
    """Give one line of small print; what is not text is `marked`."""
    shown = [c for c in contents if not isinstance(c, str) or c.strip()][:CONTEXT_ELEMENTS]
    elements = [plain(c, 400) if isinstance(c, str) else c for c in shown]
    return {"type": "context", "elements": elements or [plain(BLANK, 10)]}


def footer(*contents: str | Block, label: str, at: datetime | None) -> Block:
    """Give one context line that ends with a time in the reader's own zone, where there is one."""
    line = context(*contents)
    if at is not None:
        if any(not isinstance(c, str) or c.strip() for c in contents):
            said = line["elements"]
        else:
            said = []
        line["elements"] = [*said[: CONTEXT_ELEMENTS - 1], _moment(label, at)]
    return line


def _moment(label: str, at: datetime, said: str = "{date_short_pretty} at {time}") -> Block:
    date = f"<!date^{int(at.timestamp())}^{said}|{format_local(at)}>"
    return mrkdwn_block(f"{label} {date}".strip())


def closing(words: str, at: datetime | None, button: Block, *, runs: bool = False) -> Block:
    """Return a section with an outcome, its time, and a button at its side. ``words`` are escaped.

    ``runs``: it did not end yet, and the time says how long ago it began.
    """
    time = [_moment("", at, "{ago}") if runs else _moment("", at)] if at else []
    said = [text.escape(words), *(each["text"] for each in time)]
    return {"type": "section", "text": mrkdwn_block(" · ".join(said)), "accessory": button}


def divider() -> Block:
    return {"type": "divider"}


def rich(lines: Iterable[ContextLine]) -> list[Block]:
    """Return rich text blocks for these lines, each within its limit; a line must fit one block."""
    blocks: list[Block] = []
    held: list[ContextLine] = []
    used = 0
    for line in lines:
        if held and used + line.width > RICH_TEXT:
            blocks.append(_rich(held))
            held, used = [], 0
        held.append(line)
        used += line.width
    if held:
        return [*blocks, _rich(held)]
    return blocks


def _rich(lines: list[ContextLine]) -> Block:
    elements: list[Block] = []
    for line in lines:
        parts = [run.element() for run in line.runs if run.text]
        if line.preformatted:
            elements.append({"type": _block_for(line), "elements": parts})
        elif line.numbered:
            item = {"type": "rich_text_section", "elements": parts}
            if elements and elements[-1]["type"] == "rich_text_list":
                elements[-1]["elements"].append(item)
            else:
                elements.append({"type": "rich_text_list", "style": "ordered", "elements": [item]})
        elif elements and elements[-1]["type"] == "rich_text_section":
            elements[-1]["elements"] += [{"type": "text", "text": "\n"}, *parts]
        else:
            elements.append({"type": "rich_text_section", "elements": parts})
    return {"type": "rich_text", "elements": elements}


def _block_for(line: ContextLine) -> str:
    """Return the element type for literal text: code, or a quote where lines run from right to left."""
    turned = any(runs_right_to_left(run.text) for run in line.runs)
    if turned:
        return "rich_text_quote"
    return "rich_text_preformatted"


def button(
    label: str, action_id: str, value: str, style: str = "", confirm: str = "", sure: Sure | None = None
) -> Block:
    """Return a button. ``confirm`` is the warning before it counts, ``sure`` the question, else its label."""
    element: Block = {
        "type": "button",
        "text": plain(label, BUTTON_TEXT),
        "action_id": action_id,
        "value": value,
    }
    if style:
        element["style"] = style
    if confirm or sure:
        sure = sure or Sure(f"{label}?", label, "Not now")
        element["confirm"] = {
            "title": plain(text.link_text(sure.question), CONFIRM_TITLE),
            "text": plain(confirm or text.link_text(sure.more), CONFIRM_TEXT),
            "confirm": plain(sure.yes, CONFIRM_BUTTON),
            "deny": plain(sure.no, CONFIRM_BUTTON),
        }
    return element


def option(label: str, value: str) -> Block:
    """Return one of the choices of a menu, of radio buttons or of checkboxes."""
    return {"text": plain(label, OPTION_TEXT), "value": value}


def overflow(action_id: str, options: Iterable[tuple[str, str]]) -> Block:
    """Give the ⋯ menu; an option is a label and a value."""
    shown = [option(*each) for each in list(options)[:OVERFLOW_OPTIONS]]
    return {"type": "overflow", "action_id": action_id, "options": shown}


def input_block(block_id: str, label: str, element: Block, **more: Any) -> Block:
    """Return an input of a window, under its label; what is entered has the action id `VALUE`."""
    block = {"type": "input", "block_id": block_id, "label": plain(label, LABEL)}
    return block | more | {"element": element | {"action_id": VALUE}}


def actions(*elements: Block) -> Block:
    return {"type": "actions", "elements": list(elements)}


def saying(choices: Iterable[str]) -> list[Block]:
    """Return a row with a button for each of these words; nothing without any."""
    buttons = [button(label, mark, label) for label, mark in make_choice_buttons(choices)]
    if buttons:
        return [actions(*buttons)]
    return []


def markdown(content: str, team: str = "") -> Block:
    """Return a block of CommonMark from ourselves, a model or a tool; mentions in it notify no one.

    With ``team``, for what one person alone reads: its people and channels are shown by their names there.
    """
    shown = text.harmless(content, text.POST)
    if team:
        shown = text.with_mentions(shown, team)
    return {"type": "markdown", "text": shown if shown.strip() else BLANK}
