"""Suggested rules: where people always approved the same kind of call unchanged, admins are asked about it.

A suggestion is a proposal of Nod's own, which no model makes or sees: its approval sets the rule in the name
of the admin who pressed. The rule spares what can be undone and no more. Who says *Not now* is asked again
after a month, who says *Never suggest this* is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlmodel import Session

from bot.approvals.drafts import draft
from bot.approvals.lookup.past import Effect, effect_on, is_change, with_rule
from bot.domain import kinds
from bot.domain.chat import Address, Clock, Request, chat_of
from bot.domain.people import NOD, Actor, Names, Role, place_called
from bot.domain.policy import Judgement, Policy, Verdict
from bot.domain.proposals import (
    Deciders,
    Level,
    PreviewField,
    Proposal,
    ProposalFilter,
    Risk,
    State,
    canonical,
)
from bot.domain.record import Act
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.rules import Mode, Rule, Subject, covers
from bot.domain.times import format_span
from bot.domain.verbs import Verb
from bot.errors import ToolError
from bot.features.insights.counting import MONTH
from bot.store import conversations, messages, notices, people, proposals, record, rules, transitions
from bot.store.audit.log import By
from bot.store.database import Database
from bot.store.proposals import Reach
from bot.store.rules import Policies
from bot.tools.registry import AvailableTools
from bot.tools.tool import Arguments, CallContext, FixedToolset, ToolOutput, tool

TOOL = "set_suggested_rule"
_NOD = Actor(NOD, "suggestions", "Nod")
_MIN_APPROVALS = 20  # the fewest approvals in a month for a suggestion
_MAX_SUGGESTIONS_A_DAY = 3
_UNDER_WAY = frozenset({State.PROPOSED, State.APPROVED, State.EXECUTING})
_SAMPLE_ROWS = 50  # the most calls of one kind that are examined
_MAX_EARLIER = 5_000  # the most earlier suggestions that are searched
_TIME_TO_DECIDE = timedelta(days=7)
Word = Annotated[str, Field(min_length=1, max_length=200)]


class Suggested(NamedTuple):
    """A kind of call that people always approved: tool, place, number of calls, and seconds they took."""

    tool_name: str
    place: str
    times: int
    waited: float

    @property
    def arguments(self) -> dict[str, str]:
        return {"tool_name": self.tool_name, "place": self.place}

    def words(self, names: Names) -> str:
        took = format_span(timedelta(seconds=self.waited))
        return (
            f"{self.tool_name} in {place_called(self.place, names)}: asked {self.times} times in 30 days, "
            f"always approved unchanged, median {took}. Stop asking there?"
        )


@dataclass(slots=True)
class _Group:
    """Calls of one tool in one chat."""

    fit: bool = True  # people approved each call, unchanged
    waits: list[float] = field(default_factory=list)  # seconds until each approval, the newest first
    rows: list[Any] = field(default_factory=list)  # the newest approved calls


def _make_rule(arguments: Arguments) -> Rule:
    """Return the suggested rule, under which destructive calls still ask."""
    return Rule(0, Subject.POLICY, arguments["place"], arguments["tool_name"], Mode.DESTRUCTIVE)


def _preview_rule(arguments: Arguments) -> tuple[PreviewField, ...]:
    still = PreviewField("still asks", None, "what can't be undone there")
    return (PreviewField("rule", None, _make_rule(arguments).said), still)


def suggestion_tools(database: Database, policies: Policies, clock: Clock) -> FixedToolset:
    """Return the tool of suggestions; no model is offered it, and no script can ask for it."""

    async def shown(arguments: Arguments) -> Sequence[PreviewField]:
        return _preview_rule(arguments)

    @tool(summary="Stop asking for {tool_name} in {place}", preview=shown, idempotent=True, group="rules")
    async def set_suggested_rule(tool_name: Word, place: Word, context: CallContext) -> ToolOutput:
        """Set a suggested rule."""
        suggested = _make_rule({"tool_name": tool_name, "place": place})
        said = await database.write(_set, policies, suggested, context.idempotency_key, clock())
        return ToolOutput(said, told=said)

    return FixedToolset("suggestions", (replace(set_suggested_rule, offered=False, kind=kinds.SUGGESTION),))


def _set(session: Session, policies: Policies, rule: Rule, key: str, now: datetime) -> str:
    """Set a rule in the name of its approver. Raises ToolError unless that person is an admin there."""
    p = proposals.get(session, key.removeprefix("nod-"))
    votes = [each for each in p.votes if each.verb == Verb.APPROVE] if p else []
    if p is None or p.kind is not kinds.SUGGESTION or not votes:
        raise ToolError("Only a suggestion that someone approved sets a rule.")
    by = votes[-1].actor
    policy, person = policies.load_for(session, by)
    bound = policies.bound_to(session, by)
    if Role.ADMIN not in policy.roles_for(person, p) or (bound and not covers(bound, rule.scope)):
        raise ToolError("Only an admin there may set a rule.")
    set_now = rules.set_rule(session, rule, by, now)
    return people.put_names_in(session, f"Set: {set_now.words}. Each run still has a card and an audit row.")


def find_suggestions(
    session: Session, policies: Policies, available: AvailableTools, now: datetime
) -> list[Suggested]:
    """Return the rules that could be suggested now, the most frequent first."""
    policy = policies.load(session)
    groups = _group_calls(session, policy, now)
    frequent_first = sorted(groups.items(), key=lambda item: (-len(item[1].waits), item[0]))
    suggestions = []
    for (name, place), group in frequent_first:
        if not group.fit or len(group.waits) < _MIN_APPROVALS:
            continue
        suggested = Suggested(name, place, len(group.waits), median(group.waits[:1000]))
        changed = policy.with_book(with_rule(policy.book, _make_rule(suggested.arguments)))
        # the rule must spare people each of these calls, as a rule of a lower place may still ask
        if not all(effect_on(session, row, policy, changed) is Effect.SPARED for row in group.rows):
            continue
        if not _is_harmless(session, available, name, group.rows):
            continue
        if not _was_suggested(session, suggested, now):
            suggestions.append(suggested)
    return suggestions[:_MAX_SUGGESTIONS_A_DAY]


def _group_calls(session: Session, policy: Policy, now: datetime) -> dict[tuple[str, str], _Group]:
    """Return the calls of the last month about which people were asked, by tool and chat."""
    groups: dict[tuple[str, str], _Group] = {}
    newest = record.list_newest(session, now - MONTH, ended=True, arguments=policy.book.conditional)
    for row in newest:
        if not is_change(row) or row.state in _UNDER_WAY or not record.was_asked(row):
            continue
        group = groups.setdefault((row.tool_name, _place(row)), _Group())
        was_approved = row.state == State.SUCCEEDED and row.decided_at is not None
        if not was_approved or row.edited_by or row.undone_by or row.level != Level.WRITE:
            group.fit = False
        if was_approved:
            group.waits.append((row.decided_at - row.created_at).total_seconds())
            if len(group.rows) < _SAMPLE_ROWS:
                group.rows.append(row)
    return groups


def _place(row: Any) -> str:
    """Return the chat of a thread; for a conversation over HTTP the account of its owner."""
    origin, asker = Address.parse(row.place), Actor.parse(row.requester)
    if origin.is_own(asker):
        return str(asker)
    return str(chat_of(origin))


def _is_harmless(session: Session, available: AvailableTools, name: str, rows: Sequence[Any]) -> bool:
    """Tell if the tool exists and is not destructive, and none of these calls has a secret."""
    offered = available.tools.get(name)
    if offered is None or offered.destructive:
        return False
    for row in rows:
        proposal = proposals.get(session, row.id)
        if proposal is None or _has_secret(proposal, offered.form):
            return False
    return True


def _has_secret(p: Proposal, schema: Mapping[str, Any]) -> bool:
    said = canonical(p.arguments)
    return bool(secrets_in(p.arguments, schema)) or redact_text(said) != said


def _list_earlier(session: Session, states: Sequence[State]) -> list[Proposal]:
    mine = Reach(frozenset({str(_NOD)}), everything=False)
    return proposals.list_seen(
        session, mine, states, _MAX_EARLIER, only=ProposalFilter(kind=kinds.SUGGESTION.name, own=True)
    )


def _was_suggested(session: Session, suggested: Suggested, now: datetime) -> bool:
    """Return whether the same suggestion is open, was answered within a month, or declined permanently."""
    for earlier in _list_earlier(session, list(State)):
        if earlier.arguments != suggested.arguments:
            continue
        if earlier.state is State.PROPOSED or earlier.updated_at > now - MONTH:
            return True
        if any(vote.verb == Verb.NEVER for vote in earlier.votes):
            return True
    return False


def suggest(
    session: Session,
    policies: Policies,
    available: AvailableTools,
    wanted: Sequence[Suggested],
    now: datetime,
) -> None:
    """Open each suggestion as a proposal for the admins there, unless it is open. No chat is told."""
    made = available.get(TOOL)
    proposals.store_schema(session, made.name, made.version, made.form)
    for each in wanted:
        if _was_suggested(session, each, now) or not policies.load(session).holders(Role.ADMIN, each.place):
            continue
        title = each.words(people.find_known_names(session, [each.place]))
        at = Request(_NOD, TOOL, {}, Address(NOD, "suggestions"), title, private=True)
        ident = conversations.find_current_id(session, at.address) or conversations.begin_conversation(
            session, at, "Suggestions", now
        )
        verdict = Verdict(
            Judgement.ASK,
            Risk(Level.WRITE, ""),
            "Nod suggests rules to admins",
            Deciders(requester=False, roles=(Role.ADMIN,), place=each.place),
            ttl=_TIME_TO_DECIDE,
        )
        drafted = draft(
            made, each.arguments, _preview_rule(each.arguments), verdict, _NOD, "", now, title=title
        )
        line = messages.add_notice(session, ident, title, 0, now, delivered=True)
        opened = replace(drafted, conversation_id=ident, message_id=line, warn_at=None)
        transitions.insert_proposals(session, [opened], By.nod(Act.PROPOSE))


def tell_suggestion(session: Session, scope: str, to: Address, now: datetime) -> None:
    """Have the cards of open suggestions about a scope's places posted at ``to``, each once."""
    for p in _list_earlier(session, [State.PROPOSED]):
        if covers(scope, p.arguments["place"]):
            notices.store_notice(session, to, "", now, p.id)
