"""Trials: a call is run without lasting effect before people decide, so that they see what it would change.

A tool that can be tried has `TrialFunctions` as its attribute ``trial_functions``. For example, a shell tries
a command in a *cage*: a closed environment with a copy of the files. `Trials.attempt` runs a trial, whose
changes become the proposal's preview. It is called only if people will be asked, and the model is not told.
The tool also returns a *token*: what it needs to make exactly these changes. The token is stored as JSON, and
found again by its hash, which the proposal has. Only `Trials.apply` changes anything: it gives the token back
to the tool. By then the proposal is approved, and this process has claimed its run. People may also approve a
run for real instead, which ignores the trial.

`Trials.settle` finds the outcome of a run that was cut off, with or without a trial.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from bot.approvals.after_run import collect_after_run, make_outcome_columns
from bot.approvals.drafts import make_storable, preview_of, summary_of
from bot.approvals.tool_code import await_tool, context_of, describe_and_log
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.text import hash_text, one_line, replace_unstorable
from bot.domain.trials import Trial
from bot.errors import ToolError, TooManyCalls
from bot.store import trials
from bot.store.database import Database
from bot.telemetry.logs import logger, redact_in_logs
from bot.tools.call import CallContext, ToolOutput
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool
from bot.tools.trial import TrialFunctions, TrialOutput

log = logger(__name__)

_TRIAL_SECONDS = 150.0
_QUEUE_SECONDS = 0.5  # the time between two checks whether another trial of the person has ended
_MAX_OUTPUT_CHARS = 2000  # the characters that are kept of the end of a trial's output
_MAX_TOKEN_CHARS = 32_000_000  # of a token as JSON


class PreviewAndTrial(NamedTuple):
    """The contents of a call that people see."""

    preview: tuple[PreviewField, ...]
    trial: Trial | None  # None if there was no trial, for example because the tool can't be tried


class _TrialOutcome(NamedTuple):
    """The outcome of a trial."""

    fields: tuple[PreviewField, ...]  # the output and the changes, for people
    trial: Trial
    token_json: str | None  # None if the changes can't be applied


@dataclass(eq=False)
class Trials:
    """The service that tries calls and applies trials; rows are its only state."""

    database: Database
    clock: Clock
    process: str  # the id of this process

    async def make_preview(self, tool: Tool, arguments: Mapping[str, Any], asker: Actor) -> PreviewAndTrial:
        """Return the preview of a call that people are asked about; if its tool can try it, with a trial."""
        preview = await preview_of(tool, arguments)
        if tool.trial_functions is None:
            return PreviewAndTrial(preview, None)
        return await self.attempt(tool, arguments, preview, asker)

    async def attempt(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        preview: tuple[PreviewField, ...],
        asker: Actor,
        show: Callable[[str], Awaitable[None]] | None = None,
    ) -> PreviewAndTrial:
        """Try a call, and add the changes that it would make to its preview. The trial is recorded.

        ``preview``: the call's own preview. ``show`` is called with a text about the trial when it begins. A
        person who has too many trials under way waits until one ends.
        """
        if tool.trial_functions is None:
            raise ValueError(f"{tool.name} cannot be tried")
        summary = redact_text(summary_of(tool, arguments))
        record = {"call": summary, "digest": tool.make_digest(arguments)}
        try:
            key = await self._begin(asker, tool.name, record)
        except TooManyCalls as error:
            return PreviewAndTrial(preview, Trial(tried=False, why=error.message))
        recorded_end: dict[str, Any] = {"ended": "it was stopped"}  # unless the trial ends below
        token_json = None
        try:
            if show is not None:
                await show(f"Trying first: {summary}")
            fields, trial, token_json = await self._try_or_explain(tool, tool.trial_functions, arguments)
            recorded_end = {
                "ended": _describe_end(trial),
                "cage": trial.cage,
                "files": len(trial.files),
                "applies": trial.token_hash,  # empty if the changes can't be applied
            }
        finally:
            end = partial(trials.end_trial, token=token_json)
            # the end is recorded also if this task is cancelled
            await asyncio.shield(self.database.write(end, key, asker, tool.name, recorded_end, self.clock()))
        if trial.tried and not tool.preview:
            preview = ()  # the call's own preview has only the arguments; the trial shows what they do
        return PreviewAndTrial((*preview, *fields), trial)

    async def _begin(self, asker: Actor, tool_name: str, record: Mapping[str, Any]) -> str:
        """Record the beginning of a trial, and return its key.

        Waits while too many of this person's trials run, in all processes. Raises TooManyCalls for too many
        trials within an hour.
        """
        while True:
            key = await self.database.write(
                trials.begin_trial, asker, tool_name, record, self.process, self.clock()
            )
            if key is not None:
                return key
            await asyncio.sleep(_QUEUE_SECONDS)  # the person has too many trials under way

    async def _try_or_explain(
        self, tool: Tool, functions: TrialFunctions, arguments: Mapping[str, Any]
    ) -> _TrialOutcome:
        """Run a tool's own trial. If it fails, the outcome says why the call was not tried."""
        with redact_in_logs(secrets_in(arguments, tool.parameters)):
            try:
                return await self._try_tool(tool, functions, arguments)
            except Exception as error:  # noqa: BLE001 - a tool's own code; people are told
                why = describe_and_log(error, tool.name)
                return _TrialOutcome((), Trial(tried=False, why=why), None)

    async def _try_tool(
        self, tool: Tool, functions: TrialFunctions, arguments: Mapping[str, Any]
    ) -> _TrialOutcome:
        """Run a tool's own trial, and cut what it returns to the limits."""
        output: TrialOutput = await await_tool(tool.name, functions.trial(arguments), _TRIAL_SECONDS)
        token_json = await asyncio.to_thread(json.dumps, output.token)
        refusal = output.refused
        if not refusal and len(token_json) > _MAX_TOKEN_CHARS:
            refusal = "It would change too much to be kept."
        token_hash = ""
        if not refusal:
            token_hash = await asyncio.to_thread(hash_text, token_json)
        trial = Trial(
            why=refusal,  # why the changes can't be applied, if they can't
            cage=output.cage,
            exit=output.exit,  # the code with which a command ended; None if the trial ran no command
            output=replace_unstorable(output.output[-_MAX_OUTPUT_CHARS:]),
            files=output.files,
            token_hash=token_hash,
            why_not_undone=one_line(output.final),
        )
        fields = []
        if output.exit is not None:
            fields.append(PreviewField("when tried", None, _describe_end(trial)))
        if trial.output.strip():
            fields.append(PreviewField("printed", None, trial.output))
        shown = (*fields, *make_storable(output.changes))
        return _TrialOutcome(shown, trial, None if refusal else token_json)

    async def _load_token(self, proposal: Proposal) -> Any:
        """Return the token that applies a trial. Raises ToolError if it is no longer stored."""
        token_hash = proposal.trial.token_hash if proposal.trial else ""
        token_json = await self.database.read(trials.load_token, token_hash)
        if token_json is None:
            raise ToolError("The result of the trial is no longer kept. Nothing was changed.")
        return await asyncio.to_thread(json.loads, token_json)

    async def is_unchanged(self, tool: Tool, proposal: Proposal) -> bool:
        """Tell if applying a proposal's trial would still make the changes that it showed.

        If the tool can't tell, the call is tried again, and must show the same.
        """
        functions = tool.trial_functions
        arguments = proposal.arguments
        if functions is None:
            return False
        if functions.unchanged is not None:
            try:
                token = await self._load_token(proposal)
            except ToolError:
                return False
            work = functions.unchanged(arguments, token)
            return bool(await await_tool(tool.name, work, tool.timeout))
        preview = await preview_of(tool, arguments)
        tried_again = await self.attempt(tool, arguments, preview, proposal.requester)
        trial = tried_again.trial
        return trial is not None and trial.applies and tried_again.preview == proposal.preview

    async def apply(self, tool: Tool, claimed: Proposal, context: CallContext) -> ToolOutput:
        """Apply exactly the changes of a claimed proposal's trial. Raises ToolError if nothing was done."""
        if tool.trial_functions is None:
            raise ToolError("This tool's calls can no longer be tried first. Nothing was changed.")
        token = await self._load_token(claimed)
        work = tool.trial_functions.apply(claimed.arguments, token, context)
        output: ToolOutput = await await_tool(tool.name, work, tool.timeout)
        return output

    async def settle(self, available: AvailableTools, lost: Proposal) -> tuple[State, dict[str, Any]] | None:
        """Ask the tool for the outcome of a run that a crash cut off, if the tool can tell.

        The run applied a trial, or it was a usual run. Returns the state and the other columns to store, or
        None if the outcome is unknown.
        """
        tool = available.tools.get(lost.tool_name)
        if tool is None:
            return None
        tool = tool.in_context(context_of(lost))
        try:
            if lost.applies_trial and tool.trial_functions:
                if tool.trial_functions.settle is None:
                    return None
                token = await self._load_token(lost)
                work = tool.trial_functions.settle(lost.arguments, token, lost.idempotency_key)
            elif tool.settle:
                work = tool.settle(lost.arguments, lost.idempotency_key)
            else:
                return None
            output: ToolOutput | None = await await_tool(tool.name, work, tool.timeout)
        except ToolError as error:
            return State.FAILED, {"error": error.message}
        except Exception as error:
            log.error("what was cut off can't be settled", proposal=lost.id, exc_info=error)
            return None
        if output is None:
            return None
        after = await collect_after_run(available, tool, lost, output)
        return State.SUCCEEDED, make_outcome_columns(output) | after


def _describe_end(trial: Trial) -> str:
    """Describe the outcome of a trial for people, for example "ended with code 0, 2 files would change"."""
    if not trial.tried:
        return f"not tried: {one_line(trial.why)}"
    end = "done" if trial.exit is None else f"ended with code {trial.exit}"
    if not trial.applies or trial.exit is None:
        return end
    match len(trial.files):
        case 0:
            files = "no file"
        case 1:
            files = "1 file"
        case count:
            files = f"{count} files"
    return f"{end}, {files} would change"
