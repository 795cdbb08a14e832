"""Suggested rules: if people always approved the calls of a tool in a place unchanged, admins are asked.

A suggestion is a proposal of Nod itself, which no model makes or sees. Its approval sets a rule, in the name
of the admin who approved: such calls run without asking, except destructive calls. After *Not now* the same
rule may be suggested again a month later, after *Never suggest this* it is not. The sweep finds and opens
suggestions once a day (`find_suggestions`, `open_suggestions`). The tool `set_suggested_rule` sets an
approved rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlmodel import Session

from bot.approvals.drafts import draft
from bot.approvals.lookup.rule_simulation import Effect, effect_on, is_change, with_rule
from bot.domain import kinds
from bot.domain.audit import Act
from bot.domain.chat import Address, Clock, Request, chat_of
from bot.domain.deciders import Deciders
from bot.domain.digests import to_canonical_json
from bot.domain.people import NOD, Actor, Names, Role, name_of_place
from bot.domain.policy import Policy
from bot.domain.preview import PreviewField
from bot.domain.proposal_lists import ProposalFilter
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import Rule, covers
from bot.domain.times import format_span
from bot.domain.verbs import Verb
from bot.domain.verdicts import Judgement, Verdict
from bot.errors import ToolError
from bot.features.insights.cost_report import MONTH
from bot.store import conversations, messages, notices, past_proposals, people, proposals, rules, transitions
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.proposals import SearchScope
from bot.store.rules import Policies
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.decorator import tool
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

RULE_TOOL_NAME = "set_suggested_rule"
_SUGGESTER = Actor(NOD, "suggestions", "Nod")  # the requester of suggestions
_MIN_APPROVALS = 20  # the fewest approvals in a month for a suggestion
_MAX_SUGGESTIONS_A_DAY = 3
# the states of calls that have not ended
_UNDER_WAY = frozenset({State.PROPOSED, State.APPROVED, State.EXECUTING})
_SAMPLE_ROWS = 50  # the most calls of one kind that are examined
_MAX_WAITS = 1_000  # the most approvals of whose waits the median is taken
_MAX_EARLIER = 5_000  # the most earlier suggestions that are searched
_TIME_TO_DECIDE = timedelta(days=7)  # for which a suggestion is open
_NOT_APPROVED_TEXT = "Only a suggestion that someone approved sets a rule."

_Name = Annotated[str, Field(min_length=1, max_length=200)]


class SuggestionDraft(NamedTuple):
    """A suggestion that is not opened yet: people always approved the calls of a tool in a place."""

    tool_name: str
    place: str
    times: int  # the number of calls in the last month
    median_wait_seconds: float  # until the approval

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments of `set_suggested_rule`."""
        return {"tool_name": self.tool_name, "place": self.place}

    def make_title(self, names: Names) -> str:
        """Return the title of the suggestion's card."""
        took = format_span(timedelta(seconds=self.median_wait_seconds))
        return (
            f"{self.tool_name} in {name_of_place(self.place, names)}: asked {self.times} times in 30 days, "
            f"always approved unchanged, median {took}. Stop asking there?"
        )


@dataclass(slots=True)
class _Group:
    """The calls of one tool in one place, filled while rows are read."""

    is_always_approved: bool = True  # people approved each call, unchanged
    approval_seconds: list[float] = field(default_factory=list)  # until each approval, newest first
    rows: list[Any] = field(default_factory=list)  # the newest approved calls, at most `_SAMPLE_ROWS`


def _make_rule(arguments: Arguments) -> Rule:
    """Return the suggested rule, under which destructive calls still ask."""
    return Rule(
        id=0,  # not stored yet
        subject=Subject.POLICY,
        scope=arguments["place"],
        pattern=arguments["tool_name"],
        value=Mode.DESTRUCTIVE,
    )


def _preview_rule(arguments: Arguments) -> tuple[PreviewField, ...]:
    still = PreviewField("still asks", None, "what can't be undone there")
    return (PreviewField("rule", None, _make_rule(arguments).command_text), still)


def make_suggestion_toolset(database: Database, policies: Policies, clock: Clock) -> FixedToolset:
    """Return the tool `set_suggested_rule`; no model is offered it, and no script can ask for it."""

    async def preview(arguments: Arguments) -> Sequence[PreviewField]:
        return _preview_rule(arguments)

    @tool(summary="Stop asking for {tool_name} in {place}", preview=preview, idempotent=True, group="rules")
    async def set_suggested_rule(tool_name: _Name, place: _Name, context: CallContext) -> ToolOutput:
        """Set a suggested rule."""
        rule = _make_rule({"tool_name": tool_name, "place": place})
        text = await database.write(_set_rule, policies, rule, context.idempotency_key, clock())
        return ToolOutput(text, told=text)

    return FixedToolset("suggestions", (replace(set_suggested_rule, offered=False, kind=kinds.SUGGESTION),))


def _set_rule(session: Session, policies: Policies, rule: Rule, key: str, now: datetime) -> str:
    """Set a rule in the name of the suggestion's approver. Raises ToolError unless they are an admin there.

    ``key``: the idempotency key of the call, which is ``nod-`` and the id of the suggestion.
    """
    suggestion = proposals.get(session, key.removeprefix("nod-"))
    if suggestion is None or suggestion.kind is not kinds.SUGGESTION:
        raise ToolError(_NOT_APPROVED_TEXT)
    approvals = [vote for vote in suggestion.votes if vote.verb == Verb.APPROVE]
    if not approvals:
        raise ToolError(_NOT_APPROVED_TEXT)
    approver = approvals[-1].actor
    policy, person = policies.load_with_person(session, approver)
    # the only workspace whose rules this admin may set; None: any
    workspace = policies.find_workspace_bound(session, approver)
    is_admin = Role.ADMIN in policy.roles_for(person, suggestion)
    if not is_admin or (workspace and not covers(workspace, rule.scope)):
        raise ToolError("Only an admin there may set a rule.")
    new_rule = rules.set_rule(session, rule, approver, now)
    return people.put_names_in(
        session, f"Set: {new_rule.description}. Each run still has a card and an audit row."
    )


def find_suggestions(
    session: Session, policies: Policies, available: AvailableTools, now: datetime
) -> list[SuggestionDraft]:
    """Return the suggestions that could be opened now, for the most frequent calls first.

    At most `_MAX_SUGGESTIONS_A_DAY` are returned.
    """
    policy = policies.load(session)
    groups = _group_calls(session, policy, now)
    frequent_first = sorted(groups.items(), key=lambda item: (-len(item[1].approval_seconds), item[0]))
    suggestions = []
    for (name, place), group in frequent_first:
        if not group.is_always_approved or len(group.approval_seconds) < _MIN_APPROVALS:
            continue
        median_seconds = median(group.approval_seconds[:_MAX_WAITS])
        suggested = SuggestionDraft(name, place, len(group.approval_seconds), median_seconds)
        policy_with_rule = policy.with_rulebook(with_rule(policy.rulebook, _make_rule(suggested.arguments)))
        # `Effect.SPARED`: under the rule, no one would have been asked. Another rule, of a smaller place, may
        # still ask; then the suggestion would promise too much.
        effects = (effect_on(session, row, policy, policy_with_rule) for row in group.rows)
        if not all(effect is Effect.SPARED for effect in effects):
            continue
        if not _is_harmless(session, available, name, group.rows):
            continue
        if not _was_suggested(session, suggested, now):
            suggestions.append(suggested)
    return suggestions[:_MAX_SUGGESTIONS_A_DAY]


def _group_calls(session: Session, policy: Policy, now: datetime) -> dict[tuple[str, str], _Group]:
    """Return the calls of the last month that do more than read and about which people were asked.

    They are grouped by the names of their tools and by their places.
    """
    groups: dict[tuple[str, str], _Group] = {}
    # arguments are read only if a rule has a condition on them (``has_conditions``)
    newest = past_proposals.list_newest(
        session, now - MONTH, with_decision=True, with_arguments=policy.rulebook.has_conditions
    )
    for row in newest:
        if not is_change(row) or row.state in _UNDER_WAY or not past_proposals.was_asked(row):
            continue
        group = groups.setdefault((row.tool_name, _find_place(row)), _Group())
        was_approved = row.state == State.SUCCEEDED and row.decided_at is not None
        was_changed = row.edited_by or row.undone_by
        if not was_approved or was_changed or row.level != Level.WRITE:
            group.is_always_approved = False
        if was_approved:
            group.approval_seconds.append((row.decided_at - row.created_at).total_seconds())
            if len(group.rows) < _SAMPLE_ROWS:
                group.rows.append(row)
    return groups


def _find_place(row: Any) -> str:
    """Return the place of a call, as a rule names it: its chat, also for a call in a thread.

    A conversation that only one account has, such as over HTTP, counts as the place of this account.
    """
    origin = Address.parse(row.place)
    asker = Actor.parse(row.requester)
    if origin.is_own(asker):
        return str(asker)
    return str(chat_of(origin))


def _is_harmless(session: Session, available: AvailableTools, name: str, rows: Sequence[Any]) -> bool:
    """Return whether the tool exists and is not destructive, and none of these calls has a secret."""
    found_tool = available.tools.get(name)
    if found_tool is None or found_tool.destructive:
        return False
    for row in rows:
        proposal = proposals.get(session, row.id)
        if proposal is None or _has_secret(proposal, found_tool.form_schema):
            return False
    return True


def _has_secret(proposal: Proposal, schema: Mapping[str, Any]) -> bool:
    text = to_canonical_json(proposal.arguments)
    return bool(secrets_in(proposal.arguments, schema)) or redact_text(text) != text


def _list_suggestions(session: Session, states: Sequence[State]) -> list[Proposal]:
    """Return the suggestions that were opened and are in one of these states."""
    of_suggester = SearchScope(frozenset({str(_SUGGESTER)}), everything=False)
    only = ProposalFilter(kind=kinds.SUGGESTION.name, only_own=True)
    return proposals.list_within_reach(session, of_suggester, states, _MAX_EARLIER, only=only)


def _was_suggested(session: Session, suggested: SuggestionDraft, now: datetime) -> bool:
    """Return whether the same suggestion is open, has ended within a month, or was declined permanently."""
    for earlier in _list_suggestions(session, list(State)):
        if earlier.arguments != suggested.arguments:
            continue
        if earlier.state is State.PROPOSED or earlier.updated_at > now - MONTH:
            return True
        if any(vote.verb == Verb.NEVER for vote in earlier.votes):
            return True
    return False


def open_suggestions(
    session: Session,
    policies: Policies,
    available: AvailableTools,
    suggestions: Sequence[SuggestionDraft],
    now: datetime,
) -> None:
    """Open each suggestion as a proposal for the admins of its place. No chat is told.

    Left out are suggestions that another process has opened in the meantime, and places without an admin.
    """
    rule_tool = available.get(RULE_TOOL_NAME)
    proposals.store_schema(session, rule_tool.name, rule_tool.version, rule_tool.form_schema)
    for suggested in suggestions:
        has_admin = bool(policies.load(session).list_holders(Role.ADMIN, suggested.place))
        if has_admin and not _was_suggested(session, suggested, now):
            _open_suggestion(session, rule_tool, suggested, now)


def _open_suggestion(session: Session, rule_tool: Tool, suggested: SuggestionDraft, now: datetime) -> None:
    title = suggested.make_title(people.find_known_names(session, [suggested.place]))
    request = Request(_SUGGESTER, RULE_TOOL_NAME, {}, Address(NOD, "suggestions"), title, private=True)
    conversation_id = conversations.find_current_id(session, request.address)
    if conversation_id is None:
        conversation_id = conversations.begin_conversation(session, request, "Suggestions", now)
    verdict = Verdict(
        Judgement.ASK,
        Risk(Level.WRITE, ""),
        "Nod suggests rules to admins",
        Deciders(requester=False, roles=(Role.ADMIN,), place=suggested.place),
        ttl=_TIME_TO_DECIDE,
    )
    preview = _preview_rule(suggested.arguments)
    drafted = draft(
        rule_tool, suggested.arguments, preview, verdict, _SUGGESTER, reason="", now=now, title=title
    )
    message_id = messages.add_notice(session, conversation_id, title, after=0, now=now, delivered=True)
    proposal = replace(drafted, conversation_id=conversation_id, message_id=message_id, warn_at=None)
    transitions.insert_proposals(session, [proposal], Author.of_nod(Act.PROPOSE))


def tell_suggestion(session: Session, scope: str, to: Address, now: datetime) -> None:
    """Have the cards of open suggestions about a scope's places posted at ``to``. Implements `SendDigest`."""
    for suggestion in _list_suggestions(session, [State.PROPOSED]):
        if covers(scope, suggestion.arguments["place"]):
            notices.store_notice(session, to, "", now, suggestion.id)
