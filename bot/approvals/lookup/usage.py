"""The cost of the models, as one person may see it: of their conversations, for an admin of all."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlmodel import Session

from bot.domain.chat import Address, Parts, Used, chat_of
from bot.domain.people import channel_called, find_name, place_called
from bot.store import counts, people

_NO_MODEL = "No model noted"


def usage(session: Session, by: Parts, since: datetime, accounts: Collection[str] | None) -> list[Used]:
    """Return the usage of turns since then in the conversations of these accounts (None: of all)."""
    found = counts.usage(session, by, since, accounts)
    match by:
        case Parts.PERSON:
            persons = {each.account: each.person_id for each in people.list_linked(session)}
            return _put_names_in(
                session, _add_up(found, [persons.get(each.key, each.key) for each in found]), by
            )
        case Parts.PLACE:
            return _put_names_in(session, _add_up(found, [_chat(each.key) for each in found]), by)
        case Parts.MODEL:
            return [each if each.key else each._replace(name=_NO_MODEL) for each in found]
    return found


def _add_up(found: Sequence[Used], keys: Sequence[str]) -> list[Used]:
    """Add up those with one key, and return what used most first."""
    together: dict[str, Used] = {}
    for key, each in zip(keys, found, strict=True):
        together[key] = together[key].plus(each) if key in together else each._replace(key=key)
    ordered = sorted(together.values(), key=lambda each: (-each.prompt_tokens, each.key))
    return ordered[: counts.MOST_PARTS]


def _chat(key: str) -> str:
    if ":" in key:
        return str(chat_of(Address.parse(key)))
    return key


def _put_names_in(session: Session, found: Sequence[Used], by: Parts) -> list[Used]:
    accounts = {each.person_id: each.name or each.account for each in people.list_linked(session)}
    names = people.find_known_names(session, [each.key for each in found if ":" in each.key])

    def name(key: str) -> str:
        if ":" not in key:
            if by is Parts.PLACE:
                private = f"private chats in {channel_called(key)}"
            else:
                private = key
            return accounts.get(key) or private
        if by is Parts.PLACE:
            return place_called(key, names)
        return find_name(key, names) or key

    return [each._replace(name=name(each.key)) for each in found]
