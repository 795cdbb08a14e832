"""A model that answers as it was told to, and knows what a server would refuse."""

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.model import (
    AssistantText,
    Entry,
    Finished,
    Part,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.testing.control import Hold
from tests.kit.world import _call_ids


@dataclass(frozen=True)
class Scripted:
    """One answer: text in pieces, calls, and how it stops; or a fault, after the text if there is some."""

    pieces: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason = StopReason.FINISHED
    fault: Exception | None = None
    hold: Hold | None = None  # before the first piece


def call(name: str, arguments: Mapping[str, Any] | str | None = None, /, **named: Any) -> ToolCall:
    """A tool call; ``arguments`` as a string is the raw text the model sends."""
    text = arguments if isinstance(arguments, str) else json.dumps({**(arguments or {}), **named})
    return ToolCall(f"call_{next(_call_ids)}", name, text)


def says(
    text: str, *calls: ToolCall, stop: StopReason = StopReason.FINISHED, hold: Hold | None = None
) -> Scripted:
    """The text comes in two pieces, as streams do."""
    half = len(text) // 2
    return Scripted(tuple(p for p in (text[:half], text[half:]) if p), calls, stop, hold=hold)


def breaks(fault: Exception, after: str = "", hold: Hold | None = None) -> Scripted:
    return Scripted((after,) if after else (), fault=fault, hold=hold)


class ScriptedModel:
    """Implements `Model`: gives queued answers, then what its rule says; remembers what it was shown."""

    def __init__(self, name: str = "scripted") -> None:
        self.name = name
        self.answers: deque[Scripted] = deque()
        self.rule: Callable[[Sequence[Entry]], Scripted] = lambda _: says("OK.")
        self.transcripts: list[tuple[Entry, ...]] = []
        self.offered: list[tuple[ToolSpec, ...]] = []
        self.faults: list[str] = []

    def will(self, *answers: Scripted) -> None:
        self.answers.extend(answers)

    @property
    def heard(self) -> list[str]:
        """What people and notes said in the last transcript."""
        return [e.text for e in self.transcripts[-1] if isinstance(e, UserText)]

    @property
    def prompt(self) -> str:
        """The system prompt of the last transcript."""
        return self.transcripts[-1][0].text

    @property
    def results(self) -> list[str]:
        """The tool results of the last transcript."""
        return [e.text for e in self.transcripts[-1] if isinstance(e, ToolResult)]

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of the last transcript."""
        return [c for e in self.transcripts[-1] if isinstance(e, AssistantText) for c in e.calls]

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        self.transcripts.append(tuple(transcript))
        self.offered.append(tuple(tools))
        self.faults += history_faults(transcript)
        answer = self.answers.popleft() if self.answers else self.rule(transcript)
        if answer.hold:
            await answer.hold.wait()
        for piece in answer.pieces:
            yield Text(piece)
        if answer.fault:
            raise answer.fault
        yield Finished(answer.stop, answer.calls, 10, 5)

    async def close(self) -> None: ...


def history_faults(transcript: Sequence[Entry]) -> list[str]:
    """What a server would refuse: calls not followed by their results, in order, each with JSON arguments."""
    faults = []
    expected: list[str] = []
    for entry in transcript:
        if isinstance(entry, ToolResult):
            if not expected or expected.pop(0) != entry.call_id:
                faults.append(f"the result of {entry.call_id} stands where it does not belong")
            continue
        if expected:
            faults.append(f"{type(entry).__name__} stands before the results of {expected}")
            expected = []
        if isinstance(entry, AssistantText):
            expected = [c.id for c in entry.calls]
            broken = [c.id for c in entry.calls if not isinstance(json.loads(c.arguments), dict)]
            faults += [f"the arguments of {ident} are no object" for ident in broken]
    return faults + ([f"no results for {expected}"] if expected else [])
