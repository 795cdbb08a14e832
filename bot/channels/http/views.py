"""Rows as JSON. Secrets are redacted here as on every card."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.channels.http.wire import (
    ButtonView,
    CallbackView,
    ConversationView,
    FieldView,
    GrantView,
    MessageView,
    PlanLineView,
    ProposalView,
    QuestionView,
    RequestView,
    TeammateView,
    TeamView,
)
from bot.domain.conversations import Call, Conversation, Line, LineRole, Transcript
from bot.domain.diffs import diff
from bot.domain.forms import Field, fields_of
from bot.domain.outcomes import end_of
from bot.domain.people import Actor
from bot.domain.plans import PlanLine
from bot.domain.proposals import Proposal, State
from bot.domain.questions import AskedQuestion
from bot.domain.redaction import redact, redact_text, secrets_in, shown
from bot.domain.teams import Teammate, TeamStatus, about
from bot.domain.verbs import Button, Verb
from bot.lookup.admin import GrantInWords
from bot.lookup.proposals import Seen, SeenRequest
from bot.tools.registry import Shelf


async def every(found: Sequence[Seen]) -> list[ProposalView]:
    """Many proposals, without keeping others waiting."""
    return await asyncio.to_thread(lambda: [proposal(each) for each in found])


def request(found: SeenRequest, actor: Actor) -> RequestView:
    """A script's request. Who asked gets its arguments as they are, edits included: it acts on them."""
    p, told = found.seen.proposal, found.webhook
    callback: CallbackView | None = None
    if told is not None:
        callback = {
            "url": told.url,
            "attempts": told.attempts,
            "told_at": _time(told.told_at),
            "given_up": told.over and told.told_at is None,
            "error": told.fault or None,
        }
    view: RequestView = {**proposal(found.seen), "end": end_of(p), "callback": callback}  # type: ignore[typeddict-item] # mypy wants the key that need not be there
    if actor == p.requester:
        view["arguments"] = dict(p.arguments)
    return view


def question(asked: AskedQuestion) -> QuestionView:
    return {"asker": asked.name, "question": asked.text, "answer": asked.answer or None}


def conversation_of(found: Seen) -> str:
    """The id of the conversation in which people see it: a teammate's is the lead agent's."""
    if found.conversation is None:
        return found.proposal.conversation_id
    at = found.conversation.shown_at
    return at.key.rpartition("/")[2] if at and at.channel == "http" else found.conversation.id


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None


def proposal(found: Seen) -> ProposalView:
    """A proposal with everything a card shows; the first of several carries the group."""
    p, card = found.proposal, found.card
    secrets = secrets_in(p.arguments, card.schema)
    return {
        "id": p.id,
        "kind": p.kind,
        "teammate": found.teammate,
        "conversation_id": conversation_of(found),
        "channel": found.conversation.origin.channel if found.conversation else "",
        "may_decide": found.may_decide,
        "message_id": p.message_id,
        "call_id": p.call_id,
        "tool_name": p.tool_name,
        "tool_arguments": card.arguments,
        "schema": card.schema,
        "fields": [_field(f) for f in fields_of(card.schema, card.arguments)] if card.pending else [],
        "description": card.title,
        "preview": [
            {
                "field": f.field,
                "old_value": f.old_value,
                "new_value": f.new_value,
                "in_title": card.quotes(f),
                "diff": diff(f.old_value, f.new_value),
            }
            for f in card.fields
        ],
        "risk": card.level,
        "risk_reason": card.risk_reason,
        "reason": card.reason,
        "why": card.why,
        "outline": [_plan_line(line) for line in card.outline],
        "requester": card.asked_by,
        "requester_account": str(p.requester),
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
        "printed": card.result if p.state is State.EXECUTING else "",
        "result": redact_text(p.result, secrets) if p.result else None,
        "result_fields": [{"label": name, "value": said} for name, said in card.result_fields],
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
        "seen": p.seen,
        "version": p.version,
        "round": p.round,
    }


def _plan_line(line: PlanLine) -> PlanLineView:
    return {
        "text": line.text,
        "number": line.number or None,
        "label": line.label,
        "tools": list(line.tools),
        "mark": line.mark,
    }


def _button(shown: Button) -> ButtonView:
    return {
        "verb": shown.verb,
        "label": shown.label,
        "doing": shown.doing,
        "needs": shown.needs,
        "question": shown.asks.question if shown.asks else None,
        "hint": shown.asks.hint if shown.asks else None,
        "look": shown.look,
        "sure": {"question": shown.sure.question, "yes": shown.sure.yes, "no": shown.sure.no}
        if shown.sure
        else None,
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


def grant_view(named: GrantInWords) -> GrantView:
    grant = named.grant
    return {
        "label": grant.label,
        "tool_name": grant.scope.tool_name,
        "words": named.words,
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


def arguments_of(call: Call, shelf: Shelf) -> Mapping[str, Any]:
    """A read's arguments without secrets; empty where the model wrote no object."""
    tool = shelf.tools.get(call.tool_name)
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return redact(shown(given, tool.parameters if tool else None)) if isinstance(given, dict) else {}


def secrets_of(call: Call, shelf: Shelf) -> tuple[str, ...]:
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
                "result": redact_text(line.results[call.id].text, secrets_of(call, shelf)),
                "ok": line.results[call.id].ok,
            }
            for call in line.calls
            if call.id in line.results
        ],
    }
