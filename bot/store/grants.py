"""Grants as rows: given in the transaction of a decision, matched in the transaction of a proposal."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, literal_column, update
from sqlmodel import Session, col, or_, select

from bot.domain import plans
from bot.domain.people import Actor, Person
from bot.domain.proposals import Kind, Proposal, State, canonical
from bot.domain.risk import Level
from bot.domain.similarity import Grant, Lasting, Rung, Scope
from bot.store import conversations, ledger, people, proposals
from bot.store.audit import By
from bot.store.ledger import Thing
from bot.store.prepared import Prepared
from bot.store.rules import Policies
from bot.store.tables import GrantRow


def give(
    session: Session,
    proposal: Proposal,
    actor: Actor,
    person: Person,
    scope: Scope,
    words: str,
    lasting: Lasting,
    now: datetime,
) -> Grant:
    """Store a grant born from the decision on a proposal, given by a person through an account.

    One born from a plan holds with that very plan.
    """
    row = GrantRow(
        tool_name=scope.tool_name,
        tool_version=scope.tool_version,
        rung=scope.rung,
        match=scope.match,
        words=words,
        person_id=person.id,
        person_name=person.name or person.id,
        conversation_id=proposal.conversation_id,
        only_there=lasting is Lasting.CONVERSATION,
        proposal_id=proposal.id,
        plan_digest=proposal.digest if proposal.kind is Kind.PLAN else None,
        created_at=now,
        expires_at=now + lasting.span if lasting.span else None,
    )
    session.add(row)
    session.flush()
    by, after = By.press("give", actor, person), ledger.grant_state(row)
    ledger.record(session, Thing.GRANT, f"G-{row.id}", by, None, after, now, row.tool_name)
    return _grant(row)


def hindrance(session: Session, policies: Policies, proposal: Proposal) -> str | None:
    """Why no grant can be given for calls like this, in words; None when one can."""
    if proposal.kind is not Kind.CALL:
        return f"Each {proposal.kind} is decided by itself."
    if proposal.quorum > 1:
        return "This needs several people each time, so one person cannot allow calls like it."
    if proposal.risk.level is not Level.DESTRUCTIVE:
        return None
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    place = str(conversation.origin) if conversation else ""
    if not policies.load(session).book.grants_reach_destructive(place, proposal.tool_name):
        return "What cannot be undone asks each time, unless an admin allows grants for it."
    return None


def possible(session: Session, policies: Policies, proposal: Proposal) -> bool:
    """Whether a grant can be given from its card; what is no longer open needs no look at the rules."""
    return proposal.state is State.PROPOSED and hindrance(session, policies, proposal) is None


def use(
    session: Session, policies: Policies, proposal: Proposal, key: Mapping[str, Any] | None, now: datetime
) -> Proposal:
    """A proposal about to be stored: approved by the narrowest grant that covers it, or as it is.

    The grant counts only while its giver could still decide this very call alone.
    """
    if proposal.state is not State.PROPOSED:
        return proposal
    found = _covering(session, proposal, key, now)
    if not found or hindrance(session, policies, proposal):
        return proposal
    policy = policies.load(session)
    requester = people.person_of(session, proposal.requester)
    for grant in found:
        if grant.plan_digest and not _plan_allows(session, grant, proposal):
            continue
        # a Person's id is one of their accounts, which may be linked with others since
        giver = people.person_of(session, Actor.parse(grant.person_id, grant.person_name))
        if policy.objection(proposal, giver, requester) is None:
            session.execute(
                update(GrantRow).where(col(GrantRow.id) == grant.id).values(uses=GrantRow.uses + 1)
            )
            whose = (
                "your" if grant.person_name == "you" else f"{grant.person_name}'s"
            )  # the demo's one person
            by = f"{whose} grant {grant.label}"
            return replace(proposal, state=State.APPROVED, grant_id=grant.id, decided_by=by, decided_at=now)
    return proposal


def _plan_allows(session: Session, grant: Grant, proposal: Proposal) -> bool:
    """Whether the plan a grant was born from still stands; what cannot be undone asks whatever it says."""
    plan = proposals.get(session, grant.proposal_id)
    stands = plan is not None and plans.stands(plan) and plan.digest == grant.plan_digest
    return stands and proposal.risk.level is not Level.DESTRUCTIVE


_GRANT: Any = GrantRow.__table__  # type: ignore[attr-defined]
_FOR_CALL = Prepared(
    select(_GRANT).where(
        _GRANT.c.revoked_at.is_(None),
        or_(_GRANT.c.expires_at.is_(None), _GRANT.c.expires_at > bindparam("now")),
        _GRANT.c.tool_name == bindparam("tool_name"),
        _GRANT.c.tool_version == bindparam("tool_version"),
        or_(~_GRANT.c.only_there, _GRANT.c.conversation_id == bindparam("conversation_id")),
        # what `Scope.covers` says, once more: the database leaves out what it would
        or_(
            _GRANT.c.rung == literal_column(f"'{Rung.TOOL}'"),
            (_GRANT.c.rung == literal_column(f"'{Rung.EXACT}'")) & (_GRANT.c.match == bindparam("exact")),
            (_GRANT.c.rung == literal_column(f"'{Rung.KEY}'")) & (_GRANT.c.match == bindparam("key")),
        ),
    )
)


def _covering(
    session: Session, proposal: Proposal, key: Mapping[str, Any] | None, now: datetime
) -> list[Grant]:
    """Live grants that cover a call, narrowest first."""
    rows = _FOR_CALL.rows(
        session,
        {
            "now": now,
            "tool_name": proposal.tool_name,
            "tool_version": proposal.tool_version,
            "conversation_id": proposal.conversation_id,
            "exact": canonical(proposal.arguments),
            "key": None if key is None else canonical(key),
        },
    )
    each = (_grant(row) for row in rows)
    covering = [
        g for g in each if g.scope.covers(proposal.tool_name, proposal.tool_version, proposal.arguments, key)
    ]
    return sorted(covering, key=lambda g: (list(Rung).index(g.scope.rung), g.id))


def live(session: Session, now: datetime) -> list[Grant]:
    """All grants in force, oldest first."""
    return [
        _grant(row) for row in session.exec(select(GrantRow).where(_live(now)).order_by(col(GrantRow.id)))
    ]


def revoke(session: Session, grant_id: int | None, by: Actor, now: datetime, why: str = "revoke") -> int:
    """End one grant, or all (None); returns how many ended."""
    which = _live(now) if grant_id is None else _live(now) & (col(GrantRow.id) == grant_id)
    return _end(session, which, By.press(why, by, people.person_of(session, by)), now)


def end_with_conversation(session: Session, conversation_id: str, by: By, now: datetime) -> int:
    """A grant for one conversation ends with it."""
    there = (col(GrantRow.conversation_id) == conversation_id) & col(GrantRow.only_there).is_(True)
    return _end(session, _live(now) & there, by, now)


def _end(session: Session, which: ColumnElement[bool], by: By, now: datetime) -> int:
    """End grants and record who did; rows are locked, so that two who do it at once record it once."""
    ended = session.exec(select(GrantRow).where(which).order_by(col(GrantRow.id)).with_for_update()).all()
    for row in ended:
        before = ledger.grant_state(row)
        row.revoked_at, row.revoked_by = now, by.actor
        session.add(row)
        ledger.record(session, Thing.GRANT, f"G-{row.id}", by, before, None, now, row.tool_name)
    return len(ended)


def _live(now: datetime) -> ColumnElement[bool]:
    unexpired = or_(col(GrantRow.expires_at).is_(None), col(GrantRow.expires_at) > now)
    return col(GrantRow.revoked_at).is_(None) & unexpired


def _grant(row: Any) -> Grant:
    return Grant(
        id=row.id or 0,
        scope=Scope(row.tool_name, row.tool_version, Rung(row.rung), row.match),
        words=row.words,
        person_id=row.person_id,
        person_name=row.person_name,
        conversation_id=row.conversation_id if row.only_there else None,
        proposal_id=row.proposal_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        uses=row.uses,
        plan_digest=row.plan_digest,
    )
