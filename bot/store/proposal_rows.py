"""The conversion of a `Proposal` to the columns of its row and back.

Most fields are columns of the same name and value. Some are stored in another form (`_CONVERSIONS`), under
another name or in several columns (`COLUMNS`, and the kind by its name). The fields in `UNRECORDED` are
written where they change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row

from bot.domain.annotations import Annotation
from bot.domain.connections import Connection
from bot.domain.deciders import Deciders
from bot.domain.kinds import find_kind
from bot.domain.people import Actor
from bot.domain.preview import CheckedField, Edit, Inverse, PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, Vote
from bot.domain.risks import Level, Risk
from bot.domain.steps import DueStep
from bot.domain.text import replace_unstorable
from bot.domain.trials import Trial
from bot.store.tables.row import value_of

UNRECORDED = frozenset({"progress", "undo_until"})
"""Fields that change without an audit row. (`log` leaves further columns out, which are no fields.)"""
_RENAMED: Mapping[str, str] = {
    "result_sentence": "told",
    "rule_text": "rule",
    "undo_proposal_id": "undone_by",
    "undoes_proposal_id": "undoes",
    "undone_by_name": "undone",
    "values_changed": "changed",
}
"""The columns of the fields that are stored as they are, under another name."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "risk": ("level", "risk_reason", "vouched"),
    "requester": ("requester", "requester_name"),
    "ttl": ("ttl_seconds",),
    **{name: (column,) for name, column in _RENAMED.items()},
}
"""The columns of each field that is stored under another name or in several columns."""


class _Conversion(NamedTuple):
    """The two functions that convert a field's value to its column's value and back."""

    to_column: Callable[[Any], Any]
    from_column: Callable[[Any], Any]


def from_row(row: Row[Any]) -> Proposal:
    """Return the proposal of a row that was selected with `bot.store.proposals.SELECT_PROPOSALS`."""
    converted = {
        name: conversion.from_column(getattr(row, name)) for name, conversion in _CONVERSIONS.items()
    }
    renamed = {name: getattr(row, column) for name, column in _RENAMED.items()}
    return value_of(
        Proposal,
        row,
        **converted,
        **renamed,
        kind=find_kind(row.kind, asked_by_model=bool(row.call_id)),
        risk=Risk(Level(row.level), row.risk_reason, vouched=row.vouched is not False),
        requester=Actor.parse(row.requester, row.requester_name),
        ttl=timedelta(seconds=row.ttl_seconds),
    )


def to_row(proposal: Proposal) -> dict[str, Any]:
    """Return the columns that the audit row covers: those of every field that is not in `UNRECORDED`."""
    row = {name: getattr(proposal, name) for name in _UNCONVERTED}
    row |= {column: getattr(proposal, name) for name, column in _RENAMED.items()}
    row |= {name: conversion.to_column(getattr(proposal, name)) for name, conversion in _CONVERSIONS.items()}
    row |= {
        "kind": proposal.kind.name,
        "level": proposal.risk.level,
        "risk_reason": proposal.risk.reason,
        # None also in rows from before there was the column
        "vouched": None if proposal.risk.vouched else False,
        "requester": str(proposal.requester),
        "requester_name": proposal.requester.name,
        "ttl_seconds": proposal.ttl.total_seconds(),
        "idempotency_key": proposal.idempotency_key,
    }
    # `replace_unstorable` replaces characters that a database refuses; arguments stay as they were approved
    return replace_unstorable(row) | {"arguments": dict(proposal.arguments)}


def _keep_value(value: Any) -> Any:
    return value  # an enum is stored as the text that it is


def _none_if_empty(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that converts a value, but returns None for None and for an empty value."""
    return lambda value: convert(value) if value else None


def _fields_to_json(preview: Iterable[PreviewField]) -> list[list[Any]]:
    stored = []
    for field in preview:
        values: list[Any] = [field.field, field.old_value, field.new_value]
        if field.titled:
            values.append(True)
        stored.append(values)
    return stored


def _fields_from_json(stored: list[list[Any]]) -> tuple[PreviewField, ...]:
    # an older release stored the output of tools with characters that `replace_unstorable` replaces
    return tuple(PreviewField(*values) for values in replace_unstorable(stored))


def _deciders_to_json(deciders: Deciders) -> dict[str, Any]:
    stored = asdict(deciders)
    if not deciders.also_escalated:
        del stored["also_escalated"]  # earlier releases don't know it
    return stored


def _deciders_from_json(stored: dict[str, Any]) -> Deciders:
    lists = {name: tuple(stored.get(name, ())) for name in ("roles", "people", "also_escalated")}
    return Deciders(**stored | lists)


def _steps_to_json(steps: tuple[DueStep, ...]) -> list[list[Any]] | None:
    return [step.as_json for step in steps] or None


def _steps_from_json(stored: list[list[Any]] | None) -> tuple[DueStep, ...]:
    return tuple(DueStep.from_json(step) for step in stored or ())


def _votes_to_json(votes: tuple[Vote, ...]) -> list[list[Any]]:
    stored = []
    for vote in votes:
        values: list[Any] = [vote.person_id, str(vote.actor), vote.actor.name, vote.verb, vote.reason]
        values.append(vote.at.isoformat())
        if vote.absent:
            values += [str(vote.absent), vote.absent.name]
        stored.append(values)
    return stored


def _votes_from_json(stored: list[list[Any]]) -> tuple[Vote, ...]:
    votes = []
    # ``absent``: the account and the name of the absent person, if a stand-in voted
    for person_id, account, name, verb, reason, at, *absent in stored:
        stands_in_for = Actor.parse(*absent) if absent else None
        actor = Actor.parse(account, name)
        votes.append(Vote(person_id, actor, verb, reason, datetime.fromisoformat(at), stands_in_for))
    return tuple(votes)


def _edits_to_json(edits: tuple[Edit, ...]) -> list[list[Any]] | None:
    return [[edit.round, edit.editor_name, _fields_to_json(edit.fields)] for edit in edits] or None


def _edits_from_json(stored: list[list[Any]] | None) -> tuple[Edit, ...]:
    return tuple(Edit(round_, by, _fields_from_json(fields)) for round_, by, fields in stored or ())


def _reread_to_json(checked: tuple[CheckedField, ...]) -> list[list[Any]] | None:
    return [[field.field, field.now, field.approved, field.agrees] for field in checked] or None


def _reread_from_json(stored: list[list[Any]] | None) -> tuple[CheckedField, ...]:
    return tuple(CheckedField(*values) for values in stored or ())


def _inverse_to_json(inverse: Inverse) -> dict[str, Any]:
    return {**asdict(inverse), "fields": _fields_to_json(inverse.fields)}


def _inverse_from_json(stored: dict[str, Any]) -> Inverse:
    return Inverse(**{**stored, "fields": _fields_from_json(stored["fields"])})


def _annotations_to_json(lines: tuple[Annotation, ...]) -> list[list[Any]] | None:
    return [[line.name, line.text, line.is_late] for line in lines] or None


def _annotations_from_json(stored: list[list[Any]] | None) -> tuple[Annotation, ...]:
    return tuple(Annotation(*values) for values in stored or ())


def _numbers_to_json(numbers: tuple[int, ...]) -> list[int] | None:
    return list(numbers) or None


def _numbers_from_json(stored: list[int] | None) -> tuple[int, ...]:
    return tuple(stored or ())


def _seconds_to_length(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


_CONVERSIONS: Mapping[str, _Conversion] = {
    "state": _Conversion(_keep_value, State),
    "cause": _Conversion(_keep_value, _none_if_empty(Cause)),
    "preview": _Conversion(_fields_to_json, _fields_from_json),
    "deciders": _Conversion(_deciders_to_json, _deciders_from_json),
    "steps": _Conversion(_steps_to_json, _steps_from_json),
    "votes": _Conversion(_votes_to_json, _votes_from_json),
    "edits": _Conversion(_edits_to_json, _edits_from_json),
    "trial": _Conversion(_none_if_empty(lambda trial: trial.as_json), _none_if_empty(Trial.from_json)),
    "read_again": _Conversion(_reread_to_json, _reread_from_json),
    "inverse": _Conversion(_none_if_empty(_inverse_to_json), _none_if_empty(_inverse_from_json)),
    "annotations": _Conversion(_annotations_to_json, _annotations_from_json),
    "connection": _Conversion(
        _none_if_empty(lambda connection: connection.as_json), _none_if_empty(Connection.from_json)
    ),
    "ticked": _Conversion(_numbers_to_json, _numbers_from_json),
    "remind_every": _Conversion(_none_if_empty(timedelta.total_seconds), _none_if_empty(_seconds_to_length)),
}
_CONVERTED_FIELDS = ("kind", "arguments", *COLUMNS, *UNRECORDED, *_CONVERSIONS)
_UNCONVERTED = [field.name for field in fields(Proposal) if field.name not in _CONVERTED_FIELDS]
