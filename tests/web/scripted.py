"""A model that answers by script: parts to stream, events to wait for, errors to raise."""

import asyncio
import itertools
import json
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

from bot.domain.model import Entry, Finished, Part, StopReason, Text, ToolCall, ToolSpec

Step = Part | asyncio.Event | Exception
_ids = itertools.count(1)


def say(*texts: str) -> list[Step]:
    """An answer that is only text."""
    return [*map(Text, texts), Finished(StopReason.FINISHED)]


def ask(*calls: tuple[str, dict[str, Any]], text: str = "") -> list[Step]:
    """An answer that ends in tool calls."""
    made = tuple(ToolCall(f"call-{next(_ids)}", name, json.dumps(arguments)) for name, arguments in calls)
    return [*([Text(text)] if text else []), Finished(StopReason.FINISHED, made)]


class ScriptedModel:
    """Implements `Model`. Without a scripted answer left it says ``Understood.``"""

    name = "scripted model"

    def __init__(self, *answers: Sequence[Step]) -> None:
        self._answers = deque(answers)
        self.seen: list[Sequence[Entry]] = []
        self.asked = asyncio.Event()  # set with each request

    def answer(self, *answers: Sequence[Step]) -> None:
        self._answers.extend(answers)

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        self.seen.append(transcript)
        self.asked.set()
        for step in self._answers.popleft() if self._answers else say("Understood."):
            match step:
                case asyncio.Event():
                    await step.wait()
                case Exception():
                    raise step
                case _:
                    yield step

    async def close(self) -> None:
        pass
