"""Rules as rows, and the policy that is made of them.

A *policy* is the defaults of the settings together with the rules that admins set, the *rulebook*. `Policies`
keeps the newest policy in memory. Every change of a rule raises the version of the rulebook in the same
transaction, so a process knows with one small read whether its policy is the current one. The version is in
the only row of `BookRow`, which also holds since when Nod is paused. Changes and their authors are recorded
in ``bot/store/audit/admin_changes.py``.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from threading import Lock
from typing import Any, NamedTuple

from sqlalchemy import Row, func, update
from sqlmodel import Session, col, select

from bot.domain.audit import Act
from bot.domain.chat import Clock
from bot.domain.conditions import Condition
from bot.domain.people import Absence, Actor, Person, Role, UserGroup, is_group
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Hours, Subject, read_value, store_value
from bot.domain.rulebook import Pause, Rulebook
from bot.domain.rules import Limits, Rule
from bot.domain.times import format_in_zone
from bot.domain.times import now as system_clock
from bot.store import database, people, proposal_rows, proposals
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import Author
from bot.store.inserts import insert_or_ignore
from bot.store.locks import conversation_lock
from bot.store.tables.people import AbsenceRow
from bot.store.tables.row import count_changed, table_of
from bot.store.tables.rules import BookRow, RuleRow
from bot.store.tables.workspaces import WorkspaceRow

BOOK_ID = 1  # the key of the only row of `BookRow`
_PAUSE_KEY = "everything"  # the key of the pause in the audit log
GROUP_VALID_FOR = timedelta(seconds=30)
"""The time for which a platform's list of the members of a user group counts."""
_BOOK = table_of(BookRow)
_SELECT_VERSION = select(_BOOK.c.version, _BOOK.c.paused_at).where(_BOOK.c.id == BOOK_ID)
VERSION_COLUMNS = (
    select(_BOOK.c.version).where(_BOOK.c.id == BOOK_ID).scalar_subquery().label("rules_version"),
    select(_BOOK.c.paused_at).where(_BOOK.c.id == BOOK_ID).scalar_subquery().label("rules_paused_at"),
)
"""The columns with the rulebook's version and the pause, for other statements; see `cache_version`."""
_SELECT_PERSON_AND_VERSION = people.SELECT_PERSON.add_columns(*VERSION_COLUMNS)
_SELECT_PROPOSAL_PERSON_AND_VERSION = proposals.SELECT_BY_ID.add_columns(
    *people.SELECT_PERSON.selected_columns, *VERSION_COLUMNS
)


def cache_version(session: Session, version: int | None, paused_at: datetime | None) -> None:
    """Cache the rulebook's version and the pause for the rest of this snapshot.

    ``version`` and ``paused_at``: the values of `VERSION_COLUMNS`, which another statement has read.
    """
    database.cache_read(session, BookRow, (version, paused_at))


def _load_version(session: Session) -> tuple[int | None, datetime | None]:
    """Return the rulebook's version and the start of the pause; both None before the first rule."""
    row = database.read_once(
        session, BookRow, lambda: session.connection().execute(_SELECT_VERSION, {}).first()
    )
    if row:
        return (row[0], row[1])
    return (None, None)


class Policies:
    """The current policy: the settings' defaults joined with the newest rulebook."""

    def __init__(self, defaults: Policy, clock: Clock = system_clock) -> None:
        self.latest_policy = defaults  # the newest policy read; another process may have changed rules since
        self._lock = Lock()  # for changes of ``latest_policy``, since transactions run in threads
        self._clock = clock
        # the user groups by name, each with the time at which its platform listed the members
        self._listed_groups: Mapping[str, tuple[UserGroup, datetime]] = {}

    def cache_group(self, name: str, group: UserGroup) -> None:
        """Cache the members of a group, as its platform has just listed them."""
        self._listed_groups = {**self._listed_groups, name: (group, self._clock())}

    def list_groups_to_ask_for(self) -> list[str]:
        """Return the user groups whose members are needed, but not known now.

        A group is needed if a rule names it, if its members were listed before, or if a policy was asked
        about it (`Policy.unknown_groups_needed`).
        """
        named: set[str] = set()  # accounts and groups that rules name
        for rule in self.latest_policy.rulebook.list_about(Subject.DECIDERS):
            if isinstance(rule.value, tuple):  # those who decide
                named.update(map(str, rule.value))
        for rule in self.latest_policy.rulebook.list_about(Subject.ATTENTION):
            named.add(rule.scope)  # whose attention it limits
        needed = (
            {name for name in named if is_group(name)}
            | self._listed_groups.keys()
            | self.latest_policy.unknown_groups_needed
        )
        return sorted(needed - self._list_known_groups().keys())

    def _list_known_groups(self) -> dict[str, UserGroup]:
        now = self._clock()
        known = {}
        for name, (group, listed_at) in self._listed_groups.items():
            if abs(now - listed_at) < GROUP_VALID_FOR:
                known[name] = group
        return known

    def load(self, session: Session) -> Policy:
        """Return the policy as this transaction sees it. Rules are read only after the version changed."""
        return self._make_policy(session, *_load_version(session))

    def load_with_person(self, session: Session, actor: Actor) -> tuple[Policy, Person]:
        """Return the policy and the Person of an account, by one statement."""
        key = (self, people.make_cache_key(actor))
        return database.read_once(session, key, lambda: self._read_policy_and_person(session, actor))

    def find_proposal_with_policy(
        self, session: Session, proposal_id: str, actor: Actor
    ) -> tuple[Proposal, Policy, Person] | None:
        """Return a proposal, the policy, and the Person of the account ``actor``, by one statement.

        None if the proposal does not exist.
        """
        parameters = {"id": proposal_id, "actor": str(actor)}
        row = session.connection().execute(_SELECT_PROPOSAL_PERSON_AND_VERSION, parameters).first()
        if row is None:
            return None
        policy, person = self._cache_and_make(session, actor, row)
        database.cache_read(session, (self, people.make_cache_key(actor)), (policy, person))
        return proposal_rows.from_row(row), policy, person

    def _read_policy_and_person(self, session: Session, actor: Actor) -> tuple[Policy, Person]:
        row = session.connection().execute(_SELECT_PERSON_AND_VERSION, {"actor": str(actor)}).one()
        return self._cache_and_make(session, actor, row)

    def _cache_and_make(self, session: Session, actor: Actor, row: Row[Any]) -> tuple[Policy, Person]:
        """Return the policy and the Person of an account, made from a row that was just read.

        The row has the columns of `people.SELECT_PERSON` and `VERSION_COLUMNS`. What is in them is cached for
        the rest of the snapshot.
        """
        person = people.make_person(session, actor, row.person_id, row.stored_standing)
        database.cache_read(session, people.make_cache_key(actor), person)
        cache_version(session, row.rules_version, row.rules_paused_at)
        return self._make_policy(session, row.rules_version, row.rules_paused_at), person

    def _make_policy(self, session: Session, version: int | None, paused_at: datetime | None) -> Policy:
        """Return the policy with the rules of this version, and with current groups and absences.

        ``version``: None if no rule was ever set. If the policy that was read last has another version,
        the rules are read again.
        """
        version = version or 0
        policy = self.latest_policy
        if version != policy.rulebook.version:
            rules = session.exec(
                select(RuleRow).where(col(RuleRow.ended_at).is_(None)).order_by(col(RuleRow.id))
            )
            zone = policy.rulebook.zone
            rulebook = Rulebook(
                version, tuple(_to_rule(row, zone) for row in rules), paused_at is not None, zone
            )
            policy = replace(policy, rulebook=rulebook, absences=_load_absences(session))
            # only committed rules are kept: a transaction that writes also sees its own changes
            if database.is_snapshot(session):
                with self._lock:
                    # another thread may have read a newer policy
                    if policy.rulebook.version > self.latest_policy.rulebook.version:
                        self.latest_policy = policy
        if not (self._listed_groups or policy.absences):
            return policy
        away = tuple(absence for absence in policy.absences if absence.until > self._clock())
        return replace(policy, groups=self._list_known_groups(), absences=away)

    def is_admin(self, session: Session, actor: Actor) -> bool:
        return Role.ADMIN in self.load(session).roles_of(people.load_person(session, actor))

    def find_workspace_bound(self, session: Session, actor: Actor) -> str | None:
        """Return the only workspace whose rules an admin may change, such as ``slack:T1``; None for no limit.

        There is a limit only where Nod is in several workspaces: in a single one, its admins are admins of
        all of Nod.
        """
        bound = self.load(session).find_admin_workspace(people.load_person(session, actor))
        if bound and _count_workspaces(session) > 1:
            return bound
        return None


def _count_workspaces(session: Session) -> int:
    """Return the number of workspaces of Slack in which Nod is installed now."""
    installed = select(func.count()).select_from(WorkspaceRow).where(col(WorkspaceRow.off_at).is_(None))
    return session.exec(installed).one()


def set_rule(session: Session, rule: Rule, by: Actor, now: datetime) -> Rule:
    """Set a rule and return it with its number; record the change.

    The rule takes the place of the one with the same `Rule.slot`, on the same subject for the same calls.
    """
    conversation_lock.lock_everything(session)
    before = _end_rule_in_slot(session, rule, by, now)
    new = _make_row(rule, by, now)
    session.add(new)
    session.flush()
    raise_version(session)
    author = people.make_author(session, Act.SET, by)
    key = admin_changes.make_rule_key(new)
    after = admin_changes.make_rule_state(new)
    admin_changes.record(session, Thing.RULE, key, author, before, after, now, new.pattern)
    return replace(rule, id=new.id or 0)


def _end_rule_in_slot(session: Session, rule: Rule, by: Actor, now: datetime) -> admin_changes.ThingState:
    """End the current rule whose place a new one takes; return its state before, None without one."""
    before: admin_changes.ThingState = None
    rows_on_same_calls = select(RuleRow).where(
        RuleRow.subject == rule.subject,
        RuleRow.scope == rule.scope,
        RuleRow.pattern == rule.pattern,
        col(RuleRow.ended_at).is_(None),
    )
    for row in session.exec(rows_on_same_calls):
        if _to_rule(row, UTC).slot == rule.slot:  # in any zone: a slot has no end
            row.ended_at = now
            row.ended_by = str(by)
            session.add(row)
            before = admin_changes.make_rule_state(row)
    return before


def _make_row(rule: Rule, by: Actor, now: datetime) -> RuleRow:
    """Return the row of a new rule, without an id."""
    limits = rule.limits or Limits()
    hours = [f"{moment:%H:%M}" for moment in limits.hours or ()]
    if limits.days:
        hours.append(limits.days)
    return RuleRow(
        subject=rule.subject,
        scope=rule.scope,
        pattern=rule.pattern,
        value=store_value(rule.subject, rule.value),
        condition=limits.condition.text if limits.condition else None,
        who=limits.who or None,
        hours=hours or None,
        until=limits.until.astimezone(UTC) if limits.until else None,
        set_by=str(by),
        set_at=now,
    )


def end_rule(session: Session, rule_id: int, by: Actor, now: datetime, zone: tzinfo = UTC) -> Rule | None:
    """End a rule and return it; None if there is no current rule of that number."""
    return _end(session, rule_id, people.make_author(session, Act.DROP, by), now, zone)


def end_overdue_rules(session: Session, rulebook: Rulebook, now: datetime) -> None:
    """Mark the rules of a rulebook whose time is over as ended in their rows.

    They match nothing any longer, with or without that mark.
    """
    for rule in rulebook.list_ended(now):
        _end(session, rule.id, Author.of_nod(Act.END_BY_ITSELF), now, rulebook.zone)


def _end(session: Session, rule_id: int, author: Author, now: datetime, zone: tzinfo) -> Rule | None:
    conversation_lock.lock_everything(session)
    row = session.get(RuleRow, rule_id)
    if row is None or row.ended_at is not None:
        return None
    row.ended_at = now
    row.ended_by = author.actor
    session.add(row)
    session.flush()
    raise_version(session)
    key = admin_changes.make_rule_key(row)
    before = admin_changes.make_rule_state(row)
    admin_changes.record(session, Thing.RULE, key, author, before, None, now, row.pattern)
    return _to_rule(row, zone)


class RuleRecord(NamedTuple):
    """A rule, with the account that set it and the time."""

    rule: Rule
    set_by: str
    set_at: datetime


def list_rules(session: Session, zone: tzinfo = UTC) -> list[RuleRecord]:
    """Return every current rule, in the order they were set.

    ``zone``: the time zone of the team, in which the ends of rules are given.
    """
    rows = session.exec(select(RuleRow).where(col(RuleRow.ended_at).is_(None)).order_by(col(RuleRow.id)))
    return [RuleRecord(_to_rule(row, zone), row.set_by, row.set_at) for row in rows]


def count_ever_set(session: Session, rule: Rule) -> int:
    """Return how many rules were ever set with the subject and the scope of this one."""
    count = select(func.count()).where(RuleRow.subject == rule.subject, RuleRow.scope == rule.scope)
    return session.exec(count).one()


def pause_all(session: Session, by: Actor, now: datetime) -> bool:
    """Pause all runs of calls, and the time of all proposals; False if they are paused already."""
    conversation_lock.lock_everything(session)
    raise_version(session)
    paused = session.execute(
        update(BookRow)
        .where(col(BookRow.id) == BOOK_ID, col(BookRow.paused_at).is_(None))
        .values(paused_at=now)
    )
    if not count_changed(paused):
        return False
    after = {"since": now.isoformat(), "name": by.name}
    admin_changes.record(
        session, Thing.PAUSE, _PAUSE_KEY, people.make_author(session, Act.PAUSE, by), None, after, now
    )
    return True


def resume(session: Session, author: Author, now: datetime) -> timedelta:
    """End the pause and return its length.

    Call it after the due times of all proposals were moved by that length.
    """
    row = session.get_one(BookRow, BOOK_ID)
    since = row.paused_at or now
    row.paused_at = None
    session.add(row)
    session.flush()
    raise_version(session)
    admin_changes.record(session, Thing.PAUSE, _PAUSE_KEY, author, {"since": since.isoformat()}, None, now)
    return max(now - since, timedelta())


def move_pause_start(session: Session, author: Author, since: datetime, now: datetime) -> None:
    """Move the start of the current pause to ``since``.

    Call it after the due times of all proposals were moved by the time between the old start and the new one.
    """
    row = session.get_one(BookRow, BOOK_ID)
    before = {"since": row.paused_at.isoformat()} if row.paused_at else None
    row.paused_at = since
    session.add(row)
    admin_changes.record(session, Thing.PAUSE, _PAUSE_KEY, author, before, {"since": since.isoformat()}, now)


def find_paused_since(session: Session) -> datetime | None:
    """Return the start of the pause, or None."""
    return _load_version(session)[1]


def load_pause(session: Session) -> Pause | None:
    """Return the pause with its author, or None while Nod is not paused."""
    since = find_paused_since(session)
    if since is None:
        return None
    last = admin_changes.find_newest(session, Thing.PAUSE, Act.PAUSE)
    if last:
        return Pause(since, last.actor, (last.after or {}).get("name") or "")
    return Pause(since, "", "")


def format_pause(session: Session, zone: tzinfo) -> str:
    """Describe the pause for people in a time zone: by whom and since when; empty without one."""
    pause = load_pause(session)
    if pause is None:
        return ""
    author = pause.name or pause.by or "an admin"
    return f"Paused by {author} since {format_in_zone(pause.since, zone)}"


def raise_version(session: Session) -> None:
    """Raise the rulebook's version, so that every process reads the rules again."""
    session.execute(insert_or_ignore(session, BookRow).values(id=BOOK_ID, version=0))
    session.execute(update(BookRow).where(col(BookRow.id) == BOOK_ID).values(version=BookRow.version + 1))


def _load_absences(session: Session) -> tuple[Absence, ...]:
    rows = session.exec(
        select(AbsenceRow).where(col(AbsenceRow.ended_at).is_(None)).order_by(col(AbsenceRow.id))
    )
    return tuple(make_absence(row) for row in rows)


def make_absence(row: AbsenceRow) -> Absence:
    absent = Actor.parse(row.account, row.name)
    stand_in = Actor.parse(row.stand_in, row.stand_in_name)
    return Absence(row.id or 0, absent, stand_in, row.until)


def _to_rule(row: RuleRow, zone: tzinfo) -> Rule:
    subject = Subject(row.subject)
    limits = None
    if row.condition or row.who or row.hours or row.until:
        limits = Limits(
            condition=Condition.restore(row.condition) if row.condition else None,
            who=row.who or "",
            hours=Hours(*map(time.fromisoformat, row.clock)) if row.clock else None,
            until=row.until.astimezone(zone) if row.until else None,
            days=row.days,
        )
    return Rule(row.id or 0, subject, row.scope, row.pattern, read_value(subject, row.value), limits)
