"""The move of a chat to a new address, which platforms make, for example when a Telegram group grows.

Rules and grants name a chat by its address, such as ``telegram:-100123``. After a move they must hold at the
new address. A channel that learns of a move tells the inbox, which calls `move_chat`.
"""

from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants
from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.people import NOD, Actor
from bot.domain.rules import covers
from bot.store import rules
from bot.store.audit.log import Author
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

_NOD = Actor(NOD, "moves", "Nod")


def move_chat(session: Session, policies: Policies, old: Address, new: Address, now: datetime) -> None:
    """Copy the rules of a chat to its new address, move its grants there, and tell features.

    The rules stay at the old address too, since conversations that began there continue. A rule that was set
    at the new address before is not replaced. Safe to repeat.
    """
    conversation_lock.lock_everything(session)
    rulebook = policies.load(session).rulebook
    taken_slots = {rule.slot for rule in rulebook.rules}
    for rule in rulebook.rules:
        if not covers(str(old), rule.scope):
            continue
        copied = replace(rule, scope=f"{new}{rule.scope.removeprefix(str(old))}")
        if copied.slot not in taken_slots:
            rules.set_rule(session, copied, _NOD, now)
    grants.move_to_chat(session, old, new, Author.of_nod(Act.MOVE), now)
    for move_in_feature in hooks_of(session).move_chat:
        move_in_feature(session, old, new, now)
