"""The offline demo model: no network, no chance, the same answer each time.

It implements `Model` for ``nod demo``. `respond` decides from the transcript alone: ``scene.py`` says where
the conversation stands, ``sentence.py`` cuts messages into words and clauses, ``grammar.py`` reads what
people want into ``wishes.py`` (``smalltalk.py`` where they want nothing), ``plan.py`` makes calls of it, and
``words.py`` tells what tools answered. One job takes up to four steps: look up the issues that were only
described, read them, propose the writes, tell how they ended. A lead agent with teammates is in ``team.py``.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

from bot.agent.model import Entry, Finished, Part, Stop, Text, ToolCall, ToolSpec
from bot.agent.offline import team, words
from bot.agent.offline.plan import DemoReply
from bot.agent.offline.scene import Scene

_WORD = re.compile(r"\s*\S+\s*?")


class OfflineModel:
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
    scene = Scene.of(transcript)
    if scene.writes:
        return "\n".join(words.end(done.tool, done.arguments, done.result) for done in scene.writes), ()
    return DemoReply(scene, {spec.name for spec in tools}).next()
