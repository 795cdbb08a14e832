"""A text in several posts: where one of them is refused, those before it are not posted again."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bot.errors import ChannelError

T = TypeVar("T")

MOST_POSTS = 5


@dataclass(frozen=True, slots=True)
class FullText:
    """A text to be posted as a file."""

    text: str
    name: str = "answer.md"
    words: str = "This is a long answer. All of it is in the file."


def in_few(posts: Sequence[T], text: str) -> Sequence[T | FullText]:
    """The posts of a text; where they are too many to read, the first of them and all of it as a file."""
    return posts if len(posts) <= MOST_POSTS else [posts[0], FullText(text)]


async def post_each(posts: Sequence[T], after: int, post: Callable[[T], Awaitable[object]]) -> None:
    """Post one after the other, without the first ``after``; a ChannelError then says how many arrived."""
    for number, each in enumerate(posts[after:], after):
        try:
            await post(each)
        except ChannelError as error:
            error.arrived = number
            raise
