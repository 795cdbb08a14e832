"""Posts in Slack outside of a turn: ephemeral messages, files, and the search for lost posts.

An ephemeral message is one that a single person in a channel sees. A post is *lost* if Slack did not answer
the call: it may exist, and Nod does not know its id. `find_post` looks for a lost message by its metadata. A
lost stream has no metadata; `close_lost_stream` looks for it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack import blocks, text
from bot.channels.slack.client import limit_time
from bot.channels.slack.errors import CONTENT_CODES, code_of, translate_errors
from bot.channels.slack.places import SlackPlace, SlackPosted
from bot.channels.slack.workspaces import Workspaces
from bot.domain.chat import LinkButton
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_EPHEMERAL_SECONDS = 5.0  # for posting an ephemeral message
_MAX_SKEW = timedelta(minutes=5)  # between Slack's clock and Nod's
_SEARCHED_MESSAGES = 200  # the messages among which a lost post is looked for
_MAX_TRIED_MESSAGES = 3  # so many of the newest messages are tried as the lost stream


async def tell_person(
    workspaces: Workspaces,
    place: SlackPlace | None,
    user: str,
    markdown: str,
    team: str = "",
    link: LinkButton | None = None,
) -> None:
    """Send a text to one person alone, as an ephemeral message in a place.

    Without a place, or where Slack refuses the ephemeral message, it is a direct message. ``user``: the id of
    the person. ``team``: the workspace, needed only without a place.
    """
    if place:
        team = place.team
    fallback_text = text.notification(markdown)
    shown = [blocks.markdown(markdown, team), *blocks.link_button(link)]
    with translate_errors():
        client = await workspaces.get_client(team)
        if place is not None and await _post_ephemeral(client, place, user, fallback_text, shown):
            return
        await client.chat_postMessage(
            channel=user, text=fallback_text, blocks=shown, unfurl_links=False, unfurl_media=False
        )


async def _post_ephemeral(
    client: AsyncWebClient, place: SlackPlace, user: str, fallback_text: str, shown: list[blocks.Block]
) -> bool:
    """Post a message that one person sees. Return False if Slack refused it, or did not answer in time."""
    target = {"channel": place.channel, "user": user, "thread_ts": place.thread}
    try:
        async with limit_time(_MAX_EPHEMERAL_SECONDS):
            try:
                await client.chat_postEphemeral(text=fallback_text, blocks=shown, **target)  # type: ignore[arg-type]
            except SlackApiError as error:
                if code_of(error) not in CONTENT_CODES:
                    raise
                await client.chat_postEphemeral(text=fallback_text, **target)  # type: ignore[arg-type]
    except (SlackApiError, TimeoutError) as error:
        why = code_of(error) if isinstance(error, SlackApiError) else "no answer"
        log.info("no ephemeral message there, a direct one follows", why=why)
        return False
    return True


async def post_directly(workspaces: Workspaces, place: SlackPlace, markdown: str) -> None:
    """Post a text at a place in a person's direct messages with Nod."""
    fallback_text = text.notification(markdown)
    with translate_errors():
        client = await workspaces.get_client(place.team)
        await client.chat_postMessage(
            channel=place.channel,
            thread_ts=place.thread,
            text=fallback_text,
            blocks=[blocks.markdown(markdown, place.team)],
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
    """Post a file; needs the scope ``files:write``. Raises the client's errors.

    Unlike chat.postMessage, Slack takes no user's id here, but the channel of their direct messages.
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
    """Check that Nod can post at a place: read one message there, as only members of a channel can.

    Raises the client's errors.
    """
    await client.conversations_history(channel=await channel_of(client, place), limit=1)


async def channel_of(client: AsyncWebClient, place: SlackPlace) -> str:
    """Return the channel of a place; for a person that of their direct messages with Nod."""
    if not place.channel.startswith(("U", "W")):
        return place.channel
    opened = await client.conversations_open(users=[place.channel])
    return str(opened["channel"]["id"])


def make_search_metadata(key: str) -> dict[str, Any]:
    """Return the metadata by which `find_post` finds a post with this key again; people do not see it."""
    return {"event_type": "nod_text", "event_payload": {"key": sha256(key.encode()).hexdigest()}}


async def find_post(
    workspaces: Workspaces, place: SlackPlace, key: str, since: datetime
) -> SlackPosted | None:
    """Return Nod's post with the metadata of ``key`` in a place, from ``since`` on; None without one.

    Raises the client's errors if Slack can't be reached.
    """
    wanted = make_search_metadata(key)
    channel, posts = await _list_own_posts(workspaces, place, since)
    for message in posts:
        if message.get("metadata") == wanted:
            return SlackPosted(place.team, channel, str(message["ts"]))
    return None


async def close_lost_stream(workspaces: Workspaces, place: SlackPlace, since: datetime) -> str:
    """Close the stream that was started in a thread after ``since``, and return its timestamp (its id).

    Only Slack knows which message is an open stream. So Slack is asked to close Nod's newest posts one by
    one; it refuses a post that is no open stream. Returns "" if none was open. Raises as `find_post` does.
    """
    client = await workspaces.get_client(place.team)
    channel, posts = await _list_own_posts(workspaces, place, since)
    for message in reversed(posts[-_MAX_TRIED_MESSAGES:]):
        try:
            await client.chat_stopStream(channel=channel, ts=str(message["ts"]))
        except SlackApiError as error:
            log.info("not the stream that was lost", why=code_of(error), ts=message["ts"])
        else:
            return str(message["ts"])
    return ""


async def _list_own_posts(
    workspaces: Workspaces, place: SlackPlace, since: datetime
) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Return the channel of a place, and Nod's posts there after ``since``, oldest first.

    There are no posts if Nod may not read there.
    """
    client = await workspaces.get_client(place.team)
    bot_user = await workspaces.bot_user(place.team)
    channel = place.channel
    try:
        channel = await channel_of(client, place)
        query: dict[str, Any] = {
            "channel": channel,
            "include_all_metadata": True,
            "oldest": f"{(since - _MAX_SKEW).timestamp():.6f}",
        }
        if place.thread:
            page = await client.conversations_replies(ts=place.thread, limit=_SEARCHED_MESSAGES, **query)
        else:
            page = await client.conversations_history(limit=_SEARCHED_MESSAGES, **query)
    except SlackApiError as error:
        log.info("a lost post was not looked for", why=code_of(error), place=str(place.address))
        return channel, ()
    own = [message for message in page.get("messages") or () if message.get("user") == bot_user]
    return channel, sorted(own, key=lambda message: float(message["ts"]))
