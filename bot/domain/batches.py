"""A batch: three or more calls of one tool in one answer of the agent, which people see as one table.

Each row stays a proposal of its own, with a card of its own. The batch has the id of its first row. Its card
(`batch_card`) is made of the rows' cards: what all rows share is said once above the table. `Picked` are the
rows that a person has picked before a press; channels without a state of their own pack them into the button.
"""

import base64
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from bot.domain.annotations import Annotation
from bot.domain.cards import Batch, BatchRow, Card, Group
from bot.domain.chat import Address, BatchDecision, PickedRow
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State, Tone
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.domain.value_text import label_of
from bot.domain.verbs import Verb

_MIN_SUBJECT_CHARS = 3  # shorter subjects do not tell a row from the others
_MIN_CALLS = 3  # fewer calls of one tool in one answer make no table
ROWS_PER_PAGE = 10
"""The number of rows on one page of a table, in chats that have a button for each row to pick."""


def assign_batches(calls: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the id of the batch for each call of one answer that is in one, by call id.

    ``calls``: the id of each call and the name of its tool; a call with an empty name is in no batch.
    """
    calls_by_tool: dict[str, list[str]] = {}
    for call_id, tool_name in calls:
        if tool_name:
            calls_by_tool.setdefault(tool_name, []).append(call_id)
    batch_ids: dict[str, str] = {}
    for call_ids in calls_by_tool.values():
        if len(call_ids) >= _MIN_CALLS:
            batch_ids |= dict.fromkeys(call_ids, call_ids[0])
    return batch_ids


def batch_card(proposals: Sequence[Proposal], cards: Sequence[Card]) -> Card:
    """Return the card of a batch, made of its rows and of their own cards, in the same order."""
    first = cards[0]
    waiting = [card for card in cards if card.pending]
    described = waiting or cards  # the cards that the batch describes; once none waits, all of them
    irreversible = sum(card.level is Level.DESTRUCTIVE for card in waiting)  # each is approved by itself
    group = Group(
        size=len(cards),
        open=len(waiting),
        round=sum(card.round for card in cards),
        irreversible=irreversible,
    )

    title_words = _find_shared_title([card.title for card in cards])
    rows, shared_fields = _make_rows(cards, title_words)

    notes = [card.notes for card in described]
    annotations = [card.annotations for card in described]
    shared_notes = [note for note in first.notes if _is_shared(note, notes)]
    shared_annotations = [line for line in first.annotations if _is_shared(line, annotations)]
    has_several_accounts = len({card.acts_as for card in cards}) > 1
    noted_rows = []
    for row in rows:
        own_notes = _list_own_notes(row, shared_notes, shared_annotations, with_account=has_several_accounts)
        noted_rows.append(replace(row, notes=own_notes))

    tone, state = _summarize_state(cards)
    outcome = first.outcome if len(waiting) == len(cards) else _format_progress(proposals)
    is_partly_decided = 0 < len(waiting) < len(cards)
    progress = [outcome] if is_partly_decided else []  # as a note, since a pending card shows no outcome
    # where all that wait are irreversible, the level of the card says so
    are_all_irreversible = irreversible > 0 and irreversible == len(waiting)
    warnings = _list_warnings(described, irreversible=0 if are_all_irreversible else irreversible)
    return replace(  # what is not named here is as on the first card
        first,
        round=group.round,
        version=sum(card.version for card in cards),
        title=f"{' '.join(title_words) or _name_tools(cards)}: {len(cards)} changes",
        level=Level.DESTRUCTIVE if are_all_irreversible else Level.WRITE,
        risk_reason=_find_shared_text(card.risk_reason for card in described),
        reason=_find_shared_text(card.reason for card in described),
        fields=shared_fields,
        arguments={},
        schema={},
        votes=(),
        expires_at=min(card.expires_at for card in described),
        state=state,
        tone=tone,
        outcome=outcome,
        decided_at=max((card.decided_at for card in cards if card.decided_at), default=None),
        running_since=min((card.running_since for card in cards if card.running_since), default=None),
        result="",
        result_url=None,
        result_fields=(),
        told="",
        data="",
        notes=(*progress, *shared_notes, *warnings),
        verbs=_list_verbs(group, cards),
        group=group,
        asker_decides=all(card.asker_decides for card in described),
        undo=_find_shared_text(card.undo for card in described),
        undoing="",
        annotations=tuple(shared_annotations),
        acts_as=_find_shared_text(card.acts_as for card in cards),
        batch=Batch(tuple(noted_rows)),
    )


def _is_shared(value: object, collections: Iterable[Collection[object]]) -> bool:
    return all(value in collection for collection in collections)


def _find_shared_text(texts: Iterable[str]) -> str:
    """Return the text if all texts are equal; empty where they differ."""
    different = set(texts)
    if len(different) == 1:
        return different.pop()
    return ""


def _list_own_notes(
    row: BatchRow,
    shared_notes: Collection[str],
    shared_annotations: Collection[Annotation],
    *,
    with_account: bool,
) -> tuple[str, ...]:
    """Return the notes and annotations of a row that not all rows have.

    ``with_account``: the rows run under several accounts, so each row says which.
    """
    notes = [row.card.acts_as] if with_account and row.card.acts_as else []
    notes += [note for note in row.notes if note not in shared_notes]
    notes += [line.words for line in row.card.annotations if line not in shared_annotations]
    return tuple(notes)


def _list_verbs(group: Group, cards: Sequence[Card]) -> tuple[Verb, ...]:
    verbs = []
    if group.open > group.irreversible:
        verbs.append(Verb.APPROVE_ALL)
    if group.open:
        verbs.append(Verb.DECLINE_ALL)
    if any(card.state is State.APPROVED for card in cards):
        verbs.append(Verb.STOP_ALL)
    undoable_count = sum(Verb.UNDO in card.verbs for card in cards)
    if not group.open and undoable_count > 1:
        verbs.append(Verb.UNDO_ALL)
    return tuple(verbs)


def _list_warnings(described: Sequence[Card], *, irreversible: int) -> list[str]:
    """Return notes on how the rows are decided. ``irreversible``: the number of rows to decide one by one."""
    warnings = []
    if irreversible:
        asks = "it asks" if irreversible == 1 else "each asks"
        warnings.append(f"{irreversible} can't be undone: {asks} by itself.")
    if described[0].quorum > 1 and described[0].pending:
        warnings.append(f"Each needs {described[0].quorum} approvals.")
    if len({card.deciders for card in described}) > 1:
        warnings.append("Who may decide is not the same for all.")
    return warnings


def _name_tools(cards: Sequence[Card]) -> str:
    """Return a shared name for the tools of the rows, such as ``Files``."""
    shared = _find_shared_start([card.tool_name.split("_") for card in cards])
    if shared:
        return f"{label_of('_'.join(shared))}s"
    return "Several tools"


def _find_shared_title(titles: Sequence[str]) -> list[str]:
    """Return the words with which all titles begin; what follows them is enough to tell the rows apart."""
    titles_as_words = [title.split() for title in titles]
    shared = _find_shared_start(titles_as_words)
    while shared:
        subjects = [" ".join(words[len(shared) :]) for words in titles_as_words]
        if all(len(subject) >= _MIN_SUBJECT_CHARS for subject in subjects):
            break
        shared.pop()
    return shared


def _find_shared_start(sequences: Sequence[Sequence[str]]) -> list[str]:
    shared = []
    for first, *others in zip(*sequences, strict=False):
        if any(other != first for other in others):
            break
        shared.append(first)
    return shared


def _make_rows(
    cards: Sequence[Card], title_words: Sequence[str]
) -> tuple[tuple[BatchRow, ...], tuple[PreviewField, ...]]:
    """Return the rows with the fields in which they differ, and the fields that are the same for all.

    A row's subject is its title after ``title_words``, with which all titles begin.
    """
    title_chars = len(" ".join(title_words))
    fields_of_cards = [card.shown_fields for card in cards]
    shared = tuple(field for field in fields_of_cards[0] if _is_shared(field, fields_of_cards))
    rows = []
    for card, fields in zip(cards, fields_of_cards, strict=True):
        subject = " ".join(card.title.split())[title_chars:].strip()
        differing = tuple(field for field in fields if field not in shared)
        rows.append(BatchRow(card, subject, differing, card.notes))
    return _drop_fields_in_subjects(rows), shared


def _drop_fields_in_subjects(rows: Sequence[BatchRow]) -> tuple[BatchRow, ...]:
    """Return the rows without the fields that the subject of every row already says."""
    names_to_keep: set[str] = set()  # of fields that the subject of some row does not say
    for row in rows:
        names_to_keep.update(field.field for field in row.fields if not _subject_says(row.about, field))
    shortened = []
    for row in rows:
        remaining = tuple(field for field in row.fields if field.field in names_to_keep)
        shortened.append(replace(row, fields=remaining))
    return tuple(shortened)


def _subject_says(subject: str, field: PreviewField) -> bool:
    """Tell if the subject of a row already says everything in a field."""
    if field.old_value is not None:
        return False
    return f" {field.new_value} " in f" {subject} " or f"“{field.new_value}”" in subject


def _summarize_state(cards: Sequence[Card]) -> tuple[Tone, State]:
    """Return the tone of a batch, and the one state that stands for the states of its rows."""
    states = {card.state for card in cards}
    tones = {card.tone for card in cards}
    if State.PROPOSED in states:
        return Tone.WAITING, State.PROPOSED
    if states & {State.APPROVED, State.EXECUTING}:
        return Tone.WAITING, State.EXECUTING
    if not states & {State.SUCCEEDED, State.FAILED}:
        # nothing ran; where the outcomes differ, declined stands for all
        return Tone.QUIET, states.pop() if len(states) == 1 else State.DECLINED
    if Tone.GOOD not in tones:
        return Tone.BAD, State.SUCCEEDED
    if tones & {Tone.BAD, Tone.WARNED}:
        return Tone.WARNED, State.SUCCEEDED
    return Tone.GOOD, State.SUCCEEDED


def _format_progress(proposals: Sequence[Proposal]) -> str:
    """Return the numbers of the states, and the approver: ``12 of 37 done. Approved by Ana.``."""
    count = Counter(proposal.state for proposal in proposals)
    ended_badly = sum(proposal.ended_badly is not None for proposal in proposals)
    done = count[State.SUCCEEDED] - ended_badly
    failed = count[State.FAILED] + ended_badly
    under_way = count[State.APPROVED] + count[State.EXECUTING]
    parts = [f"{count[State.PROPOSED]} waiting"] if count[State.PROPOSED] else []
    if under_way:
        parts.append(f"{done} of {done + failed + under_way} done")
    elif done:
        parts.append(f"{done} done")
    other_ends = {
        "failed": failed,
        "declined": count[State.DECLINED],
        "expired": count[State.EXPIRED],
        "withdrawn": count[State.CANCELLED],
    }
    parts += [f"{number} {word}" for word, number in other_ends.items() if number]
    approver_names = {
        proposal.decided_by
        for proposal in proposals
        if proposal.votes and proposal.state not in (State.PROPOSED, State.DECLINED)
    }
    approved_by = f" Approved by {approver_names.pop()}." if len(approver_names) == 1 else ""
    return f"{', '.join(parts)}.{approved_by}"


@dataclass(frozen=True, slots=True)
class Picked:
    """The picked rows of a batch. Packed for a button, 100 rows take about 17 characters."""

    positions: frozenset[int]  # from 0

    @classmethod
    def all_of(cls, card: Card) -> Self:
        """Return every row that may be picked: it waits for a decision, and can be undone."""
        rows = enumerate(card.rows)
        return cls(
            frozenset(position for position, row in rows if row.card.pending and not row.needs_own_decision)
        )

    def toggle(self, position: int) -> "Picked":
        return Picked(self.positions ^ {position})

    def split_rows(self, card: Card) -> tuple[list[Card], list[Card]]:
        """Return the cards of the picked rows, and of the other rows that may be picked."""
        open_positions = Picked.all_of(card).positions
        picked = [card.rows[position].card for position in sorted(open_positions & self.positions)]
        others = [card.rows[position].card for position in sorted(open_positions - self.positions)]
        return picked, others

    def make_decision(
        self,
        card: Card,
        actor: Actor,
        round_: int | None,
        address: Address | None,
        *,
        declines: bool,
        ref: str | None = None,
    ) -> BatchDecision:
        """Build the `BatchDecision` of a press: approve these rows, and with ``declines`` decline the others.

        ``round_`` is that of the batch's card when it was pressed; ``ref`` is its message.
        """
        picked, others = self.split_rows(card)
        approve = tuple(PickedRow(row.proposal_id, round=row.round) for row in picked)
        decline = tuple(PickedRow(row.proposal_id, round=row.round) for row in others if declines)
        return BatchDecision(
            actor, card.proposal_id, approve, decline, round=round_, address=address, ref=ref
        )

    def pack(self) -> str:
        """Return URL-safe base64 of a number in which bit N stands for row N."""
        bits = sum(1 << position for position in self.positions)
        packed = base64.urlsafe_b64encode(bits.to_bytes(bits.bit_length() // 8 + 1, "little"))
        return packed.decode().rstrip("=")

    @classmethod
    def parse(cls, packed: str) -> Self:
        """Parse the output of `pack`. Raises ValueError for anything else."""
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        bits = int.from_bytes(raw, "little")
        return cls(frozenset(position for position in range(bits.bit_length()) if bits >> position & 1))


class BatchPage(NamedTuple):
    """One page of the table of a batch."""

    card: Card  # the card of the batch with only the rows of this page
    rows: Sequence[tuple[int, BatchRow]]  # these rows, each with its position in the batch
    page_count: int  # the number of pages


def page_of(card: Card, number: int) -> BatchPage:
    """Return the page of this number, counted from 0; a number past the last page means the last page."""
    page_count = max(1, math.ceil(len(card.rows) / ROWS_PER_PAGE))
    start = ROWS_PER_PAGE * min(number, page_count - 1)
    rows = card.rows[start : start + ROWS_PER_PAGE]
    page_card = replace(card, batch=Batch(rows, first_number=start + 1))
    return BatchPage(page_card, list(enumerate(rows, start)), page_count)


def format_split_label(approve: int, decline: int) -> str:
    """Format the label of a button that decides some rows, such as ``Approve 37, decline 3``."""
    counts = {"approve": approve, "decline": decline}
    words = ", ".join(f"{verb} {count}" for verb, count in counts.items() if count)
    return words[:1].upper() + words[1:]


def group_by_card(proposals: Iterable[Proposal]) -> list[list[Proposal]]:
    """Group proposals by their cards: the rows of a batch in their order, or a single proposal."""
    groups: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        groups.setdefault(proposal.card_id, []).append(proposal)
    return [sorted(rows, key=lambda row: row.position) for rows in groups.values()]


def describe_others(other_count: int) -> str:
    """Return the remark on the ``other_count`` other rows of a batch, after words on one row; empty for 0."""
    if other_count:
        return f", and {other_count} more of its batch"
    return ""
