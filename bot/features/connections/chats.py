"""The private chats of a person, where Nod tells them about their connections."""

from datetime import datetime

from sqlmodel import Session

from bot.domain.chat import Address
from bot.domain.people import SHELL, Actor
from bot.store import notices, people

POSTLESS = frozenset({"http", SHELL})
"""The channels in which nothing can be posted to a person."""


def tell_privately(session: Session, account: Actor, text: str, now: datetime) -> bool:
    """Have a text posted to a person in private; False where nothing can be posted to them.

    It goes to the account's own chat or, where it has none, to those of all that are linked with it.
    """
    chats = [account]
    if account.channel in POSTLESS:
        linked = sorted(people.person_of(session, account).accounts)
        chats = [each for each in map(Actor.parse, linked) if each.channel not in POSTLESS]
    for each in chats:
        notices.store_notice(session, Address(each.channel, each.key), text, now)
    return bool(chats)
