"""Streaming of a turn as text that grows, for platforms where a message can be edited.

What is shown on the way is a preview and may be skipped; the final text is not. A long text goes out in
several posts: where one of them is refused, those before it are not posted again.
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
    """Stream by edits of one message; raises ChannelError only when the final text could not be posted."""

    def __init__(self) -> None:
        self._text = ""
        self._doing = ""
        self._far = ""  # how far that is
        self.choices: tuple[str, ...] = ()  # what people may say next, for buttons below the end

    @abstractmethod
    async def preview(self, text: str, doing: str) -> None:
        """Show the answer so far, and what is being done right now; may raise ChannelError."""

    @abstractmethod
    async def finish(self, text: str, note: str) -> None:
        """Show the answer as it ended, CommonMark, and a note of Nod's own below it."""

    async def send(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._text, self._doing, self._far = self._text + text, "", ""
            case TextRestarted():
                self._text = ""
            case Waited(words=words):
                self._doing, self._far = words, ""
            case ToolStarted(summary=summary):
                self._doing, self._far = summary, ""
            case ToolProgress(words=words):
                self._far = f" ({words})"
            case ToolFinished():
                self._doing = self._far = ""
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
            await self.preview(self._text, self._doing + self._far)
        except ChannelError as error:  # the final text is what counts
            log.info("preview refused", why=error.message)
        return None


@dataclass(frozen=True, slots=True)
class FullText:
    """A text to be posted as a file, with ``words`` and Nod's own note on it, if there is one."""

    text: str
    note: str = ""
    name: str = "answer.md"

    @property
    def words(self) -> str:
        return "\n\n".join(filter(None, ("This is a long answer. All of it is in the file.", self.note)))


def in_few(posts: Sequence[T], text: str, note: str = "") -> Sequence[T | FullText]:
    """Return the posts of a text.

    Where they are too many to read, the first of them and all of it as a file.
    """
    if len(posts) <= MOST_POSTS:
        return posts
    return [posts[0], FullText(text, note)]


async def post_each(posts: Sequence[T], after: int, post: Callable[[T], Awaitable[object]]) -> None:
    """Post one after the other, without the first ``after``; a ChannelError then says how many arrived."""
    for number, each in enumerate(posts[after:], after):
        try:
            await post(each)
        except ChannelError as error:
            error.arrived = number
            raise
