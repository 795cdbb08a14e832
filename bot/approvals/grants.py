"""Grants as rows. A grant lets later calls like one that was approved run without asking.

People give a grant with their decision on a card. It has a scope (the calls that it covers), an audience (the
people and places whose calls it covers) and a duration. The rows and the API call the kinds of scopes
*rungs*. Narrowest first, they cover these calls:

- EXACT: calls with the same arguments
- KEY: calls with the same values of some arguments that the tool names
- PREFIX: calls with the same beginning, as of a command
- TOOL: any call of the tool

A call's `Likeness` has the values for KEY and PREFIX. A row's ``match`` holds what a call must have, as JSON:
the arguments, the values or the beginning.

A grant is stored in the transaction of the decision (`give_grant`). When a proposal is stored, the narrowest
grant that covers its call approves it (`approve_by_grant`). Grants end in many ways, each a function here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, literal_column, update
from sqlmodel import Session, col, or_, select

from bot.approvals import rights
from bot.domain import plans
from bot.domain.agents import describe_agent
from bot.domain.audit import Act
from bot.domain.call_facts import CallFacts, Place
from bot.domain.chat import Address, chat_of
from bot.domain.digests import to_canonical_json
from bot.domain.people import AGENTS, LOCAL, Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.domain.rule_values import Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import Rule, covers
from bot.domain.similarity import Grant, GrantAudience, GrantDuration, GrantScope, Likeness, Scope
from bot.store import conversations, people, proposals
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import Author
from bot.store.connections import is_owner
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.store.tables.row import count_changed, is_at_or_below, table_of, value_of
from bot.store.tables.rules import GrantRow

_GRANT = table_of(GrantRow)

# the live grants that may cover a call, narrowed by the values that `_list_covering` gives
_FOR_CALL = select(_GRANT).where(
    _GRANT.c.revoked_at.is_(None),
    or_(_GRANT.c.expires_at.is_(None), _GRANT.c.expires_at > bindparam("now")),
    _GRANT.c.tool_name == bindparam("tool_name"),
    _GRANT.c.tool_version == bindparam("tool_version"),
    func.coalesce(_GRANT.c.connection, "") == bindparam("connection"),
    # ``only_there``: it holds in the conversation in which it was given, and ends with it
    or_(~_GRANT.c.only_there, _GRANT.c.conversation_id == bindparam("conversation_id")),
    # the same check as `Scope.covers`, done by the database
    or_(
        _GRANT.c.rung == literal_column(f"'{GrantScope.TOOL}'"),
        (_GRANT.c.rung == literal_column(f"'{GrantScope.EXACT}'")) & (_GRANT.c.match == bindparam("exact")),
        (_GRANT.c.rung == literal_column(f"'{GrantScope.KEY}'")) & (_GRANT.c.match == bindparam("key")),
        _GRANT.c.rung == literal_column(f"'{GrantScope.PREFIX}'"),  # only `Scope.covers` compares these
    ),
)
# a grant that a plan gives for exactly one call allows one run; all others have no limit
_HAS_USE_LEFT = (_GRANT.c.uses == 0) | _GRANT.c.plan_digest.is_(None) | (_GRANT.c.rung != GrantScope.EXACT)
_COUNT_USE = (
    update(_GRANT)
    .where(_GRANT.c.id == bindparam("grant_id"), _GRANT.c.revoked_at.is_(None), _HAS_USE_LEFT)
    .values(uses=_GRANT.c.uses + 1)
)


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """The terms on which calls are allowed."""

    scope: Scope  # the calls that are allowed
    description: str  # the scope, for people
    audience: GrantAudience  # the people and places whose calls are allowed
    duration: GrantDuration


def give_grant(
    session: Session, proposal: Proposal, actor: Actor, person: Person, terms: GrantTerms, now: datetime
) -> Grant:
    """Store a grant that a person gives with their decision on a proposal. ``actor``: the account they used.

    A grant from a plan holds only while the plan is approved. If its scope is EXACT, it allows one run. If
    the plan is a teammate's, it holds for anyone for whom the teammate then works.
    """
    is_of_plan = proposal.kind.has_steps  # a plan is the kind with steps
    scope = terms.scope
    audience = terms.audience
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    origin = conversation.origin if conversation else None
    if proposal.agent:
        # a grant for an agent covers the calls of that agent and nothing else; its place is an address made
        # of the agent's name
        origin = Address(AGENTS, proposal.agent)
        audience = GrantAudience.HERE
    chat = chat_of(origin)
    place: Address | None = None
    if audience is GrantAudience.HERE:
        place = origin
    elif audience is GrantAudience.CHAT:
        place = chat
    is_private = conversation is not None and conversation.private
    whose = _describe_audience(proposal, audience, chat, is_private=is_private)
    is_for_any_requester = audience.is_wide or (is_of_plan and proposal.teammate)
    row = GrantRow(
        tool_name=scope.tool_name,
        tool_version=scope.tool_version,
        rung=scope.rung,
        match=scope.match,
        words=terms.description if is_of_plan else f"{terms.description}, for {whose}",
        person_id=person.id,
        person_name=person.name or person.id,
        conversation_id=proposal.conversation_id,
        only_there=terms.duration is GrantDuration.CONVERSATION and not proposal.agent,
        requester=None if is_for_any_requester else str(proposal.requester),
        place=None if is_of_plan or place is None else str(place),
        schedule=proposal.schedule,
        connection=proposal.connection.key if proposal.connection else None,
        proposal_id=proposal.id,
        plan_digest=proposal.digest if is_of_plan else None,
        created_at=now,
        expires_at=now + terms.duration.span if terms.duration.span else None,
    )
    session.add(row)
    session.flush()
    author = Author.of_person(Act.GIVE, actor, person)
    after = admin_changes.make_grant_state(row)
    admin_changes.record(session, Thing.GRANT, f"G-{row.id}", author, None, after, now, row.tool_name)
    return _read_grant(row)


def _describe_audience(
    proposal: Proposal, audience: GrantAudience, chat: Address | None, *, is_private: bool
) -> str:
    """Return in words whose calls a grant covers, and where.

    ``chat``: the chat of the conversation. ``is_private``: the conversation is private.
    """
    if proposal.agent:
        return describe_agent(proposal.agent, proposal.requester)
    here = "one private conversation" if is_private else f"one conversation in {chat}"
    return audience.describe(proposal.requester.label, here, str(chat), proposal.schedule or "")


def find_grant_objection(session: Session, policies: Policies, proposal: Proposal) -> str | None:
    """Return in words why no grant can be given for calls like this; None if a grant can be given."""
    if proposal.kind.always_asks:
        return f"Each {proposal.kind} is decided on its own."
    if proposal.quorum > 1:
        return "This needs several people each time, so one person can't allow calls like it."
    for refuse_grant in hooks_of(session).refuse_grant:
        why = refuse_grant(session, proposal)
        if why:
            return why
    if proposal.risk.level is not Level.DESTRUCTIVE:
        return None
    if proposal.schedule:
        return "What can't be undone asks each time that a schedule runs."
    rulebook = policies.load(session).rulebook
    if rulebook.list_about(Subject.GRANTS) and rulebook.grants_reach_destructive(
        rights.call_of(session, proposal)
    ):
        return None
    return "What can't be undone asks each time, unless an admin allows grants for it."


def is_grantable(session: Session, policies: Policies, proposal: Proposal) -> bool:
    """Tell if a grant can be given from the card of this proposal."""
    return proposal.state is State.PROPOSED and find_grant_objection(session, policies, proposal) is None


def list_audiences(
    session: Session, policies: Policies, proposal: Proposal, person: Person
) -> tuple[GrantAudience, ...]:
    """Return the audiences for which this person may give a grant, narrowest first."""
    if proposal.schedule:
        return (GrantAudience.SCHEDULE,)
    if proposal.agent:
        return (GrantAudience.HERE,)
    audiences = [GrantAudience.HERE, GrantAudience.REQUESTER]
    if Role.ADMIN in policies.load(session).roles_for(person, proposal):
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        if conversation is not None and not conversation.private:
            audiences.append(GrantAudience.CHAT)
        audiences.append(GrantAudience.EVERYONE)
    return tuple(audiences)


def approve_by_grant(
    session: Session, policies: Policies, proposal: Proposal, like: Likeness, now: datetime
) -> Proposal:
    """Return the proposal, approved by the narrowest grant that covers its call.

    Without such a grant it is returned as it is. The use of the grant is counted. The proposal is not stored
    here. ``like``: the call's likeness to others.
    """
    for grant in _list_usable(session, policies, proposal, like, now):
        if not count_changed(session.connection().execute(_COUNT_USE, {"grant_id": grant.id})):
            continue  # it was revoked a moment ago
        is_of_operator = grant.person_id == str(LOCAL)  # a person at the machine is called "you"
        whose = "your" if is_of_operator else f"{grant.person_name}'s"
        by = f"{whose} grant {grant.label}"
        return replace(proposal, state=State.APPROVED, grant_id=grant.id, decided_by=by, decided_at=now)
    return proposal


def would_approve(
    session: Session, policies: Policies, proposal: Proposal, like: Likeness, now: datetime
) -> bool:
    """Tell if `approve_by_grant` would approve the proposal now."""
    return next(_list_usable(session, policies, proposal, like, now), None) is not None


def _list_usable(
    session: Session, policies: Policies, proposal: Proposal, like: Likeness, now: datetime
) -> Iterator[Grant]:
    """Yield the live grants that let a call run, narrowest first.

    A grant counts only while its giver could still decide this same call alone.
    """
    if proposal.state is not State.PROPOSED:
        return
    covering = _list_covering(session, proposal, like, now)
    if not covering or find_grant_objection(session, policies, proposal):
        return
    policy = policies.load(session)
    needs_same_rule = _has_rule_with_limits(policy.rulebook, proposal)
    requester = people.load_person(session, proposal.requester)
    address = conversations.load_place(session, proposal.conversation_id).address
    for grant in covering:
        if not grant.is_for(requester.accounts, address):
            continue
        if requester.is_outsider and grant.requester is None:
            continue  # a grant for everyone does not cover people of other companies
        if proposal.agent and not _is_of_agent(session, grant, proposal.agent):
            continue  # a grant for a person or for another agent does not cover this one
        if grant.schedule != proposal.schedule:
            continue  # a schedule's runs need a grant for that schedule, which covers nothing else
        if grant.plan_digest and not _plan_allows(session, grant, proposal):
            continue
        if needs_same_rule and not _was_given_under(session, grant, proposal.rule_text):
            continue
        # the stored id of the giver is one of their accounts: load the Person who has this account today
        giver = people.load_person(session, Actor.parse(grant.person_id, grant.person_name))
        if proposal.connection and proposal.connection.is_personal and not is_owner(proposal, giver):
            continue  # what runs as a person is allowed by that person alone
        if policy.find_decision_objection(proposal, giver, requester) is None:
            yield grant


def _has_rule_with_limits(rulebook: Rulebook, proposal: Proposal) -> bool:
    """Tell if the rule that asks about a call has limits: such a rule outranks grants given under others."""
    return any(
        rule.limits and rule.description == proposal.rule_text for rule in rulebook.list_about(Subject.POLICY)
    )


def _was_given_under(session: Session, grant: Grant, rule: str) -> bool:
    """Tell if a grant was given on a card that this rule, in words, asked for."""
    origin = proposals.get(session, grant.proposal_id)
    return origin is not None and origin.rule_text == rule


def _is_of_agent(session: Session, grant: Grant, agent: str) -> bool:
    """Tell if a grant was given on the card of this agent."""
    origin = proposals.get(session, grant.proposal_id)
    return origin is not None and origin.agent == agent


def _plan_allows(session: Session, grant: Grant, proposal: Proposal) -> bool:
    """Tell if the plan behind a grant is still approved. It never allows a destructive call."""
    plan = proposals.get(session, grant.proposal_id)
    is_current = plan is not None and plans.is_approved(plan) and plan.digest == grant.plan_digest
    return is_current and proposal.risk.level is not Level.DESTRUCTIVE


def _list_covering(session: Session, proposal: Proposal, like: Likeness, now: datetime) -> list[Grant]:
    """Return the live grants that cover a call, narrowest first."""
    call = {
        "now": now,
        "tool_name": proposal.tool_name,
        "tool_version": proposal.tool_version,
        "conversation_id": proposal.conversation_id,
        "connection": proposal.connection.key if proposal.connection else "",
        "exact": to_canonical_json(proposal.arguments),
        "key": None if like.key is None else to_canonical_json(like.key),
    }
    rows = session.connection().execute(_FOR_CALL, call)
    is_destructive = proposal.risk.level is Level.DESTRUCTIVE
    covering = []
    for row in rows:
        if is_destructive and row.rung == GrantScope.PREFIX:
            continue  # the beginning of a call alone never allows what can't be undone
        grant = _read_grant(row)
        if grant.scope.covers(proposal.tool_name, proposal.tool_version, proposal.arguments, like):
            covering.append(grant)
    narrowest_first = list(GrantScope)
    return sorted(covering, key=lambda grant: (narrowest_first.index(grant.scope.rung), grant.id))


def list_live_grants(session: Session, now: datetime) -> list[Grant]:
    """Return all live grants, oldest first."""
    rows = session.exec(select(GrantRow).where(_is_live(now)).order_by(col(GrantRow.id)))
    return [_read_grant(row) for row in rows]


def list_givers(session: Session, now: datetime) -> list[str]:
    """Return the ids of the Persons who gave live grants."""
    return list(session.exec(select(GrantRow.person_id).where(_is_live(now)).distinct()))


def revoke_grants(
    session: Session, grant_id: int | None, by: Actor, now: datetime, why: Act = Act.REVOKE
) -> int:
    """End one grant, or all grants for None. Return the number of ended grants."""
    if grant_id is None:
        condition = _is_live(now)
    else:
        condition = _is_live(now) & (col(GrantRow.id) == grant_id)
    return _end(session, condition, people.make_author(session, why, by), now)


def end_tightened_grants(
    session: Session, before: Policy, after: Policy, rule: Rule, by: Actor, now: datetime
) -> list[Grant]:
    """End the grants whose calls a changed rule judges more strictly than before, and return them.

    ``before`` and ``after``: the policies without and with the change of ``rule``.
    """
    ended = []
    requesters = _list_accounts_of_rule(session, rule)
    for grant in list_live_grants(session, now):
        call = _make_common_call(session, grant, rule, requesters, now)
        if call is not None and after.is_stricter_than(before, call):
            revoke_grants(session, grant.id, by, now, Act.END_WITH_RULES)
            ended.append(grant)
    return ended


def _list_accounts_of_rule(session: Session, rule: Rule) -> frozenset[str]:
    """Return the accounts of the Person whose calls a rule is about; empty for a rule about everyone's."""
    if rule.limits and rule.limits.who:
        return people.load_person(session, Actor.parse(rule.limits.who)).accounts
    return frozenset()


def _make_common_call(
    session: Session, grant: Grant, rule: Rule, requesters: frozenset[str], now: datetime
) -> CallFacts | None:
    """Return the facts of a call that a grant covers and a rule is about; None if there is no such call.

    ``requesters``: the accounts of the Person whose calls the rule is about; empty for everyone's.
    """
    origin = proposals.get(session, grant.proposal_id)
    if origin is None or not rule.is_about(grant.scope.tool_name):
        return None
    if requesters and grant.requester and grant.requester not in requesters:
        return None  # the rule is about what someone else asks for
    place = grant.place
    if grant.conversation_id:
        place = conversations.load_place(session, origin.conversation_id).address
    common_place = _find_smaller_place(place, rule.scope)
    if common_place is None:
        return None
    any_requester = Person("")
    return CallFacts(
        grant.scope.tool_name, origin.risk, Place(common_place, private=False), any_requester, now
    )


def _find_smaller_place(grant_place: str | None, rule_place: str) -> str | None:
    """Return the place that is within the other; None if neither is.

    A grant without a place counts everywhere.
    """
    if grant_place is None or covers(grant_place, rule_place):
        return rule_place
    if covers(rule_place, grant_place):
        return grant_place
    return None


def end_given_by(session: Session, person_id: str, author: Author, now: datetime) -> int:
    """End the grants that a Person gave, and return their number."""
    return _end(session, _is_live(now) & (col(GrantRow.person_id) == person_id), author, now)


def end_with_conversation(session: Session, conversation_id: str, author: Author, now: datetime) -> int:
    """End the grants for a conversation that has ended."""
    is_of_conversation = col(GrantRow.conversation_id) == conversation_id
    return _end(session, _is_live(now) & is_of_conversation & col(GrantRow.only_there).is_(True), author, now)


def end_with_schedule(session: Session, schedule_id: str, author: Author, now: datetime) -> int:
    """End the grants for a schedule's runs."""
    return _end(session, _is_live(now) & (col(GrantRow.schedule) == schedule_id), author, now)


def end_with_raised_quorum(session: Session, proposal_id: str, author: Author, now: datetime) -> int:
    """End the grants that were given on the card of a proposal. It needs one more approval now."""
    return _end(session, _is_live(now) & (col(GrantRow.proposal_id) == proposal_id), author, now)


def end_with_agent(session: Session, agent: str, author: Author, now: datetime) -> int:
    """End the grants for an agent whose token has ended."""
    return _end(session, _is_live(now) & (col(GrantRow.place) == str(Address(AGENTS, agent))), author, now)


def end_with_plan(session: Session, conversation_id: str, author: Author, now: datetime) -> int:
    """End the grants of a conversation's earlier plan."""
    is_of_plan = (col(GrantRow.conversation_id) == conversation_id) & col(GrantRow.plan_digest).is_not(None)
    return _end(session, _is_live(now) & is_of_plan, author, now)


def move_to_chat(session: Session, old: Address, new: Address, author: Author, now: datetime) -> None:
    """Move the live grants for a chat, and for the threads in it, to the chat's new address."""
    is_there = is_at_or_below(col(GrantRow.place), str(old))
    for row in session.exec(select(GrantRow).where(_is_live(now), is_there).order_by(col(GrantRow.id))):
        before = admin_changes.make_grant_state(row)
        row.place = f"{new}{str(row.place).removeprefix(str(old))}"
        session.add(row)
        session.flush()
        after = admin_changes.make_grant_state(row)
        admin_changes.record(session, Thing.GRANT, f"G-{row.id}", author, before, after, now, row.tool_name)


def end_old_prefix_grants(session: Session, tool_name: str, form: str, now: datetime) -> int:
    """End a tool's PREFIX grants that an earlier release stored in another form. Return their number.

    Such a grant no longer covers any call, but would still be listed. ``form``: the mark with which this
    release begins the list in a grant's ``match``.
    """
    is_by_prefix = (col(GrantRow.tool_name) == tool_name) & (col(GrantRow.rung) == GrantScope.PREFIX)
    rows = session.exec(select(GrantRow).where(_is_live(now), is_by_prefix))
    old = [row.id for row in rows if json.loads(row.match)[:1] != [form]]
    return _end(session, col(GrantRow.id).in_(old), Author.of_nod(Act.END_WITH_UPDATE), now)


def _end(session: Session, condition: ColumnElement[bool], author: Author, now: datetime) -> int:
    """End grants, record by whom, and return their number.

    The rows are locked, so that only one of two processes records the end of a grant.
    """
    ended = session.exec(select(GrantRow).where(condition).order_by(col(GrantRow.id)).with_for_update()).all()
    for row in ended:
        before = admin_changes.make_grant_state(row)
        row.revoked_at, row.revoked_by = now, author.actor
        session.add(row)
        admin_changes.record(session, Thing.GRANT, f"G-{row.id}", author, before, None, now, row.tool_name)
    return len(ended)


def _is_live(now: datetime) -> ColumnElement[bool]:
    unexpired = or_(col(GrantRow.expires_at).is_(None), col(GrantRow.expires_at) > now)
    return col(GrantRow.revoked_at).is_(None) & unexpired


def _read_grant(row: Any) -> Grant:
    return value_of(
        Grant,
        row,
        scope=Scope(row.tool_name, row.tool_version, GrantScope(row.rung), row.match),
        description=row.words,
        conversation_id=row.conversation_id if row.only_there else None,
    )
