"""Budgets: the most that language models may cost, as admins set, extend and list it."""

from collections.abc import Sequence
from dataclasses import replace

from sqlmodel import Session

from bot.approvals import budgets
from bot.approvals.commands.admin.rule_setter import RuleSetter
from bot.approvals.commands.operands import parse_number
from bot.approvals.commands.subcommands import CommandError, CommandParts, CommandReply, first_word
from bot.domain.budgets import Per, parse_amount
from bot.domain.chat import Answer, Command
from bot.domain.rule_values import Subject
from bot.domain.rules import Rule
from bot.store import people, rules
from bot.store.locks import conversation_lock

_DEFAULT_EXTENSION = 1 / 4  # the share of its amount by which a budget is extended if no amount is given


class BudgetCommands:
    """The subcommand ``budget``."""

    def __init__(self, parts: CommandParts, setter: RuleSetter) -> None:
        self._database = parts.database
        self._policies = parts.policies
        self._clock = parts.clock
        self._prices = parts.prices
        self._models = parts.models
        self._setter = setter

    async def handle_budget(self, command: Command, text: str) -> str | CommandReply:
        """Set a budget for what models cost, extend one, or list the budgets."""
        verb, rest = first_word(text)
        if verb == "extend":
            return await self._extend_budget(command, rest)
        if text:
            self._check_currency(text.split())
            reply = await self._setter.make_setter(Subject.BUDGET)(command, text)
            without_price = [name for name in self._models if self._prices.find_price(name) is None]
            if without_price:
                names = ", ".join(without_price)
                why = f" {names} has no price, so nothing counts there: add one to the price file."
                return replace(reply, text=reply.text + why)
            return reply
        return await self._database.read(self._list_budgets)

    def _list_budgets(self, session: Session) -> str:
        rulebook = self._policies.load(session).rulebook
        uses = budgets.list_uses(session, rulebook, self._clock())
        lines = [f"- Rule {use.rule.id}: {use.description}, {use.share:.0%}" for use in uses]
        turn_budgets = [rule for rule in rulebook.list_about(Subject.BUDGET) if rule.budget.per is Per.TURN]
        lines += [f"- {rule.description}" for rule in turn_budgets]
        return people.put_names_in(session, "\n".join(lines)) or "There are no budgets."

    async def _extend_budget(self, command: Command, text: str) -> str | CommandReply:
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
            rulebook = self._policies.load(session).rulebook
            now = self._clock()
            for rule in rulebook.list_about(Subject.BUDGET):
                if rule.id == rule_id and rule.budget.per is not Per.TURN:
                    self._setter.check_workspace(session, rule.scope, command)
                    added = amount or rule.budget.amount * _DEFAULT_EXTENSION
                    extended = rule.budget.extend(added, now.astimezone(rulebook.zone))
                    return rules.set_rule(session, replace(rule, value=extended), command.actor, now)
            return None

        rule = await self._database.write(extend)
        if rule is None:
            return CommandReply(
                "There is no such budget of a day, a week or a month. `/approvals budget` lists them.",
                answer=Answer.UNKNOWN,
            )
        return CommandReply(
            await self._database.read(people.put_names_in, f"Extended: {rule.description}."), rule=rule.id
        )

    def _check_currency(self, words: Sequence[str]) -> None:
        """Raise CommandError if the word after an amount, if there is one, is not the currency of prices.

        ``words``: the amount, and what follows it.
        """
        if len(words) > 1 and words[1].upper() != self._prices.currency:
            raise CommandError(f"Prices are in {self._prices.currency}, so a budget is, too.")
