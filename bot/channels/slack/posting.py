"""Posts in Slack outside of a turn: ephemeral messages, files, and messages that must not be posted twice.

Where no answer said if something was posted, it is looked for before the next try.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack import blocks as b
from bot.channels.slack import text
from bot.channels.slack.errors import CONTENTS, code_of, translate_errors
from bot.channels.slack.places import SlackPlace, SlackPosted
from bot.channels.slack.workspaces import Workspaces, within
from bot.telemetry.logs import logger

log = logger(__name__)

_WAITED = 5.0  # seconds
_SKEW = timedelta(minutes=5)  # between Slack's clock and ours
_LOOKED_AT = 200  # messages
_MAYBE_STREAMS = 3  # the newest messages


async def tell_person(
    workspaces: Workspaces, place: SlackPlace | None, user: str, markdown: str, team: str = ""
) -> None:
    """Tell ``user`` alone, by an ephemeral message; without a place by direct message in ``team``."""
    if place:
        team = place.team
    words, shown = text.notification(markdown), [b.markdown(markdown, team)]
    with translate_errors():
        client = await workspaces.client(team)
        if place is not None:
            at = {"channel": place.channel, "user": user, "thread_ts": place.thread}
            try:
                async with within(_WAITED):
                    try:
                        await client.chat_postEphemeral(text=words, blocks=shown, **at)  # type: ignore[arg-type]
                    except SlackApiError as error:
                        if code_of(error) not in CONTENTS:
                            raise
                        await client.chat_postEphemeral(text=words, **at)  # type: ignore[arg-type]
            except (SlackApiError, TimeoutError) as error:
                why = code_of(error) if isinstance(error, SlackApiError) else "no answer"
                log.info("no ephemeral message there, a direct one follows", why=why)
            else:
                return
        await client.chat_postMessage(
            channel=user, text=words, blocks=shown, unfurl_links=False, unfurl_media=False
        )


async def post_directly(workspaces: Workspaces, place: SlackPlace, markdown: str) -> None:
    """Post words in someone's direct messages, in the thread of what they said."""
    words = text.notification(markdown)
    with translate_errors():
        client = await workspaces.client(place.team)
        await client.chat_postMessage(
            channel=place.channel,
            thread_ts=place.thread,
            text=words,
            blocks=[b.markdown(markdown, place.team)],
            unfurl_links=False,
            unfurl_media=False,
        )


async def upload(
    client: AsyncWebClient,
    place: SlackPlace,
    name: str,
    content: str | bytes,
    *,
    title: str | None = None,
) -> None:
    """Post the file; needs the scope ``files:write``. Raises what the client raises.

    Unlike chat.postMessage this takes no user's id, so a person's place is their DM.
    """
    channel = await channel_of(client, place)
    await client.files_upload_v2(
        channel=channel,
        thread_ts=place.thread if channel == place.channel else None,
        filename=name,
        title=title or name,
        content=content,
    )


async def check_place(client: AsyncWebClient, place: SlackPlace) -> None:
    """Read one message where Nod would post, as only members of a channel can; a person needs a DM."""
    await client.conversations_history(channel=await channel_of(client, place), limit=1)


async def channel_of(client: AsyncWebClient, place: SlackPlace) -> str:
    """Give the channel of a place; a person's place is their DM."""
    if not place.channel.startswith(("U", "W")):
        return place.channel
    opened = await client.conversations_open(users=[place.channel])
    return str(opened["channel"]["id"])


def mark_of(key: str) -> dict[str, Any]:
    """Return the metadata by which a post is found again; no one sees it."""
    return {"event_type": "nod_text", "event_payload": {"key": sha256(key.encode()).hexdigest()}}


async def find(workspaces: Workspaces, place: SlackPlace, key: str, since: datetime) -> SlackPosted | None:
    """Find what Nod itself posted at a place with the mark of ``key`` since then.

    Raises what the client raises when Slack cannot be reached.
    """
    channel, said = await _own(workspaces, place, since)
    marked = (str(message["ts"]) for message in said if message.get("metadata") == mark_of(key))
    ts = next(marked, None)
    if ts:
        return SlackPosted(place.team, channel, ts)
    return None


async def close_stream(workspaces: Workspaces, place: SlackPlace, since: datetime) -> str:
    """Close the stream that was started in a thread since then; gives its ts, or nothing where none is open.

    Slack alone knows what streams, and closes nothing else. Raises as `find` does.
    """
    client = await workspaces.client(place.team)
    channel, said = await _own(workspaces, place, since)
    for message in said[: -_MAYBE_STREAMS - 1 : -1]:
        try:
            await client.chat_stopStream(channel=channel, ts=str(message["ts"]))
        except SlackApiError as error:
            log.info("not the stream that was lost", why=code_of(error), ts=message["ts"])
        else:
            return str(message["ts"])
    return ""


async def _own(
    workspaces: Workspaces, place: SlackPlace, since: datetime
) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Return the channel, and what Nod posted at a place since then; nothing where it may not look."""
    client, bot_user = await workspaces.client(place.team), await workspaces.bot_user(place.team)
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
