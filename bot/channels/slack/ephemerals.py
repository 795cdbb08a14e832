"""Words for one person only, ephemeral or in a direct message; and texts as files."""

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack import blocks as b
from bot.channels.slack import text
from bot.channels.slack.errors import code_of, translated
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.workspaces import Workspaces, within
from bot.telemetry.logs import logger

log = logger(__name__)

_WAITED = 5.0  # seconds


class Ephemerals:
    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def tell(self, place: SlackPlace | None, user: str, markdown: str, team: str = "") -> None:
        """Tell ``user`` privately; without a place by direct message in ``team``."""
        team = place.team if place else team
        words, shown = text.escape(text.cut(text.link_text(markdown), 300)[0]), [b.markdown(markdown, team)]
        with translated():
            client = await self._workspaces.client(team)
            if place is not None:
                try:
                    async with within(_WAITED):
                        await client.chat_postEphemeral(
                            channel=place.channel, user=user, thread_ts=place.thread, text=words, blocks=shown
                        )
                except (SlackApiError, TimeoutError) as error:
                    why = code_of(error) if isinstance(error, SlackApiError) else "no answer"
                    log.info("no ephemeral message there, a direct one follows", why=why)
                else:
                    return
            await client.chat_postMessage(
                channel=user, text=words, blocks=shown, unfurl_links=False, unfurl_media=False
            )


async def upload(
    client: AsyncWebClient,
    place: SlackPlace,
    name: str,
    content: str,
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


async def check(client: AsyncWebClient, place: SlackPlace) -> None:
    """Read one message where Nod would post, as only members of a channel can; a person needs a DM."""
    await client.conversations_history(channel=await channel_of(client, place), limit=1)


async def channel_of(client: AsyncWebClient, place: SlackPlace) -> str:
    """Give the channel of a place; a person's place is their DM."""
    if not place.channel.startswith(("U", "W")):
        return place.channel
    opened = await client.conversations_open(users=[place.channel])
    return str(opened["channel"]["id"])
