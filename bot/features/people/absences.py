"""The early end of an absence: who may end it, and who is told."""

from collections.abc import Collection
from datetime import datetime

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.chat import Address
from bot.domain.jobs import Job, Work
from bot.domain.people import Absence, Actor
from bot.domain.record import Act
from bot.features.people import rows
from bot.store import notices, people, posted_cards
from bot.store.rules import Policies

Ended = tuple[list[Absence], list[Job]]
"""The absences that ended, and the jobs that have cards say so."""


def end_for(session: Session, policies: Policies, account: str, actor: Actor, now: datetime) -> Ended | None:
    """End the absence of an account: one's own, for an admin of all of Nod anyone's.

    None where that account is not away, or this person may not.
    """
    away = next((each.who for each in policies.load(session).absences if str(each.who) == account), None)
    if away is None:
        return None
    accounts = people.person_of(session, away).accounts
    if not (str(actor) in accounts or rights.is_global_admin(session, policies, actor)):
        return None
    return end(session, accounts, actor, now)


def end(session: Session, accounts: Collection[str], actor: Actor, now: datetime) -> Ended:
    """End the absence of the person with these accounts, and tell who stood in for them."""
    ended = rows.end(session, accounts, people.by(session, Act.RETURN, actor), now)
    for each in ended:
        over = f"{each.who.label} is back. You no longer decide for them."
        notices.store_notice(session, Address.parse(str(each.stand_in)), over, now)
    return ended, redraw_jobs(posted_cards.mark_open_outdated(session)) if ended else []


def redraw_jobs(message_ids: Collection[int]) -> list[Job]:
    """Return the jobs that redraw these messages."""
    return [Job(Work.REDRAW, str(each)) for each in message_ids]


def ended_text(ended: Collection[Absence]) -> str:
    """Return the text for the person who ended them."""
    return f"Ended: {', '.join(each.words for each in ended)}."
