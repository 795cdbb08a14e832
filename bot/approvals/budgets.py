"""Checks of budgets for what models cost: before each call of a model, and with each stored answer.

A budget is a rule with an amount of money for a place or a person. It is for a period (a day, a week, a
month), or for one turn: for the answers to one request of a person. The agent loop stops a turn whose budget
is used up, and people are warned once a budget is almost used up.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from bot.domain.budgets import WARNED_AT, Budget, Per
from bot.domain.chat import EXTEND_BUDGET_PREFIX
from bot.domain.conversations import Turn
from bot.domain.people import Actor
from bot.domain.prices import money
from bot.domain.rule_values import Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import Rule, covers
from bot.domain.times import format_in_zone
from bot.errors import ModelOverBudget
from bot.store import counts, events, people

_WARNINGS = "budget"  # the group of stored events for warnings; each event is claimed once
_MAX_TURN = timedelta(days=31)  # longer than any turn lasts, although a turn may wait for people
_STILL_RUNS_TEXT = "Approved changes still run, and cards work as usual."


class BudgetUse(NamedTuple):
    """The use of a budget in its current period, or in one turn."""

    rule: Rule
    budget: Budget
    limit: float
    spent: float
    until: datetime | None  # the beginning of the next period; None for the budget of one turn

    @property
    def share(self) -> float:
        """The used share of the budget: 1 or more if it is used up."""
        return self.spent / self.limit

    @property
    def description(self) -> str:
        """For example ``20.13 EUR of 20 EUR a month for slack:T1/C2``."""
        _, _, budget_and_scope = self.rule.command_text.partition(
            " "
        )  # such as "budget 20 EUR a month for …"
        return f"{money(self.spent, self.budget.currency)} of {budget_and_scope}"


def list_uses(session: Session, book: Rulebook, now: datetime) -> list[BudgetUse]:
    """Return the use of every budget that has a period."""
    uses = [_measure_use(session, rule, book, now, 0) for rule in book.list_about(Subject.BUDGET)]
    return [use for use in uses if use.until is not None]


def check_budgets(session: Session, book: Rulebook, turn: Turn, now: datetime) -> None:
    """Raise ModelOverBudget if a budget that pays for the turn is used up."""
    used_up = [use for use in _list_for_turn(session, book, turn, now) if use.spent >= use.limit]
    if not used_up:
        return
    # the budget whose period ends last; a budget for one turn (``until`` is None) only if no other is used up
    last_to_end = max(used_up, key=lambda use: (use.until is not None, use.until or now))
    if last_to_end.until is None:
        text = (
            f"The budget for one request is used up ({last_to_end.description}). "
            "Send “continue” to begin another."
        )
        choice = "Continue"
    else:
        choice = f"{EXTEND_BUDGET_PREFIX}{last_to_end.rule.id}"
        until = format_in_zone(last_to_end.until, book.zone)
        text = f"The budget is used up ({last_to_end.description}). I can answer again from {until}"
        text += f", or once an admin extends it: press the button, or send `{choice}`."
    raise ModelOverBudget(people.put_names_in(session, f"{text} {_STILL_RUNS_TEXT}"), (choice,))


def is_used_up(
    session: Session, book: Rulebook, place: str, asker: Actor, request_line_id: int, now: datetime
) -> bool:
    """Tell if a budget that pays for an answer to a person in a place is used up.

    ``request_line_id``: the id of the line with the person's request, or 0 without such a line.
    """
    return any(use.spent >= use.limit for use in _list_for(session, book, place, asker, request_line_id, now))


def claim_warnings(session: Session, book: Rulebook, turn: Turn, now: datetime) -> Sequence[str]:
    """Return a warning for each budget that is almost used up, and record that it was given.

    Each budget warns once, until it is extended or its next period or turn begins. To be called in the
    transaction that stores the cost of an answer.
    """
    texts = []
    for use in _list_for_turn(session, book, turn, now):
        if not WARNED_AT * use.limit <= use.spent < use.limit:
            continue
        key = f"{use.rule.id}/{use.until or turn.transcript.request_line_id}"
        if events.claim_once(session, _WARNINGS, key, now, use.until or now + _MAX_TURN):
            text = f"{use.share:.0%} of a budget is used: {use.description}."
            texts.append(people.put_names_in(session, text))
    return texts


def _list_for_turn(session: Session, book: Rulebook, turn: Turn, now: datetime) -> list[BudgetUse]:
    """Return the use of each budget that pays for a turn."""
    transcript = turn.transcript
    conversation = transcript.conversation
    # ``shown_at``: for a teammate, the address of the lead agent's conversation
    place = str(conversation.shown_at or conversation.address)
    return _list_for(session, book, place, transcript.asker, transcript.request_line_id, now)


def _list_for(
    session: Session, book: Rulebook, place: str, asker: Actor, request_line_id: int, now: datetime
) -> list[BudgetUse]:
    """Return the use of each budget that pays for an answer to a person in a place.

    ``request_line_id``: as in `is_used_up`.
    """
    rules = book.list_about(Subject.BUDGET)
    if not rules:
        return []
    accounts = people.load_person(session, asker).accounts
    paying = [rule for rule in rules if covers(rule.scope, place) or rule.scope in accounts]
    return [_measure_use(session, rule, book, now, request_line_id) for rule in paying]


def _measure_use(
    session: Session, rule: Rule, book: Rulebook, now: datetime, request_line_id: int
) -> BudgetUse:
    """Return the use of a budget. A budget for one turn pays for the answers to ``request_line_id``."""
    budget = rule.budget
    if budget.per is Per.TURN:
        spent = counts.sum_spent_on_request(session, request_line_id)
        return BudgetUse(rule, budget, limit=budget.amount, spent=spent, until=None)
    try:
        accounts = people.load_person(session, Actor.parse(rule.scope)).accounts
    except ValueError:  # the rule's scope is not an account: the budget is for everyone
        accounts = frozenset()
    local_now = now.astimezone(book.zone)
    begin = budget.per.begin(local_now).astimezone(UTC)
    spent = counts.sum_spent_since(session, begin, rule.scope, accounts)
    return BudgetUse(
        rule,
        budget,
        limit=budget.limit(local_now),
        spent=spent,
        until=budget.per.begin_next(local_now),
    )
