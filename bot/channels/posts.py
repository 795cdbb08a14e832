"""A text in several posts: where one of them is refused, those before it are not posted again."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from bot.errors import ChannelError

T = TypeVar("T")


async def post_each(posts: Sequence[T], after: int, post: Callable[[T], Awaitable[object]]) -> None:
    """Post one after the other, without the first ``after``; a ChannelError then says how many arrived."""
    for number, each in enumerate(posts[after:], after):
        try:
            await post(each)
        except ChannelError as error:
            error.arrived = number
            raise
