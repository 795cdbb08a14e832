"""Cards that Slack posted although no answer said so: looked for before one is posted a second time."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack.card import holds
from bot.channels.slack.errors import code_of
from bot.channels.slack.files import channel_of
from bot.channels.slack.places import SlackPlace, SlackPosted
from bot.logs import logger

log = logger(__name__)

_SKEW = timedelta(minutes=5)  # between Slack's clock and ours
_LOOKED_AT = 200  # messages


async def find(
    client: AsyncWebClient, place: SlackPlace, bot_user: str, proposal_id: str, since: datetime
) -> SlackPosted | None:
    """Find a card with buttons of this proposal that Nod itself posted at a place since then.

    Raises what the client raises when Slack cannot be reached. Finds none where Nod may not look.
    """
    try:
        channel = await channel_of(client, place)
        given: dict[str, Any] = {"channel": channel, "oldest": f"{(since - _SKEW).timestamp():.6f}"}
        if place.thread:
            page = await client.conversations_replies(ts=place.thread, limit=_LOOKED_AT, **given)
        else:
            page = await client.conversations_history(limit=_LOOKED_AT, **given)
    except SlackApiError as error:
        log.info(
            "a card is posted without looking for a lost one", why=code_of(error), place=str(place.address)
        )
        return None
    for message in page.get("messages") or ():
        if message.get("user") == bot_user and holds(_blocks(message), proposal_id):
            return SlackPosted(place.team, channel, str(message["ts"]))
    return None


def _blocks(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (block for block in message.get("blocks") or () if isinstance(block, Mapping))
