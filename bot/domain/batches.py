"""A batch: several calls of one tool in one answer, which people see as one table.

Each row stays a proposal of its own. The batch has the id of its first row, and a card of its own that is
made of theirs. What a press on several rows carries is `Picked`.
"""

import base64
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Self

from bot.domain.annotations import Annotation
from bot.domain.cards import Batch, BatchRow, Card, Group
from bot.domain.chat import Address, Choice, PickedRow
from bot.domain.forms import label_of
from bot.domain.people import Actor
from bot.domain.proposals import Level, PreviewField, Proposal, State, Tone
from bot.domain.verbs import Verb

_TELLING = 3  # characters by which people can tell a row
_FEWEST = 3  # calls of one tool in one answer that people see as one table
PAGE = 10
"""Rows that people pick from at a time, where a message has buttons for them."""


def batches(calls: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the batch ids of an answer's calls, by call id."""
    many = Counter(name for _, name in calls if name)
    first: dict[str, str] = {}
    for ident, name in calls:
        first.setdefault(name, ident)
    return {ident: first[name] for ident, name in calls if many[name] >= _FEWEST}


def batch_card(found: Sequence[Proposal], cards: Sequence[Card]) -> Card:
    """Return the card of a batch, made of its rows and of their own cards."""
    first, waiting = cards[0], [card for card in cards if card.pending]
    harmful = sum(card.level is Level.DESTRUCTIVE for card in waiting)
    words = _first_words([card.title for card in cards])
    rows, same = _rows(cards, len(" ".join(words)))
    tone, state = _standing(cards)
    group = Group(len(cards), len(waiting), sum(card.round for card in cards), alone=harmful)
    open_ = waiting or cards
    outcome = first.outcome if len(waiting) == len(cards) else _outcome(found)
    shared = [note for note in first.notes if all(note in card.notes for card in open_)]
    progress = [outcome] if 0 < len(waiting) < len(cards) else []
    lines = tuple(each for each in first.annotations if all(each in card.annotations for card in open_))
    mixed = len({card.acts_as for card in cards}) > 1
    rows = tuple(replace(row, notes=_list_points(row, shared, lines, mixed=mixed)) for row in rows)
    return replace(
        first,
        round=group.round,
        version=sum(card.version for card in cards),
        title=f"{' '.join(words) or _tools(cards)}: {len(cards)} changes",
        level=Level.DESTRUCTIVE if harmful and harmful == len(waiting) else Level.WRITE,
        risk_reason=_one(card.risk_reason for card in open_),
        reason=_one(card.reason for card in open_),
        fields=same,
        arguments={},
        schema={},
        votes=(),
        expires_at=min(card.expires_at for card in open_),
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
        notes=(*progress, *shared, *_notes(open_, harmful if harmful < len(waiting) else 0)),
        verbs=_verbs(group, cards),
        group=group,
        asker_decides=all(card.asker_decides for card in open_),
        undo=_one(card.undo for card in open_),
        undoing="",
        annotations=lines,
        acts_as=_one(card.acts_as for card in cards),
        batch=Batch(rows),
    )


def _list_points(
    row: BatchRow, notes: Collection[str], lines: Collection[Annotation], *, mixed: bool
) -> tuple[str, ...]:
    """Return the notes of a row and what features say of it, without those that are the same for all.

    ``mixed``: the rows run in several names.
    """
    said = (each.words for each in row.card.annotations if each not in lines)
    name = [row.card.acts_as] if mixed and row.card.acts_as else []
    return (*name, *(note for note in row.notes if note not in notes), *said)


def _verbs(group: Group, cards: Sequence[Card]) -> tuple[Verb, ...]:
    running = any(card.state is State.APPROVED for card in cards)
    return (
        *((Verb.APPROVE_ALL,) if group.open > group.alone else ()),
        *((Verb.DECLINE_ALL,) if group.open else ()),
        *((Verb.STOP_ALL,) if running else ()),
        *((Verb.UNDO_ALL,) if not group.open and sum(Verb.UNDO in card.verbs for card in cards) > 1 else ()),
    )


def _notes(waiting: Sequence[Card], harmful: int) -> list[str]:
    notes = []
    if harmful:
        notes.append(f"{harmful} can't be undone: {'it asks' if harmful == 1 else 'each asks'} by itself.")
    if waiting[0].quorum > 1 and waiting[0].pending:
        notes.append(f"Each needs {waiting[0].quorum} approvals.")
    if len({card.deciders for card in waiting}) > 1:
        notes.append("Who may decide is not the same for all.")
    return notes


def _one(texts: Iterable[str]) -> str:
    """Return the text that all of these share; empty where they differ."""
    found = set(texts)
    if len(found) == 1:
        return found.pop()
    return ""


def _tools(cards: Sequence[Card]) -> str:
    """Return a shared name for the tools of the rows, such as ``Files``."""
    shared = "_".join(_begin([card.tool_name.split("_") for card in cards]))
    if shared:
        return f"{label_of(shared)}s"
    return "Several tools"


def _first_words(titles: Sequence[str]) -> list[str]:
    """Return the words with which all titles begin, when enough to tell each by follows them."""
    each = [title.split() for title in titles]
    found = _begin(each)
    while found and any(len(" ".join(title[len(found) :])) < _TELLING for title in each):
        found.pop()
    return found


def _begin(each: Sequence[Sequence[str]]) -> list[str]:
    return [first for first, *_ in takewhile(lambda same: len(set(same)) == 1, zip(*each, strict=False))]


def _rows(cards: Sequence[Card], begins: int) -> tuple[tuple[BatchRow, ...], tuple[PreviewField, ...]]:
    """Return the rows with the fields in which they differ, and the fields that are the same for all."""
    fields = [card.shown_fields for card in cards]
    same = tuple(field for field in fields[0] if all(field in each for each in fields))
    abouts = [" ".join(card.title.split())[begins:].strip() for card in cards]
    differ = [[field for field in each if field not in same] for each in fields]
    told = {
        name
        for name in {field.field for each in differ for field in each}
        if all(_says(a, f) for a, each in zip(abouts, differ, strict=True) for f in each if f.field == name)
    }
    rows = (
        BatchRow(card, about, tuple(field for field in each if field.field not in told), card.notes)
        for card, about, each in zip(cards, abouts, differ, strict=True)
    )
    return tuple(rows), same


def _says(about: str, field: PreviewField) -> bool:
    """Tell if the row's subject already says everything in a field."""
    words = f" {about} "
    return field.old_value is None and any(
        each in words for each in (f" {field.new_value} ", f"“{field.new_value}”")
    )


def _standing(cards: Sequence[Card]) -> tuple[Tone, State]:
    states, tones = {card.state for card in cards}, {card.tone for card in cards}
    if State.PROPOSED in states:
        return Tone.WAITING, State.PROPOSED
    if states & {State.APPROVED, State.EXECUTING}:
        return Tone.WAITING, State.EXECUTING
    if not states & {State.SUCCEEDED, State.FAILED}:
        return Tone.QUIET, states.pop() if len(states) == 1 else State.DECLINED
    if Tone.GOOD not in tones:
        return Tone.BAD, State.SUCCEEDED
    return (Tone.WARNED if tones & {Tone.BAD, Tone.WARNED} else Tone.GOOD), State.SUCCEEDED


def _outcome(found: Sequence[Proposal]) -> str:
    """Return the progress and the decider, such as ``12 of 37 done, 1 failed. Approved by Ana``."""
    count = Counter(p.state for p in found)
    bad = count[State.FAILED] + sum(p.ended_badly is not None for p in found)
    done = count[State.SUCCEEDED] + count[State.FAILED] - bad
    under_way = count[State.APPROVED] + count[State.EXECUTING]
    ran = done + bad + under_way
    told = {
        "waiting": count[State.PROPOSED],
        f"of {ran} done" if under_way else "done": done if ran else 0,
        "failed": bad,
        "declined": count[State.DECLINED],
        "expired": count[State.EXPIRED],
        "withdrawn": count[State.CANCELLED],
    }
    parts = [f"{many} {word}" for word, many in told.items() if many or (word.startswith("of ") and ran)]
    by = {p.decided_by for p in found if p.votes and p.state not in (State.PROPOSED, State.DECLINED)}
    who = f" Approved by {by.pop()}." if len(by) == 1 else ""
    return f"{', '.join(parts)}.{who}"


@dataclass(frozen=True, slots=True)
class Picked:
    """The picked rows of a batch by position, packed for a button: 17 characters for 100 rows."""

    places: frozenset[int]

    @classmethod
    def all_of(cls, card: Card) -> Self:
        """Return every row that waits and can be undone."""
        return cls(frozenset(n for n, row in enumerate(card.rows) if row.card.pending and not row.harms))

    def toggle(self, place: int) -> "Picked":
        return Picked(self.places ^ {place})

    def of(self, card: Card) -> tuple[list[Card], list[Card]]:
        """Return the rows to approve, and the others that wait and can be undone."""
        open_ = Picked.all_of(card).places
        return (
            [card.rows[n].card for n in sorted(open_ & self.places)],
            [card.rows[n].card for n in sorted(open_ - self.places)],
        )

    def choice(
        self,
        card: Card,
        actor: Actor,
        round_: int | None,
        address: Address | None,
        *,
        declines: bool,
        ref: str | None = None,
    ) -> Choice:
        """Build the `Choice` of a press: approve these rows, and with ``declines`` decline the others.

        ``round_`` is that of the batch's card when it was pressed; ``ref`` is its message.
        """
        approve, others = (
            tuple(PickedRow(row.proposal_id, round=row.round) for row in rows) for rows in self.of(card)
        )
        decline = others if declines else ()
        return Choice(actor, card.proposal_id, approve, decline, round=round_, address=address, ref=ref)

    def pack(self) -> str:
        bits = sum(1 << place for place in self.places)
        packed = base64.urlsafe_b64encode(bits.to_bytes(bits.bit_length() // 8 + 1, "little"))
        return packed.decode().rstrip("=")

    @classmethod
    def parse(cls, packed: str) -> Self:
        """Raise ValueError for what `pack` does not write."""
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        bits = int.from_bytes(raw, "little")
        return cls(frozenset(n for n in range(bits.bit_length()) if bits >> n & 1))


def page_of(card: Card, number: int) -> tuple[Card, Sequence[tuple[int, BatchRow]], int]:
    """Return the card with the rows of that page alone, these by their places, and how many pages there are.

    Pages count from 0; a number past the last is the last.
    """
    pages = max(1, -(-len(card.rows) // PAGE))
    at = PAGE * min(number, pages - 1)
    some = card.rows[at : at + PAGE]
    return replace(card, batch=Batch(some, at + 1)), list(enumerate(some, at)), pages


def format_split_label(approve: int, decline: int) -> str:
    """Format the label of a button that decides some rows, such as ``Approve 37, decline 3``."""
    parts = [f"approve {approve}"] * bool(approve) + [f"decline {decline}"] * bool(decline)
    words = ", ".join(parts)
    return words[:1].upper() + words[1:]
