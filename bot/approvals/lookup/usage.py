"""The usage of models and its cost, by person, place or model, with names for people to read.

The store counts the usage of turns by account, by address or by model (`counts.list_usage`). Here the
accounts of one person are added up, and the threads of one chat.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlmodel import Session

from bot.domain.chat import Address, Parts, UsageRow, chat_of
from bot.domain.people import find_name, name_of_channel, name_of_place
from bot.store import counts, people

_NO_MODEL = "No model noted"


def list_usage(
    session: Session, by: Parts, since: datetime, accounts: Collection[str] | None
) -> list[UsageRow]:
    """Return the usage of turns since a time, the largest first, with a row for each of the parts ``by``.

    ``accounts``: only turns in the conversations of these accounts; None for all turns.
    """
    rows = counts.list_usage(session, by, since, accounts)
    match by:
        case Parts.PERSON:  # the rows are by account
            person_of = {linked.account: linked.person_id for linked in people.list_linked(session)}
            totals = _add_up(rows, [person_of.get(row.key, row.key) for row in rows])
            return _put_names_in(session, totals, by)
        case Parts.PLACE:  # the rows are by address, also of threads
            totals = _add_up(rows, [_find_chat(row.key) for row in rows])
            return _put_names_in(session, totals, by)
        case Parts.MODEL:
            return [row if row.key else row._replace(name=_NO_MODEL) for row in rows]
    return rows  # other parts, such as days, need no names


def _add_up(rows: Sequence[UsageRow], keys: Sequence[str]) -> list[UsageRow]:
    """Add up the rows with the same key, and return the largest sums first. ``keys``: one for each row."""
    totals: dict[str, UsageRow] = {}
    for key, row in zip(keys, rows, strict=True):
        if key in totals:
            totals[key] = totals[key].add(row)
        else:
            totals[key] = row._replace(key=key)
    ordered = sorted(totals.values(), key=lambda total: (-total.prompt_tokens, total.key))
    return ordered[: counts.MAX_GROUPS]


def _find_chat(key: str) -> str:
    """Return the chat of an address. A key without a colon, which is a channel, is returned as it is."""
    if ":" in key:
        return str(chat_of(Address.parse(key)))
    return key


def _put_names_in(session: Session, totals: Sequence[UsageRow], by: Parts) -> list[UsageRow]:
    """Return the sums with names for their keys.

    A key with a colon is an account or an address. Any other key is the id of a person, or a channel, which
    stands for all private chats in it.
    """
    person_names = {linked.person_id: linked.name or linked.account for linked in people.list_linked(session)}
    names = people.find_known_names(session, [total.key for total in totals if ":" in total.key])

    def name_key(key: str) -> str:
        if ":" in key:
            if by is Parts.PLACE:
                return name_of_place(key, names)
            return find_name(key, names) or key
        if key in person_names:
            return person_names[key]
        if by is Parts.PLACE:
            return f"private chats in {name_of_channel(key)}"
        return key

    return [total._replace(name=name_key(total.key)) for total in totals]
