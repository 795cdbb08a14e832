"""The list of the subcommands of ``/approvals`` that only admins may use, in the order of the help."""

import re

from sqlmodel import Session

from bot.approvals.commands.admin.audit import AuditCommands
from bot.approvals.commands.admin.budgets import BudgetCommands
from bot.approvals.commands.admin.grants import GrantCommands
from bot.approvals.commands.admin.instructions import InstructionCommands
from bot.approvals.commands.admin.models import ModelCommands
from bot.approvals.commands.admin.pause import PauseCommands
from bot.approvals.commands.admin.policy import PolicyCommands
from bot.approvals.commands.admin.roles import RoleCommands
from bot.approvals.commands.admin.rule_setter import RuleSetter
from bot.approvals.commands.admin.sessions import SessionCommands
from bot.approvals.commands.limits import LIMITED
from bot.approvals.commands.rule_text import parse_rule
from bot.approvals.commands.subcommands import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    SubcommandHandler,
    first_word,
)
from bot.approvals.lookup import active
from bot.domain.chat import Command
from bot.domain.rule_values import Subject
from bot.domain.rules import Rule
from bot.domain.steps import REMINDER, is_place
from bot.store import proposals
from bot.store.hooks import find_notifier, hooks_of

# the beginning of a proposal's ID, by which ``undo 3f2a`` is told from ``undo 30m``, which sets a rule
_LIKE_AN_ID = re.compile(rf"[0-9a-f]{{{proposals.MIN_ID_CHARS},}}")
CROSS_WORKSPACE_WORDS = frozenset(
    {"rules", "features", "roles", "sessions", "grants", "revoke", "audit", "pause", "resume", "quiet"}
)
"""Subcommands that show or change data of every workspace."""


class AdminCommands:
    """The subcommands of ``/approvals`` that only admins may use."""

    def __init__(self, parts: CommandParts, undo: SubcommandHandler) -> None:
        """Take the dependencies, and the handler of ``/approvals undo ID``, which everyone may use."""
        self._database = parts.database
        self._clock = parts.clock
        self._undo_proposal = undo
        self._setter = RuleSetter(parts)
        self.subcommands = self._list_subcommands(parts)

    def _list_subcommands(self, parts: CommandParts) -> list[Subcommand]:
        make_setter = self._setter.make_setter
        policy = PolicyCommands(parts, self._setter)
        roles = RoleCommands(parts, self._setter)
        sessions = SessionCommands(parts)
        budgets = BudgetCommands(parts, self._setter)
        models = ModelCommands(parts, self._setter)
        grants = GrantCommands(parts, self._setter)
        instructions = InstructionCommands(parts, self._setter)
        audit = AuditCommands(parts)
        pause = PauseCommands(parts)
        return [
            Subcommand("rules", "every current rule, by number", policy.handle_rules),
            Subcommand("features", "what is on, and who set it", self._features, is_private=True),
            Subcommand(
                "drop NUMBER",
                "drop a rule",
                self._setter.drop,
                synonyms=("unset", "remove", "delete", "clear", "reset"),
            ),
            Subcommand(
                f"policy always|writes|destructive|never|forbid {LIMITED}, "
                "policy test TOOL {…} [as WHO] [in PLACE], or policy try RULE [last 30d]",
                "what needs approval, and what can't be asked for; test says what would happen, "
                "try what a rule would have changed",
                policy.handle_policy,
            ),
            Subcommand(
                f"risk read|write|destructive {LIMITED}",
                "how risky a tool's calls are",
                make_setter(Subject.RISK),
            ),
            Subcommand(
                f"approvers WHO… {LIMITED}",
                "who may decide: requester, approver, admin, member, accounts, or groups "
                "such as slack:T1/S2 and telegram:-100123/admins",
                make_setter(Subject.DECIDERS),
            ),
            Subcommand(
                "roles [add|remove ACCOUNT admin|approver [everywhere]]",
                "who is admin or approver; everywhere: in every Slack workspace",
                roles.handle_roles,
            ),
            Subcommand(
                "sessions [end ACCOUNT]",
                "who is signed in to the console; end someone's",
                sessions.handle_sessions,
            ),
            Subcommand(
                "outsiders talk [in PLACE]",
                "let people from outside the team, such as guests, write to Nod there; they decide nothing",
                make_setter(Subject.OUTSIDERS),
            ),
            Subcommand(f"quorum N [of M] {LIMITED}", "how many must approve", make_setter(Subject.QUORUM)),
            Subcommand(
                "plans human|lead|both [in PLACE]",
                "who approves teammates' plans: a person, the lead agent, or both",
                make_setter(Subject.PLANS),
            ),
            Subcommand(
                f"undo ID, or undo 30m|off {LIMITED}",
                "put back what it did; or for how long that can be done",
                self._undo,
            ),
            Subcommand(
                f"batch stop {LIMITED}",
                "when a row of a batch fails, withdraw those that have not begun",
                make_setter(Subject.BATCH),
            ),
            Subcommand(
                "budget [20 EUR a month|week|day|turn [for PLACE|ACCOUNT]], or budget extend NUMBER [10 EUR]",
                "what the language model may cost; without words, how much is used",
                budgets.handle_budget,
            ),
            Subcommand(
                "model [NAME [for PLACE|ACCOUNT]]",
                "which language model answers in a place, or a person; without words, which there are",
                models.handle_model,
            ),
            Subcommand(
                f"opinion MODEL [raises[, or is missing]] {LIMITED}",
                "another model's few words on the card; raises: its no asks for one more approval",
                models.handle_opinion,
            ),
            Subcommand(
                "attention 12 an hour [for ACCOUNT|GROUP]",
                "beyond that many cards an hour, others that are not urgent come together at the half hour",
                make_setter(Subject.ATTENTION),
            ),
            Subcommand(f"ttl 4h {LIMITED}", "how long a proposal waits", make_setter(Subject.TTL)),
            Subcommand(f"remind 2h {LIMITED}", "remind deciders this often", make_setter(Subject.REMIND)),
            Subcommand(
                f"escalate 4h PLACE {LIMITED}",
                "show it there if no one has decided",
                make_setter(Subject.ESCALATE),
            ),
            Subcommand(
                f"notify TARGET after 10m[, TARGET after 20m] {LIMITED}",
                "who is told next while no one decides: reminder, push, page, a place, an account or a group",
                self._notify,
            ),
            Subcommand("quiet 22:00 07:00", "no reminders in these hours", make_setter(Subject.QUIET)),
            Subcommand(f"route PLACE {LIMITED}", "post cards there too", make_setter(Subject.ROUTE)),
            Subcommand(
                "digest 09:00 PLACE [in PLACE]",
                "a daily list of what is open",
                make_setter(Subject.DIGEST),
            ),
            Subcommand(
                f"grants, or grants allow destructive {LIMITED}",
                "what is allowed without asking",
                grants.handle_grants,
            ),
            Subcommand(
                f"fetch HOST {LIMITED}",
                "read every page of a host without asking",
                make_setter(Subject.FETCH),
            ),
            Subcommand(
                "instructions [in PLACE] [WORDS, or clear]",
                "instructions for Nod in this chat, or in PLACE; without words, it shows them",
                instructions.handle_instructions,
            ),
            Subcommand("revoke G-7|all", "end a grant", grants.revoke),
            Subcommand(
                "audit [ACCOUNT|TOOL|ID|G-7|7d], or audit verify",
                "who did what; whether the audit log is intact",
                audit.handle_audit,
            ),
            Subcommand("pause", "stop all changes: nothing runs, proposals wait, timers stop", pause.pause),
            Subcommand("resume", "continue after a pause", pause.resume),
        ]

    async def _features(self, _: Command, __: str) -> str:
        zone = self._setter.zone  # one for both, since a rule may change it in between
        parts = await self._database.read(active.list_active, zone, self._clock())
        return active.format_active(parts, zone)

    async def _undo(self, command: Command, text: str) -> str | CommandReply:
        """Undo a proposal by its ID, or set how long changes can be undone."""
        word, _ = first_word(text)
        if _LIKE_AN_ID.fullmatch(word.lower()):
            return await self._undo_proposal(command, text)
        return await self._setter.make_setter(Subject.UNDO)(command, text)

    async def _notify(self, command: Command, text: str) -> str | CommandReply:
        new_rule = parse_rule(Subject.NOTIFY, text, command, self._setter.local_now())
        await self._database.read(_check_notifiers, new_rule)
        return await self._setter.set_rule(new_rule, command)


def _check_notifiers(session: Session, rule: Rule) -> None:
    """Raise CommandError if a step names a notifier that does not exist or is not set up."""
    names = [step.target for step in rule.steps if not is_place(step.target) and step.target != REMINDER]
    known = [notifier.name for notifier in hooks_of(session).notifiers]
    for name in names:
        notifier = find_notifier(session, name)
        if notifier is None:
            words = ", ".join([REMINDER, *known])
            raise CommandError(f"{name!r} is neither a notifier nor a place. Use {words}, or `slack:T1/C2`.")
        if notifier.hindrance:
            raise CommandError(notifier.hindrance)
