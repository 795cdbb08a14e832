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
from bot.domain.prices import format_money
from bot.domain.rule_values import Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import Rule, covers
from bot.domain.times import format_in_zone
from bot.errors import ModelOverBudget
from bot.store import counts, events, people

_WARNINGS = "budget"  # the group of stored events for warnings; each event is claimed once
_WARNING_LIFE = timedelta(days=31)
"""The life of a stored warning for one turn: longer than any turn, although a turn may wait for people."""
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
    def is_used_up(self) -> bool:
        return self.spent >= self.limit

    @property
    def description(self) -> str:
        """For example ``20.13 EUR of 20 EUR a month for slack:T1/C2``."""
        # the text is such as "budget 20 EUR a month for slack:T1/C2"
        _, _, budget_and_scope = self.rule.command_text.partition(" ")
        return f"{format_money(self.spent, self.budget.currency)} of {budget_and_scope}"


def list_uses(session: Session, rulebook: Rulebook, now: datetime) -> list[BudgetUse]:
    """Return the use of every budget that has a period."""
    no_request = 0  # no turn: the budgets of one turn are left out below
    uses = [
        _measure_use(session, rule, rulebook, now, no_request) for rule in rulebook.list_about(Subject.BUDGET)
    ]
    return [use for use in uses if use.until is not None]


def check_budgets(session: Session, rulebook: Rulebook, turn: Turn, now: datetime) -> None:
    """Raise ModelOverBudget if a budget that pays for the turn is used up."""
    used_up = [use for use in _list_paying_for_turn(session, rulebook, turn, now) if use.is_used_up]
    if not used_up:
        return
    with_period = [use for use in used_up if use.until is not None]
    # people wait for the budget whose period ends last; for one of this turn only if no other is used up
    last_to_end = max(with_period, key=lambda use: use.until or now) if with_period else used_up[0]
    if last_to_end.until is None:
        text = (
            f"The budget for one request is used up ({last_to_end.description}). "
            "Send “continue” to begin another."
        )
        choice = "Continue"
    else:
        choice = f"{EXTEND_BUDGET_PREFIX}{last_to_end.rule.id}"
        until = format_in_zone(last_to_end.until, rulebook.zone)
        text = f"The budget is used up ({last_to_end.description}). I can answer again from {until}"
        text += f", or once an admin extends it: press the button, or send `{choice}`."
    raise ModelOverBudget(people.put_names_in(session, f"{text} {_STILL_RUNS_TEXT}"), (choice,))


def is_used_up(
    session: Session, rulebook: Rulebook, place: str, asker: Actor, request_line_id: int, now: datetime
) -> bool:
    """Tell if a budget that pays for an answer to a person in a place is used up.

    ``request_line_id``: the id of the line with the person's request, or 0 without such a line.
    """
    uses = _list_paying(session, rulebook, place, asker, request_line_id, now)
    return any(use.is_used_up for use in uses)


def claim_warnings(session: Session, rulebook: Rulebook, turn: Turn, now: datetime) -> Sequence[str]:
    """Return a warning for each budget that is almost used up, and record that it was given.

    Each budget warns once, until it is extended or its next period or turn begins. To be called in the
    transaction that stores the cost of an answer.
    """
    texts = []
    for use in _list_paying_for_turn(session, rulebook, turn, now):
        if not WARNED_AT * use.limit <= use.spent < use.limit:
            continue
        key = f"{use.rule.id}/{use.until or turn.transcript.request_line_id}"
        if events.claim_once(session, _WARNINGS, key, now, use.until or now + _WARNING_LIFE):
            text = f"{use.share:.0%} of a budget is used: {use.description}."
            texts.append(people.put_names_in(session, text))
    return texts


def _list_paying_for_turn(session: Session, book: Rulebook, turn: Turn, now: datetime) -> list[BudgetUse]:
    """Return the use of each budget that pays for a turn."""
    transcript = turn.transcript
    conversation = transcript.conversation
    # ``shown_at``: for a teammate, the address of the lead agent's conversation
    place = str(conversation.shown_at or conversation.address)
    return _list_paying(session, book, place, transcript.asker, transcript.request_line_id, now)


def _list_paying(
    session: Session, rulebook: Rulebook, place: str, asker: Actor, request_line_id: int, now: datetime
) -> list[BudgetUse]:
    """Return the use of each budget that pays for an answer to a person in a place.

    ``request_line_id``: as in `is_used_up`.
    """
    rules = rulebook.list_about(Subject.BUDGET)
    if not rules:
        return []
    accounts = people.load_person(session, asker).accounts
    paying = [rule for rule in rules if covers(rule.scope, place) or rule.scope in accounts]
    return [_measure_use(session, rule, rulebook, now, request_line_id) for rule in paying]


def _measure_use(
    session: Session, rule: Rule, rulebook: Rulebook, now: datetime, request_line_id: int
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
    local_now = now.astimezone(rulebook.zone)
    begin = budget.per.begin(local_now).astimezone(UTC)
    spent = counts.sum_spent_since(session, begin, rule.scope, accounts)
    return BudgetUse(
        rule,
        budget,
        limit=budget.limit(local_now),
        spent=spent,
        until=budget.per.begin_next(local_now),
    )
