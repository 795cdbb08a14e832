"""The demo model: no network, no chance, the same answer each time.

It stands in for a language model in ``nod demo``, and decides from the transcript alone. ``conversation.py``
says where that stands, ``sentences.py`` what people's sentences ask for, ``answer.py`` makes reads and
proposals of it, and ``words.py`` tells what tools answered. One job takes up to four steps: find the issues
that were only described, read, propose the writes, tell how they ended. ``team.py`` leads teammates.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

from bot.agent.demo import team, words
from bot.agent.demo.answer import DemoAnswer
from bot.agent.demo.conversation import DemoConversation
from bot.domain.model import Entry, Finished, Part, Stop, Text, ToolCall, ToolSpec

_WORD = re.compile(r"\s*\S+\s*?")


class DemoModel:
    """Implements `Model`. ``pace`` is the pause after each word, in seconds."""

    name = "offline demo model"

    def __init__(self, pace: float = 0.02) -> None:
        self._pace = pace

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield the answer word by word, then `Finished`. Raises nothing."""
        text, calls = respond(transcript, tools)
        for word in _WORD.findall(text):
            yield Text(word)
            await asyncio.sleep(self._pace)
        yield Finished(Stop.FINISHED, calls)

    async def close(self) -> None:
        """Close nothing: nothing is open."""


def respond(transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> tuple[str, tuple[ToolCall, ...]]:
    """Decide the next answer: its text and its calls."""
    if (answer := team.respond(transcript, tools)) is not None:
        return answer
    conversation = DemoConversation.of(transcript)
    if writes := conversation.writes:
        return "\n".join(words.end(each.tool, each.arguments, each.result) for each in writes), ()
    return DemoAnswer(conversation, {spec.name for spec in tools}).next()
