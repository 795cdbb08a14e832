"""Builders of Block Kit blocks, the JSON objects of which Slack's messages and modals are made.

Hostile text only goes where Slack parses nothing. Plain texts are cut to Slack's limits here, and `rich`
splits its lines into several blocks. The callers keep the other limits: of values, of a page's address, of a
single line of `rich`, and of the number of buttons in `actions`. They also keep that of the text in
`mrkdwn_block` and `outcome_section`: it has Slack's marks, so it can't be cut anywhere.

The limits of texts are in Slack's units (`text.width`). Each limit has its source:
[blocks] docs.slack.dev/reference/block-kit, [views] …/reference/views, [methods] …/reference/methods,
[ours] a choice of ours where Slack documents nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.channels.markdown import clean
from bot.channels.slack import text
from bot.domain.chat import LinkButton, make_choice_buttons
from bot.domain.text_direction import isolate_foreign_parts, runs_right_to_left
from bot.domain.times import format_local
from bot.domain.verbs import Confirmation

Block = dict[str, Any]
BLANK = "(empty)"  # in place of an empty text, which Slack refuses
VALUE = "value"  # the action id of every input
MAX_VIEW_BLOCKS = 100  # [blocks]
MAX_HEADER_UNITS = 150  # [blocks] plain text of a header block
MAX_CONTEXT_ELEMENTS = 10  # [blocks]
MAX_CONTEXT_UNITS = 400  # [ours] one element of small print
MAX_RICH_TEXT_UNITS = 3000  # [ours] text of one rich text block, as for a section
MAX_BUTTON_UNITS = 75  # [blocks]
OPEN_LINK = "open-link"  # the action of buttons that only open a page
MAX_URL_UNITS = 3000  # [blocks]
MAX_OVERFLOW_OPTIONS = 5  # [blocks]
MAX_OPTION_UNITS = 75  # [blocks]
MAX_CONFIRM_TITLE_UNITS = 100  # [blocks]
MAX_CONFIRM_TEXT_UNITS = 300  # [blocks]
MAX_CONFIRM_BUTTON_UNITS = 30  # [blocks]
MAX_OFFER_UNITS = 300  # [ours] one line about the command of a button
MAX_LABEL_UNITS = 150  # [ours] of an input
MAX_INPUT_UNITS = 3000  # [blocks] plain_text_input
MAX_VIEW_TITLE_UNITS = 24  # [views] the same for submit and close
MAX_TASK_TITLE_UNITS = 256  # [ours] the title of an activity, in a stream or of a team
MAX_SESSION_TITLE_UNITS = 200  # [methods] agents.sessions.setStatus


@dataclass(frozen=True, slots=True)
class TextRun:
    """A piece of text in one style: bold, strike, italic, code or none. ``url`` makes it a link."""

    text: str
    style: str = ""
    url: str = ""

    @property
    def visible_text(self) -> str:
        """The text as displayed: cleaned, and with its own direction of writing."""
        return isolate_foreign_parts(clean(self.text))

    def element(self) -> Block:
        element: Block = {"type": "text", "text": self.visible_text}
        if self.url:
            element = {"type": "link", "url": self.url, "text": self.visible_text}
        if self.style:
            element["style"] = {self.style: True}
        return element


@dataclass(frozen=True, slots=True)
class RichLine:
    """A line of rich text: plain, ``preformatted``, or an item of a numbered list."""

    runs: tuple[TextRun, ...]
    preformatted: bool = False
    numbered: bool = False

    @property
    def width(self) -> int:
        return 1 + sum(text.width(run.visible_text) for run in self.runs)


def cut_for_display(content: str, limit: int) -> tuple[str, bool]:
    """Cut a text so that it fits ``limit`` units together with its marks of direction.

    These are invisible, and are added later around text from right to left. Returns the text without them,
    and True if it was cut.
    """
    shown, is_cut = text.cut(content, limit)
    mark_units = text.width(isolate_foreign_parts(shown)) - text.width(shown)
    if mark_units:
        return text.cut(content, max(limit - mark_units, 1))
    return shown, is_cut


def plain(content: str, limit: int) -> Block:
    """Return the object of a text in which Slack parses nothing, of at most ``limit`` units."""
    shown = isolate_foreign_parts(cut_for_display(content, limit)[0])
    return {"type": "plain_text", "text": shown if shown.strip() else BLANK, "emoji": False}


def header(content: str) -> Block:
    return {"type": "header", "text": plain(text.one_line(content), MAX_HEADER_UNITS)}


def mrkdwn_block(mrkdwn: str) -> Block:
    """Return a text in Slack's own markup. The caller makes it of ids and of words that are escaped."""
    return {"type": "mrkdwn", "text": mrkdwn}


def context(*contents: str | Block) -> Block:
    """Return a line of small print. A content is a plain text, or a block made by `mrkdwn_block`."""
    elements = _make_context_elements(contents)
    return {"type": "context", "elements": elements or [plain(BLANK, MAX_CONTEXT_UNITS)]}


def _make_context_elements(contents: Iterable[str | Block]) -> list[Block]:
    elements = []
    for content in contents:
        if not isinstance(content, str):
            elements.append(content)
        elif content.strip():
            elements.append(plain(content, MAX_CONTEXT_UNITS))
    return elements[:MAX_CONTEXT_ELEMENTS]


def footer(*contents: str | Block, label: str, at: datetime | None) -> Block:
    """Return a line of small print that ends with a time, if there is one, in the reader's own zone."""
    if at is None:
        return context(*contents)
    elements = _make_context_elements(contents)[: MAX_CONTEXT_ELEMENTS - 1]
    return context(*elements, _make_time(label, at))


def _make_time(label: str, at: datetime, form: str = "{date_short_pretty} at {time}") -> Block:
    # Slack fills in the form in the reader's zone; the text after | is for a client that can't
    date = f"<!date^{int(at.timestamp())}^{form}|{format_local(at)}>"
    return mrkdwn_block(f"{label} {date}".strip())


def outcome_section(outcome: str, at: datetime | None, button: Block, *, is_running: bool = False) -> Block:
    """Return a section with an outcome, its time, and a button at its side. ``outcome`` is escaped here.

    ``is_running``: it has not ended yet, and the time says how long ago it began.
    """
    parts = [text.escape(outcome)]
    if at:
        time = _make_time("", at, "{ago}") if is_running else _make_time("", at)
        parts.append(time["text"])
    return {"type": "section", "text": mrkdwn_block(" · ".join(parts)), "accessory": button}


def divider() -> Block:
    return {"type": "divider"}


def rich(lines: Iterable[RichLine]) -> list[Block]:
    """Return rich text blocks for these lines, each within its limit; a line must fit one block."""
    blocks: list[Block] = []
    current: list[RichLine] = []
    used = 0
    for line in lines:
        if current and used + line.width > MAX_RICH_TEXT_UNITS:
            blocks.append(_make_rich_block(current))
            current = []
            used = 0
        current.append(line)
        used += line.width
    if current:
        return [*blocks, _make_rich_block(current)]
    return blocks


def _make_rich_block(lines: list[RichLine]) -> Block:
    elements: list[Block] = []
    for line in lines:
        parts = [run.element() for run in line.runs if run.text]
        if line.preformatted:
            elements.append({"type": _choose_literal_type(line), "elements": parts})
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


def _choose_literal_type(line: RichLine) -> str:
    """Return the element type of literal text: code, or a quote for text from right to left."""
    is_right_to_left = any(runs_right_to_left(run.text) for run in line.runs)
    if is_right_to_left:
        return "rich_text_quote"
    return "rich_text_preformatted"


def button(
    label: str,
    action_id: str,
    value: str,
    style: str = "",
    warning: str = "",
    question: Confirmation | None = None,
) -> Block:
    """Return a button. With ``warning`` or ``question``, Slack asks before a press counts.

    ``question`` has the question, an explanation, and the labels of its two buttons. ``warning`` takes the
    place of that explanation.
    """
    element: Block = {
        "type": "button",
        "text": plain(label, MAX_BUTTON_UNITS),
        "action_id": action_id,
        "value": value,
    }
    if style:
        element["style"] = style
    if warning or question:
        question = question or Confirmation(f"{label}?", label, "Not now")
        element["confirm"] = {
            "title": plain(text.one_line(question.question), MAX_CONFIRM_TITLE_UNITS),
            "text": plain(warning or text.one_line(question.warning), MAX_CONFIRM_TEXT_UNITS),
            "confirm": plain(question.yes, MAX_CONFIRM_BUTTON_UNITS),
            "deny": plain(question.no, MAX_CONFIRM_BUTTON_UNITS),
        }
    return element


def option(label: str, value: str) -> Block:
    """Return an option of a menu, of radio buttons or of checkboxes."""
    return {"text": plain(label, MAX_OPTION_UNITS), "value": value}


def overflow(action_id: str, options: Iterable[tuple[str, str]]) -> Block:
    """Return the ⋯ menu; an option is a label and a value."""
    shown = [option(label, value) for label, value in list(options)[:MAX_OVERFLOW_OPTIONS]]
    return {"type": "overflow", "action_id": action_id, "options": shown}


def input_block(block_id: str, label: str, element: Block, **more: Any) -> Block:
    """Return an input of a modal with its label; its action id is `VALUE`."""
    block = {"type": "input", "block_id": block_id, "label": plain(label, MAX_LABEL_UNITS)}
    return block | more | {"element": element | {"action_id": VALUE}}


def actions(*elements: Block) -> Block:
    return {"type": "actions", "elements": list(elements)}


def link_button(link: LinkButton | None) -> list[Block]:
    """Return a row with a button that opens a page; nothing without a link. Nod need not answer its press."""
    if link is None:
        return []
    label = plain(link.label, MAX_BUTTON_UNITS)
    return [actions({"type": "button", "text": label, "action_id": OPEN_LINK, "url": link.url})]


def choice_buttons(choices: Iterable[str]) -> list[Block]:
    """Return a row with a button for each choice; nothing without choices.

    The mark of a choice is the action id. A press is read from it alone, not from the button's value.
    """
    buttons = [button(label, mark, label) for label, mark in make_choice_buttons(choices)]
    if buttons:
        return [actions(*buttons)]
    return []


def offer(number: int, about: str, label: str, mark: str) -> Block:
    """Return a numbered line with the button of a command next to it."""
    line = plain(f"{number}. {about}", MAX_OFFER_UNITS)
    return {"type": "section", "text": line, "accessory": button(label, mark, mark)}


def markdown(content: str, team: str = "") -> Block:
    """Return a block of CommonMark from Nod, a model or a tool; mentions in it notify no one.

    ``team``: for a text to one person only, in which its people and channels are shown by their names.
    """
    shown = text.cut_and_neutralise(content, text.MAX_POST_UNITS)
    if team:
        shown = text.with_mentions(shown, team)
    return {"type": "markdown", "text": shown if shown.strip() else BLANK}
