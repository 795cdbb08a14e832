"""Requests to Discord's REST API by `DiscordRest`, repeated after a rate limit, a fault or a lost answer.

A refusal of Discord becomes an error of Nod's: CopyGone for a message that is gone, `DiscordFinalRefusal` if
the same call will never succeed, else `DiscordRefusal`. A message carries a nonce that Discord enforces for a
few minutes, so a message whose answer was lost is not posted twice:
https://docs.discord.com/developers/resources/message#create-message. Retry-After says when to try again, and
X-RateLimit-Remaining how many calls are left: https://docs.discord.com/developers/topics/rate-limits.
Refusals are told apart by their JSON codes:
https://docs.discord.com/developers/topics/opcodes-and-status-codes.
"""

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx2

from bot.channels.connecting import MAX_CALL_WAIT_SECONDS, PlatformWaits
from bot.channels.discord.places import MAX_FILE_BYTES, DiscordPlace, path_of
from bot.channels.streamed_message import FullText
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.settings import Settings

_NO_MEMBER_CODES = (10007, 10013)  # no member of this server, or no such user
_UNKNOWN_MESSAGE_CODE = 10008
UNKNOWN_WEBHOOK = 10015  # also for an interaction to which Discord has not seen Nod's answer yet
_ARCHIVED_CODE = 50083
_FINAL_REFUSALS = {
    10003: "the channel does not exist",
    10013: "there is no such person",
    40005: "the file is too large",
    50001: "Nod can't see the channel; give it View Channel there",
    50007: "this person takes no direct messages from Nod",
    50013: "Nod may not write there; give it Send Messages and Embed Links",
    _ARCHIVED_CODE: "the thread is archived",
    160005: "the thread is locked",
}
_TEMPORARY_STATUSES = (401, 408, 429)
"""Statuses after which the same call may succeed later."""
_SERVER_FAULT_STATUS = 500
_MAX_TRIES = 3
_SHORT_PAUSE_SECONDS = 0.5  # before a repetition after UNKNOWN_WEBHOOK, or after a fault of Discord
PLAIN = 1 << 2  # the flag SUPPRESS_EMBEDS: a link in the message loads nothing

Json = dict[str, Any]
_NO_MENTIONS: Json = {"allowed_mentions": {"parse": []}}  # mentions in the message notify no one


class DiscordRefusal(ChannelError):
    """A refusal by Discord; the same call may succeed later."""

    status = 0  # the status of the HTTP response
    code: int | None = None  # Discord's own code of the error


class DiscordFinalRefusal(DiscordRefusal, NotDeliverable):
    """A refusal by Discord that is final: the same call never succeeds."""


def make_refusal(status: int, answer: Mapping[str, Any]) -> ChannelError:
    """Return the error for a response that is no success, by its status and its body."""
    code = answer.get("code") or status
    words = answer.get("message") or "no reason given"
    if code == _UNKNOWN_MESSAGE_CODE or "REPLIES_UNKNOWN_MESSAGE" in str(answer.get("errors")):
        return CopyGone(f"Discord: {words}")
    is_temporary = status in _TEMPORARY_STATUSES or status >= _SERVER_FAULT_STATUS
    if code in _FINAL_REFUSALS:
        words = f"{_FINAL_REFUSALS[code]}."
        is_temporary = False
    refusal_type = DiscordRefusal if is_temporary else DiscordFinalRefusal
    error = refusal_type(f"Discord refused ({code}): {words}")
    error.status = status
    error.code = answer.get("code")
    return error


class DiscordRest:
    """Client of Discord's REST API; ``sleep`` takes seconds, ``elapsed`` returns them."""

    def __init__(
        self,
        settings: Settings,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        token = settings.discord_bot_token
        headers = {"Authorization": f"Bot {token.get_secret_value() if token else ''}"}
        self._client = httpx2.AsyncClient(base_url=settings.discord_api_url.rstrip("/"), headers=headers)
        self._app = settings.discord_application_id
        self._sleep = sleep
        self._elapsed = elapsed
        self.waits = PlatformWaits("discord", elapsed)  # after refusals; all processes share them
        self._no_calls_until: dict[tuple[str, str], float] = {}
        """The time by ``elapsed`` until which no call is left, by method and channel."""
        self.is_token_refused = False  # Discord did not accept the token in its last answer
        self._direct_channels: dict[str, str] = {}  # the channel of direct messages, by person
        self.close = self._client.aclose

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        file: tuple[str, str | bytes] | None = None,
        patience: float = MAX_CALL_WAIT_SECONDS,
    ) -> Any:
        """Call the API, up to three times if that may help, and return the JSON of the response.

        ``file``: its name and content. ``patience``: the most seconds to wait if Discord limits the rate.
        Raises ChannelError.
        """
        contents = _make_contents(body, file)
        error = ChannelError("Discord was not asked.")
        # calls of one method in one channel share a rate limit; the key is such as "PATCH 123"
        limit_key = f"{method} {_find_limited_part(path)}" if path.startswith("/channels/") else ""
        for _ in range(_MAX_TRIES):
            seconds_left = self.waits.count_seconds_left(limit_key) if limit_key else 0.0
            if seconds_left > patience:
                raise ChannelError("Discord accepts no more here for now.")
            if seconds_left:
                await self._sleep(seconds_left)
            try:
                response = await self._client.request(method, path, **contents)
                answer = response.json() if response.content else {}
            except (httpx2.HTTPError, ValueError) as failure:
                error = ChannelError(
                    f"Discord could not be reached: {str(failure) or type(failure).__name__}"
                )
                continue
            self._note_limit(method, path, response.headers)
            if not path.startswith("/webhooks/"):  # these take no token
                self.is_token_refused = response.status_code == httpx2.codes.UNAUTHORIZED
            if response.is_success:
                return answer
            error = make_refusal(response.status_code, answer)
            pause = _find_pause(response, answer)
            if pause is not None and limit_key:
                self.waits.note_wait(limit_key, pause)
            if pause is None or pause > patience:
                break
            if not limit_key:  # with a key, the next round of this loop waits for ``seconds_left``
                await self._sleep(pause)
        raise error

    def _note_limit(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Note until when a channel takes no more calls of a method, if a response says that none is left."""
        if headers.get("X-RateLimit-Remaining") == "0":
            with contextlib.suppress(ValueError):
                until = self._elapsed() + float(headers.get("X-RateLimit-Reset-After", ""))
                self._no_calls_until[method, _find_limited_part(path)] = until

    async def has_room(self, place: DiscordPlace, method: str) -> bool:
        """Tell if Discord's rate limit leaves room for one more message, or edit, in this channel now."""
        return self._elapsed() >= self._no_calls_until.get((method, await self.find_channel(place)), 0)

    async def find_channel(self, place: DiscordPlace) -> str:
        """Return the id of a place's channel; for a person, that of their direct messages with Nod."""
        if place.person and place.person not in self._direct_channels:
            opened = await self.call("POST", "/users/@me/channels", {"recipient_id": place.person})
            self._direct_channels[place.person] = str(opened["id"])
        if place.person:
            return self._direct_channels[place.person]
        return place.channel

    async def load_member(self, server: str, user: str) -> Json | None:
        """Return Discord's record of a server's member; None for one who has left, and for a bot."""
        try:
            record: Json = await self.call("GET", f"/guilds/{server}/members/{user}")
        except DiscordRefusal as error:
            if error.code not in _NO_MEMBER_CODES:
                raise
            return None
        if record["user"].get("bot"):
            return None
        return record

    async def check_may_post(self, place: DiscordPlace) -> None:
        """Raise ChannelError if Nod can't post in a place.

        The check shows people there for some seconds that Nod is writing, which needs the same right.
        """
        await self.call("POST", f"/channels/{await self.find_channel(place)}/typing")

    async def post(self, place: DiscordPlace, message: Json, nonce: str = "", **options: Any) -> Json:
        """Post a message, and return it as Discord stored it. ``nonce``: at most 25 characters."""
        identity = {"nonce": nonce or secrets.token_hex(12), "enforce_nonce": True}
        path = f"/channels/{await self.find_channel(place)}/messages"
        posted: Json = await self.call("POST", path, _NO_MENTIONS | message | identity, **options)
        return posted

    async def post_text(self, place: DiscordPlace, post: str | FullText, rows: Sequence[Json] = ()) -> None:
        """Post a text that fits one message, with rows of buttons below it."""
        buttons = {"components": list(rows)} if rows else {}
        if isinstance(post, FullText):
            await self.post(place, {"content": post.message_text} | buttons, file=(post.name, post.text))
        else:
            await self.post(place, {"content": post, "flags": PLAIN} | buttons)

    async def edit(self, ref: str, message: Json, patience: float = MAX_CALL_WAIT_SECONDS) -> None:
        """Change a message. In an archived thread, which takes no edits, open the thread first."""
        try:
            await self.call("PATCH", path_of(ref), _NO_MENTIONS | message, patience=patience)
        except DiscordFinalRefusal as error:
            if error.code != _ARCHIVED_CODE:
                raise
            await self.call("PATCH", f"/channels/{ref.partition('/')[0]}", {"archived": False})
            await self.call("PATCH", path_of(ref), _NO_MENTIONS | message, patience=patience)

    async def delete(self, ref: str) -> None:
        await self.call("DELETE", path_of(ref))

    async def answer(self, token: str, message: Json, *, original: bool, **options: Any) -> None:
        """Send a message about an interaction, in the 15 minutes in which Discord takes one.

        ``original``: the message replaces the immediate answer, or the pressed message. Else it is a further
        message.
        """
        path = f"/webhooks/{self._app}/{token}"
        if original:
            path += "/messages/@original"
        await self.call("PATCH" if original else "POST", path, _NO_MENTIONS | message, **options)


def _find_limited_part(path: str) -> str:
    """Return the id for which Discord limits calls: in ``/channels/123/messages`` it is ``123``."""
    return path.split("/")[2]


def _make_contents(body: Any, file: tuple[str, str | bytes] | None) -> Json:
    """Return the contents of a request: JSON, or a form with the JSON and a file."""
    if file is None:
        return {"json": body} if body is not None else {}
    name, content = file
    data = content.encode(errors="replace") if isinstance(content, str) else content
    if len(data) > MAX_FILE_BYTES:
        raise NotDeliverable("Discord takes files up to 10 MiB.")
    return {"data": {"payload_json": json.dumps(body)}, "files": {"files[0]": (name, data)}}


def _find_pause(response: httpx2.Response, answer: Mapping[str, Any]) -> float | None:
    """Return the seconds after which to repeat a call; None if a repeat now would not help."""
    if answer.get("code") == UNKNOWN_WEBHOOK or response.status_code >= _SERVER_FAULT_STATUS:
        return _SHORT_PAUSE_SECONDS
    try:
        return float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
