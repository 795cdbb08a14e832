"""Trials: a call is run without lasting effect before people decide; an approval applies its changes.

What a trial would change becomes the proposal's preview. It is no run: `Trials.attempt` is called only where
people will be asked, nothing is told to the model, and only `Trials.apply` changes anything, for a claimed
proposal.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.approvals.afterwards import look_after
from bot.approvals.drafts import make_storable, preview_of, summary_of
from bot.approvals.tool_code import await_tool, context_of, describe_and_log
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.proposals import PreviewField, Proposal, State
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.text import hash_text, one_line, storable
from bot.domain.trials import Trial
from bot.errors import ToolError, TooMuch
from bot.store import trials
from bot.store.database import Database
from bot.telemetry.logs import hiding, logger
from bot.tools.registry import AvailableTools
from bot.tools.tool import CallContext, Tool, ToolOutput, TrialOutput, Trying

log = logger(__name__)

_SECONDS = 150.0  # that a trial may take in all
_PAUSE = 0.5  # seconds between looks whether this person's other trials have ended
_PRINTED = 2000  # characters of the end of what it printed
_LONGEST_TOKEN = 32_000_000  # characters

Shown = tuple[tuple[PreviewField, ...], Trial | None]
"""What people are shown of a call: its preview, and its trial, if there is one."""


@dataclass(eq=False)
class Trials:
    """Tries calls and applies what was tried; rows are the only state. ``process``: the id of this one."""

    database: Database
    clock: Clock
    process: str

    async def make_preview(self, tool: Tool, arguments: Mapping[str, Any], asker: Actor) -> Shown:
        """Return the preview of a call that people are asked about, tried where its tool can be."""
        preview = await preview_of(tool, arguments)
        if tool.trying is None:
            return preview, None
        return await self.attempt(tool, arguments, preview, asker)

    async def attempt(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        preview: tuple[PreviewField, ...],
        asker: Actor,
        show: Callable[[str], Awaitable[None]] | None = None,
    ) -> Shown:
        """Try a call: its ``preview`` with what it would change. Recorded, and bounded by `trials.begin`."""
        if tool.trying is None:
            raise ValueError(f"{tool.name} cannot be tried")
        what = redact_text(summary_of(tool, arguments))
        told = {"call": what, "digest": tool.digest(arguments)}
        try:
            key = await self._begin(asker, tool.name, told)
        except TooMuch as error:
            return preview, Trial(tried=False, why=error.message)
        if show is not None:
            await show(f"Trying first: {what}")
        how: dict[str, Any] = {"ended": "it was stopped"}
        token = None
        try:
            with hiding(secrets_in(arguments, tool.parameters)):
                try:
                    fields, trial, token = await self._try_tool(tool, tool.trying, arguments)
                except Exception as error:  # noqa: BLE001 - a tool's own code; people are told
                    fields, trial = (), Trial(tried=False, why=describe_and_log(error, tool.name))
            how = {
                "ended": _describe_end(trial),
                "cage": trial.cage,
                "files": len(trial.files),
                "applies": trial.token,
            }
        finally:
            end = partial(trials.end, token=token)
            await asyncio.shield(self.database.write(end, key, asker, tool.name, how, self.clock()))
        return (*(preview if tool.preview or not trial.tried else ()), *fields), trial

    async def _begin(self, asker: Actor, tool_name: str, told: Mapping[str, Any]) -> str:
        """Queue for a place among this person's trials in all processes. Raises TooMuch."""
        write, begin = self.database.write, trials.begin_trial
        while (key := await write(begin, asker, tool_name, told, self.process, self.clock())) is None:  # noqa: ASYNC110 - rows
            await asyncio.sleep(_PAUSE)
        return key

    async def _try_tool(
        self, tool: Tool, trying: Trying, arguments: Mapping[str, Any]
    ) -> tuple[tuple[PreviewField, ...], Trial, str | None]:
        found: TrialOutput = await await_tool(tool.name, trying.trial(arguments), _SECONDS)
        token = await asyncio.to_thread(json.dumps, found.token)
        refused = found.refused
        if len(token) > _LONGEST_TOKEN:
            refused = refused or "It would change too much to be kept."
        trial = Trial(
            why=refused,
            cage=found.cage,
            exit=found.exit,
            output=storable(found.output[-_PRINTED:]),
            files=found.files,
            token="" if refused else await asyncio.to_thread(hash_text, token),
            final=one_line(found.final),
        )
        if found.exit is None:
            fields = []
        else:
            fields = [PreviewField("when tried", None, _describe_end(trial))]
        fields += [PreviewField("printed", None, trial.output)] if trial.output.strip() else []
        return (*fields, *make_storable(found.changes)), trial, None if refused else token

    async def token(self, proposal: Proposal) -> Any:
        """Return the content that an approval applies. Raises ToolError where it is not stored any longer."""
        hashed = proposal.trial.token if proposal.trial else ""
        content = await self.database.read(trials.token, hashed)
        if content is None:
            raise ToolError("The result of the trial is no longer kept. Nothing was changed.")
        return await asyncio.to_thread(json.loads, content)

    async def unchanged(self, tool: Tool, proposal: Proposal) -> bool:
        """Return whether what was tried is still what an approval would do, with nothing changed since."""
        trying, arguments = tool.trying, proposal.arguments
        if trying is None:
            return False
        if trying.unchanged is not None:
            try:
                token = await self.token(proposal)
            except ToolError:
                return False
            work = trying.unchanged(arguments, token)
            return bool(await await_tool(tool.name, work, tool.timeout))
        preview = await preview_of(tool, arguments)
        again, trial = await self.attempt(tool, arguments, preview, proposal.requester)
        return trial is not None and trial.applies and again == proposal.preview

    async def apply(self, tool: Tool, claimed: Proposal, context: CallContext) -> ToolOutput:
        """Do exactly what the trial of a claimed proposal showed. Raises ToolError where nothing was done."""
        if tool.trying is None:
            raise ToolError("This tool's calls can no longer be tried first. Nothing was changed.")
        work = tool.trying.apply(claimed.arguments, await self.token(claimed), context)
        done: ToolOutput = await await_tool(tool.name, work, tool.timeout)
        return done

    async def settle(self, available: AvailableTools, lost: Proposal) -> tuple[State, dict[str, Any]] | None:
        """Ask the tool how a run ended that a crash cut off.

        Returns the state and the other columns to store, or None where no one knows.
        """
        tool = available.tools.get(lost.tool_name)
        tool = tool.in_context(context_of(lost)) if tool else None
        trying = tool.trying if tool and lost.applies else None
        if tool is None or (trying.settle if trying else tool.settle) is None:
            return None
        try:
            if trying and trying.settle:
                work = trying.settle(lost.arguments, await self.token(lost), lost.idempotency_key)
            elif tool.settle:
                work = tool.settle(lost.arguments, lost.idempotency_key)
            done: ToolOutput | None = await await_tool(tool.name, work, tool.timeout)
        except ToolError as error:
            return State.FAILED, {"error": error.message}
        except Exception as error:
            log.error("what was cut off can't be settled", proposal=lost.id, exc_info=error)
            return None
        if done is None:
            return None
        return State.SUCCEEDED, outcome_of(done) | await look_after(available, tool, lost, done)


def outcome_of(output: ToolOutput) -> dict[str, Any]:
    """Return the columns to store of a tool's output."""
    return {
        "result": output.text,
        "told": output.told,
        "ended_badly": output.ended_badly,
        "result_url": output.url,
        "error": None,
        "files": output.files,
    }


def _describe_end(trial: Trial) -> str:
    """Describe the outcome of a trial for people."""
    if not trial.tried:
        return f"not tried: {one_line(trial.why)}"
    code = "done" if trial.exit is None else f"ended with code {trial.exit}"
    if not trial.applies or trial.exit is None:
        return code
    files = f"{len(trial.files) or 'no'} {'file' if len(trial.files) < 2 else 'files'}"  # noqa: PLR2004
    return f"{code}, {files} would change"
