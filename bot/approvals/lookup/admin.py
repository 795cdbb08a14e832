"""Queries about people and policy: roles and accounts, the rules, grants, usage and the audit log.

An admin of all of Nod sees everyone's rows; any other person sees the rows that concern them. Here an admin
of one workspace alone counts as any other person. The texts in answers have people and places by name. The
web and the console's API ask here.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals import budgets, grants, rights
from bot.approvals.budgets import BudgetUse
from bot.approvals.commands.rule_text import parse_rule_to_try
from bot.approvals.lookup import active, rule_simulation, usage
from bot.approvals.lookup.people import KnownPerson, list_people
from bot.approvals.lookup.rule_simulation import TrialOfRule
from bot.domain.active import ActivePart
from bot.domain.audit import AuditFilter
from bot.domain.chat import Clock, Command, Parts, UsageRow
from bot.domain.people import Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.progress import Progress, ignore_progress
from bot.domain.redaction import redact_text
from bot.domain.rule_values import GivenRole, Subject
from bot.domain.rulebook import Pause
from bot.domain.rules import Rule, covers
from bot.domain.similarity import Grant
from bot.store import conversations, people, rules
from bot.store.audit import chain, export_formats, log, search, verification
from bot.store.audit.search import ExportPart
from bot.store.database import Database
from bot.store.rules import Policies, RuleRecord

_CHECK_SECONDS = 3.0
_WITH_OTHER_PLACES = frozenset({Subject.ROUTE, Subject.ESCALATE, Subject.DIGEST})
"""The subjects of rules that name a second place, which a person may not be allowed to know."""


class GrantInWords(NamedTuple):
    """A grant, and what it allows in words with people and places by name."""

    grant: Grant
    description: str


class BudgetInWords(NamedTuple):
    """The use of a budget, with its text for people: names instead of accounts and addresses."""

    use: BudgetUse
    description: str


class AuditCheck(NamedTuple):
    """The result of a check of the audit log."""

    faults: list[str]  # each row that was changed, removed or inserted, in words
    newest_anchor: str | None  # the number and the hash of the newest row, to keep outside the database


@dataclass(frozen=True, slots=True)
class WhoIs:
    """The accounts and roles of a person, and the pause of everything, if there is one."""

    person: Person
    roles: frozenset[Role]
    pause: Pause | None


@dataclass(frozen=True, slots=True)
class CurrentRules:
    """The rules and grants that hold now, as far as a person may see them."""

    person: Person | None  # the person whose rules and grants these are; None for an admin, who sees all
    policy: Policy
    rules: Sequence[tuple[RuleRecord, str]]  # each rule, and its words with people and places by name
    grants: Sequence[GrantInWords]


class VisiblePeople(NamedTuple):
    """The people whom someone may see, that person first."""

    is_everyone: bool  # True for an admin, who sees everyone
    people: list[KnownPerson]


class VisibleUsage(NamedTuple):
    """The usage that a person may see, by parts such as days."""

    is_everyones: bool  # True for an admin, who sees the usage of all turns
    rows: list[UsageRow]


@dataclass(frozen=True, slots=True)
class AuditFile:
    """The audit log as a file."""

    last_row: int  # the number of the newest row
    pieces: AsyncIterator[str]  # the pieces of the text, each made when it is asked for


class AdminLookup:
    """Queries about people, rules, grants, usage and the audit log. "Admin" means one of all of Nod."""

    def __init__(self, database: Database, policies: Policies, clock: Clock, currency: str = "USD") -> None:
        """``currency``: the currency of models' prices."""
        self.currency = currency
        self._database = database
        self._policies = policies
        self._clock = clock

    async def check(self) -> None:
        """Check that rows can be read and written. Raises SQLAlchemyError or TimeoutError."""
        async with asyncio.timeout(_CHECK_SECONDS):
            await self._database.read(log.find_last_id)
            await self._database.check_writable()

    async def who_is(self, actor: Actor) -> WhoIs:
        """Return the person with this account, with all accounts and roles."""

        def read_person(session: Session) -> WhoIs:
            policy, person = self._policies.load_with_person(session, actor)
            return WhoIs(person, policy.roles_of(person), rules.load_pause(session))

        return await self._database.read(read_person)

    async def accounts_of(self, account: str) -> frozenset[str]:
        """Return an account and the accounts linked with it; empty for a text that is no account."""
        try:
            actor = Actor.parse(account)
        except ValueError:
            return frozenset()
        if not account.isprintable():
            return frozenset()
        person = await self._database.read(people.load_person, actor)
        return person.accounts

    async def is_admin(self, actor: Actor) -> bool:
        """Tell if this person is an admin of all of Nod, not of one workspace alone."""
        return await self._database.read(self._sees_all, actor)

    async def current(self, actor: Actor) -> CurrentRules:
        """Return the rules that concern this person, and the grants they gave; for an admin everyone's."""

        def read_rules(session: Session) -> CurrentRules:
            person = self._narrow_to(session, actor)
            policy = self._policies.load(session)
            rules_in_words = [
                (stored, people.put_names_in(session, stored.rule.command_text))
                for stored in rules.list_rules(session, policy.rulebook.zone)
                if person is None or _concerns(session, stored.rule, person)
            ]
            return CurrentRules(person, policy, rules_in_words, self._list_grants(session, person))

        return await self._database.read(read_rules)

    async def list_active(self) -> list[ActivePart]:
        """Return the active parts with their authors. The caller checks for an admin of all of Nod."""
        zone = self._policies.latest_policy.rulebook.zone
        return await self._database.read(active.list_active, zone, self._clock())

    async def grants(self, actor: Actor) -> list[GrantInWords]:
        """Return the grants that this person gave; for an admin all grants."""

        def read_grants(session: Session) -> list[GrantInWords]:
            return self._list_grants(session, self._narrow_to(session, actor))

        return await self._database.read(read_grants)

    async def people(self, actor: Actor) -> VisiblePeople:
        """Return all people for an admin, else this person alone."""

        def read_people(session: Session) -> VisiblePeople:
            everyone = self._sees_all(session, actor)
            known = list_people(session, self._policies.load(session), actor, everyone=everyone)
            return VisiblePeople(everyone, known)

        return await self._database.read(read_people)

    async def usage(self, actor: Actor, by: Parts, since: datetime) -> VisibleUsage:
        """Return the usage of turns after ``since``: of all turns for an admin.

        For others it is that of the turns in their own conversations. ``by``: the parts into which the usage
        is divided.
        """

        def read_usage(session: Session) -> VisibleUsage:
            accounts = rights.find_visible_accounts(session, self._policies, actor)  # None: everyone's
            rows = usage.list_usage(session, by, since, accounts)
            return VisibleUsage(is_everyones=accounts is None, rows=rows)

        return await self._database.read(read_usage)

    async def budgets(self, actor: Actor) -> list[BudgetInWords]:
        """Return the use of budgets that have a period: all for an admin, else the person's own."""

        def read_budgets(session: Session) -> list[BudgetInWords]:
            rulebook = self._policies.load(session).rulebook
            accounts = rights.find_visible_accounts(session, self._policies, actor)
            uses = budgets.list_uses(session, rulebook, self._clock())
            if accounts is not None:
                uses = [use for use in uses if any(covers(use.rule.scope, account) for account in accounts)]
            return [BudgetInWords(use, people.put_names_in(session, use.description)) for use in uses]

        return await self._database.read(read_budgets)

    async def try_rule(self, command: Command) -> TrialOfRule:
        """Simulate the rule in a command's text on past proposals. Raises CommandError."""
        now = self._clock()
        local_now = now.astimezone(self._policies.latest_policy.rulebook.zone)
        wanted = parse_rule_to_try(command.text, command, local_now)
        since = now - wanted.last
        return await self._database.read(
            rule_simulation.try_rule, self._policies, wanted.rule, since, wanted.before
        )

    async def audit_page(self, wanted: AuditFilter, limit: int) -> tuple[list[dict[str, Any]], int | None]:
        """Return a page of the audit log, newest first, and the row at which the next page begins.

        The second value is None on the last page.
        """
        return await self._database.read(search.load_page, wanted, limit)

    async def check_audit_log(
        self, anchors: Sequence[str], progress: Progress = ignore_progress
    ) -> AuditCheck:
        """Check every row of the audit log against the rows before it, and against earlier anchors.

        ``progress`` is called in another thread.
        """
        newest = await self._database.read(chain.make_anchor)
        read = self._database.read_now
        faults = await asyncio.to_thread(verification.find_faults, read, anchors, progress)
        return AuditCheck(faults, newest)

    async def audit_file(self, wanted: AuditFilter, form: str) -> AuditFile:
        """Return the audit log without secrets, oldest first, in one of `export_formats.FORMATS`."""
        first = await self._database.read(search.load_export_part, wanted)
        return AuditFile(first.total, self._export(wanted, form, first))

    async def _export(self, wanted: AuditFilter, form: str, part: ExportPart) -> AsyncIterator[str]:
        """Yield the text of the audit log, of which ``part`` is the first part, to its end."""
        beginning, write = export_formats.FORMATS[form]
        yield beginning + write(part.rows)
        while part.done < part.total:
            part = await self._database.read(search.load_export_part, wanted, part.done, part.total)
            yield await asyncio.to_thread(write, part.rows)

    def _sees_all(self, session: Session, actor: Actor) -> bool:
        return rights.is_global_admin(session, self._policies, actor)

    def _narrow_to(self, session: Session, actor: Actor) -> Person | None:
        """Return the person to whose rows an answer is limited; None for an admin, who sees all rows."""
        if self._sees_all(session, actor):
            return None
        return people.load_person(session, actor)

    def _list_grants(self, session: Session, giver: Person | None) -> list[GrantInWords]:
        """Return the live grants that a Person gave, or all for None."""
        in_words = []
        for grant in grants.list_live_grants(session, self._clock()):
            # a person's id is one of their accounts, and changes when accounts are linked
            if giver is None or grant.person_id in {giver.id, *giver.accounts}:
                words = people.put_names_in(session, redact_text(grant.description))
                in_words.append(GrantInWords(grant, words))
        return in_words


def _concerns(session: Session, rule: Rule, person: Person) -> bool:
    """Tell if a rule applies to a person: to their account, or to a place where they have written."""
    if isinstance(rule.value, GivenRole):
        return rule.value.account in person.accounts
    if rule.subject in _WITH_OTHER_PLACES:
        return False
    if rule.limits and rule.limits.who and rule.limits.who not in person.accounts:
        return False
    if any(covers(rule.scope, account) for account in person.accounts):
        return True
    return conversations.has_written_in(session, person.accounts, rule.scope)
