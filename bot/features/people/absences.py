"""The early end of an absence: the rights to end it, and who is told.

While a person is absent, the stand-in whom they named may decide in their place. People end an absence with
``/nod back`` or in the console. An absence whose time is over ends by itself (`sweep.py`).
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.jobs import Job, Work
from bot.domain.people import Absence, Actor
from bot.features.people import rows
from bot.store import notices, people, posted_cards
from bot.store.rules import Policies


class EndedAbsences(NamedTuple):
    """The absences that ended, and the jobs that redraw the cards which name the stand-in."""

    absences: list[Absence]
    jobs: list[Job]


def end_if_allowed(
    session: Session, policies: Policies, account: str, actor: Actor, now: datetime
) -> EndedAbsences | None:
    """End the absence of an account, at the request of ``actor``.

    People end their own absence, admins of all of Nod anyone's. Returns None if the account is not away, or
    if ``actor`` may not end its absence.
    """
    absences = policies.load(session).absences
    absent = next((absence.absent for absence in absences if str(absence.absent) == account), None)
    if absent is None:
        return None
    accounts = people.load_person(session, absent).accounts
    if not (str(actor) in accounts or rights.is_global_admin(session, policies, actor)):
        return None
    return end_absence(session, accounts, actor, now)


def end_absence(session: Session, accounts: Collection[str], actor: Actor, now: datetime) -> EndedAbsences:
    """End the absence of the person with these accounts, and tell the stand-in."""
    ended = rows.end_absences(session, accounts, people.make_author(session, Act.RETURN, actor), now)
    if not ended:
        return EndedAbsences([], [])
    for absence in ended:
        text = f"{absence.absent.label} is back. You no longer decide for them."
        notices.store_notice(session, Address.parse(str(absence.stand_in)), text, now)
    return EndedAbsences(ended, make_redraw_jobs(posted_cards.mark_open_outdated(session)))


def make_redraw_jobs(message_ids: Collection[int]) -> list[Job]:
    """Return the jobs that redraw the cards of these messages."""
    return [Job(Work.REDRAW, str(message_id)) for message_id in message_ids]


def describe_ended(ended: Collection[Absence]) -> str:
    """Return the text about ended absences for the person who ended them."""
    return f"Ended: {', '.join(absence.label for absence in ended)}."
