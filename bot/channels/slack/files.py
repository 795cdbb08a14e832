"""A text as a file in Slack: an upload address, the upload, and its completion in a channel or thread."""

from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack.places import Place


async def upload(
    client: AsyncWebClient,
    place: Place,
    name: str,
    content: str,
    *,
    title: str | None = None,
) -> None:
    """Post the file; needs the scope ``files:write``. Raises what the client raises, see ``faults.py``.

    Unlike chat.postMessage this takes no user's id, so a person's place is their DM.
    """
    channel, thread = place.channel, place.thread
    if channel.startswith(("U", "W")):
        opened = await client.conversations_open(users=[channel])
        channel, thread = str(opened["channel"]["id"]), None
    await client.files_upload_v2(
        channel=channel,
        thread_ts=thread,
        filename=name,
        title=title or name,
        content=content,
    )
