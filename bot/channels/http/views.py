"""Rows as JSON. Secrets are redacted here as on every card."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.desk import CoreDesk
from bot.domain.cards import Card, card_of
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Conversation, Line, Role, Transcript
from bot.domain.outcomes import end_of
from bot.domain.people import Actor
from bot.domain.proposals import Kind, Proposal
from bot.domain.redaction import redact_text
from bot.domain.teams import Board, Teammate, about
from bot.store import callbacks, conversations, grants, proposals, teams, votes
from bot.store.rules import Policies
from bot.tools.registry import Shelf


class Views:
    """Makes JSON of what a person may see. Its functions take a session: one snapshot per answer."""

    def __init__(self, desk: CoreDesk, policies: Policies, clock: Clock) -> None:
        self._desk = desk
        self.policies = policies
        self.clock = clock

    def find(self, session: Session, proposal_id: str, actor: Actor, shelf: Shelf) -> dict[str, Any] | None:
        """One proposal; None when there is none, or none for this person."""
        proposal = proposals.get(session, proposal_id)
        if proposal is None or not self._desk.visible(session, proposal, actor):
            return None
        return self.proposal(session, proposal, actor, shelf)

    def request(
        self, session: Session, proposal_id: str, actor: Actor, shelf: Shelf
    ) -> dict[str, Any] | None:
        """One request of a script; None when there is none, or none for this person.

        Who asked gets its arguments as they are, edits included: it acts on them.
        """
        proposal = proposals.get(session, proposal_id)
        if proposal is None or proposal.kind is not Kind.REQUEST:
            return None
        if not self._desk.visible(session, proposal, actor):
            return None
        shown = self.proposal(session, proposal, actor, shelf)
        if actor == proposal.requester:
            shown["arguments"] = dict(proposal.arguments)
        told = callbacks.of_proposal(session, proposal_id)
        callback = told and {
            "url": told.url,
            "attempts": told.attempts,
            "told_at": _time(told.told_at),
            "given_up": told.over and told.told_at is None,
            "error": told.fault or None,
        }
        return shown | {"end": end_of(proposal), "callback": callback}

    def visible(
        self, session: Session, found: Sequence[Proposal], actor: Actor, shelf: Shelf
    ) -> list[dict[str, Any]]:
        seen = (p for p in found if self._desk.visible(session, p, actor))
        return [self.proposal(session, p, actor, shelf) for p in seen]

    def proposal(self, session: Session, p: Proposal, actor: Actor, shelf: Shelf) -> dict[str, Any]:
        """A proposal with everything a card shows; the last of several carries the group."""
        group = proposals.of_message(session, p.message_id)
        grantable = grants.possible(session, self.policies, p)
        shown = group if group[-1].id == p.id else []
        card = card_of(p, shelf.schema_of(session, p), shown, grantable=grantable)
        conversation = conversations.get_conversation(session, p.conversation_id)
        at = conversation.origin if conversation and is_own(conversation.origin, actor) else None
        may = votes.objection(session, self.policies, p, actor, at=at) is None
        return _proposal(p, card) | {
            "may_decide": may,
            "channel": conversation.origin.channel if conversation else "",
            "conversation_id": _seen_in(conversation) if conversation else p.conversation_id,
            "teammate": p.teammate or (_teammate_at(session, conversation) if conversation else ""),
        }


def is_own(address: Address, actor: Actor) -> bool:
    """Whether a conversation is the caller's own: the one place on the web where they are in the chat."""
    return address.channel == actor.channel and address.key.startswith(f"{actor.key}/")


def _seen_in(conversation: Conversation) -> str:
    """The id of the conversation in which people see it: a teammate's is the lead agent's."""
    at = conversation.shown_at
    return at.key.rpartition("/")[2] if at and at.channel == "http" else conversation.id


def _teammate_at(session: Session, conversation: Conversation) -> str:
    """Whose work it is part of, also where no call of a teammate's opened it, as with a server's question."""
    found = teams.get(session, conversation.id) if conversation.shown_at else None
    return found.name if found else ""


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None


def _proposal(p: Proposal, card: Card) -> dict[str, Any]:
    return {
        "id": p.id,
        "kind": p.kind,
        "teammate": p.teammate,
        "conversation_id": p.conversation_id,
        "message_id": p.message_id,
        "tool_name": p.tool_name,
        "tool_arguments": card.arguments,
        "schema": card.schema,
        "description": card.title,
        "preview": [
            {"field": f.field, "old_value": f.old_value, "new_value": f.new_value} for f in card.fields
        ],
        "risk": card.level,
        "risk_reason": card.risk_reason,
        "reason": card.reason,
        "requester": card.asked_by,
        "deciders": card.deciders,
        "quorum": p.quorum,
        "votes": list(card.votes),
        "state": p.state,
        "outcome": card.outcome,
        "notes": list(card.notes),
        "actions": list(card.actions),
        "group": {"size": card.group.size, "open": card.group.open, "round": card.group.round}
        if card.group
        else None,
        "idempotency_key": p.idempotency_key,
        "result": redact_text(p.result) if p.result else None,
        "result_url": p.result_url,
        "error": redact_text(p.error) if p.error else None,
        "cause": p.cause,
        "created_at": _time(p.created_at),
        "updated_at": _time(p.updated_at),
        "expires_at": _time(p.expires_at),
        "decided_at": _time(p.decided_at),
        "decided_by": p.decided_by,
        "decided_from": p.decided_from,
        "decline_reason": p.decline_reason,
        "edited_by": p.edited_by,
        "digest": p.digest,
        "version": p.version,
        "round": p.round,
    }


def conversation(found: Conversation, open_proposals: int) -> dict[str, Any]:
    return {
        "id": found.id,
        "title": found.title,
        "created_at": _time(found.created_at),
        "open_proposals": open_proposals,
    }


def board(found: Board) -> dict[str, Any]:
    """The team of a conversation: each teammate with how it stands, its plan and what it waits for."""
    return {
        "title": found.title,
        "at_work": found.at_work,
        "teammates": [_teammate(each) for each in found.teammates],
    }


def _teammate(each: Teammate) -> dict[str, Any]:
    return {
        "id": each.id,
        "name": each.name,
        "role": each.role,
        "task": redact_text(each.task),
        "standing": each.standing,
        "state": each.state,
        "plan": each.plan_state,
        "locked": each.locked,
        "about": redact_text(about(each)),
        "proposals": [p.id for p in each.waits_for],
        "tokens": each.tokens,
        "started_at": _time(each.created_at),
        "ended_at": _time(each.ended_at),
    }


def messages(transcript: Transcript) -> list[dict[str, Any]]:
    """The lines of a conversation in reading order, each with its calls and the ids of its proposals."""
    return [_message(line, transcript.proposals) for line in transcript.lines]


def _message(line: Line, found: Mapping[tuple[int, str], Proposal]) -> dict[str, Any]:
    opened = [found[line.id, call.id] for call in line.calls if (line.id, call.id) in found]
    return {
        "id": line.id,
        "role": line.role,
        "text": line.text,
        "name": line.actor.label if line.actor and line.role is Role.USER else "",
        "created_at": _time(line.created_at),
        "proposals": [p.id for p in opened],
        "calls": [
            {
                "call_id": call.id,
                "tool_name": call.tool_name,
                "summary": redact_text(call.summary),
                "result": redact_text(line.results[call.id].text),
                "ok": line.results[call.id].ok,
            }
            for call in line.calls
            if call.id in line.results
        ],
    }
