"""Rendering of a `Card`, pending or resolved, as Block Kit blocks. Pure.

Whatever the content, the blocks stay within Slack's limits. If the change does not fit, the card says so and
its Approve opens "View all" first (``screens.py``), so no one approves what they could not read. `render`
makes the usual card, `render_briefly` one for a Slack that refuses it. Sizes are in Slack's units
(`text.width`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from bot.channels.markdown import clean
from bot.channels.slack import blocks, text
from bot.channels.slack.blocks import BLANK, Block, RichLine, TextRun
from bot.channels.slack.buttons import (
    make_details_button,
    make_group_buttons,
    make_pending_buttons,
    make_resolved_buttons,
)
from bot.channels.slack.change_blocks import render_batch_rows, render_change
from bot.channels.slack.places import find_linkable_channel, is_id, mention_of, user_of
from bot.domain.cards import Card
from bot.domain.files import MAX_SHOWN_UTF16_UNITS
from bot.domain.people import Actor
from bot.domain.proposal_states import Tone

# the most units of a part of a card; a longer part is cut
_LONG_TITLE_UNITS = 600  # a title that does not fit a header
_REMARK_UNITS = 300  # a warning, the requester, the deciders, or a part of the notification
_REASON_UNITS = 600
_HEADLINE_UNITS = 600  # of a resolved card
_OUTCOME_UNITS = 400
_OUTCOME_AND_VOTES_UNITS = 1000
_MAX_MENTIONING_CHARS = 300  # a longer list of people mentions no one
_TONE_SIGNS = {Tone.WAITING: "⏳", Tone.GOOD: "✅", Tone.BAD: "❌", Tone.WARNED: "⚠️", Tone.QUIET: "⚪"}


@dataclass(frozen=True, slots=True)
class SlackCard:
    """A card ready to post."""

    blocks: list[Block]
    text: str  # the text of its notification
    shows_all: bool  # nothing of the change was cut

    @property
    def message(self) -> dict[str, Any]:
        """The card as keyword arguments of Slack's methods."""
        return {"text": self.text, "blocks": self.blocks}


def render(card: Card, team: str = "") -> SlackCard:
    """Render a card in its current state.

    ``team``: the workspace whose people and channels can be named.
    """
    title, is_title_cut = _render_title(card)
    change, is_change_cut = render_change(card)
    if card.batch:
        rows, are_rows_cut = render_batch_rows(card.batch.rows)
        change = [*change, *rows]
        is_change_cut = is_change_cut or are_rows_cut
    shows_all = not (is_title_cut or is_change_cut)
    notification = _write_notification(card)

    if not card.pending:
        resolved = _render_resolved(card)
        if card.batch or card.is_approved_plan:
            shown = [*resolved, *blocks.rich(change), *_render_notes(card)]
            return SlackCard(shown, notification, shows_all=True)
        return SlackCard([*_render_group(card), *resolved, *_render_notes(card)], notification, shows_all)

    shown = [*_render_group(card), *title, *blocks.rich([*_render_intro(card), *change])]
    if not shows_all:
        shown.append(blocks.context("✂️ Too long for this card. View all shows everything."))
    shown += [*_render_notes(card), *_render_pending(card, team, shows_all=shows_all)]
    return SlackCard(shown, notification, shows_all)


def render_briefly(card: Card, team: str = "") -> SlackCard:
    """Render the least that can be decided on: title, state and buttons; "View all" has the rest."""
    note = blocks.context("✂️ Slack could not show this card in full. View all shows everything.")
    title: list[Block] = []
    if card.pending:
        short_title = text.cut(text.one_line(card.title) or BLANK, _REMARK_UNITS)[0]
        title = blocks.rich([RichLine((TextRun(short_title, "bold"),))])
        state = _render_pending(card, team, shows_all=False)
    else:
        state = _render_resolved(card)
    shown = [*_render_group(card), *title, note, *_render_notes(card), *state]
    return SlackCard(shown, _write_notification(card), shows_all=False)


def _render_group(card: Card) -> list[Block]:
    """Return the blocks above the first card of several. A batch has its buttons below instead."""
    buttons = [] if card.batch else make_group_buttons(card)
    if card.group is None or not buttons:
        return []
    open_count = card.group.open_count
    size = card.group.size
    changes = f"{size} changes" if open_count == size else f"{open_count} of {size} changes"
    return [blocks.context(f"{changes} in this answer are open."), blocks.actions(*buttons)]


def _render_title(card: Card) -> tuple[list[Block], bool]:
    """Return the title, and True if it was cut."""
    title = text.one_line(card.title) or card.tool_name or BLANK
    if text.width(title) <= blocks.MAX_HEADER_UNITS:
        return [blocks.header(title)], False
    shown, is_cut = text.cut(title, _LONG_TITLE_UNITS)
    return blocks.rich([RichLine((TextRun(shown, "bold"),))]), is_cut


def _render_intro(card: Card) -> Iterator[RichLine]:
    """Yield the lines between the title and the change: the warning and the reason."""
    if card.kind.is_answer and card.risk_reason:  # the card of a question has no warning, but a remark
        yield RichLine((TextRun(text.cut(text.one_line(card.risk_reason), _REMARK_UNITS)[0], "italic"),))
    elif card.warning:
        yield RichLine(
            (TextRun("⚠️ "), TextRun(text.cut(text.one_line(card.warning), _REMARK_UNITS)[0], "bold"))
        )
    if card.shown_reason.strip():
        yield RichLine(
            (TextRun("Why: ", "bold"), TextRun(text.cut(card.shown_reason.strip(), _REASON_UNITS)[0]))
        )


def _render_notes(card: Card) -> list[Block]:
    """Return the notes of a card: lines of features, the account that it used, and remarks such as edits.

    They are plain text, in which Slack makes no links.
    """
    shown = []
    if card.annotations:
        shown.append(blocks.context(*(f"💬 {annotation.line}" for annotation in card.annotations)))
    if card.acts_as and not card.pending:
        shown.append(blocks.context(card.acts_as))
    if card.notes:
        shown.append(blocks.context(*(f"📌 {note}" for note in card.notes)))
    return shown


def _write_asker(card: Card, team: str) -> str | Block:
    """Write the requester. On a copy in another chat, add the original channel, as a link if possible."""
    channel = find_linkable_channel(card.origin, team) if card.origin else None
    if channel is None:
        return card.requester_line
    asker = text.cut(replace(card, asked_in="").requester_line, _REMARK_UNITS)[0]
    return blocks.mrkdwn_block(f"{text.escape(asker)} in <#{channel}>")


def _write_deciders(card: Card, team: str) -> str | Block:
    """Write the people who may decide. A new card mentions people of its workspace, so they are notified."""
    if card.asker_decides:
        return ""
    parts = card.decider_names.parts
    if len(card.deciders) > _MAX_MENTIONING_CHARS or not any(isinstance(part, Actor) for part in parts):
        return f"Can decide: {text.cut(card.deciders, _REMARK_UNITS)[0]}"
    return blocks.mrkdwn_block(f"Can decide: {''.join(_write_mention(part, team) for part in parts)}")


def _write_mention(part: Actor | str, team: str) -> str:
    account = user_of(part) if isinstance(part, Actor) else None
    if account is not None and account[0] == team and is_id(account[1]):
        return mention_of(account[1])
    name = part.label if isinstance(part, Actor) else part
    return text.escape(name)


def _render_pending(card: Card, team: str, *, shows_all: bool) -> list[Block]:
    """Return the footer and the buttons of an open card."""
    votes = "; ".join(card.shown_votes)
    facts = (_write_asker(card, team), _write_deciders(card, team), card.acts_as, votes, card.undo_note)
    footer = blocks.footer(*facts, label="Expires", at=card.local_expires_at)
    return [footer, blocks.actions(*make_pending_buttons(card, shows_all=shows_all))]


def _render_resolved(card: Card) -> list[Block]:
    """Return the outcome of a card, with buttons for its details and for verbs such as Retry and Undo."""
    headline = text.cut(text.one_line(card.headline) or card.tool_name or BLANK, _HEADLINE_UNITS)[0]
    url = card.result_url if card.result_url and is_web(card.result_url) else ""
    lines = [RichLine((TextRun(f"{_TONE_SIGNS[card.tone]} "), TextRun(headline, "bold", url)))]
    result = card.result.strip()
    if result:
        lines.append(RichLine((TextRun(text.cut(result, MAX_SHOWN_UTF16_UNITS)[0]),), preformatted=True))
    outcome = text.cut(card.outcome_line, _OUTCOME_UNITS)[0]
    outcome_and_votes = text.cut(
        "; ".join(filter(None, (outcome, *card.shown_votes))), _OUTCOME_AND_VOTES_UNITS
    )[0]
    is_running = card.running_since is not None
    outcome_section = blocks.outcome_section(
        outcome_and_votes, card.ended_at, make_details_button(card), is_running=is_running
    )
    shown = [*blocks.rich(lines), outcome_section]
    buttons = make_resolved_buttons(card)
    if buttons:
        shown.append(blocks.actions(*buttons))
    return shown


def _write_notification(card: Card) -> str:
    title = text.cut(text.one_line(card.headline), _REMARK_UNITS)[0].rstrip(".")
    outcome = text.cut(text.one_line(card.outcome), _REMARK_UNITS)[0]
    return text.escape(f"{title}: {outcome}")


def is_web(url: str) -> bool:
    """Tell if a link may be shown: http or https, short enough, without odd characters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc or text.width(url) > blocks.MAX_URL_UNITS:
        return False
    return url == clean(url) and not any(char.isspace() or char in "<>|" for char in url)
