"""Messages of Slack that are posted once, each in the best form that Slack takes.

Slack may refuse a message for its contents. So a message has several forms, the best first, and the first
that Slack takes is posted. If a call got no answer, its message may have been posted all the same. So it is
looked for by its key before it is posted again (`Posts.post_once`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.channels.slack import posting
from bot.channels.slack.errors import (
    CONTENT_CODES,
    NO_REPLY_CODES,
    code_of,
    may_have_succeeded,
    translate_errors,
)
from bot.channels.slack.places import SlackPlace, SlackPosted
from bot.channels.slack.workspaces import Workspaces
from bot.domain.chat import Clock
from bot.telemetry.logs import logger

log = logger(__name__)

T = TypeVar("T")
Message = Mapping[str, Any]  # the arguments of chat.postMessage and chat.update


class Posts:
    """Posts messages, and edits those that it posted."""

    def __init__(self, workspaces: Workspaces, clock: Clock) -> None:
        self._workspaces = workspaces
        self._clock = clock
        self._unconfirmed: dict[tuple[SlackPlace, str], datetime] = {}
        """The time of each post that Slack has not confirmed, by its place and key."""

    async def post_once(
        self, place: SlackPlace, key: str, forms: Sequence[Message], since: datetime | None = None
    ) -> tuple[SlackPosted, bool]:
        """Post the first of these forms that Slack takes. Return the message, and True if it is new.

        ``key`` identifies the message in its place. Before it is posted, a message with the key is looked
        for in two cases. If this process made such a call before, and Slack did not confirm it: among the
        posts since that call. Otherwise, if ``since`` is given, among the posts since then, because another
        process may have posted it.
        """
        with translate_errors():
            client = await self._workspaces.get_client(place.team)
            search_since = self._unconfirmed.get((place, key), since)
            if search_since is not None:
                existing = await posting.find_post(self._workspaces, place, key, search_since)
                if existing is not None:
                    self._unconfirmed.pop((place, key), None)
                    return existing, False
            self._unconfirmed.setdefault((place, key), self._clock())
            post = partial(_post_quietly, client, place, metadata=posting.make_search_metadata(key))
            try:
                posted = await _show_first_accepted(forms, post)
            except SlackApiError as error:
                if not may_have_succeeded(error):
                    self._unconfirmed.pop((place, key), None)
                raise
            self._unconfirmed.pop((place, key), None)
            return SlackPosted(place.team, str(posted["channel"]), str(posted["ts"])), True

    async def post_redrawable(
        self, place: SlackPlace, key: str, forms: Sequence[Message], since: datetime | None = None
    ) -> str:
        """Post a message that will be redrawn, once, and return its reference.

        If it was posted before, it is brought up to date instead.
        """
        message, is_new = await self.post_once(place, key, forms, since)
        if not is_new:
            await self.redraw(message, forms)
        return str(message)

    async def redraw(self, copy: SlackPosted, forms: Sequence[Message]) -> None:
        with translate_errors():
            client = await self._workspaces.get_client(copy.team)
            await _show_first_accepted(forms, partial(client.chat_update, channel=copy.channel, ts=copy.ts))


async def _post_quietly(client: AsyncWebClient, place: SlackPlace, **contents: Any) -> AsyncSlackResponse:
    """Post without previews; in the channel itself if the thread takes no reply."""
    contents |= {"channel": place.channel, "unfurl_links": False, "unfurl_media": False}
    try:
        return await client.chat_postMessage(thread_ts=place.thread, **contents)
    except SlackApiError as error:
        if place.thread is None or code_of(error) not in NO_REPLY_CODES:
            raise
        return await client.chat_postMessage(**contents)


async def _show_first_accepted(forms: Sequence[Message], show: Callable[..., Awaitable[T]]) -> T:
    """Show the first of these forms whose contents Slack does not refuse.

    ``show`` posts or edits a message.
    """
    *preferred_forms, last_form = forms
    for form in preferred_forms:
        try:
            return await show(**form)
        except SlackApiError as error:
            if code_of(error) not in CONTENT_CODES:
                raise
            log.warning("Slack refused what a message holds, another form follows", why=code_of(error))
    return await show(**last_form)
