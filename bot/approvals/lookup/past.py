"""Simulation of a rule: the outcome of the last changes under it, judged as live calls are.

Each is judged twice by `Policy.judge`, by the rules there are now and by those with the rule, with the risk
that was stored. What was only read left no proposal, so nothing is said about it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.domain.kinds import find_kind
from bot.domain.people import Actor
from bot.domain.policy import Judgement, Policy, Verdict
from bot.domain.proposals import Level, Mark, Risk, State
from bot.domain.redaction import redact_text
from bot.domain.rules import CallFacts, Place, Rule, Rulebook, covers
from bot.domain.text import one_line
from bot.domain.times import format_in_zone
from bot.store import people, proposals, record
from bot.store.rules import Policies

MOST_JUDGED = 5_000  # proposals of one page
_NAMED = 50  # of the price
_TOLD = 10  # of the price, in a chat


class Effect(StrEnum):
    """The difference that a rule would have made for a call."""

    SPARED = "spared"  # people would not have been asked
    ASKED = "asked"  # they would have been, in addition
    REFUSED = "refused"  # it could not have been proposed
    OTHERWISE = "otherwise"  # other people, or another number of them, would have decided


class Priced(NamedTuple):
    """A call that people would not have been asked about, without secrets, and the correction they made."""

    id: str
    tool_name: str
    title: str
    at: datetime  # when it was proposed
    price: str  # declined, edited or undone
    by: str | None
    reason: str | None

    def words(self, zone: tzinfo) -> str:
        who, why = f" by {self.by}" if self.by else "", f": {self.reason}" if self.reason else ""
        return one_line(
            f"`{self.id[:8]}` {self.title}, {format_in_zone(self.at, zone)}: {self.price}{who}{why}"
        )


@dataclass(frozen=True, slots=True)
class Tried:
    """A page of a simulation. ``looked``: the number of changes; ``back_to``: the time of the oldest.

    ``price`` names the newest of those that people had declined, edited or undone, ``priced`` counts them.
    ``before`` continues with what is older, if there is any.
    """

    rule: str
    looked: int
    back_to: datetime | None
    effects: Mapping[Effect, int]
    price: Sequence[Priced]
    priced: int
    before: Mark | None
    zone: tzinfo  # the team's

    @property
    def words(self) -> str:
        """The result as text for a chat."""
        spared, asked, refused, otherwise = (self.effects[effect] for effect in Effect)
        lines = [f"**{self.rule}**, tried on the past:", f"- {spared:,} would not have asked."]
        if spared and self.price:
            lines.append(f"- Of these, people had declined, edited or undone {self.priced:,}:")
            lines += [f"  - {each.words(self.zone)}" for each in self.price[:_TOLD]]
            lines += [f"  - …and {self.priced - _TOLD:,} more"] if self.priced > _TOLD else []
        elif spared:
            lines.append("- People had declined, edited or undone none of these.")
        lines.append(f"- {asked:,} more would have asked.")
        lines += [f"- {refused:,} would have been refused."] if refused else []
        lines += [f"- {otherwise:,} would have asked other people, or another number."] if otherwise else []
        far = f" back to {format_in_zone(self.back_to, self.zone)}" if self.back_to else ""
        lines.append(
            f"Looked at {self.looked:,} changes{far}, with the risk that was stored, against the rules of "
            "now. What was only read is not looked at."
        )
        lines += [f"There is more before that. Add `before {self.before}`."] if self.before else []
        return "\n".join(lines)


def try_rule(
    session: Session, policies: Policies, rule: Rule, since: datetime, before: Mark | None = None
) -> Tried:
    """Try a rule on what was proposed since then, newest first."""
    today = policies.load(session)
    changed = today.with_book(with_rule(today.book, rule))
    effects = dict.fromkeys(Effect, 0)
    looked = judged = seen = 0
    last: Mark | None = None
    price: dict[str, str] = {}
    for row in record.list_newest(session, since, before, arguments=changed.book.conditional):
        seen, last = seen + 1, Mark(row.created_at, row.id)
        if not is_change(row):
            continue
        looked += 1
        if not (rule.concerns(row.tool_name) and covers(rule.scope, row.place)):
            continue  # it judges nothing else
        judged += 1
        effect = effect_on(session, row, today, changed)
        if effect is not None:
            effects[effect] += 1
            if effect is Effect.SPARED and (regret := _regret(row)):
                price[row.id] = regret
        if judged == MOST_JUDGED:
            break
    return Tried(
        rule=people.put_names_in(session, rule.said),
        looked=looked,
        back_to=last.at if last else None,
        effects=effects,
        price=[_describe_price(session, ident, regret) for ident, regret in list(price.items())[:_NAMED]],
        priced=len(price),
        before=last if judged == MOST_JUDGED or seen == record.MAX_ROWS else None,
        zone=today.book.zone,
    )


def is_change(row: Any) -> bool:
    """Return whether it is a call that writes, and no undoing, which is the press of a person."""
    return bool(not find_kind(row.kind).always_asks and row.level != Level.READ and not row.undoes)


def effect_on(session: Session, row: Any, today: Policy, changed: Policy) -> Effect | None:
    """Return the difference that other rules would have made for a proposal, or None."""
    old, new = (_judge(session, row, policy) for policy in (today, changed))
    if new.judgement is not old.judgement:
        match old.judgement, new.judgement:
            case _, Judgement.REFUSE:
                return Effect.REFUSED
            case _, Judgement.ASK:
                return Effect.ASKED
            case Judgement.ASK, _:  # where a grant let it run, no one was asked
                if row.grant_id is None:
                    return Effect.SPARED
                return None
        return Effect.OTHERWISE
    asks = new.judgement is Judgement.ASK
    circles = [(each.deciders, each.quorum, each.declines) for each in (old, new)]
    if asks and circles[0] != circles[1]:
        return Effect.OTHERWISE
    return None


def _judge(session: Session, row: Any, policy: Policy) -> Verdict:
    risk = Risk(Level(row.level), "", vouched=row.vouched is not False)
    person = people.person_of(session, Actor.parse(row.requester))
    call = CallFacts(row.tool_name, risk, Place(row.place, row.private), person, row.created_at)
    if hasattr(row, "arguments"):
        schema = proposals.schema(session, row.tool_name, row.tool_version) or {}
        call = replace(call, arguments=row.arguments, schema=schema)
    return policy.judge(call)


def with_rule(book: Rulebook, rule: Rule) -> Rulebook:
    """Return the book with one more rule, in place of the one that it replaces."""
    kept = (each for each in book.rules if each.slot != rule.slot)
    return replace(book, rules=(*kept, rule))


def _regret(row: Any) -> str:
    """Return the correction that people made to a call: declined, undone, edited, or nothing."""
    if row.state == State.DECLINED:
        return "declined"
    if row.undone_by:
        return "undone"
    return "edited" if row.edited_by else ""


def _describe_price(session: Session, ident: str, price: str) -> Priced:
    p = proposals.get(session, ident)
    if p is None:
        raise KeyError(ident)  # it is of the same snapshot
    by = {"declined": p.decided_by, "edited": p.edited_by}.get(price)
    if price == "declined" and p.decline_reason:
        reason = redact_text(p.decline_reason)
    else:
        reason = None
    return Priced(p.id, p.tool_name, redact_text(p.description), p.created_at, price, by, reason)
