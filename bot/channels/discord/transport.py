"""Requests to Discord's REST API: repeated when it says so, and where an answer was lost.

A message carries a nonce that Discord enforces for a few minutes, so one that arrived unanswered is not
posted again: https://docs.discord.com/developers/resources/message#create-message. Retry-After says when to
come back, and X-RateLimit-Remaining whether there is room now: https://docs.discord.com/developers/topics/rate-limits.
Refusals are told apart by their JSON codes: https://docs.discord.com/developers/topics/opcodes-and-status-codes.
"""

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx2

from bot.channels.connecting import PATIENCE, Waits
from bot.channels.discord.places import FILE, DiscordPlace, path_of
from bot.channels.streamed_message import FullText
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.settings import Settings

_NO_MEMBER = (10007, 10013)  # of this server, or no person at all
_UNKNOWN_MESSAGE = 10008
UNKNOWN_WEBHOOK = 10015  # also: Discord has not seen our answer to the interaction yet
_ARCHIVED = 50083
_NEVER = {
    10003: "the channel does not exist",
    10013: "there is no such person",
    40005: "the file is too large",
    50001: "Nod can't see the channel; give it View Channel there",
    50007: "this person takes no direct messages from Nod",
    50013: "Nod may not write there; give it Send Messages and Embed Links",
    _ARCHIVED: "the thread is archived",
    160005: "the thread is locked",
}


_PASSES = (401, 408, 429)
"""Statuses after which the same may be accepted later, as after Discord's own faults."""
_OWN_FAULT = 500
_TRIES = 3
_SOON = 0.5  # seconds until Discord has surely read our answer, or may be over a fault of its own
PLAIN = 1 << 2  # the flag SUPPRESS_EMBEDS: a link in the message loads nothing


Json = dict[str, Any]
_QUIET: Json = {"allowed_mentions": {"parse": []}}  # it notifies no one


class DiscordRefusal(ChannelError):
    """A refusal after which the same may be accepted; ``status`` is HTTP's."""

    status = 0
    code: int | None = None  # of Discord's own


class DiscordNever(DiscordRefusal, NotDeliverable):
    """A refusal that would come again."""


def refusal(status: int, told: Mapping[str, Any]) -> ChannelError:
    """Return the error for an answer that is no success."""
    code, words = told.get("code") or status, told.get("message") or "no reason given"
    if code == _UNKNOWN_MESSAGE or "REPLIES_UNKNOWN_MESSAGE" in str(told.get("errors")):
        return CopyGone(f"Discord: {words}")
    if code in _NEVER:
        words = f"{_NEVER[code]}."
    passes = code not in _NEVER and (status in _PASSES or status >= _OWN_FAULT)
    error = (DiscordRefusal if passes else DiscordNever)(f"Discord refused ({code}): {words}")
    error.status, error.code = status, told.get("code")
    return error


class DiscordRest:
    """Client of Discord's REST API; ``sleep`` takes seconds, ``elapsed`` gives them."""

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
        self.waits = Waits("discord", elapsed)
        self._full: dict[tuple[str, str], float] = {}  # until when a channel takes no more, of ``elapsed``
        self.refused = False  # whether Discord's last answer was that it does not accept the token
        self._direct: dict[str, str] = {}  # the channel of direct messages, by person
        self.close = self._client.aclose

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        file: tuple[str, str | bytes] | None = None,
        patience: float = PATIENCE,
    ) -> Any:
        """Call the API, up to three times where that may help. Raises ChannelError.

        ``file`` is its name and content, ``patience`` the most seconds to wait where Discord says to.
        """
        given: Json = {"json": body} if body is not None else {}
        if file is not None:
            content = file[1].encode(errors="replace") if isinstance(file[1], str) else file[1]
            if len(content) > FILE:
                raise NotDeliverable("Discord takes files up to 10 MiB.")
            given = {"data": {"payload_json": json.dumps(body)}, "files": {"files[0]": (file[0], content)}}
        error = ChannelError("Discord was not asked.")
        place = f"{method} {path.split('/')[2]}" if path.startswith("/channels/") else ""
        for _ in range(_TRIES):
            if place and (left := self.waits.count_seconds_left(place)):
                if left > patience:
                    raise ChannelError("Discord accepts no more here for now.")
                await self._sleep(left)
            try:
                answer = await self._client.request(method, path, **given)
                told = answer.json() if answer.content else {}
            except (httpx2.HTTPError, ValueError) as failed:
                error = ChannelError(f"Discord could not be reached: {str(failed) or type(failed).__name__}")
                continue
            self._note(method, path, answer.headers)
            if not path.startswith("/webhooks/"):  # these take no token
                self.refused = answer.status_code == httpx2.codes.UNAUTHORIZED
            if answer.is_success:
                return told
            error = refusal(answer.status_code, told)
            early = told.get("code") == UNKNOWN_WEBHOOK or answer.status_code >= _OWN_FAULT
            pause = _SOON if early else _pause(answer)
            if pause is not None and place:
                self.waits.told(place, pause)
            if pause is None or pause > patience:
                break
            if not place:
                await self._sleep(pause)
        raise error

    def _note(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        if headers.get("X-RateLimit-Remaining") == "0":
            with contextlib.suppress(ValueError):
                until = self._elapsed() + float(headers.get("X-RateLimit-Reset-After", ""))
                self._full[method, path.split("/")[2]] = until

    async def spare(self, place: DiscordPlace, method: str) -> bool:
        """Return whether Discord's count leaves room for one more message, or edit, in this channel now."""
        return self._elapsed() >= self._full.get((method, await self.channel_of(place)), 0)

    async def channel_of(self, place: DiscordPlace) -> str:
        if place.person and place.person not in self._direct:
            opened = await self.call("POST", "/users/@me/channels", {"recipient_id": place.person})
            self._direct[place.person] = str(opened["id"])
        if place.person:
            return self._direct[place.person]
        return place.channel

    async def member(self, server: str, user: str) -> Json | None:
        """Return a server's data on a member; None for one who has left, and for a bot."""
        try:
            found: Json = await self.call("GET", f"/guilds/{server}/members/{user}")
        except DiscordRefusal as error:
            if error.code not in _NO_MEMBER:
                raise
            return None
        if found["user"].get("bot"):
            return None
        return found

    async def check(self, place: DiscordPlace) -> None:
        """Show for some seconds that Nod writes, as only those may who can post."""
        await self.call("POST", f"/channels/{await self.channel_of(place)}/typing")

    async def post(self, place: DiscordPlace, message: Json, nonce: str = "", **more: Any) -> Json:
        """Post a message; gives it as Discord keeps it. ``nonce``: at most 25 characters."""
        once = {"nonce": nonce or secrets.token_hex(12), "enforce_nonce": True}
        path = f"/channels/{await self.channel_of(place)}/messages"
        kept: Json = await self.call("POST", path, _QUIET | message | once, **more)
        return kept

    async def post_text(self, place: DiscordPlace, post: str | FullText, rows: Sequence[Json] = ()) -> None:
        """Post one of the posts of a text, and rows of buttons below it."""
        below = {"components": list(rows)} if rows else {}
        if isinstance(post, FullText):
            await self.post(place, {"content": post.words} | below, file=(post.name, post.text))
        else:
            await self.post(place, {"content": post, "flags": PLAIN} | below)

    async def edit(self, ref: str, message: Json, patience: float = PATIENCE) -> None:
        """Change a message; in a thread that was left alone, so that Discord archived it, open that first."""
        try:
            await self.call("PATCH", path_of(ref), _QUIET | message, patience=patience)
        except DiscordNever as error:
            if error.code != _ARCHIVED:
                raise
            await self.call("PATCH", f"/channels/{ref.partition('/')[0]}", {"archived": False})
            await self.call("PATCH", path_of(ref), _QUIET | message, patience=patience)

    async def delete(self, ref: str) -> None:
        await self.call("DELETE", path_of(ref))

    async def answer(self, token: str, message: Json, *, original: bool, **more: Any) -> None:
        """Say what became of an interaction, within its 15 minutes: as its first answer, or after it."""
        path = f"/webhooks/{self._app}/{token}{'/messages/@original' if original else ''}"
        await self.call("PATCH" if original else "POST", path, _QUIET | message, **more)


def _pause(answer: httpx2.Response) -> float | None:
    try:
        return float(answer.headers.get("Retry-After", ""))
    except ValueError:
        return None
