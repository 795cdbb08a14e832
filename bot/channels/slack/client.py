"""Slack's client: it waits where Slack limits the rate, and translates channel ids (``moved_chats.py``)."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.channels.connecting import MAX_CALL_WAIT_SECONDS, PlatformWaits
from bot.channels.slack.errors import DEAD_TOKEN_CODES, RATE_LIMITED_CODE, code_of
from bot.channels.slack.moved_chats import ChannelMoves
from bot.errors import NotDeliverable
from bot.settings import Settings

_MAX_RATE_LIMIT_WAITS = 2  # the waits of one call
_POSTING_METHODS = frozenset(
    {
        "chat.postMessage",
        "chat.postEphemeral",
        "chat.startStream",
        "chat.appendStream",
        "files.completeUploadExternal",
    }
)
"""Methods that post something: called twice they would post it twice."""

sdk_logger = logging.getLogger("bot.slack.sdk")
sdk_logger.setLevel(logging.WARNING)  # an explicit level: the SDK formats its debug lines at NOTSET

_time_budget: ContextVar[float] = ContextVar("time_budget", default=MAX_CALL_WAIT_SECONDS)
"""The seconds for which a call may wait if Slack limits the rate; set by `limit_time`."""


@asynccontextmanager
async def limit_time(seconds: float) -> AsyncIterator[None]:
    """Limit the calls to Slack in this context to a time, including the waits that Slack imposes.

    Raises TimeoutError when the time is over. A call that would have to wait longer fails right away.
    """
    token = _time_budget.set(seconds)
    try:
        async with asyncio.timeout(seconds):
            yield
    finally:
        _time_budget.reset(token)


class Client(AsyncWebClient):
    """Slack's client, which waits as long as Slack asks for.

    It waits for at most `MAX_CALL_WAIT_SECONDS`, or for the time of `limit_time`.
    """

    end_if_refused: Callable[[str], Awaitable[bool]] | None = None
    """Called with a code of `DEAD_TOKEN_CODES`; returns True if the token really no longer works."""
    waits = PlatformWaits("slack")  # the waits that Slack imposes, shared by all processes
    team = ""  # the installation that the token belongs to
    moves: ChannelMoves | None = None  # translates the ids of channels

    async def api_call(self, api_method: str, **kwargs: Any) -> AsyncSlackResponse:
        """Call Slack as the SDK does, with the ids of channels that Slack knows today."""
        if self.moves is None:
            return await self._call(api_method, **kwargs)
        for key in ("json", "params"):
            if key in kwargs:
                kwargs[key] = self.moves.to_slack(self.team, kwargs[key])
        answer = await self._call(api_method, **kwargs)
        if isinstance(answer.data, dict):
            answer.data = self.moves.from_slack(self.team, answer.data)
        return answer

    async def _call(self, api_method: str, **kwargs: Any) -> AsyncSlackResponse:
        arguments = kwargs.get("json") or kwargs.get("params") or {}
        # Slack limits calls by workspace, method and channel
        limit_key = f"{self.team} {api_method} {arguments.get('channel', '')}"
        wait_count = 0
        while True:
            seconds_left = self.waits.count_seconds_left(limit_key)
            if seconds_left > _time_budget.get():
                raise _make_limit_error()
            await asyncio.sleep(seconds_left)
            try:
                return await super().api_call(api_method, **kwargs)
            except AttributeError as error:  # raised by the SDK for a 200 that is not JSON
                raise aiohttp.ClientPayloadError("its answer can't be read") from error
            except SlackApiError as error:
                seconds = _find_seconds_to_wait(error)
                if seconds is not None:
                    self.waits.note_wait(limit_key, seconds)
                    if wait_count < _MAX_RATE_LIMIT_WAITS:
                        wait_count += 1
                        continue
                code = code_of(error)
                if (
                    code in DEAD_TOKEN_CODES
                    and self.end_if_refused is not None
                    and await self.end_if_refused(code)
                ):
                    raise NotDeliverable(f"Slack no longer accepts the token ({code})") from error
                raise


def _make_limit_error() -> SlackApiError:
    response = {"ok": False, "error": RATE_LIMITED_CODE}
    return SlackApiError("Slack accepts no more of this for now.", response)  # type: ignore[no-untyped-call]


def _find_seconds_to_wait(error: SlackApiError) -> float | None:
    """Return the seconds until Slack takes the call again; None where it refused for another reason."""
    response = error.response
    if not isinstance(response, AsyncSlackResponse) or response.status_code != HTTPStatus.TOO_MANY_REQUESTS:
        return None
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        seconds = float(headers.get("retry-after", 1))
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(seconds) else seconds


class _RetryAfterServerError(AsyncServerErrorRetryHandler):
    """Tries again after a 5xx, unless the call may have posted something before it failed."""

    async def can_retry_async(self, *, request: HttpRequest, **arguments: Any) -> bool:
        return _may_repeat(request) and await super().can_retry_async(request=request, **arguments)


class _RetryAfterLostConnection(AsyncConnectionErrorRetryHandler):
    """Tries again after a lost connection, unless the call may have posted something before."""

    async def can_retry_async(self, *, request: HttpRequest, **arguments: Any) -> bool:
        return _may_repeat(request) and await super().can_retry_async(request=request, **arguments)


def _may_repeat(request: HttpRequest) -> bool:
    """Tell if a request is safe to repeat. Callers of the posting methods retry by themselves."""
    return request.url.rpartition("/")[2] not in _POSTING_METHODS


def make_client(
    settings: Settings, token: str | None, session: aiohttp.ClientSession | None = None
) -> Client:
    """Build a client that repeats calls after a fault of Slack, if they are safe to repeat."""
    root = settings.slack_api_url
    return Client(
        token=token,
        base_url=root if root.endswith("/") else f"{root}/",
        session=session,
        logger=sdk_logger,
        retry_handlers=[
            _RetryAfterLostConnection(),
            _RetryAfterServerError(max_retry_count=2),
        ],
    )
