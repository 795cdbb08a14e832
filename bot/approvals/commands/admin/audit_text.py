"""Rows of the audit log as lines of text for a chat.

A row is a mapping of columns, one of `search.find_rows_and_count`. It is about a proposal, or about
another thing, which its column ``thing`` names: a rule, a role, a grant or anything else that admins manage.
"""

from collections.abc import Mapping
from typing import Any

from bot.domain.people import Names, find_accounts_in, name_of_place, with_names
from bot.domain.rule_values import Subject, format_value, read_value
from bot.domain.text import SHORT_ID_CHARS

_TELLING_FIELDS = ("value", "allows", "person", "since", "account", "call", "ended")
"""The fields of the state of a thing that say the most about it, the most telling first."""


def list_mentioned(row: Mapping[str, Any]) -> list[str]:
    """Return the accounts and places that a row names."""
    columns = [row[name] for name in ("actor", "requester", "place") if row.get(name)]
    written = find_accounts_in(f"{row['key']} {row['before']} {row['after']} {row['rule']}")
    return [*columns, *written]


def format_audit_row(row: Mapping[str, Any], names: Names, *, private: bool = False) -> str:
    """Return a row as a line of text. ``private``: the row's place is a chat with one person."""
    author = names.get(row["actor"]) or row["actor"]
    if row["thing"] == "context":  # the lines of a conversation that led to a proposal
        line = f"`{row['key'][:SHORT_ID_CHARS]}`: what led to it was read by {author}"
    elif row["thing"] == "account":
        line = _format_thing(row, author)  # the accounts stay, since several may have the same name
    elif row["thing"]:
        line = with_names(_format_thing(row, author), names)
    else:
        line = _format_change_of_proposal(row, author, names, private=private)
    minute = row["at"][:16]  # the date, hour and minute of ISO 8601
    return f"{minute} {line}"


def _format_change_of_proposal(row: Mapping[str, Any], author: str, names: Names, *, private: bool) -> str:
    """Return for example "`3f2a9c01` paint: approve by Ana → approved (v2, rule: writes ask)"."""
    if row["verb"] == "propose":
        requester = row["requester_name"] or names.get(row["requester"]) or row["requester"]
        # in Telegram a private chat has the id of the person
        is_private = private or row["place"] == row["requester"]
        place = "a private chat" if is_private else name_of_place(row["place"], names)
        author += f" for {requester} in {place}"
    details = [row["reason"] or "", f"rule: {with_names(row['rule'] or '', names)}"]
    if row["grant_id"]:
        details.append(f"grant G-{row['grant_id']}")
    what = f"`{row['proposal_id'][:SHORT_ID_CHARS]}` {row['tool_name']}: {row['verb']} by {author}"
    return f"{what} → {row['state']} (v{row['version']}, {'; '.join(filter(None, details))})"


def _format_thing(row: Mapping[str, Any], author: str) -> str:
    """Return for example "role admin slack:T1/U7: set by Ana: nothing → admin"."""
    subject: Subject | None = None
    key = row["key"]
    if row["thing"] == "rule":
        stored_subject, _, about = key.partition(" ")
        if stored_subject in set(Subject):  # a later release may have stored another
            subject = Subject(stored_subject)
            key = f"{subject.command_words} {about}"
    change = f"{_format_state(row['before'], subject)} → {_format_state(row['after'], subject)}"
    return f"{row['thing']} {key}: {row['verb']} by {author}: {change}"


def _format_state(state: Mapping[str, Any] | None, subject: Subject | None) -> str:
    """Return the state of a thing in brief: the first of some telling fields, and its end.

    ``subject``: the rule's subject; None for anything else than a rule.
    """
    if not state:
        return "nothing"
    if "stand_in" in state:
        return f"{state['stand_in']} until {state['until'][:16]}Z"
    if "value" in state and subject is not None:
        until = f" until {state['until'][:16]}Z" if "until" in state else ""
        return format_value(subject, read_value(subject, state["value"])) + until
    for name in _TELLING_FIELDS:
        if name in state:
            value = state[name]
            return " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "something"
