"""A language model whose calls are traced (``bot/telemetry/tracing.py``)."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from bot.domain.model import Entry, Finished, Model, Part, Stop, ToolSpec
from bot.telemetry import tracing

_REASONS = {Stop.LENGTH: "length", Stop.FILTERED: "content_filter"}


class Traced:
    """Implements `Model` over another one; ``provider`` and ``server`` say whose it is and where."""

    def __init__(self, model: Model, provider: str, server: str = "") -> None:
        self._model, self._provider, self._server = model, provider, server
        self.name = model.name

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        call = tracing.call_of_model(self.name, self._provider)
        if self._server:
            call.say({"server.address": self._server})
        try:
            async for part in self._model.stream(transcript, tools):
                if isinstance(part, Finished):
                    call.say(_told(part))
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


def _told(finished: Finished) -> dict[str, tracing.Value]:
    reason = _REASONS.get(finished.stop) or ("tool_calls" if finished.calls else "stop")
    return {
        "gen_ai.response.finish_reasons": (reason,),
        "gen_ai.usage.input_tokens": finished.prompt_tokens,
        "gen_ai.usage.output_tokens": finished.completion_tokens,
    }
