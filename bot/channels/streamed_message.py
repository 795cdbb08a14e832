"""Streaming of a turn as text that grows, for platforms on which a message can be edited.

Texts before the end are previews and may be skipped; the final text is always posted. A long text goes out in
several posts: if one of them is refused, those before it are not posted again.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bot.domain.events import (
    STOPPED,
    Ending,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    Waited,
)
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

T = TypeVar("T")
MOST_POSTS = 5


class StreamedMessage(ABC):
    """A `Stream` by edits of one message. It only raises ChannelError if the final text can't be posted."""

    def __init__(self) -> None:
        self._text = ""
        self._activity = ""  # the current activity, such as the tool that runs
        self._progress = ""  # how far the activity has come, written behind it
        self.choices: tuple[str, ...] = ()  # the labels of buttons below the final text

    @abstractmethod
    async def preview(self, text: str, doing: str) -> None:
        """Show the answer so far, and the current activity; may raise ChannelError."""

    @abstractmethod
    async def finish(self, text: str, note: str) -> None:
        """Show the final answer, CommonMark, and a note of Nod's own below it."""

    async def send(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._text, self._activity, self._progress = self._text + text, "", ""
            case TextRestarted():
                self._text = ""
            case Waited(words=words):
                self._activity, self._progress = words, ""
            case ToolStarted(summary=summary):
                self._activity, self._progress = summary, ""
            case ToolProgress(words=words):
                self._progress = f" ({words})"
            case ToolFinished():
                self._activity = self._progress = ""
            case TurnEnded(ending=Ending.STOPPED):
                return await self.finish(self._text, f"⏹ {STOPPED}")
            case TurnEnded(text=text):
                return await self.finish(text, "")
            case TurnFailed(explanation=explanation, choices=choices):
                self.choices = choices
                return await self.finish(self._text, f"⚠️ {explanation}")
            case _:
                return None
        try:
            await self.preview(self._text, self._activity + self._progress)
        except ChannelError as error:  # only the final text must arrive
            log.info("preview refused", why=error.message)
        return None


@dataclass(frozen=True, slots=True)
class FullText:
    """A text that is posted as a file, below a message with ``words``; ``note`` is Nod's own."""

    text: str
    note: str = ""
    name: str = "answer.md"

    @property
    def words(self) -> str:
        return "\n\n".join(filter(None, ("This is a long answer. All of it is in the file.", self.note)))


def in_few(posts: Sequence[T], text: str, note: str = "") -> Sequence[T | FullText]:
    """Return the posts of a text; of too many only the first, and the full text as a file."""
    if len(posts) <= MOST_POSTS:
        return posts
    return [posts[0], FullText(text, note)]


async def post_each(posts: Sequence[T], after: int, post: Callable[[T], Awaitable[object]]) -> None:
    """Post one after the other, without the first ``after``. A ChannelError has the number that arrived."""
    for number, item in enumerate(posts[after:], after):
        try:
            await post(item)
        except ChannelError as error:
            error.arrived = number
            raise
