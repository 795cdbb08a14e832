"""Simulation of a rule: the effects that it would have had on past proposals.

An admin tries a rule before setting it. Each past proposal is judged twice by `Policy.judge`, as live calls
are: by the rules of now, and by these with the new rule. The difference is the rule's `Effect`. A rule that
spares people questions has a *price*: calls about which they would not have been asked, but which they
declined, edited or undid when they were. The risk of a call is the stored one. Reads left no proposals, so
the simulation says nothing of them. A simulation has pages, since it judges a limited number of proposals at
a time. The rows here are those that ``bot/store/past_proposals.py`` reads, one for each proposal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.domain.call_facts import CallFacts, Place
from bot.domain.kinds import find_kind
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_lists import PageCursor
from bot.domain.proposal_states import State
from bot.domain.redaction import redact_text
from bot.domain.risks import Level, Risk
from bot.domain.rulebook import Rulebook
from bot.domain.rules import Rule, covers
from bot.domain.text import SHORT_ID_CHARS, one_line
from bot.domain.times import format_in_zone
from bot.domain.verdicts import Judgement, Verdict
from bot.store import past_proposals, people, proposals
from bot.store.rules import Policies

MOST_JUDGED = 5_000  # proposals for one page of a simulation
_MAX_LISTED = 50  # corrected calls in a result
_MAX_IN_CHAT = 10  # corrected calls that a chat shows


class Effect(StrEnum):
    """The difference that a rule would have made for a call."""

    SPARED = "spared"  # people would not have been asked
    ASKED = "asked"  # people would have been asked in addition
    REFUSED = "refused"  # it could not have been proposed
    # others, or another number of people, would have decided; or a refused call would have run
    OTHERWISE = "otherwise"


class CorrectedCall(NamedTuple):
    """A call that people corrected, and about which the rule would not have asked them; without secrets."""

    id: str
    tool_name: str
    title: str
    at: datetime  # the time of the proposal
    price: str  # the correction, which is the price of the rule: "declined", "edited" or "undone"
    by: str | None  # who made the correction, if known
    reason: str | None  # of a decline

    def format_line(self, zone: tzinfo) -> str:
        """Return the call as one line of a list."""
        text = f"`{self.id[:SHORT_ID_CHARS]}` {self.title}, {format_in_zone(self.at, zone)}: {self.price}"
        if self.by:
            text += f" by {self.by}"
        if self.reason:
            text += f": {self.reason}"
        return one_line(text)


@dataclass(frozen=True, slots=True)
class TrialOfRule:
    """A page of a simulation. A change is a proposal of a call that writes."""

    rule: str  # in words
    looked: int  # the number of changes that were looked at, also of those that the rule is not about
    back_to: datetime | None  # the time of the oldest proposal that was looked at
    effects: Mapping[Effect, int]  # the number of changes with each effect
    price: Sequence[CorrectedCall]  # the newest corrected calls about which people would not have been asked
    priced: int  # the number of all such calls, also of those that ``price`` leaves out
    before: PageCursor | None  # the beginning of the next page, if there are older changes
    zone: tzinfo  # the team's time zone

    @property
    def text(self) -> str:
        """The result as text for a chat."""
        spared = self.effects[Effect.SPARED]
        lines = [f"**{self.rule}**, tried on the past:", f"- {spared:,} would not have asked."]
        if spared and self.price:
            lines.append(f"- Of these, people had declined, edited or undone {self.priced:,}:")
            lines += [f"  - {call.format_line(self.zone)}" for call in self.price[:_MAX_IN_CHAT]]
            if self.priced > _MAX_IN_CHAT:
                lines.append(f"  - …and {self.priced - _MAX_IN_CHAT:,} more")
        elif spared:
            lines.append("- People had declined, edited or undone none of these.")
        lines.append(f"- {self.effects[Effect.ASKED]:,} more would have asked.")
        refused = self.effects[Effect.REFUSED]
        otherwise = self.effects[Effect.OTHERWISE]
        if refused:
            lines.append(f"- {refused:,} would have been refused.")
        if otherwise:
            lines.append(
                f"- {otherwise:,} would have asked other people, or another number, "
                "or run instead of being refused."
            )
        period = f" back to {format_in_zone(self.back_to, self.zone)}" if self.back_to else ""
        lines.append(
            f"Looked at {self.looked:,} changes{period}, with the risk that was stored, against the rules of "
            "now. What was only read is not looked at."
        )
        if self.before:
            lines.append(f"There is more before that. Add `before {self.before}`.")
        return "\n".join(lines)


def try_rule(
    session: Session, policies: Policies, rule: Rule, since: datetime, before: PageCursor | None = None
) -> TrialOfRule:
    """Try a rule on the proposals since a time, newest first.

    Stops after `MOST_JUDGED` proposals to which the rule applies. ``before``: the end of the page before, so
    that only older proposals are read.
    """
    current_policy = policies.load(session)
    changed_policy = current_policy.with_rulebook(with_rule(current_policy.rulebook, rule))
    effects = dict.fromkeys(Effect, 0)
    rows_read = looked = judged = 0
    last: PageCursor | None = None
    corrections: dict[str, str] = {}  # of proposals that the rule would have spared people, by id
    # the arguments of calls are read only if some rule has conditions on them
    for row in past_proposals.list_newest(
        session, since, before, with_arguments=changed_policy.rulebook.has_conditions
    ):
        rows_read += 1
        last = PageCursor(row.created_at, row.id)
        if not is_change(row):
            continue
        looked += 1
        if not rule.is_about(row.tool_name) or not covers(rule.scope, row.place):
            continue
        judged += 1
        effect = effect_on(session, row, current_policy, changed_policy)
        if effect is not None:
            effects[effect] += 1
        if effect is Effect.SPARED:
            correction = _find_correction(row)
            if correction:
                corrections[row.id] = correction
        if judged == MOST_JUDGED:
            break
    listed = list(corrections.items())[:_MAX_LISTED]
    has_more = judged == MOST_JUDGED or rows_read == past_proposals.MAX_ROWS
    return TrialOfRule(
        rule=people.put_names_in(session, rule.command_text),
        looked=looked,
        back_to=last.at if last else None,
        effects=effects,
        price=[_describe_correction(session, proposal_id, correction) for proposal_id, correction in listed],
        priced=len(corrections),
        before=last if has_more else None,
        zone=current_policy.rulebook.zone,
    )


def is_change(row: Any) -> bool:
    """Tell if a row is of a call that writes, and that rules may let run without asking.

    Plans and questions always ask people, and an undo was asked for by a press, so these don't count.
    """
    return not find_kind(row.kind).always_asks and row.level != Level.READ and not row.undoes


def effect_on(session: Session, row: Any, current_policy: Policy, changed_policy: Policy) -> Effect | None:
    """Return the difference that changed rules would have made for a proposal; None for no difference."""
    old = _judge(session, row, current_policy)
    new = _judge(session, row, changed_policy)
    if new.judgement is old.judgement:
        old_deciders = (old.deciders, old.quorum, old.declines)
        new_deciders = (new.deciders, new.quorum, new.declines)
        if new.judgement is Judgement.ASK and old_deciders != new_deciders:
            return Effect.OTHERWISE
        return None
    if new.judgement is Judgement.REFUSE:
        return Effect.REFUSED
    if new.judgement is Judgement.ASK:
        return Effect.ASKED
    # under the changed rules the call would run
    if old.judgement is not Judgement.ASK:
        return Effect.OTHERWISE
    if row.grant_id is not None:
        return None  # a grant let it run, so no one was asked
    return Effect.SPARED


def _judge(session: Session, row: Any, policy: Policy) -> Verdict:
    """Return the verdict on the call of a row, as of its time.

    A row has ``arguments`` only if `try_rule` read them; otherwise no rule has conditions on them.
    """
    is_vouched = row.vouched is not False  # rows of old releases have None, which counts as vouched
    risk = Risk(Level(row.level), "", vouched=is_vouched)
    person = people.load_person(session, Actor.parse(row.requester))
    call = CallFacts(row.tool_name, risk, Place(row.place, row.private), person, row.created_at)
    if hasattr(row, "arguments"):
        schema = proposals.load_schema(session, row.tool_name, row.tool_version) or {}
        call = replace(call, arguments=row.arguments, schema=schema)
    return policy.judge(call)


def with_rule(rulebook: Rulebook, rule: Rule) -> Rulebook:
    """Return the book with one more rule, in place of the rule that it replaces, if any.

    ``slot`` is the key by which a new rule replaces an earlier one.
    """
    others = (other for other in rulebook.rules if other.slot != rule.slot)
    return replace(rulebook, rules=(*others, rule))


def _find_correction(row: Any) -> str:
    """Return people's correction of a call: "declined", "undone" or "edited"; empty without a correction."""
    if row.state == State.DECLINED:
        return "declined"
    if row.undone_by:
        return "undone"
    return "edited" if row.edited_by else ""


def _describe_correction(session: Session, proposal_id: str, correction: str) -> CorrectedCall:
    proposal = proposals.get(session, proposal_id)
    if proposal is None:
        raise KeyError(proposal_id)  # the same transaction has just read it
    by = None
    reason = None
    if correction == "declined":
        by = proposal.decided_by
        reason = redact_text(proposal.decline_reason) if proposal.decline_reason else None
    elif correction == "edited":
        by = proposal.edited_by
    title = redact_text(proposal.description)
    return CorrectedCall(proposal.id, proposal.tool_name, title, proposal.created_at, correction, by, reason)
