"""Grants as rows: given in the transaction of a decision, matched in the transaction of a proposal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, literal_column, update
from sqlmodel import Session, col, or_, select

from bot.approvals import rights
from bot.domain import plans
from bot.domain.agents import describe_agent
from bot.domain.chat import Address, chat_of
from bot.domain.people import AGENTS, LOCAL, Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.proposals import Level, Proposal, State, canonical
from bot.domain.record import Act
from bot.domain.rules import CallFacts, Place, Rule, Rulebook, Subject, covers
from bot.domain.similarity import Grant, GrantAudience, GrantDuration, GrantScope, Likeness, Scope
from bot.store import conversations, people, proposals
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import By
from bot.store.connections import is_owner
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.store.tables.row import count_changed, table_of, value_of
from bot.store.tables.rules import GrantRow

_GRANT = table_of(GrantRow)
_FOR_CALL = select(_GRANT).where(
    _GRANT.c.revoked_at.is_(None),
    or_(_GRANT.c.expires_at.is_(None), _GRANT.c.expires_at > bindparam("now")),
    _GRANT.c.tool_name == bindparam("tool_name"),
    _GRANT.c.tool_version == bindparam("tool_version"),
    func.coalesce(_GRANT.c.connection, "") == bindparam("connection"),
    or_(~_GRANT.c.only_there, _GRANT.c.conversation_id == bindparam("conversation_id")),
    # the same check as `Scope.covers`, done by the database
    or_(
        _GRANT.c.rung == literal_column(f"'{GrantScope.TOOL}'"),
        (_GRANT.c.rung == literal_column(f"'{GrantScope.EXACT}'")) & (_GRANT.c.match == bindparam("exact")),
        (_GRANT.c.rung == literal_column(f"'{GrantScope.KEY}'")) & (_GRANT.c.match == bindparam("key")),
        _GRANT.c.rung == literal_column(f"'{GrantScope.PREFIX}'"),  # compared by `Scope.covers` alone
    ),
)
_LEFT = (_GRANT.c.uses == 0) | _GRANT.c.plan_digest.is_(None) | (_GRANT.c.rung != GrantScope.EXACT)
_USE = (
    update(_GRANT)
    .where(_GRANT.c.id == bindparam("grant_id"), _GRANT.c.revoked_at.is_(None), _LEFT)
    .values(uses=_GRANT.c.uses + 1)
)


def give(
    session: Session,
    proposal: Proposal,
    actor: Actor,
    person: Person,
    scope: Scope,
    words: str,
    lasting: GrantDuration,
    reach: GrantAudience,
    now: datetime,
) -> Grant:
    """Store a grant born from the decision on a proposal, given by a person through an account.

    A grant from a plan holds only while that plan does, for the person the teammate then works for. One for a
    single call of it lets that run once.
    """
    plan = proposal.kind.has_steps
    asked = conversations.get_conversation(session, proposal.conversation_id)
    origin = asked.origin if asked else None
    if proposal.agent:  # it covers what that agent asks for, and nothing else
        origin, reach = Address(AGENTS, proposal.agent), GrantAudience.HERE
    chat = chat_of(origin)
    where = {GrantAudience.HERE: origin, GrantAudience.CHAT: chat}.get(reach)
    alone = asked is not None and asked.private
    here = "one private conversation" if alone else f"one conversation in {chat}"
    if proposal.agent:
        whose = describe_agent(proposal.agent, proposal.requester)
    else:
        whose = reach.words(proposal.requester.label, here, str(chat), proposal.schedule or "")
    row = GrantRow(
        tool_name=scope.tool_name,
        tool_version=scope.tool_version,
        rung=scope.rung,
        match=scope.match,
        words=words if plan else f"{words}, for {whose}",
        person_id=person.id,
        person_name=person.name or person.id,
        conversation_id=proposal.conversation_id,
        only_there=lasting is GrantDuration.CONVERSATION and not proposal.agent,
        requester=None if (plan and proposal.teammate) or reach.wide else str(proposal.requester),
        place=None if plan or where is None else str(where),
        schedule=proposal.schedule,
        connection=proposal.connection.key if proposal.connection else None,
        proposal_id=proposal.id,
        plan_digest=proposal.digest if plan else None,
        created_at=now,
        expires_at=now + lasting.span if lasting.span else None,
    )
    session.add(row)
    session.flush()
    by, after = By.press(Act.GIVE, actor, person), admin_changes.grant_state(row)
    admin_changes.record(session, Thing.GRANT, f"G-{row.id}", by, None, after, now, row.tool_name)
    return _grant(row)


def hindrance(session: Session, policies: Policies, proposal: Proposal) -> str | None:
    """Return why no grant can be given for calls like this, in words; None when one can."""
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
    book = policies.load(session).book
    if not book.list_about(Subject.GRANTS) or not book.grants_reach_destructive(
        rights.call_of(session, proposal)
    ):
        return "What can't be undone asks each time, unless an admin allows grants for it."
    return None


def possible(session: Session, policies: Policies, proposal: Proposal) -> bool:
    """Tell if a grant can be given from the card of this proposal.

    Only open proposals are checked against the rules.
    """
    return proposal.state is State.PROPOSED and hindrance(session, policies, proposal) is None


def reaches(
    session: Session, policies: Policies, proposal: Proposal, person: Person
) -> tuple[GrantAudience, ...]:
    """Return the audiences for which this person may give a grant, narrowest first."""
    if proposal.schedule:
        return (GrantAudience.SCHEDULE,)
    if proposal.agent:
        return (GrantAudience.HERE,)
    found = [GrantAudience.HERE, GrantAudience.REQUESTER]
    if Role.ADMIN in policies.load(session).roles_for(person, proposal):
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        found += [] if conversation is None or conversation.private else [GrantAudience.CHAT]
        found += [GrantAudience.EVERYONE]
    return tuple(found)


def use(session: Session, policies: Policies, proposal: Proposal, like: Likeness, now: datetime) -> Proposal:
    """Return a proposal ready to be stored: approved by the narrowest grant that covers it, or as it is."""
    for grant in _usable(session, policies, proposal, like, now):
        if not count_changed(session.connection().execute(_USE, {"grant_id": grant.id})):
            continue  # it was revoked a moment ago
        alone = grant.person_id == str(LOCAL)  # who sits at the machine is called "you"
        whose = "your" if alone else f"{grant.person_name}'s"
        by = f"{whose} grant {grant.label}"
        return replace(proposal, state=State.APPROVED, grant_id=grant.id, decided_by=by, decided_at=now)
    return proposal


def reach(session: Session, policies: Policies, proposal: Proposal, like: Likeness, now: datetime) -> bool:
    """Return whether `use` would approve it now."""
    return next(_usable(session, policies, proposal, like, now), None) is not None


def _usable(
    session: Session, policies: Policies, proposal: Proposal, like: Likeness, now: datetime
) -> Iterator[Grant]:
    """Yield the live grants that let a call run, narrowest first.

    A grant counts only while its giver could still decide this same call alone.
    """
    if proposal.state is not State.PROPOSED:
        return
    found = _covering(session, proposal, like, now)
    if not found or hindrance(session, policies, proposal):
        return
    policy = policies.load(session)
    singled = _is_singled_out(policy.book, proposal)
    requester = people.person_of(session, proposal.requester)
    place = conversations.place_of(session, proposal.conversation_id).address
    for grant in found:
        if not grant.reaches(requester.accounts, place) or (requester.outside and grant.requester is None):
            continue  # what is for everyone is for everyone of the team
        if proposal.agent and not _is_of_agent(session, grant, proposal.agent):
            continue  # what was given to a person, or to another agent, is not this one's
        if grant.schedule != proposal.schedule:
            continue  # what comes by itself runs under what was given for it, and nothing else does
        if grant.plan_digest and not _plan_allows(session, grant, proposal):
            continue
        if singled and not _born_under(session, grant, proposal.rule):
            continue
        # a Person's id is one of their accounts, which may be linked with others since
        giver = people.person_of(session, Actor.parse(grant.person_id, grant.person_name))
        if proposal.connection and proposal.connection.is_personal and not is_owner(proposal, giver):
            continue  # what runs as a person is allowed by that person alone
        if policy.objection(proposal, giver, requester) is None:
            yield grant


def _is_singled_out(book: Rulebook, proposal: Proposal) -> bool:
    """Tell if a rule with limits asks for this call. Such a rule outranks the grants that cover it."""
    return any(rule.limits and rule.words == proposal.rule for rule in book.list_about(Subject.POLICY))


def _born_under(session: Session, grant: Grant, rule: str) -> bool:
    """Tell if a grant was given for a call that the same rule asked about."""
    born = proposals.get(session, grant.proposal_id)
    return born is not None and born.rule == rule


def _is_of_agent(session: Session, grant: Grant, agent: str) -> bool:
    """Tell if a grant was given on the card of this agent."""
    born = proposals.get(session, grant.proposal_id)
    return born is not None and born.agent == agent


def _plan_allows(session: Session, grant: Grant, proposal: Proposal) -> bool:
    """Tell if the plan behind a grant is still approved. It never allows a destructive call."""
    plan = proposals.get(session, grant.proposal_id)
    stands = plan is not None and plans.stands(plan) and plan.digest == grant.plan_digest
    return stands and proposal.risk.level is not Level.DESTRUCTIVE


def _covering(session: Session, proposal: Proposal, like: Likeness, now: datetime) -> list[Grant]:
    """Return the live grants that cover a call, narrowest first."""
    call = {
        "now": now,
        "tool_name": proposal.tool_name,
        "tool_version": proposal.tool_version,
        "conversation_id": proposal.conversation_id,
        "connection": proposal.connection.key if proposal.connection else "",
        "exact": canonical(proposal.arguments),
        "key": None if like.key is None else canonical(like.key),
    }
    rows = session.connection().execute(_FOR_CALL, call)
    lost = proposal.risk.level is Level.DESTRUCTIVE  # which no grant reaches by how it begins
    each = (_grant(row) for row in rows if not (lost and row.rung == GrantScope.PREFIX))
    covering = [
        g for g in each if g.scope.covers(proposal.tool_name, proposal.tool_version, proposal.arguments, like)
    ]
    return sorted(covering, key=lambda g: (list(GrantScope).index(g.scope.rung), g.id))


def live(session: Session, now: datetime) -> list[Grant]:
    """Return all live grants, oldest first."""
    return [
        _grant(row) for row in session.exec(select(GrantRow).where(_live(now)).order_by(col(GrantRow.id)))
    ]


def list_givers(session: Session, now: datetime) -> list[str]:
    """Return the ids of the Persons who gave live grants."""
    return list(session.exec(select(GrantRow.person_id).where(_live(now)).distinct()))


def revoke_grants(
    session: Session, grant_id: int | None, by: Actor, now: datetime, why: Act = Act.REVOKE
) -> int:
    """End one grant, or all (None); returns how many ended."""
    if grant_id is None:
        which = _live(now)
    else:
        which = _live(now) & (col(GrantRow.id) == grant_id)
    return _end(session, which, people.by(session, why, by), now)


def end_tightened(
    session: Session, before: Policy, after: Policy, rule: Rule, by: Actor, now: datetime
) -> list[Grant]:
    """End the grants whose calls a changed rule judges more strictly than before; gives those that ended."""
    ended = []
    who = rule.limits.who if rule.limits else ""
    if who:
        theirs = people.person_of(session, Actor.parse(who)).accounts
    else:
        theirs = frozenset[str]()
    for grant in live(session, now):
        born = proposals.get(session, grant.proposal_id)
        if born is None or not rule.concerns(grant.scope.tool_name):
            continue
        if theirs and grant.requester and grant.requester not in theirs:
            continue  # the rule is about what someone else asks for
        there = grant.place
        if grant.conversation_id:
            there = conversations.place_of(session, born.conversation_id).address
        # of a grant that reaches wider than the rule, what matters is the rule's own place
        wider = there is None or covers(there, rule.scope)
        if not wider and not covers(rule.scope, there or ""):
            continue
        place = Place(rule.scope if wider else there or "", private=False)
        call = CallFacts(grant.scope.tool_name, born.risk, place, Person(""), now)
        if after.is_stricter_than(before, call):
            revoke_grants(session, grant.id, by, now, Act.END_WITH_RULES)
            ended.append(grant)
    return ended


def end_of_person(session: Session, person_id: str, by: By, now: datetime) -> int:
    """End what a Person allowed, where it is no longer clear who that is; returns how many ended."""
    return _end(session, _live(now) & (col(GrantRow.person_id) == person_id), by, now)


def end_with_conversation(session: Session, conversation_id: str, by: By, now: datetime) -> int:
    """End the grants for a conversation that has ended."""
    there = (col(GrantRow.conversation_id) == conversation_id) & col(GrantRow.only_there).is_(True)
    return _end(session, _live(now) & there, by, now)


def end_with_schedule(session: Session, schedule_id: str, by: By, now: datetime) -> int:
    """End the grants for a schedule's runs."""
    return _end(session, _live(now) & (col(GrantRow.schedule) == schedule_id), by, now)


def end_with_raise(session: Session, proposal_id: str, by: By, now: datetime) -> int:
    """End the grants that were given on a card which needs one more approval since: one vote gave them."""
    return _end(session, _live(now) & (col(GrantRow.proposal_id) == proposal_id), by, now)


def end_with_agent(session: Session, agent: str, by: By, now: datetime) -> int:
    """End the grants for an agent whose token has ended."""
    return _end(session, _live(now) & (col(GrantRow.place) == str(Address(AGENTS, agent))), by, now)


def end_with_plan(session: Session, conversation_id: str, by: By, now: datetime) -> int:
    """End the grants of a conversation's earlier plan."""
    there = (col(GrantRow.conversation_id) == conversation_id) & col(GrantRow.plan_digest).is_not(None)
    return _end(session, _live(now) & there, by, now)


def move_to_chat(session: Session, old: Address, new: Address, by: By, now: datetime) -> None:
    """Have the live grants for a chat, or for what is in it, count at its new address."""
    place = col(GrantRow.place)
    there = (place == str(old)) | place.startswith(f"{old}/", autoescape=True)
    for row in session.exec(select(GrantRow).where(_live(now), there).order_by(col(GrantRow.id))):
        before = admin_changes.grant_state(row)
        row.place = f"{new}{str(row.place).removeprefix(str(old))}"
        session.add(row)
        session.flush()
        after = admin_changes.grant_state(row)
        admin_changes.record(session, Thing.GRANT, f"G-{row.id}", by, before, after, now, row.tool_name)


def end_outgrown(session: Session, tool_name: str, form: str, now: datetime) -> int:
    """End grants by how a tool's calls begin whose words don't have the form of today; returns how many.

    An update that takes a narrower view of what is alike keeps none of a wider one. Without this they would
    let nothing run, and still be listed.
    """
    others = _live(now) & (col(GrantRow.tool_name) == tool_name) & (col(GrantRow.rung) == GrantScope.PREFIX)
    outgrown = [
        row.id for row in session.exec(select(GrantRow).where(others)) if json.loads(row.match)[:1] != [form]
    ]
    return _end(session, col(GrantRow.id).in_(outgrown), By.nod(Act.END_WITH_UPDATE), now)


def _end(session: Session, which: ColumnElement[bool], by: By, now: datetime) -> int:
    """End grants and record who did; rows are locked, so that two who do it together record it once."""
    ended = session.exec(select(GrantRow).where(which).order_by(col(GrantRow.id)).with_for_update()).all()
    for row in ended:
        before = admin_changes.grant_state(row)
        row.revoked_at, row.revoked_by = now, by.actor
        session.add(row)
        admin_changes.record(session, Thing.GRANT, f"G-{row.id}", by, before, None, now, row.tool_name)
    return len(ended)


def _live(now: datetime) -> ColumnElement[bool]:
    unexpired = or_(col(GrantRow.expires_at).is_(None), col(GrantRow.expires_at) > now)
    return col(GrantRow.revoked_at).is_(None) & unexpired


def _grant(row: Any) -> Grant:
    return value_of(
        Grant,
        row,
        scope=Scope(row.tool_name, row.tool_version, GrantScope(row.rung), row.match),
        conversation_id=row.conversation_id if row.only_there else None,
    )
