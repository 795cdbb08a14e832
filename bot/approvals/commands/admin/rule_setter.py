"""The setting and the dropping of rules: checks, storage, and a reply that describes the consequences.

`parse_rule` reads the text of a rule. `RuleSetter` checks it against tools, people and other rules, stores
it, and ends the grants whose calls are judged more strictly since.
"""

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from sqlmodel import Session

from bot.approvals import grants
from bot.approvals.commands.accounts import Accounts
from bot.approvals.commands.operands import parse_number
from bot.approvals.commands.rule_text import parse_rule
from bot.approvals.commands.subcommands import CommandError, CommandParts, CommandReply
from bot.domain.call_facts import CallFacts, Place
from bot.domain.chat import Address, Answer, Command
from bot.domain.people import Person, is_group
from bot.domain.policy import Policy
from bot.domain.redaction import HIDDEN, redact_arguments
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import Rule, covers
from bot.domain.text import name_some
from bot.domain.times import explain_repeated
from bot.domain.verdicts import Judgement
from bot.store import people, proposals, rules
from bot.tools.tool import Tool

_MAX_NAMED = 5  # the most tools in one sentence
_SUBJECTS_THAT_JUDGE = frozenset({Subject.POLICY, Subject.RISK, Subject.QUORUM, Subject.DECIDERS})
"""Subjects of rules that say how a call is judged: a change of these may end grants."""
_MAY_NAME_GROUPS = frozenset({Subject.QUORUM, Subject.DECIDERS, Subject.NOTIFY, Subject.ATTENTION})
"""Subjects of rules that may name groups of people, such as ``slack:T1/S2``."""


class RuleSetter:
    """The setting and the dropping of rules by admins."""

    def __init__(self, parts: CommandParts) -> None:
        self._database = parts.database
        self._policies = parts.policies
        self._clock = parts.clock
        self._registry = parts.registry
        self._find_posting_fault = parts.find_posting_fault  # why Nod can't post at an address
        self._accounts = Accounts(parts)  # checks that accounts exist
        self._groups = parts.groups

    def make_setter(self, subject: Subject) -> Callable[[Command, str], Awaitable[CommandReply]]:
        """Return the handler that sets a rule about a subject."""

        async def set_rule(command: Command, text: str) -> CommandReply:
            rule = parse_rule(subject, text, command, self.local_now())
            return await self.set_rule(rule, command)

        return set_rule

    async def set_rule(self, new_rule: Rule, command: Command) -> CommandReply:
        """Check and store a rule. The reply describes its consequences, in one sentence each."""
        available = await self._registry.load_tools()
        tools = [tool for tool in available if new_rule.is_about(tool.name)]

        # the checks, then the rule is stored with its number
        _check_risk(new_rule, tools)
        await self._check_tool(new_rule, tools)
        await self._accounts.check(_list_named_people(new_rule), command)
        condition_text = _check_condition(new_rule, tools)
        stored_rule, grants_text = await self._database.write(self.store_rule, new_rule, command)

        # the reply: what the rule says, and what an admin may not expect of it
        text = f"Set: {stored_rule.description}.{grants_text}{condition_text}"
        text += await self._describe_consequences(stored_rule, tools)
        return CommandReply(await self._database.read(people.put_names_in, text), rule=stored_rule.id)

    def store_rule(self, session: Session, new_rule: Rule, command: Command) -> tuple[Rule, str]:
        """Store a rule. Returns it with its number, and a sentence on the grants that ended with it."""
        self.check_workspace(session, new_rule.scope, command)
        now = self._clock()
        old_policy = self._policies.load(session)
        stored_rule = rules.set_rule(session, new_rule, command.actor, now)
        return stored_rule, _end_grants(session, old_policy, stored_rule, command, now)

    async def drop(self, command: Command, text: str) -> str | CommandReply:
        """Drop the rule whose number the text is. The reply names the grants that ended with it."""
        rule_id = parse_number(text)
        if rule_id is None:
            raise CommandError("Which rule? Give one number, as `/approvals rules` shows it.")

        def drop(session: Session) -> str | None:
            old_policy = self._policies.load(session)
            rule = rules.end_rule(session, rule_id, command.actor, self._clock(), old_policy.rulebook.zone)
            if rule is None:
                return None
            # if it raises, the transaction is rolled back
            self.check_workspace(session, rule.scope, command)
            grants_text = _end_grants(session, old_policy, rule, command, self._clock())
            return f"Dropped: {rule.description}.{grants_text}"

        text_of_drop = await self._database.write(drop)
        if text_of_drop is None:
            return CommandReply(f"There is no rule {rule_id}.", answer=Answer.UNKNOWN)
        return await self._database.read(people.put_names_in, text_of_drop)

    def check_workspace(self, session: Session, scope: str, command: Command) -> None:
        """Raise CommandError if an admin of one workspace would set something for other workspaces.

        ``scope``: the place for which it is set.
        """
        own_workspace = self._policies.find_workspace_bound(session, command.actor)
        if own_workspace and not covers(own_workspace, scope):
            raise CommandError(
                f"You are an admin of one workspace. End with `in {own_workspace}`, or with a place in it."
            )

    @property
    def zone(self) -> tzinfo:
        """The team's time zone, by the rules as they were last read."""
        return self._policies.latest_policy.rulebook.zone

    def local_now(self) -> datetime:
        """Return the time in the team's time zone."""
        return self._clock().astimezone(self.zone)

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
            groups = filter(is_group, re.split(r"[\s,]+", stored_rule.description))
            for name, why in (await self._groups.ask(groups)).items():
                text += f" Nod can't see who is in {name}. {why}"
        text += await self._groups.read_with_members(self._describe_other_rules, stored_rule, tools)
        for place in stored_rule.posts_at:
            why = await self._find_posting_fault(Address.parse(place))
            if why:
                where = "there" if len(stored_rule.posts_at) == 1 else f"in {place}"
                text += f" Nod can't post {where}. {why.rstrip('.')}."
        return text + _describe_loosening(stored_rule, tools)

    def _describe_other_rules(self, session: Session, rule: Rule, tools: Sequence[Tool]) -> str:
        """Describe how other rules affect a new rule: which rules win, and which calls they refuse."""
        rulebook = self._policies.load(session).rulebook
        text = ""
        for other in rulebook.list_stricter_rivals(rule, [tool.name for tool in tools]):
            text += f" Where both apply, this counts: {other.description}."
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
        unconditional = [
            rule for rule in loaded.rulebook.rules if not (rule.limits and rule.limits.condition)
        ]
        policy = replace(loaded, rulebook=replace(loaded.rulebook, rules=tuple(unconditional)))
        for tool in tools:
            if tool.kind.always_asks or tool.reads:
                continue
            risk = Risk(Level.DESTRUCTIVE if tool.destructive else Level.WRITE, "")
            verdict = policy.judge(CallFacts(tool.name, risk, place, Person(""), now, tool.kind))
            if verdict.judgement is Judgement.REFUSE:
                first_reason, _, _ = verdict.rule_text.partition(";")
                return f" Calls of {tool.name} are refused now: {first_reason}."
        return ""


def _list_named_people(rule: Rule) -> list[str]:
    """Return the accounts that a rule names as deciders or as askers."""
    names: list[str] = []
    if rule.subject is Subject.DECIDERS and isinstance(rule.value, tuple):
        names += map(str, rule.value)
    if rule.limits and rule.limits.who:
        names.append(rule.limits.who)
    return [name for name in names if ":" in name and not is_group(name)]


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
        # ``form_schema``: the schema of a tool's arguments, with their defaults
        missing_field = rule.find_lacking_field(tool.form_schema)
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
        why = condition.find_misfit(tool.form_schema)
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
    stored_rules = rules.list_rules(session, old_policy.rulebook.zone)
    rulebook = replace(old_policy.rulebook, rules=tuple(stored.rule for stored in stored_rules))
    new_policy = old_policy.with_rulebook(rulebook)
    ended = grants.end_tightened_grants(session, old_policy, new_policy, rule, command.actor, now)
    if ended:
        return f" Grants ended with it: {', '.join(grant.label for grant in ended)}."
    return ""
