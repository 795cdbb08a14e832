"""The policy as admins see it: the rules that hold, a test of a call, and a rule tried on the past."""

import json
from typing import Any

from sqlmodel import Session

from bot.approvals.address_risk import raise_risk_by_addresses
from bot.approvals.commands.admin.rule_setter import RuleSetter
from bot.approvals.commands.operands import parse_account, parse_place
from bot.approvals.commands.rule_text import parse_rule_to_try
from bot.approvals.commands.subcommands import CommandError, CommandParts, CommandReply, first_word
from bot.approvals.lookup import rule_simulation
from bot.domain.call_facts import Place
from bot.domain.chat import Address, Command
from bot.domain.people import Actor
from bot.domain.rule_values import Subject
from bot.domain.times import format_length
from bot.domain.verdicts import explain
from bot.errors import ToolError
from bot.store import conversations, people


class PolicyCommands:
    """The subcommands ``policy`` and ``rules``."""

    def __init__(self, parts: CommandParts, setter: RuleSetter) -> None:
        self._database = parts.database
        self._policies = parts.policies
        self._clock = parts.clock
        self._registry = parts.registry
        self._groups = parts.groups
        self._setter = setter

    async def handle_policy(self, command: Command, text: str) -> str | CommandReply:
        """Set what needs approval, test a call, or try a rule on the past. An empty text lists the rules."""
        if not text:
            return await self._list_rules()
        verb, rest = first_word(text)
        if verb == "try":
            return await self._try(command, rest)
        if verb == "test":
            return await self._test(command, rest)
        set_policy = self._setter.make_setter(Subject.POLICY)
        return await set_policy(command, text)

    async def handle_rules(self, _: Command, __: str) -> str:
        """List the rules."""
        return await self._list_rules()

    async def _list_rules(self) -> str:
        """List the defaults of the settings and all rules, with what does not fit its tools."""
        policy = await self._database.read(self._policies.load)
        misfits = await self._registry.find_misfits(policy.rulebook)
        ttl = format_length(policy.ttl.total_seconds())
        lines = [f"By default: policy {policy.mode}, ttl {ttl}, plans {policy.plan_approver}."]
        for rule in policy.rulebook.rules:
            misfit = f" ({misfits[rule.id]})" if rule.id in misfits else ""
            lines.append(f"- {rule.description}{misfit}")
        if policy.rulebook.paused:
            lines.append("Paused.")
        return await self._database.read(people.put_names_in, "\n".join(lines))

    async def _test(self, command: Command, text: str) -> str:
        """Describe what the rules would do with a call: ``TOOL {…} [as WHO] [in PLACE]``."""
        name, rest = first_word(text)
        available = await self._registry.load_tools()
        try:
            tool = available.get(name)
            given_arguments, rest = _split_object(rest)
            who, where = _parse_as_and_in(rest, command)
            arguments = await tool.check_arguments(given_arguments)
            risk = tool.classify(arguments)
        except ToolError as error:  # there is no such tool, or the arguments don't fit it
            raise CommandError(error.message) from None
        now = self._clock()

        def judge(session: Session) -> str:
            policy = self._policies.load(session)
            place = Place(str(command.address), command.private)
            if where is not None:
                place = _find_place(session, where, who)
            # the facts of the call, by which it is judged; nothing is called
            call = tool.make_facts(arguments, risk, place, people.load_person(session, who), now)
            # no transcript: an address in the arguments counts as one that no person has written
            call = raise_risk_by_addresses(call, tool, policy, transcript=None)
            return explain(policy.judge(call), who.label)

        return await self._database.read(people.put_names_in, await self._groups.read_with_members(judge))

    async def _try(self, command: Command, text: str) -> str:
        """Try a rule on past proposals, without setting it, and describe the result."""
        to_try = parse_rule_to_try(text, command, self._setter.local_now())

        def try_rule(session: Session) -> str:
            self._setter.check_workspace(session, to_try.rule.scope, command)
            since = self._clock() - to_try.last
            return rule_simulation.try_rule(session, self._policies, to_try.rule, since, to_try.before).text

        return await self._database.read(try_rule)


def _find_place(session: Session, address: Address, person: Actor) -> Place:
    """Return the place of an address, in which a person is to make a call.

    A place without a conversation is private if its address is the person's account: a private chat has the
    address of its person.
    """
    conversation = conversations.find_current_conversation(session, address)
    if conversation is None:
        return Place(str(address), private=str(address) == str(person))
    return Place(str(address), conversation.private)


def _split_object(text: str) -> tuple[Any, str]:
    """Split a text into its leading JSON object, empty without one, and the text after it.

    Raises CommandError for broken JSON.
    """
    if not text.startswith("{"):
        return {}, text
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        raise CommandError('The arguments must be JSON, such as {"number": 3}.') from None
    return value, text[end:]


def _parse_as_and_in(text: str, command: Command) -> tuple[Actor, Address | None]:
    """Read ``[as WHO] [in PLACE]``, and return both. Raises CommandError.

    By default WHO is the author of the command, and PLACE is None.
    """
    who: Actor = command.actor
    where: Address | None = None
    words = text.split()
    while words:
        match words:
            case ["as", name, *words]:
                who = parse_account(name)
            case ["in", name, *words]:
                where = Address.parse(parse_place(name, command))
            case _:
                raise CommandError("After the arguments, write as WHO, in PLACE, or both.")
    return who, where
