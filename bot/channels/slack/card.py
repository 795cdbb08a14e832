"""Rendering of a `Card`, pending or resolved, and of a team as Block Kit blocks. Pure.

Whatever the content, the blocks stay within Slack's limits. If the change does not fit, the card says so and
its Approve opens "View all" first (``screens.py``), so no one approves what they could not read.
Sizes are in units of Slack's (`text.width`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from bot.channels.card_text import row_sign, team_text
from bot.channels.markdown import clean
from bot.channels.slack import blocks, text
from bot.channels.slack import blocks as b
from bot.channels.slack.blocks import Block, ContextLine, Run
from bot.channels.slack.places import channel_in, is_id, mention_of, user_of
from bot.domain.cards import BatchRow, Card
from bot.domain.diffs import diff
from bot.domain.files import RESULT_SHOWN
from bot.domain.people import Actor
from bot.domain.plans import Plan, PlanLine
from bot.domain.proposals import REMOVED, PreviewField, Tone
from bot.domain.redaction import redact_text
from bot.domain.teams import Standing, Teammate, TeamStatus
from bot.domain.verbs import (
    BUTTONS,
    CHOICES,
    CHOOSE,
    DETAILS,
    EACH_ROW,
    VIEW_ALL,
    Look,
    Needs,
    Verb,
    with_reason,
)

REVIEW = "review"  # opens "View all", whose submit approves
VIEW = "view"
SEND_COMMAND = "command"  # in App Home: sends the command that its value is
REVIEW_STEPS = "review_steps"  # opens "View all", whose submit approves a plan with its steps
DECLINE_REASON = "decline_reason"
CONTEXT_SHOWN = "context"  # opens the messages that led to the proposal
CHOOSING = "choose"  # opens the rows of a batch, to pick some
MORE = "nod:more"

_MAX_FIELDS = 20
_ALL_VALUES_UNITS = 4000  # for all values of the change together
_VALUE_UNITS = 1500
_INLINE_UNITS = 120  # a longer value has lines of its own
_MAX_MENTIONING_CHARS = 300  # a longer list of people mentions no one
_TONE_SIGNS = {Tone.WAITING: "⏳", Tone.GOOD: "✅", Tone.BAD: "❌", Tone.WARNED: "⚠️", Tone.QUIET: "⚪"}
_BATCH_UNITS = 6000  # for all rows of a batch together
_BATCH_QUESTIONS = {
    Verb.DECLINE_ALL: "None of these rows runs.",
    Verb.STOP_ALL: "Rows that are running finish. The rest is withdrawn.",
    Verb.UNDO_ALL: "",
}
"""The question before a press counts for all rows of a batch."""
_WORDED_VERBS = frozenset(
    verb for verb in Verb if BUTTONS[verb].needs is Needs.WORDS and not BUTTONS[verb].rare
)
_BUTTON_VERBS = frozenset({*CHOICES, *_WORDED_VERBS, Verb.APPROVE_STEPS.value, REVIEW_STEPS})
"""Verbs with a button on the card; App Home has them in a menu."""
_PLACED_VERBS = frozenset({Verb.APPROVE, Verb.APPROVE_ALL, Verb.DECLINE})
"""Verbs with a button that need no input. Other verbs without input are in the menu."""
_ENDED_VERBS = {
    Verb.RETRY: ("", "It runs again exactly as shown. Check first whether it already happened."),
    Verb.STOP: ("danger", "What it has done so far stays done."),
    Verb.UNDO: ("", ""),
}
"""Verbs of a resolved card: the style of the button, and the question before a press counts."""
_MAX_TEAMMATES = 20  # the newest
_ACTIVITY_UNITS = 300  # for what a teammate does or found
_TASK_STATUSES = {
    Standing.WORKING: "in_progress",
    Standing.DONE: "complete",
    Standing.FAILED: "error",
    Standing.STOPPED: "error",
}


@dataclass(frozen=True, slots=True)
class SlackCard:
    """A card ready to post: its blocks and the text of its notification.

    ``whole``: nothing of the change was cut.
    """

    blocks: list[Block]
    text: str
    whole: bool

    @property
    def message(self) -> dict[str, Any]:
        """The card as keyword arguments of Slack's methods."""
        return {"text": self.text, "blocks": self.blocks}


def action_id(verb: str) -> str:
    return f"nod:{verb}"


def value_of(card: Card) -> str:
    return f"{card.proposal_id}:{card.round}"


def parse_value(value: str) -> tuple[str, int]:
    """Parse a button's value into proposal id and round. Raises ValueError for one that is not Nod's."""
    proposal_id, colon, round_ = value.rpartition(":")
    if not (colon and proposal_id and round_.isdecimal()):
        raise ValueError("this button is not one of ours")
    return proposal_id, int(round_)


def render(card: Card, team: str = "") -> SlackCard:
    """Render a card in its current state.

    ``team``: the workspace whose people and channels can be named.
    """
    title, title_cut = _render_title(card)
    change, change_cut = _render_change(card)
    if card.batch:
        rows, rows_cut = batch_rows(card.batch.rows)
        change, change_cut = [*change, *rows], change_cut or rows_cut
    whole = not (title_cut or change_cut)
    notification = _write_notification(card)
    if not card.pending:
        resolved = _render_resolved(card)
        if card.batch or card.carried_out:
            return SlackCard([*resolved, *b.rich(change), *_render_notes(card)], notification, whole=True)
        return SlackCard([*_render_group(card), *resolved, *_render_notes(card)], notification, whole)
    shown = [] if card.batch else _render_group(card)
    shown += [*title, *b.rich([*_render_reason(card), *change])]
    if not whole:
        shown.append(b.context("✂️ Too long for this card. View all shows everything."))
    shown += [*_render_notes(card), *_render_pending(card, team, whole=whole)]
    return SlackCard(shown, notification, whole)


def brief(card: Card, team: str = "") -> SlackCard:
    """Render the least that can be decided on: title, state and buttons; "View all" has the rest."""
    note = b.context("✂️ Slack could not show this card in full. View all shows everything.")
    shown = [] if card.batch else _render_group(card)
    if card.pending:
        title = text.cut(text.link_text(card.title) or b.BLANK, 300)[0]
        shown += b.rich([ContextLine((Run(title, "bold"),))])
        state = _render_pending(card, team, whole=False)
    else:
        state = _render_resolved(card)
    shown += [note, *_render_notes(card), *state]
    return SlackCard(shown, _write_notification(card), whole=False)


def _render_title(card: Card) -> tuple[list[Block], bool]:
    title = text.link_text(card.title) or card.tool_name or b.BLANK
    if text.width(title) <= blocks.HEADER:
        return [b.header(title)], False
    shown, cut = text.cut(title, 600)
    return b.rich([ContextLine((Run(shown, "bold"),))]), cut


def _render_reason(card: Card) -> Iterator[ContextLine]:
    if card.kind.is_answer and card.risk_reason:
        yield ContextLine((Run(text.cut(text.link_text(card.risk_reason), 300)[0], "italic"),))
    elif card.warning:
        yield ContextLine((Run("⚠️ "), Run(text.cut(text.link_text(card.warning), 300)[0], "bold")))
    if card.why.strip():
        yield ContextLine((Run("Why: ", "bold"), Run(text.cut(card.why.strip(), 600)[0])))


def _render_change(card: Card) -> tuple[list[ContextLine], bool]:
    """Return the lines of the change, and whether any of it was cut."""
    steps = card.outline
    if steps:
        return _render_plan(steps)
    fields = card.shown_fields
    shown = fields[:_MAX_FIELDS]
    room = min(_VALUE_UNITS, max(100, _ALL_VALUES_UNITS // max(1, 2 * len(shown))))
    lines: list[ContextLine] = []
    missing = len(fields) - len(shown)
    some_cut = missing > 0
    for field in shown:
        lines_of_field, cut = field_lines(field, room)
        lines += lines_of_field
        some_cut = some_cut or cut
    if missing:
        lines.append(ContextLine((Run(f"… [{missing} more fields]", "italic"),)))
    return lines, some_cut


def batch_rows(
    rows: Sequence[BatchRow], room: int = _BATCH_UNITS, first: int = 1
) -> tuple[list[ContextLine], bool]:
    """Return the rows of a batch, numbered from ``first``, and whether any of it was cut.

    A row has its subject, and its differences or its outcome.
    """
    lines: list[ContextLine] = []
    used, some_cut = 0, False
    for number, row in enumerate(rows, first):
        lines_of_row, cut = _render_row(number, row, room)
        used += sum(line.width for line in lines_of_row)
        if used > room:
            left = len(rows) - (number - first)
            return [*lines, ContextLine((Run(f"… [{left} more rows]", "italic"),))], True
        lines += lines_of_row
        some_cut = some_cut or cut
    return lines, some_cut


def _render_row(number: int, row: BatchRow, room: int) -> tuple[list[ContextLine], bool]:
    subject, some_cut = text.cut(text.link_text(row.about) or b.BLANK, 300)
    head = [Run(f"{number}. {row_sign(row)}"), Run(subject, "bold" if row.card.pending else "")]
    if not row.card.pending:
        fault = text.cut(f": {row.fault}", _INLINE_UNITS)[0] if row.fault else ""
        return [ContextLine((*head, Run(fault)))], some_cut
    below: list[ContextLine] = []
    for field in row.fields:
        lines, cut = field_lines(field, min(_VALUE_UNITS, room // 4))
        some_cut = some_cut or cut
        if len(lines) == 1:
            head += [Run(" · "), *lines[0].runs]
        else:
            below += lines
    notes = [Run(f" · {text.cut(note, _INLINE_UNITS)[0]}", "italic") for note in row.notes]
    return [ContextLine((*head, *notes)), *below], some_cut


def _render_plan(plan_lines: Sequence[PlanLine]) -> tuple[list[ContextLine], bool]:
    """Return a plan as a numbered list, each step with its tools, and whether any of it was cut."""
    room = min(_VALUE_UNITS, max(100, _ALL_VALUES_UNITS // len(plan_lines)))
    lines, some_cut = [], False
    for plan_line in plan_lines:
        words, words_cut = text.cut(plan_line.text, room)
        mark, mark_cut = text.cut(plan_line.mark, room)
        some_cut = some_cut or words_cut or mark_cut
        runs = [Run(words or b.BLANK)]
        if plan_line.label:
            runs.insert(0, Run(f"{plan_line.label}: ", "bold"))
        for name in plan_line.tools:
            runs += [Run("  "), Run(name, "code")]
        if mark:
            runs.append(Run(f"  ({mark})", "italic"))
        lines.append(ContextLine(tuple(runs), numbered=bool(plan_line.number)))
    return lines, some_cut


def field_lines(field: PreviewField, room: int) -> tuple[list[ContextLine], bool]:
    """Return one field of the change within ``room`` units per value, and whether any of it was cut."""
    name, name_cut = text.cut(field.field or b.BLANK, 60)
    old, old_cut = _cut_value(field.old_value, room)
    new, new_cut = _cut_value(field.new_value, room)
    label = Run(f"{name}: ", "bold")
    cut = name_cut or old_cut or new_cut
    if _fits_inline(old) and _fits_inline(new):
        return [ContextLine((label, *_write_inline(old, new)))], cut
    difference = diff(field.old_value, field.new_value)
    if difference is not None:
        shown, diff_cut = text.cut(difference, 2 * room)
        return [ContextLine((label,)), ContextLine((Run(shown),), preformatted=True)], name_cut or diff_cut
    if old is None or field.old_value == field.new_value:
        return _write_block(label, "" if old is None else "(unchanged)", new), cut
    if new is None:
        return _write_block(label, f"({REMOVED})", old), cut
    return [*_write_block(label, "now", old), *_write_block(label, "will be", new)], cut


def _cut_value(value: str | None, room: int) -> tuple[str | None, bool]:
    if value is None:
        return None, False
    return text.cut(value, room)


def _fits_inline(value: str | None) -> bool:
    return value is None or (len(value) <= _INLINE_UNITS and "\n" not in value)


def _write_block(label: Run, aside: str, value: str | None) -> list[ContextLine]:
    return [
        ContextLine((label, Run(aside, "italic"))),
        ContextLine((Run(value or b.BLANK),), preformatted=True),
    ]


def _write_inline(old: str | None, new: str | None) -> tuple[Run, ...]:
    if new is not None:
        after = Run(new or b.BLANK)
    elif old is None:
        after = Run("(nothing)", "italic")
    else:
        after = Run(f"({REMOVED})", "italic")
    if old is None:
        return (after,)
    if old == new:
        return (after, Run(" (unchanged)", "italic"))
    return (Run(old or b.BLANK, "strike"), Run(" → "), after)


def _render_notes(card: Card) -> list[Block]:
    """Return the notes of a card: lines of features, whose account it uses, the tally, edits.

    It is plain text, in which Slack makes no links.
    """
    shown = []
    if card.annotations:
        shown.append(b.context(*(f"💬 {annotation.words}" for annotation in card.annotations)))
    if card.acts_as and not card.pending:
        shown.append(b.context(card.acts_as))
    if card.notes:
        shown.append(b.context(*(f"📌 {note}" for note in card.notes)))
    return shown


def _write_asker(card: Card, team: str) -> str | Block:
    """Write the requester; on a copy in another chat also the original channel, as a link."""
    channel = channel_in(card.origin, team) if card.origin else None
    if channel is None:
        return card.asked
    asker = text.cut(replace(card, asked_in="").asked, 300)[0]
    return b.mrkdwn_block(f"{text.escape(asker)} in <#{channel}>")


def _write_deciders(card: Card, team: str) -> str | Block:
    """Write the people who may decide. A new card mentions those of its workspace, so they are notified."""
    if card.asker_decides:
        return ""
    parts = card.circle.parts
    if len(card.deciders) > _MAX_MENTIONING_CHARS or not any(isinstance(part, Actor) for part in parts):
        return f"Can decide: {text.cut(card.deciders, 300)[0]}"
    return b.mrkdwn_block(f"Can decide: {''.join(_write_mention(part, team) for part in parts)}")


def _write_mention(part: Actor | str, team: str) -> str:
    account = user_of(part) if isinstance(part, Actor) else None
    if account is not None and account[0] == team and is_id(account[1]):
        return mention_of(account[1])
    name = part.label if isinstance(part, Actor) else part
    return text.escape(name)


def _render_pending(card: Card, team: str, *, whole: bool) -> list[Block]:
    votes = "; ".join(card.tally)
    facts = (_write_asker(card, team), _write_deciders(card, team), card.acts_as, votes, card.undo_note)
    footer = [b.footer(*facts, label="Expires", at=card.expires)]
    value = value_of(card)
    if card.batch:
        return [*footer, b.actions(*_make_batch_buttons(card, value, whole=whole))]
    views = [(VIEW_ALL, f"{VIEW}:{value}")]
    buttons = [_make_button(card, verb, value) for verb in CHOICES if verb in card.verbs]
    if Verb.APPROVE in card.verbs:
        buttons.append(_make_approve_button(card, value, whole=whole))
        if not whole:
            views = []
    if Verb.DECLINE in card.verbs:
        buttons.append(_make_button(card, Verb.DECLINE, value))
    buttons += [_make_button(card, verb, value) for verb in card.verbs if verb in _WORDED_VERBS]
    if Verb.APPROVE_STEPS in card.verbs:
        label, verb = steps_button(card, whole=whole)
        buttons.append(b.button(label, action_id(verb), value, confirm=steps_words(card)))
    if Verb.FOR_REAL in card.verbs and Verb.APPROVE not in card.verbs:  # shows everything first
        style = "danger" if card.button(Verb.FOR_REAL).look is Look.DANGER else ""
        buttons.insert(0, _make_button(card, Verb.FOR_REAL, value, style))
    if Verb.EDIT in card.verbs:
        buttons.append(_make_button(card, Verb.EDIT, value))
    entries = [entry for entry in more(card, whole=whole) if entry[1].partition(":")[0] not in _BUTTON_VERBS]
    if entries or views:
        room = blocks.OVERFLOW_OPTIONS - len(views)
        if len(entries) > room:  # a command can extend the time, too
            entries = [entry for entry in entries if not entry[1].startswith(f"{Verb.EXTEND}:")]
        buttons.append(b.overflow(MORE, [*entries[:room], *views]))
    return [*footer, b.actions(*buttons)]


def _make_approve_button(card: Card, value: str, *, whole: bool) -> Block:
    """Return the button that approves; on a card that was cut it opens "View all"."""
    approve = card.button(Verb.APPROVE)
    style = "danger" if approve.look is Look.DANGER else "primary"
    if whole:
        return b.button(approve.label, action_id(Verb.APPROVE), value, style, sure=approve.sure)
    label = "View all, then answer" if card.kind.is_answer else "View all, then approve"
    if card.kind.has_steps:
        label = f"{label} plan"
    return b.button(label, action_id(REVIEW), value, style)


def _make_batch_buttons(card: Card, value: str, *, whole: bool) -> Iterator[Block]:
    """Yield the buttons of a batch."""
    if Verb.APPROVE_ALL in card.verbs:
        label = card.button(Verb.APPROVE_ALL).label if whole else "View all, then approve"
        yield b.button(label, action_id(Verb.APPROVE_ALL), value, "primary")
    if Verb.APPROVE_ALL in card.verbs or Verb.DECLINE_ALL in card.verbs:
        yield b.button(CHOOSE, action_id(CHOOSING), value)
    for verb in (Verb.DECLINE_ALL, Verb.STOP_ALL):
        if verb in card.verbs:
            style = "danger" if verb is Verb.STOP_ALL else ""
            yield _make_button(card, verb, value, style, _BATCH_QUESTIONS[verb])
    yield b.overflow(MORE, [(VIEW_ALL, f"{VIEW}:{value}")])


def _make_button(card: Card, action: Verb, value: str, style: str = "", confirm: str = "") -> Block:
    button = card.button(action)
    sure = None if confirm else button.sure
    return b.button(button.label, action_id(action), value, style, confirm, sure)


def more(card: Card, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Yield the entries of the ⋯ menu as label and value; ``whole``: the card shows everything."""
    value = value_of(card)
    if Verb.DECLINE in card.verbs and card.button(Verb.DECLINE).needs is Needs.REASON:
        yield with_reason(card.button(Verb.DECLINE)), f"{DECLINE_REASON}:{value}"
    yield from _list_entries(card, value, Needs.WORDS)
    if Verb.APPROVE_STEPS in card.verbs:
        label, steps = steps_button(card, whole=whole)
        yield label, f"{steps}:{value}"
    if Verb.FOR_REAL in card.verbs and Verb.APPROVE in card.verbs:
        yield card.button(Verb.FOR_REAL).label, f"{Verb.FOR_REAL}:{value}"
    if Verb.SIMILAR in card.verbs:
        label = card.button(Verb.SIMILAR).label if whole else "View all, then approve similar"
        yield label, f"{Verb.SIMILAR}:{value}"
    yield from _list_entries(card, value, Needs.NOTHING)


def _list_entries(card: Card, value: str, needs: Needs) -> Iterator[tuple[str, str]]:
    for verb in card.verbs:
        if verb not in _PLACED_VERBS and card.button(verb).needs is needs:
            yield card.button(verb).label, f"{verb}:{value}"


def steps_button(card: Card, *, whole: bool) -> tuple[str, str]:
    """Return the label and the verb of the button that approves a plan with its steps."""
    if whole:
        return card.button(Verb.APPROVE_STEPS).label, Verb.APPROVE_STEPS
    return "View all, then approve plan and its steps", REVIEW_STEPS


def steps_words(card: Card) -> str:
    """Describe in a sentence or two the effect of approving a plan with its steps."""
    names = ", ".join(Plan.of(card.arguments).tools) or "no tools"
    return (
        f"{card.teammate or 'The teammate'} may then use what its steps name without asking, until it ends: "
        f"{names}. What cannot be undone still asks."
    )


def _render_resolved(card: Card) -> list[Block]:
    headline = text.cut(text.link_text(card.headline) or card.tool_name or b.BLANK, 600)[0]
    linked = card.result_url if card.result_url and is_web(card.result_url) else ""
    lines = [ContextLine((Run(f"{_TONE_SIGNS[card.tone]} "), Run(headline, "bold", linked)))]
    if card.result.strip():
        lines.append(ContextLine((Run(text.cut(card.result.strip(), RESULT_SHOWN)[0]),), preformatted=True))
    outcome = text.cut(card.end, 400)[0]
    value = value_of(card)
    details = b.button(DETAILS, action_id(VIEW), value)
    closing = text.cut("; ".join(filter(None, (outcome, *card.tally))), 1000)[0]
    runs = card.running_since is not None
    shown = [*b.rich(lines), b.closing(closing, card.ended_at, details, runs=runs)]
    if card.batch:
        verbs = [verb for verb in card.verbs if verb in _BATCH_QUESTIONS]
        buttons = [_make_button(card, verb, value, "", _BATCH_QUESTIONS[verb]) for verb in verbs]
        if card.batch.offers:
            buttons.append(b.button(EACH_ROW, action_id(CHOOSING), value))
    else:
        verbs = [verb for verb in _ENDED_VERBS if verb in card.verbs]
        buttons = [_make_button(card, verb, value, *_ENDED_VERBS[verb]) for verb in verbs]
    if buttons:
        shown.append(b.actions(*buttons))
    return shown


def _render_group(card: Card) -> list[Block]:
    """Return the blocks above the first card of several."""
    if card.group is None:
        return []
    value = f"{card.proposal_id}:{card.group.round}"
    count = card.group.open
    question = f"This is for all {count} open changes of this answer; each has its own card."
    buttons = []
    if Verb.APPROVE_ALL in card.verbs:
        approve_question = question
        excluded = card.group.alone
        if excluded:
            which = "it" if excluded == 1 else "each"
            approve_question += f" {excluded} can't be undone: approve {which} there."
        approve_question += " What a card could not show in full is shown to you first."
        buttons.append(_make_button(card, Verb.APPROVE_ALL, value, "primary", approve_question))
    if Verb.DECLINE_ALL in card.verbs:
        buttons.append(_make_button(card, Verb.DECLINE_ALL, value, "", question))
    if not buttons:
        return []
    size = card.group.size
    open_ = f"{size} changes" if count == size else f"{count} of {size} changes"
    return [b.context(f"{open_} in this answer are open."), b.actions(*buttons)]


def _write_notification(card: Card) -> str:
    title = text.cut(text.link_text(card.headline), 300)[0].rstrip(".")
    outcome = text.cut(text.link_text(card.outcome), 300)[0]
    return text.escape(f"{title}: {outcome}")


def is_web(url: str) -> bool:
    """Tell if a link may be shown: http or https, short enough, without odd characters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc or text.width(url) > blocks.URL:
        return False
    return url == clean(url) and not any(char.isspace() or char in "<>|" for char in url)


def render_team(board: TeamStatus) -> SlackCard:
    """Return a team as a plan block, with a task card for each teammate."""
    tasks = [_render_task(teammate) for teammate in board.teammates[-_MAX_TEAMMATES:]]
    block = {"type": "plan", "title": text.cut(board.title, blocks.TASK_TITLE)[0], "tasks": tasks}
    return SlackCard([block], text.escape(board.title), whole=True)


def brief_team(board: TeamStatus) -> SlackCard:
    """Render a team's status in rich text only, for a Slack that refuses the other blocks."""
    lines = (ContextLine((Run(line),)) for line in team_text(board).splitlines())
    return SlackCard(b.rich(lines), text.escape(board.title), whole=True)


def _render_task(teammate: Teammate) -> Block:
    task: Block = {
        "type": "task_card",
        "task_id": teammate.id,
        "title": _name_teammate(teammate),
        "status": _TASK_STATUSES[teammate.standing],
    }
    has_ended = teammate.standing is not Standing.WORKING
    activity = _describe_activity(teammate)
    if activity:
        task["output" if has_ended else "details"] = b.rich(activity)[0]
    return task


def _name_teammate(teammate: Teammate) -> str:
    plan = f"; {teammate.plan_state}" if teammate.plan_state else ""
    return text.cut(text.link_text(f"{teammate.name}: {teammate.state}{plan}"), blocks.TASK_TITLE)[0]


def _describe_activity(teammate: Teammate) -> list[ContextLine]:
    activity = text.cut(redact_text(teammate.about), _ACTIVITY_UNITS)[0]
    if activity.strip():
        return [ContextLine((Run(activity),))]
    return []
