"""Streaming of a turn as text that grows, for platforms on which a message can be edited.

`StreamedMessage` is the base of a channel's stream. A text before the end is a preview, which may be skipped
or refused; the final text is always posted. A long text goes out in several posts, or as its first post and a
file with the full text (`limit_posts`). If a post is refused, those before it are not posted again
(`post_each`).
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
    TurnDelayed,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

T = TypeVar("T")  # the platform's type of a post
MAX_POSTS = 5  # the posts of one text; a longer text becomes a file


class StreamedMessage(ABC):
    """A `Stream` by edits of one message. `send` raises ChannelError only for the final text."""

    def __init__(self) -> None:
        self._text = ""
        self._activity = ""  # the current activity, such as the tool that runs
        self._progress = ""  # how far the activity has come, written behind it
        self.choices: tuple[str, ...] = ()  # the labels of buttons below the final text

    @abstractmethod
    async def preview(self, text: str, activity: str) -> None:
        """Show the answer so far, and Nod's current activity, which may be empty. May raise ChannelError."""

    @abstractmethod
    async def finish(self, text: str, note: str) -> None:
        """Show the final answer, CommonMark, and a note of Nod's own below it."""

    async def send(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._text += text
                self._set_activity("")
            case TextRestarted():
                self._text = ""
            case TurnDelayed(words=words):
                self._set_activity(words)
            case ToolStarted(summary=summary):
                self._set_activity(summary)
            case ToolProgress(words=words):
                self._progress = f" ({words})"
            case ToolFinished():
                self._set_activity("")
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

    def _set_activity(self, activity: str) -> None:
        self._activity = activity
        self._progress = ""


@dataclass(frozen=True, slots=True)
class FullText:
    """A text that is posted as a file, together with a short message."""

    text: str
    note: str = ""  # a note of Nod's own for the message
    name: str = "answer.md"

    @property
    def message_text(self) -> str:
        """The text of the message."""
        return "\n\n".join(filter(None, ("This is a long answer. All of it is in the file.", self.note)))


def limit_posts(posts: Sequence[T], text: str, note: str = "") -> Sequence[T | FullText]:
    """Return the posts of a text; if more than `MAX_POSTS`, only the first and the full text as a file."""
    if len(posts) <= MAX_POSTS:
        return posts
    return [posts[0], FullText(text, note)]


async def post_each(posts: Sequence[T], arrived_count: int, post: Callable[[T], Awaitable[object]]) -> None:
    """Post one after the other, except for the first ``arrived_count``, which have arrived already.

    Raises the ChannelError of a refusal. Its attribute ``arrived`` is the number of posts that have arrived.
    """
    for number, item in enumerate(posts[arrived_count:], arrived_count):
        try:
            await post(item)
        except ChannelError as error:
            error.arrived = number
            raise
