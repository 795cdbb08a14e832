"""Tracing for OpenTelemetry: turns, calls of the model, tools and approvals. Off until `begin_tracing`.

Names follow https://opentelemetry.io/docs/specs/semconv/gen-ai/ (1.41), and ``nod.*`` where that has none. No
span names a person or holds a message, an argument or a result.

A proposal may wait for weeks, and no span should last that long. So a proposal has a trace of its own, with
short spans: one when it is made, one when people decide, and one for each run, in whichever process that is.
The ids of the trace are computed from the proposal's id, so none is stored. The trace is linked with the turn
that proposed the call and with the turn that continues after it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bot.domain.model import Entry, Finished, Model, Part, StopReason, ToolSpec

Value = str | int | float | bool | tuple[str, ...]

_otel: Any = None  # the `Otel` of this process; its library is loaded only where an endpoint is set
# by OpenTelemetry's names
_FINISH_REASONS = {
    StopReason.LENGTH: "length",
    StopReason.FILTERED: "content_filter",
}


class TracedSpan:
    """A span that gets attributes while its work runs. It has no effect if nothing is traced."""

    def __init__(self, span: Any = None) -> None:
        self.span = span

    def set_attributes(self, values: Mapping[str, Value]) -> None:
        """Set attributes of the span. ``values``: their values, by name."""
        if self.span is not None:
            self.span.set_attributes(values)

    def fail(self, kind: str) -> None:
        """Mark the span as failed. ``kind``: one word, since the text of an error may hold secrets."""
        if self.span is not None:
            from opentelemetry.trace import StatusCode

            self.span.set_attribute("error.type", kind)
            self.span.set_status(StatusCode.ERROR)

    def end(self) -> None:
        if self.span is not None:
            self.span.end()


_NOTHING = TracedSpan()  # the span while nothing is traced


def begin_tracing(endpoint: str, headers: Mapping[str, str], process: str) -> Callable[[], None]:
    """Trace from now on, for the collector at ``endpoint``.

    Returns a function that ends the tracing; it blocks until the last spans are sent.
    """
    global _otel  # noqa: PLW0603 - as logging: one for the process, off in all tests but one
    from bot.telemetry.otel import Otel

    otel = Otel(endpoint, headers, process)
    _otel = otel

    def end() -> None:
        global _otel  # noqa: PLW0603
        _otel = None
        otel.close()

    return end


@contextmanager
def trace_turn(conversation_id: str, teammate: str, continued: Iterable[str]) -> Iterator[TracedSpan]:
    """Trace a turn of the agent. ``teammate``: its name; empty for the lead agent.

    ``continued``: the ids of the ended proposals whose results the turn takes up.
    """
    agent = teammate or "nod"
    values = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": conversation_id,
    }
    yield from _trace_block(lambda otel: otel.begin_root(f"invoke_agent {agent}", values, continued))


def begin_model_call(model: str, provider: str) -> TracedSpan:
    """Begin the span of a call of the language model, which its caller ends."""
    otel = _otel
    if otel is None:
        return _NOTHING
    values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.request.stream": True,
    }
    return TracedSpan(otel.begin_child(f"chat {model}", values, client=True))


@contextmanager
def trace_read(tool: str, call_id: str) -> Iterator[TracedSpan]:
    """Trace a tool that runs within a turn."""
    yield from _trace_block(
        lambda otel: otel.begin_child(f"execute_tool {tool}", _describe_tool(tool, call_id))
    )


@contextmanager
def trace_execution(proposal_id: str, tool: str, call_id: str) -> Iterator[TracedSpan]:
    """Trace a tool that runs for an approved proposal."""
    values = {**_describe_tool(tool, call_id), "nod.proposal.id": proposal_id}
    yield from _trace_block(lambda otel: otel.continue_keyed(proposal_id, f"execute_tool {tool}", values))


def trace_proposal(proposal_id: str, tool: str, cause: TracedSpan = _NOTHING) -> None:
    """Record a new proposal. ``cause``: the span of the turn that made it, if a turn did."""
    otel = _otel
    if otel is not None:
        values = {"nod.proposal.id": proposal_id, "gen_ai.tool.name": tool}
        otel.begin_keyed(proposal_id, f"propose {tool}", values, cause.span).end()


def trace_decision(proposal_id: str, tool: str, state: str, waited: float) -> None:
    """Record that people decided a proposal, or that it expired, after ``waited`` seconds.

    ``state``: its new state.
    """
    otel = _otel
    if otel is not None:
        values = {
            "nod.proposal.id": proposal_id,
            "gen_ai.tool.name": tool,
            "nod.approval.state": state,
            "nod.approval.wait_seconds": waited,
        }
        otel.continue_keyed(proposal_id, f"decide {tool}", values).end()


def _describe_tool(name: str, call_id: str) -> dict[str, Value]:
    values: dict[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
    }
    if call_id:
        values["gen_ai.tool.call.id"] = call_id
    return values


def _trace_block(start: Callable[[Any], Any]) -> Iterator[TracedSpan]:
    """Yield a span that is current during the ``with`` block. Of an exception only the type is recorded."""
    otel = _otel  # read once: another thread may end the tracing while the work runs
    if otel is None:
        yield _NOTHING
        return
    span = start(otel)
    traced = TracedSpan(span)
    try:
        with otel.current(span):
            yield traced
    except BaseException as error:
        traced.fail(type(error).__name__)
        raise
    finally:
        span.end()


class TracedModel:
    """Implements `Model` over another model, and makes each of its calls a span.

    ``provider`` and ``server`` name the model's maker and its host.
    """

    def __init__(self, model: Model, provider: str, server: str = "") -> None:
        self._model = model
        self._provider = provider
        self._server = server
        self.name = model.name

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        call = begin_model_call(self.name, self._provider)
        if self._server:
            call.set_attributes({"server.address": self._server})
        try:
            async for part in self._model.stream(transcript, tools):
                if isinstance(part, Finished):
                    call.set_attributes(_describe_end(part))
                yield part
        except (GeneratorExit, asyncio.CancelledError):
            call.fail("stopped")
            raise
        except Exception as error:
            call.fail(type(error).__name__)
            raise
        finally:
            call.end()

    async def close(self) -> None:
        await self._model.close()


def _describe_end(finished: Finished) -> dict[str, Value]:
    usual = "tool_calls" if finished.calls else "stop"
    reason = _FINISH_REASONS.get(finished.stop, usual)
    return {
        "gen_ai.response.finish_reasons": (reason,),
        "gen_ai.usage.input_tokens": finished.prompt_tokens,
        "gen_ai.usage.output_tokens": finished.completion_tokens,
    }
