"""What a press needs of a tool: new arguments checked, a new preview, current values, what a grant covers."""

from collections.abc import Mapping
from typing import Any

from bot.approvals.drafts import preview_of, title_of, told, unhidden
from bot.approvals.gate import Gate
from bot.approvals.votes import Edit, Fresh
from bot.domain.plans import Plan
from bot.domain.policy import Judgement, Verdict
from bot.domain.proposals import Kind, Proposal, digest
from bot.domain.redaction import redact, shown
from bot.domain.similarity import Rung, Scope, ladder
from bot.errors import ToolError
from bot.store import conversations, teams
from bot.store.database import Database
from bot.tools.tool import Tool


class Contents:
    """Works out what would become of a proposal; stores nothing but the schema of a tool."""

    def __init__(self, database: Database, gate: Gate) -> None:
        self._database = database
        self._gate = gate

    async def edit(self, proposal: Proposal, given: Mapping[str, Any]) -> Edit:
        """Everything that follows from new arguments; raises BadArguments or ToolError. Stores nothing.

        A secret that comes back as it was shown (hidden) means: keep what it was.
        """
        with told(proposal.tool_name):
            return await self._edit(proposal, given)

    async def _edit(self, proposal: Proposal, given: Mapping[str, Any]) -> Edit:
        if proposal.kind is Kind.PLAN:
            raise ToolError("A plan is its teammate's own words: ask for changes instead of editing it.")
        tool = (await self._gate.registry.shelf()).get(proposal.tool_name)
        seen = shown(proposal.arguments, tool.parameters)
        arguments = await tool.checked(unhidden(given, proposal.arguments, seen))
        await self._gate.keep_schema(tool)
        return Edit(
            arguments=arguments,
            schema=tool.form,
            tool_version=tool.version,
            digest=digest(tool.name, tool.version, arguments),
            description=await title_of(tool, arguments),
            preview=await preview_of(tool, arguments),
            verdict=await self._judge_again(tool, arguments, proposal),
        )

    async def fresh(self, proposal: Proposal) -> Fresh:
        """What an expired proposal would show today. Raises ToolError when it can no longer be proposed."""
        with told(proposal.tool_name):
            tool = (await self._gate.registry.shelf()).get(proposal.tool_name)
            if digest(tool.name, tool.version, proposal.arguments) != proposal.digest:
                raise ToolError("The tool has changed since. Please request it again.")
            if proposal.teammate and (why := await self._database.read(teams.past, proposal)):
                raise ToolError(why)
            plans = proposal.kind is Kind.PLAN
            preview = proposal.preview if plans else await preview_of(tool, proposal.arguments)
            return Fresh(preview, await self._judge_again(tool, proposal.arguments, proposal))

    async def ladder(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """The rungs of a grant for calls like this one; raises ToolError when the tool is not there."""
        tool = (await self._gate.registry.shelf()).get(proposal.tool_name)
        with told(proposal.tool_name):
            key = await tool.key(proposal.arguments) if tool.key else None
        shown = redact(key, tool.parameters) if key else None
        return ladder(tool.name, tool.version, proposal.arguments, key, shown)

    async def steps(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """What approving a plan with its steps allows: each named tool that isn't read-only."""
        if proposal.kind is not Kind.PLAN:
            raise ToolError("Only a plan has steps to approve.")
        shelf = (await self._gate.registry.shelf()).offered
        named = (shelf.tools.get(name) for name in Plan.of(proposal.arguments).tools)
        return [
            (
                Scope(tool.name, tool.version, Rung.TOOL, ""),
                f"{tool.name} with any arguments, by {proposal.teammate}",
            )
            for tool in named
            if tool is not None and not tool.reads
        ]

    async def _judge_again(self, tool: Tool, arguments: Mapping[str, Any], proposal: Proposal) -> Verdict:
        """The verdict on a proposal's new contents. What would now run without asking still asks."""
        policy, person = await self._database.read(self._gate.policies.load_for, proposal.requester)
        place = await self._database.read(conversations.place_of, proposal.conversation_id)
        verdict = policy.judge(tool.name, tool.classify(arguments), place, person, tool.kind)
        if verdict.judgement is Judgement.REFUSE:
            raise ToolError(verdict.rule)
        return verdict
