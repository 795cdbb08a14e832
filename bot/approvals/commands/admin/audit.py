"""The audit log, as admins search and verify it."""

import asyncio
from datetime import timedelta

from bot.approvals.commands.admin.audit_text import format_audit_row, list_mentioned
from bot.approvals.commands.operands import parse_account, parse_number, parse_seconds
from bot.approvals.commands.subcommands import CommandParts, remove_quotes
from bot.domain.audit import AuditFilter
from bot.domain.chat import Command
from bot.domain.times import UNIT_SECONDS
from bot.store import conversations, people, proposals
from bot.store.audit import search, verification

_MAX_AUDIT_ROWS = 20


class AuditCommands:
    """The subcommand ``audit``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database = parts.database
        self._clock = parts.clock
        self._registry = parts.registry

    async def handle_audit(self, _: Command, text: str) -> str:
        """List the newest rows that the text asks for, or verify the whole log."""
        if text == "verify":
            faults = await asyncio.to_thread(verification.find_faults, self._database.read_now)
            if not faults:
                return await self._database.read(verification.describe_intact)
            return "\n".join(f"- {fault}" for fault in faults)
        audit_filter = await self._parse_filter(text)
        rows, total = await self._database.read(search.find_rows_and_count, audit_filter, _MAX_AUDIT_ROWS)
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

    async def _parse_filter(self, text: str) -> AuditFilter:
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
