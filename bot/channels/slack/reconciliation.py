"""Texts, cards and streams that Slack made although no answer said so: looked for before the next try."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack.card import holds
from bot.channels.slack.ephemerals import channel_of
from bot.channels.slack.errors import code_of
from bot.channels.slack.places import SlackPlace, SlackPosted
from bot.telemetry.logs import logger

log = logger(__name__)

_SKEW = timedelta(minutes=5)  # between Slack's clock and ours
_LOOKED_AT = 200  # messages
_MAYBE_STREAMS = 3  # the newest messages


async def find(
    client: AsyncWebClient, place: SlackPlace, bot_user: str, proposal_id: str, since: datetime
) -> SlackPosted | None:
    """Find a card with buttons of this proposal that Nod itself posted at a place since then.

    Raises what the client raises when Slack cannot be reached.
    """
    channel, said = await _own(client, place, bot_user, since)
    for message in said:
        if holds(_blocks(message), proposal_id):
            return SlackPosted(place.team, channel, str(message["ts"]))
    return None


def mark_of(words: str) -> dict[str, Any]:
    """What goes with a text, so that it is known again; no one sees it."""
    return {"event_type": "nod_text", "event_payload": {"key": sha256(words.encode()).hexdigest()}}


async def is_there(
    client: AsyncWebClient, place: SlackPlace, bot_user: str, words: str, since: datetime
) -> bool:
    """Whether a text stands there that Nod posted since then. Raises as `find` does."""
    _, said = await _own(client, place, bot_user, since)
    return any(message.get("metadata") == mark_of(words) for message in said)


async def close_stream(client: AsyncWebClient, place: SlackPlace, bot_user: str, since: datetime) -> str:
    """Close the stream that was started in a thread since then; gives its ts, or nothing where none is open.

    Slack alone knows what streams, and closes nothing else. Raises as `find` does.
    """
    channel, said = await _own(client, place, bot_user, since)
    for message in said[: -_MAYBE_STREAMS - 1 : -1]:
        try:
            await client.chat_stopStream(channel=channel, ts=str(message["ts"]))
        except SlackApiError as error:
            log.info("not the stream that was lost", why=code_of(error), ts=message["ts"])
        else:
            return str(message["ts"])
    return ""


async def _own(
    client: AsyncWebClient, place: SlackPlace, bot_user: str, since: datetime
) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """The channel, and what Nod posted at a place since then; nothing where it may not look."""
    channel = place.channel
    try:
        channel = await channel_of(client, place)
        given: dict[str, Any] = {
            "channel": channel,
            "include_all_metadata": True,
            "oldest": f"{(since - _SKEW).timestamp():.6f}",
        }
        if place.thread:
            page = await client.conversations_replies(ts=place.thread, limit=_LOOKED_AT, **given)
        else:
            page = await client.conversations_history(limit=_LOOKED_AT, **given)
    except SlackApiError as error:
        log.info("a lost post was not looked for", why=code_of(error), place=str(place.address))
        return channel, ()
    found = [each for each in page.get("messages") or () if each.get("user") == bot_user]
    return channel, sorted(found, key=lambda each: float(each["ts"]))


def _blocks(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (block for block in message.get("blocks") or () if isinstance(block, Mapping))
