"""A card is a pure rendering of a proposal, told in parts that every channel can lay out.

`card_of` gives the pending or the resolved twin. Channels turn a `Card` into blocks, entities or HTML and
must show every part; what does not fit goes behind "View all", for which `whole_text` has everything.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.files import fits_card, unfolded
from bot.domain.proposals import Cause, Kind, PreviewField, Proposal, State, Vote
from bot.domain.redaction import redact, redact_text
from bot.domain.risk import Level
from bot.domain.unseen import one_line


class Action(StrEnum):
    """What a card offers. A channel shows those in ``Card.actions``, in that order."""

    APPROVE = "approve"
    DECLINE = "decline"
    EDIT = "edit"
    SIMILAR = "similar"
    EXTEND = "extend"
    REVISE = "revise"
    APPROVE_STEPS = "approve_steps"
    RETRY = "retry"
    APPROVE_ALL = "approve_all"
    DECLINE_ALL = "decline_all"


class Tone(StrEnum):
    """How the outcome should look; never the only sign of it."""

    WAITING = "waiting"
    GOOD = "good"
    BAD = "bad"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Group:
    """All proposals of the same answer; ``round`` is the sum of all their rounds.

    A card may be too small for what it is about, so before all are approved at once, a channel shows the
    whole content of each of ``members``.
    """

    size: int
    open: int
    round: int
    members: tuple[str, ...] = ()  # ids of those still open, in the order they were asked for


@dataclass(frozen=True, slots=True)
class Card:
    """Everything a person needs to decide or to see how it ended. All text is hostile until escaped."""

    proposal_id: str
    round: int
    version: int
    kind: Kind
    title: str  # what will happen, plain language
    tool_name: str
    level: Level
    risk_reason: str
    reason: str  # the agent's stated reason; may be empty
    fields: tuple[PreviewField, ...]
    arguments: Mapping[str, Any]  # redacted
    schema: Mapping[str, Any]  # JSON schema of the arguments, for the edit form; may be empty
    asked_by: str
    deciders: str  # who may decide, in words
    votes: tuple[str, ...]  # one line each
    quorum: int
    expires_at: datetime
    state: State
    tone: Tone
    outcome: str  # how it stands or ended, one sentence, who and from where; no times
    decided_at: datetime | None
    result: str  # what the tool answered, or the error in words; may be empty
    result_url: str | None
    notes: tuple[str, ...]  # edited by, changed since shown
    actions: tuple[Action, ...]
    group: Group | None
    teammate: str = ""  # the name of the teammate that asks; empty: the lead agent

    def says(self, action: Action, usual: str) -> str:
        """What a button says: ``usual``, or the words of a question."""
        if self.kind is not Kind.QUESTION:
            return usual
        sends = "Send the answer" if self.schema.get("properties") else "I have been there"
        return {Action.APPROVE: sends, Action.EDIT: "Fill in"}.get(action, usual)

    @property
    def pending(self) -> bool:
        return self.state is State.PROPOSED


def _text(value: str | None) -> str:
    return "(nothing)" if value is None else value


PLACES: Mapping[str, str] = {"http": "the web", "cli": "the shell", "slack": "Slack", "telegram": "Telegram"}
"""The channels, as people call them."""


_WAITING = {
    Kind.CALL: "Waiting for a decision. Nothing has been changed.",
    Kind.REQUEST: "Waiting for a decision.",
    Kind.QUESTION: "Waiting for an answer.",
}


def _decided_by(p: Proposal) -> tuple[str, str]:
    place = None if p.decided_from == "nod" else p.decided_from  # Nod's own decisions come from nowhere
    where = f" from {PLACES.get(place, place)}" if place else ""
    return p.decided_by or "somebody", where


def _outcome(p: Proposal) -> tuple[Tone, str]:
    who, where = _decided_by(p)
    done, unchanged = ("", "") if p.told_once else ("Done. ", " Nothing was changed.")
    yes, decided = ("Answered", "answered") if p.kind is Kind.QUESTION else ("Approved", "decided")
    match p.state:
        case State.PROPOSED:
            return Tone.WAITING, _WAITING[p.kind]
        case State.APPROVED:
            return Tone.WAITING, f"{yes} by {who}{where}. It has not run yet."
        case State.EXECUTING:
            return Tone.WAITING, f"{yes} by {who}{where}. It is running now."
        case State.SUCCEEDED:
            return Tone.GOOD, f"{done}{yes} by {who}{where}."
        case State.DECLINED:
            because = f": {p.decline_reason.rstrip('. ')}" if p.decline_reason else ""
            return Tone.QUIET, f"Declined by {who}{where}{because}.{unchanged}"
        case State.EXPIRED:
            return Tone.QUIET, f"Expired: nobody {decided} in time.{unchanged}"
        case State.CANCELLED if p.cause is Cause.UNDELIVERABLE:
            return Tone.BAD, f"Could not be delivered to anybody who may decide.{unchanged}"
        case State.CANCELLED if p.cause is Cause.UNASKED:
            return Tone.QUIET, "No longer asked: the call that this question belongs to has ended."
        case State.CANCELLED:
            return Tone.QUIET, f"Cancelled by {who}{where}.{unchanged}"
        case State.FAILED if p.cause is Cause.OUTCOME_UNKNOWN:
            return Tone.BAD, (
                f"Outcome unknown: approved by {who}{where}, started, and never heard back from. "
                "Check whether it happened before you retry."
            )
        case State.FAILED if p.cause is Cause.TOOL_CHANGED:
            return Tone.BAD, f"Not run: the tool changed after {who} approved it. Nothing was changed."
        case State.FAILED:
            return Tone.BAD, f"Failed after {who} approved it{where}."


def _plan_outcome(p: Proposal) -> tuple[Tone, str] | None:
    """How a plan stands, where it has words of its own."""
    who, where = _decided_by(p)
    because = f": {p.decline_reason.rstrip('. ')}" if p.decline_reason else ""
    match p.state:
        case State.PROPOSED:
            return Tone.WAITING, f"Plan waiting for approval. Until then {p.teammate} can only look around."
        case State.SUCCEEDED:
            return Tone.GOOD, f"Plan approved by {who}{where}. {p.teammate} may carry it out."
        case State.DECLINED if p.cause is Cause.REVISE:
            return Tone.QUIET, f"Sent back for changes by {who}{where}{because}."
        case State.DECLINED:
            return Tone.QUIET, f"Plan rejected by {who}{where}{because}."
        case State.CANCELLED if p.cause is Cause.SUPERSEDED:
            return Tone.QUIET, "Replaced by a newer version of the plan."
    return None


def _actions(
    p: Proposal, schema: Mapping[str, Any], group: Group | None, *, grantable: bool
) -> tuple[Action, ...]:
    alone: tuple[Action, ...] = ()
    if p.state is State.PROPOSED and p.kind is Kind.QUESTION:
        filling = (Action.EDIT,) if schema.get("properties") else ()
        alone = (*filling, Action.APPROVE, Action.DECLINE)
    elif p.state is State.PROPOSED and p.kind is Kind.PLAN:
        steps = (Action.APPROVE_STEPS,) if p.quorum == 1 else ()
        alone = (Action.APPROVE, Action.DECLINE, Action.REVISE, *steps, Action.EXTEND)
    elif p.state is State.PROPOSED:
        alone = (Action.APPROVE, Action.DECLINE, Action.EDIT, Action.EXTEND)
        if p.quorum == 1 and p.kind is Kind.CALL and grantable:
            alone = (*alone, Action.SIMILAR)
    elif p.state is State.FAILED and p.cause is not Cause.TOOL_CHANGED:
        alone = (Action.RETRY,)
    return (*alone, Action.APPROVE_ALL, Action.DECLINE_ALL) if group and group.open > 1 else alone


def _redacted(fields: Sequence[PreviewField], schema: Mapping[str, Any]) -> tuple[PreviewField, ...]:
    old = [redact({f.field: f.old_value}, schema)[f.field] for f in fields]
    new = [redact({f.field: f.new_value}, schema)[f.field] for f in fields]
    return tuple(PreviewField(one_line(f.field), o, n) for f, o, n in zip(fields, old, new, strict=True))


def _asked_by(p: Proposal) -> str:
    return f"{p.teammate}, a teammate, for {p.requester.label}" if p.teammate else p.requester.label


def _vote_line(vote: Vote) -> str:
    return one_line(f"{vote.actor.label}: {vote.verb}" + (f" ({vote.reason})" if vote.reason else ""))


def card_of(
    p: Proposal, schema: Mapping[str, Any], siblings: Sequence[Proposal] = (), *, grantable: bool = True
) -> Card:
    """Render a proposal as it is now. ``grantable``: the rules let calls like it be allowed from its card.

    ``siblings`` are all proposals of the same answer, itself included, where this card is the one that
    carries the buttons for the whole group (the last of them); empty otherwise.
    """
    group = None
    if len(siblings) > 1:
        waiting = tuple(s.id for s in siblings if s.state is State.PROPOSED)
        group = Group(len(siblings), len(waiting), sum(s.round for s in siblings), waiting)
    tone, outcome = (_plan_outcome(p) if p.kind is Kind.PLAN else None) or _outcome(p)
    notes = []
    if p.quorum > 1 and p.state is State.PROPOSED:
        approvals = sum(v.verb == "approve" for v in p.votes)
        notes.append(f"{approvals} of {p.quorum} approvals so far.")
    if p.deciders.four_eyes and p.state is State.PROPOSED:
        notes.append(f"Four eyes: somebody other than {p.requester.label} must approve.")
    if p.decided_by and p.decided_by.startswith("policy ("):
        notes.append(f"Nobody was asked: {p.rule}.")
    if p.kind is Kind.PLAN and p.state is State.PROPOSED and (approvers := _with_lead(p.rule)):
        notes.append(f"{approvers}: {p.rule}.")
    if p.edited_by:
        notes.append(f"Edited by {p.edited_by} before approval.")
    if p.changed and p.state is State.PROPOSED:
        notes.append("Changed since it was approved: the old values moved, so it needs a fresh look.")
    if p.result and not fits_card(p.result):
        notes.append("The result is long; the whole of it is a file.")
    return Card(
        proposal_id=p.id,
        round=p.round,
        version=p.version,
        kind=p.kind,
        title=one_line(redact_text(p.description)),
        tool_name=p.tool_name,
        level=p.risk.level,
        risk_reason=one_line(p.risk.reason),
        reason=one_line(redact_text(p.reason)),
        fields=_redacted(p.preview, schema),
        arguments=redact(p.arguments, schema),
        schema=schema,
        asked_by=one_line(_asked_by(p)),
        deciders=one_line(p.deciders.in_words(p.requester.label)),
        votes=tuple(_vote_line(v) for v in p.votes),
        quorum=p.quorum,
        expires_at=p.expires_at,
        state=p.state,
        tone=tone,
        outcome=one_line(redact_text(outcome)),
        decided_at=p.decided_at,
        result=redact_text(unfolded(redact_text(p.error or p.result or ""))),
        result_url=p.result_url,
        notes=tuple(notes),
        actions=_actions(p, schema, group, grantable=grantable),
        group=group,
        teammate=p.teammate,
    )


def _with_lead(rule: str) -> str:
    """Who approves a plan under a rule, where the lead agent has a say; else empty."""
    if re.search(r"\bplans lead\b", rule):
        return "A person or the lead agent approves it"
    return "A person and the lead agent must each approve it" if re.search(r"\bplans both\b", rule) else ""


def whole_text(card: Card) -> str:
    """All of it as plain text, nothing cut: what "View all" shows."""
    lines = [card.title, "", f"Tool: {card.tool_name}", f"Risk: {card.level}, {card.risk_reason}"]
    if card.reason:
        lines += [f"Agent's reason: {card.reason}"]
    lines += ["", "Changes"]
    for f in card.fields:
        lines += [f"- {f.field}", f"  old: {_text(f.old_value)}", f"  new: {_text(f.new_value)}"]
    lines += ["", "Arguments", json.dumps(card.arguments, indent=2, ensure_ascii=False, sort_keys=True)]
    return "\n".join(lines)
