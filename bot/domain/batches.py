"""The card of a batch: three or more calls of one tool in one answer, which people see as one table. Pure.

Each row stays a proposal of its own, with a card of its own. The batch has the id of its first row. Its card
(`batch_card`) is made of the rows' cards: what all rows share is said once above the table.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from bot.domain.annotations import Annotation
from bot.domain.cards import Batch, BatchRow, Card, Group
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State, Tone
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.domain.value_text import label_of
from bot.domain.verbs import Verb

_MIN_SUBJECT_CHARS = 3  # shorter subjects do not tell a row from the others


def batch_card(proposals: Sequence[Proposal], cards: Sequence[Card]) -> Card:
    """Return the card of a batch, made of its rows and of their own cards, in the same order."""
    first = cards[0]
    waiting = [card for card in cards if card.pending]
    described = waiting or cards  # the cards that the batch describes; once none waits, all of them
    irreversible = sum(card.level is Level.DESTRUCTIVE for card in waiting)  # each is approved by itself
    group = Group(
        size=len(cards),
        open_count=len(waiting),
        round=sum(card.round for card in cards),
        irreversible_count=irreversible,
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
        result_sentence="",
        full_output="",
        notes=(*progress, *shared_notes, *warnings),
        verbs=_list_verbs(group, cards),
        group=group,
        asker_decides=all(card.asker_decides for card in described),
        undo_sentence=_find_shared_text(card.undo_sentence for card in described),
        undo_effect="",
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
    notes += [line.line for line in row.card.annotations if line not in shared_annotations]
    return tuple(notes)


def _list_verbs(group: Group, cards: Sequence[Card]) -> tuple[Verb, ...]:
    verbs = []
    if group.open_count > group.irreversible_count:
        verbs.append(Verb.APPROVE_ALL)
    if group.open_count:
        verbs.append(Verb.DECLINE_ALL)
    if any(card.state is State.APPROVED for card in cards):
        verbs.append(Verb.STOP_ALL)
    undoable_count = sum(Verb.UNDO in card.verbs for card in cards)
    if not group.open_count and undoable_count > 1:
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
