"""A chat that has two addresses: what people set at the first holds at the second from then on."""

from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants
from bot.domain.chat import Address
from bot.domain.people import NOD, Actor
from bot.domain.record import Act
from bot.domain.rules import covers
from bot.store import rules
from bot.store.audit.log import By
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

_NOD = Actor(NOD, "moves", "Nod")


def move_chat(session: Session, policies: Policies, old: Address, new: Address, now: datetime) -> None:
    """Have the rules of a chat hold at its new address as well, move its grants there, and tell features.

    The rules stay at the old address too, since conversations that began there continue. A rule that was set
    at the new address stays as it is. Safe to repeat.
    """
    conversation_lock.everywhere(session)
    book = policies.load(session).book
    taken = {rule.slot for rule in book.rules}
    for rule in book.rules:
        moved = replace(rule, scope=f"{new}{rule.scope.removeprefix(str(old))}")
        if covers(str(old), rule.scope) and moved.slot not in taken:
            rules.set_rule(session, moved, _NOD, now)
    grants.move_to_chat(session, old, new, By.nod(Act.MOVE), now)
    for tell_move in hooks_of(session).move_chat:
        tell_move(session, old, new, now)
