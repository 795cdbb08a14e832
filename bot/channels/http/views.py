"""Rows as JSON. Secrets are redacted here as on every card."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals.lookup import CoreLookup
from bot.channels.http.wire import (
    ButtonView,
    CallbackView,
    ConversationView,
    FieldView,
    GrantView,
    MessageView,
    ProposalView,
    RequestView,
    TeammateView,
    TeamView,
)
from bot.domain.cards import Card, card_of, named_on
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Call, Conversation, Line, LineRole, Transcript
from bot.domain.forms import Field, fields_of
from bot.domain.names import Names
from bot.domain.outcomes import end_of
from bot.domain.people import Actor
from bot.domain.proposals import Kind, Proposal, Sibling, State
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.similarity import Grant
from bot.domain.teams import Teammate, TeamStatus, about
from bot.domain.verbs import Button, Verb
from bot.store import conversations, names, proposals, rules, teams, webhooks
from bot.store.proposals import Mark, Sought
from bot.store.rules import Policies
from bot.tools.registry import Shelf
from bot.transactions import grants, rights

_LOOKS = 20  # how many pages are looked through for one that can be shown


class ProposalViews:
    """Makes JSON of what a person may see. Its functions take a session: one snapshot per answer."""

    def __init__(self, lookup: CoreLookup, policies: Policies, clock: Clock) -> None:
        self._lookup = lookup
        self.policies = policies
        self.clock = clock

    def find(self, session: Session, proposal_id: str, actor: Actor, shelf: Shelf) -> ProposalView | None:
        """One proposal, or None, or none for this person."""
        proposal = proposals.get(session, proposal_id)
        if proposal is None or not self._lookup.visible(session, proposal, actor):
            return None
        return self.proposal(session, proposal, actor, shelf)

    def request(self, session: Session, proposal_id: str, actor: Actor, shelf: Shelf) -> RequestView | None:
        """One request of a script, or None, or none for this person.

        Who asked gets its arguments as they are, edits included: it acts on them.
        """
        proposal = proposals.get(session, proposal_id)
        if proposal is None or proposal.kind is not Kind.REQUEST:
            return None
        if not self._lookup.visible(session, proposal, actor):
            return None
        shown = self.proposal(session, proposal, actor, shelf)
        told = webhooks.of_proposal(session, proposal_id)
        callback: CallbackView | None = None
        if told is not None:
            callback = {
                "url": told.url,
                "attempts": told.attempts,
                "told_at": _time(told.told_at),
                "given_up": told.over and told.told_at is None,
                "error": told.fault or None,
            }
        request: RequestView = {**shown, "end": end_of(proposal), "callback": callback}  # type: ignore[typeddict-item] # mypy wants the key that need not be there
        if actor == proposal.requester:
            request["arguments"] = dict(proposal.arguments)
        return request

    def visible(
        self, session: Session, found: Sequence[Proposal], actor: Actor, shelf: Shelf
    ) -> list[ProposalView]:
        """Those that this person may see."""
        seen = [p for p in found if self._lookup.visible(session, p, actor)]
        return self._shown(session, seen, actor, shelf)

    def _shown(
        self, session: Session, found: Sequence[Proposal], actor: Actor, shelf: Shelf
    ) -> list[ProposalView]:
        """A page of them; the groups of all are read in one query."""
        groups = proposals.siblings(session, {p.message_id for p in found})
        declined, paused = proposals.declined_before(session, found), rules.pause_words(session)
        schemas = {p.id: shelf.schema_of(session, p) for p in found}
        named = names.known(session, {each for p in found for each in named_on(p, schemas[p.id])})
        return [
            self._proposal(
                session, p, actor, schemas[p.id], groups.get(p.id, ()), declined.get(p.id), paused, named
            )
            for p in found
        ]

    def page(
        self,
        session: Session,
        actor: Actor,
        shelf: Shelf,
        states: Sequence[State],
        limit: int,
        before: Mark | None = None,
        *,
        sought: Sought,
        to_decide: bool = False,
    ) -> tuple[list[ProposalView], Mark | None]:
        """What this person may see, newest change first, and what the next page begins below, if any.

        ``to_decide``: only what they may decide.
        """
        reach = self._lookup.reach(session, actor)
        kept: list[Proposal] = []
        for _ in range(_LOOKS):
            found = proposals.seen_by(session, reach, states, limit + 1, before, sought)
            seen = (p for p in found if self._lookup.visible(session, p, actor))
            kept += (p for p in seen if not to_decide or self._may_decide(session, p, actor))
            if len(kept) > limit:
                before = Mark.of(kept[limit - 1])
                break
            if len(found) <= limit:
                before = None
                break
            before = Mark.of(found[-1])
        return self._shown(session, kept[:limit], actor, shelf), before

    def proposal(self, session: Session, p: Proposal, actor: Actor, shelf: Shelf) -> ProposalView:
        """A proposal with everything a card shows; the last of several carries the group."""
        return self._shown(session, [p], actor, shelf)[0]

    def _proposal(
        self,
        session: Session,
        p: Proposal,
        actor: Actor,
        schema: Mapping[str, object],
        siblings: Sequence[Sibling],
        declined: Proposal | None,
        paused: str,
        named: Names,
    ) -> ProposalView:
        grantable = grants.possible(session, self.policies, p)
        card = card_of(
            p, schema, siblings, grantable=grantable, paused=paused, declined=declined, names=named
        )
        conversation = conversations.get_conversation(session, p.conversation_id)
        return {
            **_proposal(p, card),
            "may_decide": self._may_decide(session, p, actor),
            "channel": conversation.origin.channel if conversation else "",
            "conversation_id": _seen_in(conversation) if conversation else p.conversation_id,
            "teammate": p.teammate or (_teammate_at(session, conversation) if conversation else ""),
        }

    def _may_decide(self, session: Session, p: Proposal, actor: Actor) -> bool:
        conversation = conversations.get_conversation(session, p.conversation_id)
        at = conversation.origin if conversation and is_own(conversation.origin, actor) else None
        return rights.objection(session, self.policies, p, actor, at=at) is None

    def rules_all(self, session: Session, actor: Actor) -> bool:
        """Whether this person is an admin of all of Nod, not of one workspace alone."""
        return self.policies.is_admin(session, actor) and not self.policies.bound_to(session, actor)


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


def _proposal(p: Proposal, card: Card) -> ProposalView:
    secrets = secrets_in(p.arguments, card.schema)
    return {
        "id": p.id,
        "kind": p.kind,
        "teammate": p.teammate,
        "conversation_id": p.conversation_id,
        "channel": "",
        "may_decide": False,
        "message_id": p.message_id,
        "call_id": p.call_id,
        "tool_name": p.tool_name,
        "tool_arguments": card.arguments,
        "schema": card.schema,
        "fields": [_field(f) for f in fields_of(card.schema, card.arguments)] if card.pending else [],
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
        "verbs": list(card.verbs),
        "buttons": [_button(card.button(verb)) for verb in (*card.verbs, Verb.CANCEL)],
        "headline": card.headline,
        "warning": card.warning,
        "asker_decides": card.asker_decides,
        "group": {"size": card.group.size, "open": card.group.open, "round": card.group.round}
        if card.group
        else None,
        "idempotency_key": p.idempotency_key,
        "result": redact_text(p.result, secrets) if p.result else None,
        "ended_badly": p.ended_badly,
        "result_url": p.result_url,
        "error": redact_text(p.error, secrets) if p.error else None,
        "cause": p.cause,
        "created_at": p.created_at.isoformat(),
        "updated_at": p.updated_at.isoformat(),
        "expires_at": p.expires_at.isoformat(),
        "decided_at": _time(p.decided_at),
        "decided_by": p.decided_by,
        "decided_from": p.decided_from,
        "decline_reason": p.decline_reason,
        "edited_by": p.edited_by,
        "grant": f"G-{p.grant_id}" if p.grant_id is not None else None,
        "digest": p.digest,
        "version": p.version,
        "round": p.round,
    }


def _button(shown: Button) -> ButtonView:
    return {
        "verb": shown.verb,
        "label": shown.label,
        "doing": shown.doing,
        "needs": shown.needs,
        "look": shown.look,
        "rare": shown.rare,
    }


def _field(asked: Field) -> FieldView:
    """What the edit form needs to ask for one argument."""
    return {
        "name": asked.name,
        "label": asked.label,
        "shape": asked.shape,
        "description": asked.description,
        "required": asked.required,
        "nullable": asked.nullable,
        "value": asked.value,
        "default": asked.default,
        "options": list(asked.options),
        "multiline": asked.multiline,
        "secret": asked.secret,
    }


def grant_view(session: Session, grant: Grant) -> GrantView:
    return {
        "label": grant.label,
        "tool_name": grant.scope.tool_name,
        "words": names.named(session, redact_text(grant.words)),
        "given_by": grant.person_name,
        "given_at": grant.created_at.isoformat(),
        "expires_at": _time(grant.expires_at),
        "uses": grant.uses,
        "proposal_id": grant.proposal_id,
    }


def conversation(found: Conversation, open_proposals: int) -> ConversationView:
    return {
        "id": found.id,
        "title": found.title,
        "created_at": found.created_at.isoformat(),
        "open_proposals": open_proposals,
    }


def board(found: TeamStatus) -> TeamView:
    """The team of a conversation: each teammate with how it stands, its plan and what it waits for."""
    return {
        "title": found.title,
        "at_work": found.at_work,
        "teammates": [_teammate(each) for each in found.teammates],
    }


def _teammate(each: Teammate) -> TeammateView:
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


def messages(transcript: Transcript, shelf: Shelf) -> list[MessageView]:
    """The lines of a conversation in reading order, each with its calls and the ids of its proposals."""
    return [_message(line, transcript.proposals, shelf) for line in transcript.lines]


def _secrets_of(call: Call, shelf: Shelf) -> tuple[str, ...]:
    """The values in a call's arguments that are hidden, since its result may repeat them."""
    tool = shelf.tools.get(call.tool_name)
    try:
        return secrets_in(json.loads(call.arguments or "{}"), tool.form if tool else None)
    except (ValueError, RecursionError):  # the model wrote no JSON, so nothing ran
        return ()


def _message(line: Line, found: Mapping[tuple[int, str], Proposal], shelf: Shelf) -> MessageView:
    opened = [found[line.id, call.id] for call in line.calls if (line.id, call.id) in found]
    return {
        "id": line.id,
        "role": line.role,
        "text": line.text,
        "name": line.actor.label if line.actor and line.role is LineRole.USER else "",
        "created_at": line.created_at.isoformat(),
        "proposals": [p.id for p in opened],
        "calls": [
            {
                "call_id": call.id,
                "tool_name": call.tool_name,
                "summary": redact_text(call.summary),
                "result": redact_text(line.results[call.id].text, _secrets_of(call, shelf)),
                "ok": line.results[call.id].ok,
            }
            for call in line.calls
            if call.id in line.results
        ],
    }
