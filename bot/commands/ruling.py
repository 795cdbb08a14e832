"""``/approvals``, second half: the rules, grants, the record, and the kill switch."""

import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.commands.lists import recorded
from bot.commands.settings import Setting, account, number, parse, seconds
from bot.commands.words import Misspoken, Word
from bot.domain.chat import Clock, Command
from bot.domain.people import Role
from bot.domain.policy import Mode, Place, explain
from bot.domain.rules import EVERYWHERE, Rule, Subject, span
from bot.errors import ToolError
from bot.store import checkpoints, grants, people, proposals, rules
from bot.store.checkpoints import Wanted
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.registry import Registry

_SHOWN_AUDIT = 20
_TIGHTENING = frozenset({Subject.POLICY, Subject.RISK, Subject.QUORUM, Subject.DECIDERS})
"""Rules whose change ends every grant: what a person once allowed was allowed under other rules."""


class RulingWords:
    def __init__(self, database: Database, policies: Policies, registry: Registry, clock: Clock) -> None:
        self._database = database
        self._policies = policies
        self._registry = registry
        self._clock = clock
        rest = "[for TOOLS] [in PLACE]"
        self.words = {
            "rules": Word("rules", "every rule in force, by number", self._rules),
            "drop": Word("drop NUMBER", "take a rule back", self._drop),
            "policy": Word(
                f"policy always|writes|destructive|never {rest}, or policy test TOOL {{…}}",
                "what needs approval; test says what would happen",
                self._policy,
            ),
            "risk": Word(
                f"risk read|write|destructive {rest}", "what a tool's calls are", self._set(Subject.RISK)
            ),
            "approvers": Word(
                f"approvers WHO… {rest}",
                "who may decide: requester, approver, admin, member, or accounts",
                self._set(Subject.DECIDERS),
            ),
            "roles": Word(
                "roles [add|remove ACCOUNT admin|approver]", "who is admin or approver", self._roles
            ),
            "quorum": Word(f"quorum N [of M] {rest}", "how many must approve", self._set(Subject.QUORUM)),
            "plans": Word(
                "plans human|lead|both [in PLACE]",
                "who approves teammates' plans: a person, the lead agent, or both",
                self._set(Subject.PLANS),
            ),
            "ttl": Word(f"ttl 4h {rest}", "how long a proposal waits", self._set(Subject.TTL)),
            "remind": Word(f"remind 2h {rest}", "remind deciders this often", self._set(Subject.REMIND)),
            "escalate": Word(
                f"escalate 4h PLACE {rest}", "show it there when nobody decided", self._set(Subject.ESCALATE)
            ),
            "quiet": Word("quiet 22:00 07:00", "no reminders in these hours (UTC)", self._set(Subject.QUIET)),
            "route": Word(f"route PLACE {rest}", "post cards there too", self._set(Subject.ROUTE)),
            "digest": Word(
                "digest 09:00 PLACE [in PLACE]", "what is open, once a day (UTC)", self._set(Subject.DIGEST)
            ),
            "grants": Word(
                f"grants, or grants allow destructive {rest}", "what is allowed without asking", self._grants
            ),
            "revoke": Word("revoke G-7|all", "end a grant", self._revoke),
            "audit": Word(
                "audit [ACCOUNT|TOOL|ID|G-7|7d], or audit verify",
                "who did what; whether the record is whole",
                self._audit,
            ),
            "pause": Word("pause", "nothing executes, proposals wait, clocks stop", self._pause),
            "resume": Word("resume", "go on", self._resume),
        }

    def _set(self, subject: Subject) -> Callable[[Command, str], Awaitable[str]]:
        async def do(command: Command, text: str) -> str:
            rule, ended = await self._database.write(self._add, parse(subject, text, command), command)
            there = any(rule.concerns(tool.name) for tool in await self._registry.shelf())
            ended += "" if there else f" There is no tool called {rule.pattern} right now."
            loose = " From now on it runs without asking anybody." if rule.value == Mode.NEVER else ""
            return f"Set: {rule.words}.{ended}{loose}"

        return do

    def _add(self, session: Session, given: Setting, command: Command) -> tuple[Rule, str]:
        now = self._clock()
        rule = rules.add(session, given.subject, given.scope, given.pattern, given.value, command.actor, now)
        return rule, _ended_grants(session, rule, command, now)

    async def _rules(self, _: Command, __: str) -> str:
        policy = await self._database.read(self._policies.load)
        lines = [f"- {rule.words}" for rule in policy.book.rules]
        ttl = span(policy.ttl.total_seconds())
        head = f"By default: policy {policy.mode}, ttl {ttl}, plans {policy.plans}."
        return "\n".join([head, *lines, *(["Paused."] if policy.book.paused else [])])

    async def _drop(self, command: Command, text: str) -> str:
        which = number(text)
        if which is None:
            raise Misspoken("Which rule? Give its number, as `/approvals rules` shows it.")

        def drop(session: Session) -> str | None:
            rule = rules.end(session, which, command.actor, self._clock())
            if rule is None:
                return None
            return f"Dropped: {rule.words}.{_ended_grants(session, rule, command, self._clock())}"

        return await self._database.write(drop) or f"There is no rule {which} in force."

    async def _policy(self, command: Command, text: str) -> str:
        if not text:
            return await self._rules(command, "")
        if not text.startswith("test "):
            return await self._set(Subject.POLICY)(command, text)
        name, _, raw = text.removeprefix("test ").strip().partition(" ")
        try:
            tool = (await self._registry.shelf()).get(name)
            arguments = tool.validate(json.loads(raw or "{}"))
            risk = tool.classify(arguments)
        except ValueError:
            raise Misspoken('The arguments must be JSON, such as {"number": 3}.') from None
        except ToolError as error:
            raise Misspoken(error.message) from None

        def judged(session: Session) -> str:
            policy = self._policies.load(session)
            place = Place(str(command.address), command.private)
            person = people.person_of(session, command.actor)
            return explain(policy.judge(name, risk, place, person, tool.kind), command.actor.label)

        return await self._database.read(judged)

    async def _roles(self, command: Command, text: str) -> str:
        words = text.split()
        if not words:
            policy = await self._database.read(self._policies.load)
            return "\n".join(
                f"- {role}: {', '.join(sorted(policy.holders(role))) or 'nobody'}" for role in Role
            )
        if len(words) != 3 or words[0] not in ("add", "remove") or words[2] not in set(Role):  # noqa: PLR2004
            raise Misspoken("Add or remove one account and its role, please.")
        value = [str(account(words[1])), words[2]]
        if words[0] == "add":
            setting = Setting(Subject.ROLE, value, EVERYWHERE, EVERYWHERE)
            rule, _ = await self._database.write(self._add, setting, command)
            return f"Set: {rule.words}."
        policy = await self._database.read(self._policies.load)
        held = next((r for r in policy.book.about(Subject.ROLE) if list(r.value) == value), None)
        if held is None:
            return f"{value[0]} is {value[1]} by the settings (or not at all); change it there."
        return await self._drop(command, str(held.id))

    async def _grants(self, command: Command, text: str) -> str:
        if text.startswith("allow "):
            return await self._set(Subject.GRANTS)(command, text.removeprefix("allow "))
        if text:
            raise Misspoken("I do not know what that is.")
        found = await self._database.read(grants.live, self._clock())
        lines = [
            f"- {g.label} by {g.person_name}: {g.words}; uses: {g.uses}; until "
            + (f"{g.expires_at:%Y-%m-%d %H:%M} UTC" if g.expires_at else "its conversation ends")
            for g in found
        ]
        return "\n".join(lines) or "There are no grants."

    async def _revoke(self, command: Command, text: str) -> str:
        which = number(text.upper().removeprefix("G-"))
        if text.lower() != "all" and which is None:
            raise Misspoken("Which grant?")
        ended = await self._database.write(grants.revoke, which, command.actor, self._clock())
        if which is not None and not ended:
            return f"There is no grant G-{which} in force."
        return f"Ended: {_count(ended)}."

    async def _audit(self, _: Command, text: str) -> str:
        if text == "verify":
            found = await self._database.read_aside(checkpoints.faults)
            return "\n".join(f"- {fault}" for fault in found) or "The record is whole."
        shown = await self._database.read_aside(checkpoints.rows, await self._wanted(text), _SHOWN_AUDIT)
        lines = [f"- {recorded(row)}" for row in shown]
        return "\n".join(lines) or "Nothing is recorded about that."

    async def _wanted(self, text: str) -> Wanted:
        """What one word asks of the audit: an account, an age, a grant, a tool, or an ID."""
        if text[:2].upper() == "G-" and (grant := number(text[2:])) is not None:
            return Wanted(grant=grant)
        if ":" in text:
            return Wanted(who=str(account(text)))
        if text[:-1].isdigit() and text[-1:] in "smhdw":
            return Wanted(since=self._clock() - timedelta(seconds=seconds(text)))
        if text in (await self._registry.shelf()).tools:
            return Wanted(tool=text)
        ident = text.strip("`").lower()
        if await self._database.read(proposals.starting_with, ident):
            return Wanted(proposal=ident)
        return Wanted(tool=text)

    async def _pause(self, command: Command, __: str) -> str:
        if await self._database.write(rules.pause, command.actor, self._clock()):
            return (
                "Paused: nothing executes, proposals wait, clocks stand still. `/approvals resume` goes on."
            )
        return "It is paused already."

    async def _resume(self, command: Command, __: str) -> str:
        stood = await self._database.write_aside(rules.resume, command.actor, self._clock())
        if stood is None:
            return "Nothing was paused."
        return f"Going on. Open proposals got back the {span(stood.total_seconds())} they stood still."


def _ended_grants(session: Session, rule: Rule, command: Command, now: datetime) -> str:
    if rule.subject not in _TIGHTENING:
        return ""
    ended = grants.revoke(session, None, command.actor, now, "end with a change of rules")
    return f" {_count(ended)} ended with it." if ended else ""


def _count(grants_: int) -> str:
    return "1 grant" if grants_ == 1 else f"{grants_} grants"
