"""Queries about people and policy: roles and accounts, the rules, grants, usage and the audit log."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals import budgets, grants, rights
from bot.approvals.budgets import BudgetUse
from bot.approvals.commands.values import rule_to_try
from bot.approvals.lookup import active, past, usage
from bot.approvals.lookup.past import Tried
from bot.approvals.lookup.people import KnownPerson, list_people
from bot.domain.active import ActivePart
from bot.domain.chat import Clock, Command, Parts, Used
from bot.domain.people import Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.progress import Progress, ignore
from bot.domain.record import Wanted
from bot.domain.redaction import redact_text
from bot.domain.rules import GivenRole, Pause, Rule, Subject, covers
from bot.domain.similarity import Grant
from bot.store import conversations, people, rules
from bot.store.audit import chain, log, verification
from bot.store.audit.verification import ExportPart
from bot.store.database import Database
from bot.store.rules import InForce, Policies

_CHECK_SECONDS = 3.0
_ELSEWHERE = frozenset({Subject.ROUTE, Subject.ESCALATE, Subject.DIGEST})
"""These name other places, in which that person may not be."""


class GrantInWords(NamedTuple):
    """A grant, and what it allows in words with people and places by name."""

    grant: Grant
    words: str


class BudgetInWords(NamedTuple):
    """The use of a budget, with its text for people: names instead of accounts and addresses."""

    use: BudgetUse
    words: str


@dataclass(frozen=True, slots=True)
class WhoIs:
    """The accounts and roles of a person, and the pause of everything, if there is one."""

    person: Person
    roles: frozenset[Role]
    pause: Pause | None


@dataclass(frozen=True, slots=True)
class Current:
    """The rules and grants that hold now, as text with names instead of accounts and addresses.

    ``whose`` is the Person to whom all of it is narrowed; None for an admin, who sees everything.
    """

    whose: Person | None
    policy: Policy
    rules: Sequence[tuple[InForce, str]]
    grants: Sequence[GrantInWords]


@dataclass(frozen=True, slots=True)
class AuditFile:
    """The audit log as a file: the number of its newest row, and its text, made as it is read."""

    last_row: int
    pieces: AsyncIterator[str]


class AdminLookup:
    """Queries about people, rules, grants, usage and the audit log. Admins see everyone's."""

    def __init__(self, database: Database, policies: Policies, clock: Clock, currency: str = "USD") -> None:
        """``currency``: of what models cost."""
        self.currency = currency
        self._database = database
        self._policies = policies
        self._clock = clock

    async def check(self) -> None:
        """Raise SQLAlchemyError or TimeoutError where rows can't be read and written."""
        async with asyncio.timeout(_CHECK_SECONDS):
            await self._database.read(log.last_id)
            await self._database.check_writable()

    async def who_is(self, actor: Actor) -> WhoIs:
        def read(session: Session) -> WhoIs:
            policy, person = self._policies.load_for(session, actor)
            return WhoIs(person, policy.roles_of(person), rules.pause_of(session))

        return await self._database.read(read)

    async def accounts_of(self, account: str) -> frozenset[str]:
        """Return an account, and those linked with it; none of what is no account."""
        try:
            actor = Actor.parse(account)
        except ValueError:
            return frozenset()
        if not account.isprintable():
            return frozenset()
        return (await self._database.read(people.person_of, actor)).accounts

    async def is_admin(self, actor: Actor) -> bool:
        """Return whether this person is an admin of all of Nod, not of one workspace alone."""
        return await self._database.read(self._rules_all, actor)

    async def current(self, actor: Actor) -> Current:
        """Return the rules that concern this person and the grants they gave; for an admin all of them."""

        def read(session: Session) -> Current:
            if self._rules_all(session, actor):
                whose = None
            else:
                whose = people.person_of(session, actor)
            policy = self._policies.load(session)
            found = [
                (each, people.put_names_in(session, each.rule.said))
                for each in rules.in_force(session, policy.book.zone)
                if whose is None or _concerns(session, each.rule, whose)
            ]
            return Current(whose, policy, found, self._grants(session, whose))

        return await self._database.read(read)

    async def list_active(self) -> list[ActivePart]:
        """Return what is on, with who set each. Admins of all of Nod alone may read it."""
        zone = self._policies.held.book.zone
        return await self._database.read(active.list_active, zone, self._clock())

    async def grants(self, actor: Actor) -> list[GrantInWords]:
        """Return the grants that this person gave; for an admin all grants."""

        def read(session: Session) -> list[GrantInWords]:
            every = self._rules_all(session, actor)
            return self._grants(session, None if every else people.person_of(session, actor))

        return await self._database.read(read)

    async def people(self, actor: Actor) -> tuple[bool, list[KnownPerson]]:
        """Return this person with their accounts.

        For an admin (True) all who have linked accounts or a role.
        """

        def read(session: Session) -> tuple[bool, list[KnownPerson]]:
            everyone = self._rules_all(session, actor)
            return everyone, list_people(session, self._policies.load(session), actor, everyone=everyone)

        return await self._database.read(read)

    async def usage(self, actor: Actor, by: Parts, since: datetime) -> tuple[bool, list[Used]]:
        """Return the cost of turns since then, and True if it is everyone's.

        An admin gets everyone's, others that of their own conversations.
        """

        def read(session: Session) -> tuple[bool, list[Used]]:
            accounts = rights.find_visible_accounts(session, self._policies, actor)
            return accounts is None, usage.usage(session, by, since, accounts)

        return await self._database.read(read)

    async def budgets(self, actor: Actor) -> list[BudgetInWords]:
        """Return the budgets of periods as they stand: for an admin all, for others theirs."""

        def read(session: Session) -> list[BudgetInWords]:
            book = self._policies.load(session).book
            found = budgets.standings(session, book, self._clock())
            accounts = rights.find_visible_accounts(session, self._policies, actor)
            if accounts is not None:
                found = [each for each in found if any(covers(each.rule.scope, one) for one in accounts)]
            return [BudgetInWords(each, people.put_names_in(session, each.words)) for each in found]

        return await self._database.read(read)

    async def try_rule(self, command: Command) -> Tried:
        """Try the rule in a command's text on the past. Raises CommandError."""
        now = self._clock()
        given = rule_to_try(command.text, command, now.astimezone(self._policies.held.book.zone))
        since = now - given.last
        return await self._database.read(past.try_rule, self._policies, given.rule, since, given.before)

    async def audit_page(self, wanted: Wanted, limit: int) -> tuple[list[dict[str, Any]], int | None]:
        """Return a page of the audit log, newest first, and where the next begins, if anywhere."""
        return await self._database.read(verification.page, wanted, limit)

    async def audit_faults(
        self, anchors: Sequence[str], progress: Progress = ignore
    ) -> tuple[list[str], str | None]:
        """Return every row that was changed, removed or inserted, in words, and the newest anchor.

        ``progress`` is told in another thread.
        """
        newest = await self._database.read(chain.anchor)
        read = self._database.read_now
        return await asyncio.to_thread(verification.find_faults, read, anchors, progress), newest

    async def audit_file(self, wanted: Wanted, form: str) -> AuditFile:
        """Return the audit log without secrets, oldest first, in one of `verification.FORMATS`."""
        first = await self._database.read(verification.export_part, wanted)
        return AuditFile(first.total, self._pieces(wanted, form, first))

    async def _pieces(self, wanted: Wanted, form: str, part: ExportPart) -> AsyncIterator[str]:
        head, write = verification.FORMATS[form]
        yield head + write(part.rows)
        while part.done < part.total:
            part = await self._database.read(verification.export_part, wanted, part.done, part.total)
            yield await asyncio.to_thread(write, part.rows)

    def _rules_all(self, session: Session, actor: Actor) -> bool:
        return rights.is_global_admin(session, self._policies, actor)

    def _grants(self, session: Session, giver: Person | None) -> list[GrantInWords]:
        """Return the live grants that a Person gave, or all for None."""
        found = grants.list_live_grants(session, self._clock())
        theirs = {giver.id, *giver.accounts} if giver else None
        return [
            GrantInWords(each, people.put_names_in(session, redact_text(each.words)))
            for each in found
            if theirs is None or each.person_id in theirs
        ]


def _concerns(session: Session, rule: Rule, person: Person) -> bool:
    """Tell if a rule applies to a person: to their account, or to a place where they have written."""
    if isinstance(rule.value, GivenRole):
        return rule.value.account in person.accounts
    if rule.subject in _ELSEWHERE:
        return False
    if rule.limits and rule.limits.who and rule.limits.who not in person.accounts:
        return False
    if any(covers(rule.scope, account) for account in person.accounts):
        return True
    return conversations.wrote_in(session, person.accounts, rule.scope)
