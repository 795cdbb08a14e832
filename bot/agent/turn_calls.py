"""The calls of one answer of the model: judged, and run if they only read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from bot.approvals.gate import Gate
from bot.approvals.judged_calls import JudgedCall
from bot.domain.conversations import Call, CallResult, Transcript
from bot.domain.events import ToolFinished, ToolProgress, ToolStarted, TurnDelayed, TurnEvent
from bot.domain.model import Finished, StopReason, ToolCall
from bot.domain.redaction import hide_values, redact_arguments, secrets_in
from bot.domain.work_limits import CALLS_PER_ANSWER
from bot.telemetry import tracing
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

T = TypeVar("T")


class _Read(NamedTuple):
    """A call that only reads, with its tool."""

    call: Call
    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TurnCalls:
    """The handler of the calls that the model makes in a turn."""

    gate: Gate

    async def handle_calls(
        self,
        calls: Sequence[ToolCall],
        available: AvailableTools,
        transcript: Transcript,
        text: str,
        judged_calls: list[JudgedCall],
        results: dict[str, CallResult],
    ) -> AsyncIterator[TurnEvent]:
        """Judge the calls of an answer, run those that only read, and yield the events of both.

        Fills ``judged_calls``, and ``results`` for the calls that have a result by then, by their ids.
        """
        async for event in self._judge(judged_calls, available, calls, transcript, text):
            yield event
        results.update({judged.call.id: judged.result for judged in judged_calls if judged.result})
        for refused in _report_refused(judged_calls, available):
            yield refused
        reads = [
            _Read(judged.call, judged.read.tool, judged.read.arguments)
            for judged in judged_calls
            if judged.read
        ]
        async for progress in self._run_reads(reads, transcript, results):
            yield progress

    async def _judge(
        self,
        judged: list[JudgedCall],
        available: AvailableTools,
        calls: Sequence[ToolCall],
        transcript: Transcript,
        text: str,
    ) -> AsyncIterator[TurnDelayed]:
        """Judge the calls of an answer into ``judged``, and yield an event for each trial.

        A trial runs a call without lasting effect, so that its card shows what the call would change.
        """

        async def consider_calls(report: Callable[[TurnDelayed], None]) -> None:
            async def report_trial(text: str) -> None:
                report(TurnDelayed(text))

            judged.extend(await self.gate.consider(available, calls, transcript, text, report_trial))

        async for waited in _yield_reports(consider_calls):
            yield waited

    async def _run_reads(
        self, reads: Sequence[_Read], transcript: Transcript, results: dict[str, CallResult]
    ) -> AsyncIterator[ToolStarted | ToolProgress | ToolFinished]:
        """Run reads side by side, put their results into ``results``, and yield their events."""
        if not reads:
            return
        for call, tool, arguments in reads:
            redacted = redact_arguments(arguments, tool.parameters)
            yield ToolStarted(call.id, call.tool_name, call.summary, redacted)

        async def run_read(
            call: Call, tool: Tool, arguments: Mapping[str, Any], report: Callable[[ToolProgress], None]
        ) -> None:
            async def report_progress(text: str) -> None:
                report(ToolProgress(call.id, call.tool_name, text))

            with tracing.trace_read(call.tool_name, call.id) as span:
                result = await self.gate.read(
                    tool, arguments, transcript.conversation, transcript.asker, report_progress
                )
                results[call.id] = result
                if not result.ok:
                    span.fail("tool_error")

        async def run_all(report: Callable[[ToolProgress], None]) -> None:
            await asyncio.gather(*(run_read(*read, report) for read in reads))

        async for progress in _yield_reports(run_all):
            yield progress
        for call, tool, arguments in reads:
            result = results[call.id]
            shown = hide_values(result.text, secrets_in(arguments, tool.parameters))
            yield ToolFinished(call.id, call.tool_name, result.ok, shown)


async def _yield_reports(work: Callable[[Callable[[T], None]], Awaitable[None]]) -> AsyncIterator[T]:
    """Yield the reports of ``work`` while it runs. Raises its exceptions."""
    reports: asyncio.Queue[T | None] = asyncio.Queue()  # None: there are no more
    task = asyncio.ensure_future(work(reports.put_nowait))
    task.add_done_callback(lambda _: reports.put_nowait(None))
    try:
        while (report := await reports.get()) is not None:
            yield report
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def list_calls(finished: Finished) -> list[ToolCall]:
    """Return the calls of an answer. A cut answer has none, since its calls may be cut, too."""
    if finished.stop is StopReason.FINISHED:
        return _with_unique_ids(finished.calls)
    return []


def _with_unique_ids(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Give calls different ids: some servers repeat an id, and results are matched to calls by ids."""
    used_ids: set[str] = set()
    unique = []
    for position, call in enumerate(calls):
        is_repeated = call.id in used_ids
        new_id = f"{call.id}-{position}" if is_repeated else call.id
        used_ids.add(new_id)
        unique.append(replace(call, id=new_id))
    return unique


def add_server_fields(judged_calls: Sequence[JudgedCall], calls: Sequence[ToolCall]) -> list[JudgedCall]:
    """Return judged calls with the extra fields that the model's server sent along with them."""
    extras = {call.id: call.server_fields for call in calls}
    return [
        replace(judged, call=replace(judged.call, server_fields=extras[judged.call.id]))
        for judged in judged_calls
    ]


def _report_refused(
    judged_calls: Sequence[JudgedCall], available: AvailableTools
) -> Iterator[ToolStarted | ToolFinished]:
    """Yield the events of calls that have a result without having run."""
    for judged in judged_calls[:CALLS_PER_ANSWER]:
        if judged.result:
            call = judged.call
            yield ToolStarted(call.id, call.tool_name, call.summary, available.arguments_of(call))
            yield ToolFinished(call.id, call.tool_name, ok=False, result=judged.result.text)
