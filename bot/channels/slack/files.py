"""A text as a file in Slack: an upload address, the upload, and its completion in a channel or thread."""

from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack.places import SlackPlace


async def upload(
    client: AsyncWebClient,
    place: SlackPlace,
    name: str,
    content: str,
    *,
    title: str | None = None,
) -> None:
    """Post the file; needs the scope ``files:write``. Raises what the client raises, see ``faults.py``.

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


async def check(client: AsyncWebClient, place: SlackPlace) -> None:
    """Read one message where Nod would post, as only members of a channel can; a person needs a DM."""
    await client.conversations_history(channel=await channel_of(client, place), limit=1)


async def channel_of(client: AsyncWebClient, place: SlackPlace) -> str:
    """Give the channel of a place; a person's place is their DM."""
    if not place.channel.startswith(("U", "W")):
        return place.channel
    opened = await client.conversations_open(users=[place.channel])
    return str(opened["channel"]["id"])
