"""Budgets checked against the cost of models: before each call of a model, and with each answer."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from bot.domain.budgets import WARNED_AT, Budget, Per
from bot.domain.chat import EXTEND
from bot.domain.conversations import Turn
from bot.domain.people import Actor
from bot.domain.prices import money
from bot.domain.rules import Rule, Rulebook, Subject, covers
from bot.domain.times import format_in_zone
from bot.errors import ModelOverBudget
from bot.store import counts, events, people

_WARNED = "budget"  # where channels keep what came: no channel has this name
_TURN_AT_MOST = timedelta(days=31)  # it may wait for people
_STILL = "Approved changes still run, and cards work as usual."


class BudgetUse(NamedTuple):
    """The used share of a budget.

    ``until``: the beginning of its next period; None for the budget of one turn.
    """

    rule: Rule
    budget: Budget
    limit: float
    spent: float
    until: datetime | None

    @property
    def share(self) -> float:
        return self.spent / self.limit

    @property
    def words(self) -> str:
        """For example ``20.13 EUR of 20 EUR a month for slack:T1/C2``."""
        return f"{money(self.spent, self.budget.currency)} of {self.rule.said.partition(' ')[2]}"


def standings(session: Session, book: Rulebook, now: datetime) -> list[BudgetUse]:
    """Return every budget of a period, as it stands."""
    found = [_of(session, rule, book, now, 0) for rule in book.list_about(Subject.BUDGET)]
    return [each for each in found if each.until is not None]


def concerning(session: Session, book: Rulebook, turn: Turn, now: datetime) -> list[BudgetUse]:
    """Return the budgets that a turn counts for, as they stand."""
    conversation, asker = turn.transcript.conversation, turn.transcript.asker
    place = str(conversation.shown_at or conversation.address)
    accounts = people.person_of(session, asker).accounts
    found = []
    for rule in book.list_about(Subject.BUDGET):
        if not covers(rule.scope, place) and rule.scope not in accounts:
            continue
        found.append(_of(session, rule, book, now, turn.transcript.order))
    return found


def check_budgets(session: Session, book: Rulebook, turn: Turn, now: datetime) -> None:
    """Raise ModelOverBudget where nothing is left of one."""
    over = [each for each in concerning(session, book, turn, now) if each.spent >= each.limit]
    if not over:
        return
    first = max(over, key=lambda each: (each.until is not None, each.until or now))
    if first.until is None:
        said = f"The budget for one request is used up ({first.words}). Send “continue” to begin another."
        raise ModelOverBudget(people.put_names_in(session, f"{said} {_STILL}"), ("Continue",))
    extend = f"{EXTEND}{first.rule.id}"
    until = format_in_zone(first.until, book.zone)
    said = f"The budget is used up ({first.words}). I can answer again from {until}"
    said += f", or once an admin extends it: press the button, or send `{extend}`."
    raise ModelOverBudget(people.put_names_in(session, f"{said} {_STILL}"), (extend,))


def is_used_up(session: Session, book: Rulebook, place: str, asker: Actor, order: int, now: datetime) -> bool:
    """Return whether nothing is left of a budget that what this person asks there counts for.

    ``order`` is the id of the person's line, or 0 without one.
    """
    found = book.list_about(Subject.BUDGET)
    if not found:
        return False
    accounts = people.person_of(session, asker).accounts
    there = (rule for rule in found if covers(rule.scope, place) or rule.scope in accounts)
    return any(use.spent >= use.limit for use in (_of(session, rule, book, now, order) for rule in there))


def warnings(session: Session, book: Rulebook, turn: Turn, now: datetime) -> Sequence[str]:
    """Return a warning for each budget that is almost used up, and record that it was given.

    Each budget warns once, until it is extended or its next period begins. Call it in the transaction that
    stores the cost of an answer.
    """
    return [
        people.put_names_in(session, f"{each.share:.0%} of a budget is used: {each.words}.")
        for each in concerning(session, book, turn, now)
        if WARNED_AT * each.limit <= each.spent < each.limit
        and events.claim_once(
            session,
            _WARNED,
            f"{each.rule.id}/{each.until or turn.transcript.order}",
            now,
            each.until or now + _TURN_AT_MOST,
        )
    ]


def _of(session: Session, rule: Rule, book: Rulebook, now: datetime, order: int) -> BudgetUse:
    """Return a budget as it stands; that of a turn by what answering this line of a person cost."""
    budget, here = rule.budget, now.astimezone(book.zone)
    if budget.per is Per.TURN:
        return BudgetUse(rule, budget, budget.amount, counts.sum_spent_on_order(session, order), None)
    try:
        accounts = people.person_of(session, Actor.parse(rule.scope)).accounts
    except ValueError:  # everywhere
        accounts = frozenset()
    spent = counts.sum_spent_since(session, budget.per.begin(here).astimezone(UTC), rule.scope, accounts)
    return BudgetUse(rule, budget, budget.limit(here), spent, budget.per.next(here))
