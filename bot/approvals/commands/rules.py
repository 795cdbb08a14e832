"""Subcommands of ``/approvals`` for admins: rules, roles, grants, the audit log, pausing everything.

A rule is about a subject, such as who may decide (``approvers``) or how long a proposal waits (``ttl``). It
has a value, and holds for all calls or for those that its tools, its place and its limits name. Most
subcommands set the rule of one subject: ``values.py`` parses it, `RuleCommands._set_rule` checks it against
tools, people and other rules, stores it, and describes its consequences. A grant lets calls like an approved
one run without asking; it ends if a new rule is stricter than the rules under which it was given.

In replies, ``put_names_in`` writes people and places by name.
"""

import asyncio
import difflib
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sqlmodel import Session

from bot.approvals import budgets, grants, pause
from bot.approvals.accounts import sign_in_links
from bot.approvals.commands.accounts import Accounts
from bot.approvals.commands.decide import format_audit_row, list_mentioned
from bot.approvals.commands.limits import LIMITED
from bot.approvals.commands.operands import parse_account, parse_number, parse_seconds
from bot.approvals.commands.rule_text import (
    parse_as_and_in,
    parse_instructions,
    parse_rule,
    parse_rule_to_try,
)
from bot.approvals.commands.subcommands import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    SubcommandHandler,
    first_word,
    remove_quotes,
)
from bot.approvals.gate import raise_risk_by_addresses
from bot.approvals.lookup import active, rule_simulation
from bot.domain.audit import AuditFilter
from bot.domain.budgets import Per, parse_amount
from bot.domain.call_facts import CallFacts, Place
from bot.domain.chat import Address, Answer, Command
from bot.domain.jobs import Job, Work
from bot.domain.people import Person, Role, is_group
from bot.domain.policy import Policy
from bot.domain.redaction import HIDDEN, redact_arguments
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import EVERYWHERE_WORD, GivenRole, Mode, Subject
from bot.domain.rules import ANY_TOOL, EVERYWHERE, Rule, covers
from bot.domain.steps import REMINDER, is_place
from bot.domain.text import name_some
from bot.domain.times import UNIT_SECONDS, explain_repeated, format_in_zone, format_length, format_relative
from bot.domain.verdicts import Judgement, explain
from bot.errors import ToolError
from bot.store import conversations, people, posted_cards, proposals, rules
from bot.store.audit import verification
from bot.store.hooks import find_notifier, hooks_of
from bot.store.locks import conversation_lock
from bot.store.locks.process_lock import notify_processes
from bot.store.rules import RuleRecord
from bot.tools.tool import Tool

_MAX_AUDIT_ROWS = 20
_MAX_NAMED = 5  # the most tools in one sentence
_DEFAULT_EXTENSION = 1 / 4  # the share of its amount by which a budget is extended if no amount is given
# the beginning of a proposal's ID, by which ``undo 3f2a`` is told from ``undo 30m``, which sets a rule
_LIKE_AN_ID = re.compile(rf"[0-9a-f]{{{proposals.MIN_ID_CHARS},}}")
_SUBJECTS_THAT_JUDGE = frozenset({Subject.POLICY, Subject.RISK, Subject.QUORUM, Subject.DECIDERS})
"""Subjects of rules that say how a call is judged: a change of these may end grants."""
_MAY_NAME_GROUPS = frozenset({Subject.QUORUM, Subject.DECIDERS, Subject.NOTIFY, Subject.ATTENTION})
"""Subjects of rules that may name groups of people, such as ``slack:T1/S2``."""
CROSS_WORKSPACE_WORDS = frozenset(
    {"rules", "features", "roles", "sessions", "grants", "revoke", "audit", "pause", "resume", "quiet"}
)
"""Subcommands that show or change data of every workspace."""


class RuleCommands:
    """The subcommands of ``/approvals`` that only admins may use."""

    def __init__(self, parts: CommandParts, undo: SubcommandHandler) -> None:
        """Take the dependencies, and the handler of ``/approvals undo ID``, which everyone may use."""
        self._database = parts.database
        self._policies = parts.policies
        self._clock = parts.clock
        self._undo_proposal = undo
        self._registry = parts.registry
        self._wake = parts.wake
        self._find_posting_fault = parts.find_posting_fault  # why Nod can't post at an address
        self._accounts = Accounts(parts)  # checks that accounts exist
        self._groups = parts.groups
        self._prices = parts.prices
        self._models = parts.models
        self.subcommands = self._list_subcommands()

    def _list_subcommands(self) -> list[Subcommand]:
        return [
            Subcommand("rules", "every current rule, by number", self._rules),
            Subcommand("features", "what is on, and who set it", self._features, is_private=True),
            Subcommand(
                "drop NUMBER",
                "drop a rule",
                self._drop,
                synonyms=("unset", "remove", "delete", "clear", "reset"),
            ),
            Subcommand(
                f"policy always|writes|destructive|never|forbid {LIMITED}, "
                "policy test TOOL {…} [as WHO] [in PLACE], or policy try RULE [last 30d]",
                "what needs approval, and what can't be asked for; test says what would happen, "
                "try what a rule would have changed",
                self._policy,
            ),
            Subcommand(
                f"risk read|write|destructive {LIMITED}",
                "how risky a tool's calls are",
                self._make_setter(Subject.RISK),
            ),
            Subcommand(
                f"approvers WHO… {LIMITED}",
                "who may decide: requester, approver, admin, member, accounts, or groups "
                "such as slack:T1/S2 and telegram:-100123/admins",
                self._make_setter(Subject.DECIDERS),
            ),
            Subcommand(
                "roles [add|remove ACCOUNT admin|approver [everywhere]]",
                "who is admin or approver; everywhere: in every Slack workspace",
                self._roles,
            ),
            Subcommand(
                "sessions [end ACCOUNT]", "who is signed in to the console; end someone's", self._sessions
            ),
            Subcommand(
                "outsiders talk [in PLACE]",
                "let people from outside the team, such as guests, write to Nod there; they decide nothing",
                self._make_setter(Subject.OUTSIDERS),
            ),
            Subcommand(
                f"quorum N [of M] {LIMITED}", "how many must approve", self._make_setter(Subject.QUORUM)
            ),
            Subcommand(
                "plans human|lead|both [in PLACE]",
                "who approves teammates' plans: a person, the lead agent, or both",
                self._make_setter(Subject.PLANS),
            ),
            Subcommand(
                f"undo ID, or undo 30m|off {LIMITED}",
                "put back what it did; or for how long that can be done",
                self._undo,
            ),
            Subcommand(
                f"batch stop {LIMITED}",
                "when a row of a batch fails, withdraw those that have not begun",
                self._make_setter(Subject.BATCH),
            ),
            Subcommand(
                "budget [20 EUR a month|week|day|turn [for PLACE|ACCOUNT]], or budget extend NUMBER [10 EUR]",
                "what the language model may cost; without words, how much is used",
                self._budget,
            ),
            Subcommand(
                "model [NAME [for PLACE|ACCOUNT]]",
                "which language model answers in a place, or a person; without words, which there are",
                self._model,
            ),
            Subcommand(
                f"opinion MODEL [raises[, or is missing]] {LIMITED}",
                "another model's few words on the card; raises: its no asks for one more approval",
                self._opinion,
            ),
            Subcommand(
                "attention 12 an hour [for ACCOUNT|GROUP]",
                "beyond that many cards an hour, others that are not urgent come together at the half hour",
                self._make_setter(Subject.ATTENTION),
            ),
            Subcommand(f"ttl 4h {LIMITED}", "how long a proposal waits", self._make_setter(Subject.TTL)),
            Subcommand(
                f"remind 2h {LIMITED}", "remind deciders this often", self._make_setter(Subject.REMIND)
            ),
            Subcommand(
                f"escalate 4h PLACE {LIMITED}",
                "show it there if no one has decided",
                self._make_setter(Subject.ESCALATE),
            ),
            Subcommand(
                f"notify TARGET after 10m[, TARGET after 20m] {LIMITED}",
                "who is told next while no one decides: reminder, push, page, a place, an account or a group",
                self._notify,
            ),
            Subcommand("quiet 22:00 07:00", "no reminders in these hours", self._make_setter(Subject.QUIET)),
            Subcommand(f"route PLACE {LIMITED}", "post cards there too", self._make_setter(Subject.ROUTE)),
            Subcommand(
                "digest 09:00 PLACE [in PLACE]",
                "a daily list of what is open",
                self._make_setter(Subject.DIGEST),
            ),
            Subcommand(
                f"grants, or grants allow destructive {LIMITED}",
                "what is allowed without asking",
                self._grants,
            ),
            Subcommand(
                f"fetch HOST {LIMITED}",
                "read every page of a host without asking",
                self._make_setter(Subject.FETCH),
            ),
            Subcommand(
                "instructions [in PLACE] [WORDS, or clear]",
                "instructions for Nod in this chat, or in PLACE; without words, it shows them",
                self._instructions,
            ),
            Subcommand("revoke G-7|all", "end a grant", self._revoke),
            Subcommand(
                "audit [ACCOUNT|TOOL|ID|G-7|7d], or audit verify",
                "who did what; whether the audit log is intact",
                self._audit,
            ),
            Subcommand("pause", "stop all changes: nothing runs, proposals wait, timers stop", self._pause),
            Subcommand("resume", "continue after a pause", self._resume),
        ]

    async def _put_names_in(self, text: str) -> str:
        return await self._database.read(people.put_names_in, text)

    def _check_workspace(self, session: Session, scope: str, command: Command) -> None:
        """Raise CommandError if an admin of one workspace would set something for other workspaces.

        ``scope``: the place for which it is set.
        """
        own_workspace = self._policies.find_workspace_bound(session, command.actor)
        if own_workspace and not covers(own_workspace, scope):
            raise CommandError(
                f"You are an admin of one workspace. End with `in {own_workspace}`, or with a place in it."
            )

    @property
    def _zone(self) -> tzinfo:
        """The team's time zone, by the rules as they were last read."""
        return self._policies.latest_policy.book.zone

    def _local_now(self) -> datetime:
        """Return the time in the team's time zone."""
        return self._clock().astimezone(self._zone)

    def _make_setter(self, subject: Subject) -> Callable[[Command, str], Awaitable[CommandReply]]:
        """Return the handler that sets a rule about a subject."""

        async def set_rule(command: Command, text: str) -> CommandReply:
            rule = parse_rule(subject, text, command, self._local_now())
            return await self._set_rule(rule, command)

        return set_rule

    async def _set_rule(self, new_rule: Rule, command: Command) -> CommandReply:
        """Check and store a rule. The reply describes its consequences, in one sentence each."""
        available = await self._registry.load_tools()
        tools = [tool for tool in available if new_rule.is_about(tool.name)]

        # the checks, then the rule is stored with its number
        _check_risk(new_rule, tools)
        await self._check_tool(new_rule, tools)
        await self._accounts.check(_list_named_people(new_rule), command)
        condition_text = _check_condition(new_rule, tools)
        stored_rule, grants_text = await self._database.write(self._store_rule, new_rule, command)

        # the reply: what the rule says, and what an admin may not expect of it
        text = f"Set: {stored_rule.words}.{grants_text}{condition_text}"
        text += await self._describe_consequences(stored_rule, tools)
        return CommandReply(await self._put_names_in(text), rule=stored_rule.id)

    async def _describe_consequences(self, stored_rule: Rule, tools: Sequence[Tool]) -> str:
        """Describe what an admin may not expect of a rule, a sentence for each; empty if there is nothing."""
        text = ""
        if not tools:
            text += f" There is no tool called {stored_rule.pattern} right now."
        if stored_rule.limits and stored_rule.limits.until:
            repeated = explain_repeated(stored_rule.limits.until)  # an hour that the clocks repeat
            if repeated:
                text += f" {repeated}"
        if stored_rule.subject in _MAY_NAME_GROUPS:
            # each such subject has a value of another type, so the groups are found in the text of the rule
            groups = filter(is_group, re.split(r"[\s,]+", stored_rule.words))
            for name, why in (await self._groups.ask(groups)).items():
                text += f" Nod can't see who is in {name}. {why}"
        text += await self._groups.read_with_members(self._describe_other_rules, stored_rule, tools)
        for place in stored_rule.posts_at:
            why = await self._find_posting_fault(Address.parse(place))
            if why:
                where = "there" if len(stored_rule.posts_at) == 1 else f"in {place}"
                text += f" Nod can't post {where}. {why.rstrip('.')}."
        return text + _describe_loosening(stored_rule, tools)

    async def _check_tool(self, rule: Rule, tools: Sequence[Tool]) -> None:
        """Raise CommandError if a rule names one tool, which does not exist and was never called.

        ``tools``: the tools that the rule is about.
        """
        if tools or rule.is_pattern or await self._database.read(proposals.was_called, rule.pattern):
            return
        available = await self._registry.load_tools()
        near = difflib.get_close_matches(rule.pattern, available.tools, 1, 0.5)
        hint = f"Did you mean {near[0]}?" if near else "`nod tools list` names them."
        raise CommandError(
            f"There is no tool called {rule.pattern.rstrip('.')}. {hint} "
            f"For tools that come later, write {rule.pattern.rstrip('.')}* after `for`."
        )

    def _describe_other_rules(self, session: Session, rule: Rule, tools: Sequence[Tool]) -> str:
        """Describe how other rules affect a new rule: which rules win, and which calls they refuse."""
        book = self._policies.load(session).book
        text = ""
        for other in book.list_stricter_rivals(rule, [tool.name for tool in tools]):
            text += f" Where both apply, this counts: {other.words}."
        is_conditional = rule.limits is not None and rule.limits.condition is not None
        if rule.subject in (Subject.QUORUM, Subject.DECIDERS) and not is_conditional:
            text += self._describe_refusal(session, rule.scope, tools)
        return text

    def _describe_refusal(self, session: Session, scope: str, tools: Sequence[Tool]) -> str:
        """Name a tool whose calls no one could decide in a place (``scope``) now; empty without one.

        A person without a role is taken as the requester. Rules with a condition are about some of the calls
        only, so they are left out.
        """
        loaded = self._policies.load(session)
        place = Place(scope, private=False)
        now = self._clock()
        unconditional = [rule for rule in loaded.book.rules if not (rule.limits and rule.limits.condition)]
        policy = replace(loaded, book=replace(loaded.book, rules=tuple(unconditional)))
        for tool in tools:
            if tool.kind.always_asks or tool.reads:
                continue
            risk = Risk(Level.DESTRUCTIVE if tool.destructive else Level.WRITE, "")
            verdict = policy.judge(CallFacts(tool.name, risk, place, Person(""), now, tool.kind))
            if verdict.judgement is Judgement.REFUSE:
                first_reason, _, _ = verdict.rule.partition(";")
                return f" Calls of {tool.name} are refused now: {first_reason}."
        return ""

    def _store_rule(self, session: Session, new_rule: Rule, command: Command) -> tuple[Rule, str]:
        """Store a rule. Returns it with its number, and a sentence on the grants that ended with it."""
        self._check_workspace(session, new_rule.scope, command)
        now = self._clock()
        old_policy = self._policies.load(session)
        stored_rule = rules.set_rule(session, new_rule, command.actor, now)
        return stored_rule, _end_grants(session, old_policy, stored_rule, command, now)

    async def _rules(self, _: Command, __: str) -> str:
        policy = await self._database.read(self._policies.load)
        misfits = await self._registry.find_misfits(policy.book)
        ttl = format_length(policy.ttl.total_seconds())
        lines = [f"By default: policy {policy.mode}, ttl {ttl}, plans {policy.plan_approver}."]
        for rule in policy.book.rules:
            misfit = f" ({misfits[rule.id]})" if rule.id in misfits else ""
            lines.append(f"- {rule.words}{misfit}")
        if policy.book.paused:
            lines.append("Paused.")
        return await self._put_names_in("\n".join(lines))

    async def _features(self, _: Command, __: str) -> str:
        zone = self._zone  # one for both, since a rule may change it in between
        parts = await self._database.read(active.list_active, zone, self._clock())
        return active.format_active(parts, zone)

    async def _instructions(self, command: Command, text: str) -> str | CommandReply:
        """Set, drop or show the instructions for a place: ``[in PLACE] [WORDS, or clear]``."""
        new_rule = parse_instructions(text, command)
        current = await self._database.read(self._list_instructions, new_rule.scope)
        if str(new_rule.value).lower() == "clear":
            for stored, _ in current:
                if stored.rule.scope == new_rule.scope:
                    return await self._drop(command, str(stored.rule.id))
            return "There are no instructions there."
        if new_rule.value:
            rule, _ = await self._database.write(self._store_rule, new_rule, command)
            text = f"Set: {rule.words}. It applies from the next message on, in addition to NOD_INSTRUCTIONS."
            return CommandReply(await self._put_names_in(text), rule=rule.id)
        paragraphs, zone = [], self._zone
        for stored, version in current:
            source = f"version {version}, set by {stored.by}, {format_in_zone(stored.at, zone)}"
            paragraphs.append(f"**In {stored.rule.scope}** ({source})\n{stored.rule.value}")
        if paragraphs:
            return await self._put_names_in("\n\n".join(paragraphs))
        return "There are no instructions there."

    def _list_instructions(self, session: Session, scope: str) -> list[tuple[RuleRecord, int]]:
        """Return the rules with the instructions that hold in a place, the one for the widest place first.

        Each comes with the number of its version, counted from 1.
        """
        instructions = [
            stored
            for stored in rules.list_rules(session)
            if stored.rule.subject is Subject.INSTRUCTIONS and covers(stored.rule.scope, scope)
        ]
        instructions.sort(key=lambda stored: len(stored.rule.scope))
        return [(stored, rules.count_versions(session, stored.rule)) for stored in instructions]

    async def _drop(self, command: Command, text: str) -> str | CommandReply:
        rule_id = parse_number(text)
        if rule_id is None:
            raise CommandError("Which rule? Give one number, as `/approvals rules` shows it.")

        def drop(session: Session) -> str | None:
            old_policy = self._policies.load(session)
            rule = rules.end_rule(session, rule_id, command.actor, self._clock(), old_policy.book.zone)
            if rule is None:
                return None
            # if it raises, the transaction is rolled back
            self._check_workspace(session, rule.scope, command)
            grants_text = _end_grants(session, old_policy, rule, command, self._clock())
            return f"Dropped: {rule.words}.{grants_text}"

        text_of_drop = await self._database.write(drop)
        if text_of_drop is None:
            return CommandReply(f"There is no rule {rule_id}.", answer=Answer.UNKNOWN)
        return await self._put_names_in(text_of_drop)

    async def _policy(self, command: Command, text: str) -> str | CommandReply:
        """Set what needs approval, test a call, try a rule on the past, or list the rules without words."""
        if not text:
            return await self._rules(command, "")
        verb, rest = first_word(text)
        if verb == "try":
            return await self._try(command, rest)
        if verb != "test":
            return await self._make_setter(Subject.POLICY)(command, text)
        return await self._test(command, rest)

    async def _test(self, command: Command, text: str) -> str:
        """Describe what the rules would do with a call: ``TOOL {…} [as WHO] [in PLACE]``."""
        name, rest = first_word(text)
        now = self._clock()
        try:
            available = await self._registry.load_tools()
            tool = available.get(name)
            given_arguments, rest = _split_object(rest)
            who, where = parse_as_and_in(rest, command)
            arguments = await tool.check_arguments(given_arguments)
            risk = tool.classify(arguments)
        except ValueError:
            raise CommandError('The arguments must be JSON, such as {"number": 3}.') from None
        except ToolError as error:
            raise CommandError(error.message) from None

        def judge(session: Session) -> str:
            policy = self._policies.load(session)
            place = Place(str(command.address), command.private)
            if where is not None:
                conversation = conversations.find_current_conversation(session, where)
                # without a conversation: the address of a person is their private chat
                is_private = conversation.private if conversation else str(where) == str(who)
                place = Place(str(where), is_private)
            # the facts of the call, by which it is judged; nothing is called
            call = tool.make_facts(arguments, risk, place, people.load_person(session, who), now)
            # without a conversation, no person has written any address in the arguments
            return explain(policy.judge(raise_risk_by_addresses(call, tool, policy)), who.label)

        return await self._put_names_in(await self._groups.read_with_members(judge))

    async def _try(self, command: Command, text: str) -> str:
        """Try a rule on past proposals, without setting it, and describe the result."""
        to_try = parse_rule_to_try(text, command, self._local_now())

        def try_rule(session: Session) -> str:
            self._check_workspace(session, to_try.rule.scope, command)
            since = self._clock() - to_try.last
            return rule_simulation.try_rule(session, self._policies, to_try.rule, since, to_try.before).words

        return await self._database.read(try_rule)

    async def _undo(self, command: Command, text: str) -> str | CommandReply:
        """Undo a proposal by its ID, or set how long changes can be undone."""
        word, _ = first_word(text)
        if _LIKE_AN_ID.fullmatch(word.lower()):
            return await self._undo_proposal(command, text)
        return await self._make_setter(Subject.UNDO)(command, text)

    async def _budget(self, command: Command, text: str) -> str | CommandReply:
        """Set a budget for what models cost, extend one, or list the budgets."""
        verb, rest = first_word(text)
        if verb == "extend":
            return await self._extend(command, rest)
        if text:
            self._check_currency(text.split())
            reply = await self._make_setter(Subject.BUDGET)(command, text)
            without_price = [name for name in self._models if self._prices.find_price(name) is None]
            if without_price:
                names = ", ".join(without_price)
                why = f" {names} has no price, so nothing counts there: add one to the price file."
                return replace(reply, text=reply.text + why)
            return reply
        return await self._database.read(self._list_budgets)

    def _list_budgets(self, session: Session) -> str:
        book = self._policies.load(session).book
        uses = budgets.list_uses(session, book, self._clock())
        lines = [f"- Rule {use.rule.id}: {use.description}, {use.share:.0%}" for use in uses]
        turn_budgets = [rule for rule in book.list_about(Subject.BUDGET) if rule.budget.per is Per.TURN]
        lines += [f"- {rule.words}" for rule in turn_budgets]
        return people.put_names_in(session, "\n".join(lines)) or "There are no budgets."

    async def _model(self, command: Command, text: str) -> str | CommandReply:
        """Set which language model answers, or list the models and the rules about them."""
        name, rest = first_word(text)
        next_word, _ = first_word(rest)
        if name in self._models and next_word in ("", "for", "in"):
            return await self._make_setter(Subject.MODEL)(command, text)
        models = f"There are {', '.join(self._models)}."
        if text:
            raise CommandError(f"{name!r} is not a model here, or there is text after its name. {models}")
        policy = await self._database.read(self._policies.load)
        default_model = self._models[0]
        lines = [f"{models} Where no rule says another, {default_model} answers."]
        lines += [f"- {rule.words}" for rule in policy.book.list_about(Subject.MODEL)]
        return await self._put_names_in("\n".join(lines))

    async def _opinion(self, command: Command, text: str) -> str | CommandReply:
        name, _ = first_word(text)
        if name not in self._models:
            raise CommandError(f"{name!r} is not a model here. There are {', '.join(self._models)}.")
        return await self._make_setter(Subject.OPINION)(command, text)

    async def _notify(self, command: Command, text: str) -> str | CommandReply:
        new_rule = parse_rule(Subject.NOTIFY, text, command, self._local_now())
        await self._database.read(_check_notifiers, new_rule)
        return await self._set_rule(new_rule, command)

    async def _extend(self, command: Command, text: str) -> str | CommandReply:
        """Extend a budget until its period ends: ``NUMBER [10 EUR]``, by default by a quarter."""
        number_text, rest = first_word(text)
        rule_id = parse_number(number_text)
        words = rest.split()
        self._check_currency(words)
        try:
            amount = parse_amount(words[0]) if words else None
        except ValueError as error:
            raise CommandError(str(error)) from None

        def extend(session: Session) -> Rule | None:
            conversation_lock.lock_everything(session)  # if two extend it, the second adds to the first
            book = self._policies.load(session).book
            now = self._clock()
            for rule in book.list_about(Subject.BUDGET):
                if rule.id == rule_id and rule.budget.per is not Per.TURN:
                    self._check_workspace(session, rule.scope, command)
                    added = amount or rule.budget.amount * _DEFAULT_EXTENSION
                    extended = rule.budget.extend(added, now.astimezone(book.zone))
                    return rules.set_rule(session, replace(rule, value=extended), command.actor, now)
            return None

        rule = await self._database.write(extend)
        if rule is None:
            return CommandReply(
                "There is no such budget of a day, a week or a month. `/approvals budget` lists them.",
                answer=Answer.UNKNOWN,
            )
        return CommandReply(await self._put_names_in(f"Extended: {rule.words}."), rule=rule.id)

    def _check_currency(self, words: Sequence[str]) -> None:
        """Raise CommandError if the word after an amount, if there is one, is not the currency of prices.

        ``words``: the amount, and what follows it.
        """
        if len(words) > 1 and words[1].upper() != self._prices.currency:
            raise CommandError(f"Prices are in {self._prices.currency}, so a budget is, too.")

    async def _sessions(self, command: Command, text: str) -> str:
        now = self._clock()
        verb, _, who = text.partition(" ")
        if verb == "end":
            account = parse_account(who.strip())
            ended = await self._database.write(sign_in_links.end_sessions_of, account, command.actor, now)
            notify_processes(self._database.engine)  # open connections of these sessions are closed
            return f"Ended: {ended}."
        if text:
            raise CommandError("Write `/approvals sessions`, or `/approvals sessions end ACCOUNT`.")
        sessions = await self._database.read(sign_in_links.list_sessions, now)
        lines = [
            f"- {actor}: {actor.label}, until {format_relative(until, now)}" for actor, until in sessions
        ]
        return await self._put_names_in("\n".join(lines) or "No one is signed in to the console.")

    async def _roles(self, command: Command, text: str) -> str | CommandReply:
        """List who has which role, or change the roles of an account: ``[add|remove ACCOUNT ROLE]``."""
        words = text.split()
        if not words:
            return await self._database.read(self._list_holders)
        match words:
            case ["add" | "remove" as verb, who, role] if role in set(Role):
                given_role = GivenRole(str(parse_account(who)), Role(role))
            case ["add" | "remove" as verb, who, role, word] if role in set(Role) and word == EVERYWHERE_WORD:
                given_role = GivenRole(str(parse_account(who)), Role(role), everywhere=True)
            case ["add" | "remove", *accounts, _] if len(accounts) > 1:
                raise CommandError("Add or remove one account at a time.")
            case _:
                raise CommandError("Add or remove one account and its role.")
        if verb == "add":
            await self._accounts.check([given_role.account], command)
            new_rule = Rule(
                id=0,  # it gets its number when it is stored
                subject=Subject.ROLE,
                scope=EVERYWHERE,
                pattern=ANY_TOOL,
                value=given_role,
            )
            rule, _ = await self._database.write(self._store_rule, new_rule, command)
            return CommandReply(await self._put_names_in(f"Set: {rule.words}."), rule=rule.id)
        policy = await self._database.read(self._policies.load)
        for rule in policy.book.list_about(Subject.ROLE):
            # a command without "everywhere" also ends the role that holds everywhere
            if rule.value in (given_role, given_role._replace(everywhere=True)):
                return await self._drop(command, str(rule.id))
        return (
            f"{given_role.account} is not {given_role.role} by rule. If the settings say so, change it there."
        )

    def _list_holders(self, session: Session) -> str:
        """List the holders of each role: by name, and by account for a command that removes one."""
        policy = self._policies.load(session)
        lines = []
        for role in Role:
            accounts = sorted(policy.holders(role))
            names = people.find_known_names(session, set(accounts))
            holders = [
                f"{names[account]} (`{account}`)" if account in names else account for account in accounts
            ]
            lines.append(f"- {role}: {', '.join(holders) or 'no one'}")
        return "\n".join(lines)

    async def _grants(self, command: Command, text: str) -> str | CommandReply:
        if text.startswith("allow "):
            return await self._make_setter(Subject.GRANTS)(command, text.removeprefix("allow "))
        if text:
            raise CommandError("Write `/approvals grants`, or `/approvals grants allow destructive`.")
        now = self._clock()
        lines = []
        for grant in await self._database.read(grants.list_live_grants, now):
            end = "until its conversation ends"
            if grant.expires_at:
                end = f"expires {format_relative(grant.expires_at, now)}"
            lines.append(f"- {grant.label} by {grant.person_name}: {grant.words}; uses: {grant.uses}; {end}")
        return await self._put_names_in("\n".join(lines) or "There are no grants.")

    async def _revoke(self, command: Command, text: str) -> str | CommandReply:
        grant_id = parse_number(text.upper().removeprefix("G-"))
        if grant_id is None and text.lower() != "all":
            raise CommandError("Which grant? Name one, such as G-7, or all.")
        ended = await self._database.write(grants.revoke_grants, grant_id, command.actor, self._clock())
        if grant_id is not None and not ended:
            return CommandReply(f"There is no live grant G-{grant_id}.", answer=Answer.UNKNOWN)
        return f"Ended: {_format_count(ended)}."

    async def _audit(self, _: Command, text: str) -> str:
        if text == "verify":
            faults = await asyncio.to_thread(verification.find_faults, self._database.read_now)
            if not faults:
                return await self._database.read(verification.describe_intact)
            return "\n".join(f"- {fault}" for fault in faults)
        audit_filter = await self._parse_audit_filter(text)
        rows, total = await self._database.read(
            verification.find_rows_and_count, audit_filter, _MAX_AUDIT_ROWS
        )
        mentioned: set[str] = set()
        for row in rows:
            mentioned.update(list_mentioned(row))
        names = await self._database.read(people.find_known_names, mentioned)
        places = {row["place"] for row in rows if row.get("place")}
        private = await self._database.read(conversations.filter_private_addresses, places)
        lines = [f"- {format_audit_row(row, names, private=row.get('place') in private)}" for row in rows]
        if total > len(lines):
            lines.append(f"{len(lines)} of {total} shown, the newest. `nod audit export` has all of them.")
        return "\n".join(lines) or "Nothing is recorded about that."

    async def _parse_audit_filter(self, text: str) -> AuditFilter:
        """Read which audit rows are wanted: of an account, a grant, a tool or a proposal, or since a time."""
        if text[:2].upper() == "G-":
            grant_id = parse_number(text[2:])
            if grant_id is not None:
                return AuditFilter(grant=grant_id)
        if ":" in text:
            return AuditFilter(who=str(parse_account(text)))
        if text[:-1].isdigit() and text[-1:] in UNIT_SECONDS:
            return AuditFilter(since=self._clock() - timedelta(seconds=parse_seconds(text)))
        available = await self._registry.load_tools()
        if text in available.tools:
            return AuditFilter(tool=text)
        prefix = remove_quotes(text).lower()
        if await self._database.read(proposals.find_by_prefix, prefix):
            return AuditFilter(proposal=prefix)
        # The text may be a tool that no longer exists: then rows of rules with a pattern are left out. An
        # empty text stands for all rows.
        return AuditFilter(tool=text, matches_patterns=not text)

    async def _pause(self, command: Command, _: str) -> str:
        def pause(session: Session) -> list[int] | None:
            if not rules.pause_all(session, command.actor, self._clock()):
                return None
            return posted_cards.mark_open_outdated(session)  # every open card says that all is paused

        message_ids = await self._database.write(pause)
        if message_ids is None:
            return "Already paused."
        await self._wake(*(Job(Work.REDRAW, str(message_id)) for message_id in message_ids))
        return "Execution is paused and timers are stopped. Use `/approvals resume` to continue."

    async def _resume(self, command: Command, _: str) -> str:
        """End the pause, step by step, since each open proposal gets back the time of the pause."""
        now = self._clock()
        while True:
            step = await self._database.write(pause.take_resume_step, command.actor, now)
            if step is None:
                return "Nothing was paused."
            await self._wake(*step.jobs)
            if step.is_last:
                added = format_length(step.paused.total_seconds())
                return f"Resumed. Open proposals have {added} added to their deadlines."


def _list_named_people(rule: Rule) -> list[str]:
    """Return the accounts that a rule names as deciders or as askers."""
    names: list[str] = []
    if rule.subject is Subject.DECIDERS and isinstance(rule.value, tuple):
        names += map(str, rule.value)
    if rule.limits and rule.limits.who:
        names.append(rule.limits.who)
    return [name for name in names if ":" in name and not is_group(name)]


def _check_notifiers(session: Session, rule: Rule) -> None:
    """Raise CommandError if a step names a notifier that does not exist or is not set up."""
    names = [step.to for step in rule.steps if not is_place(step.to) and step.to != REMINDER]
    known = [notifier.name for notifier in hooks_of(session).notifiers]
    for name in names:
        notifier = find_notifier(session, name)
        if notifier is None:
            words = ", ".join([REMINDER, *known])
            raise CommandError(f"{name!r} is neither a notifier nor a place. Use {words}, or `slack:T1/C2`.")
        if notifier.hindrance:
            raise CommandError(notifier.hindrance)


def _split_object(text: str) -> tuple[Any, str]:
    """Split a text into its leading JSON object, empty without one, and the text after it.

    Raises ValueError for broken JSON.
    """
    if not text.startswith("{"):
        return {}, text
    value, end = json.JSONDecoder().raw_decode(text)
    return value, text[end:]


def _lowers_to_read(rule: Rule) -> bool:
    """Tell if, by the rule, calls count as reads."""
    return rule.subject is Subject.RISK and rule.value == Level.READ


def _check_risk(rule: Rule, tools: Sequence[Tool]) -> None:
    """Raise CommandError if, by the rule, calls that can't be undone would count as reads."""
    if not _lowers_to_read(rule):
        return
    destructive = [tool.name for tool in tools if tool.destructive]
    if destructive:
        raise CommandError(
            f"What can't be undone can't count as reading: {', '.join(destructive[:_MAX_NAMED])}. "
            "Name other tools after `for`."
        )


def _check_condition(rule: Rule, tools: Sequence[Tool]) -> str:
    """Check a rule's condition, if it has one, against the tools that the rule is about.

    Returns a sentence on the tools that lack the condition's field, or an empty text. Raises CommandError if
    the condition fits none of the tools, or looks at a secret.
    """
    condition = rule.limits.condition if rule.limits else None
    if condition is None:
        return ""
    missing_field_by_tool: dict[str, str] = {}
    for tool in tools:
        # ``form``: the schema of a tool's arguments, with their defaults
        missing_field = rule.find_lacking_field(tool.form)
        if missing_field:
            missing_field_by_tool[tool.name] = missing_field
    applies_to_some = len(missing_field_by_tool) < len(tools)
    for tool in tools:
        for field in condition.fields:
            name = field.path[0]
            if _is_hidden(name, tool):
                raise CommandError(f"{tool.name}: {name} is hidden, so no rule can look at it.")
        if tool.name in missing_field_by_tool and applies_to_some:
            continue  # the rule does not apply to this tool, but to others
        why = condition.find_misfit(tool.form)
        if why:
            raise CommandError(f"{tool.name}: {why}. Change the condition, or name other tools after `for`.")
    if not missing_field_by_tool:
        return ""
    names = name_some(list(missing_field_by_tool), _MAX_NAMED)
    have = "has" if len(missing_field_by_tool) == 1 else "have"
    first_field = next(iter(missing_field_by_tool.values()))
    if rule.value is Mode.FORBID:
        consequence = "Each change there asks."
    else:
        consequence = "It does not apply there."
    return f" {names} {have} no {first_field}. {consequence}"


def _is_hidden(argument_name: str, tool: Tool) -> bool:
    """Tell if the values of an argument are secrets, which a redaction hides."""
    redacted = redact_arguments({argument_name: "x"}, tool.parameters)
    return bool(redacted[argument_name] == HIDDEN)


def _describe_loosening(rule: Rule, tools: Sequence[Tool]) -> str:
    """Describe what runs without asking because of a rule, if it loosens something."""
    if rule.value == Mode.NEVER:
        return " From now on it runs without asking anyone. Each run still has a card and an audit row."
    if _lowers_to_read(rule) and any(not tool.reads for tool in tools):
        return (
            " What these tools change now runs without asking anyone, no matter who requests it. "
            "Each run still has a card and an audit row. What can't be undone still asks."
        )
    return ""


def _end_grants(session: Session, old_policy: Policy, rule: Rule, command: Command, now: datetime) -> str:
    """End the grants whose calls are judged more strictly since a rule changed.

    Returns a sentence with the ended grants, or an empty text.
    """
    if rule.subject not in _SUBJECTS_THAT_JUDGE:
        return ""
    # read the rules directly: the policies would remember a state that may still be rolled back
    stored_rules = rules.list_rules(session, old_policy.book.zone)
    book = replace(old_policy.book, rules=tuple(stored.rule for stored in stored_rules))
    new_policy = old_policy.with_book(book)
    ended = grants.end_tightened_grants(session, old_policy, new_policy, rule, command.actor, now)
    if ended:
        return f" Grants ended with it: {', '.join(grant.label for grant in ended)}."
    return ""


def _format_count(count: int) -> str:
    if count == 1:
        return "1 grant"
    return f"{count} grants"
