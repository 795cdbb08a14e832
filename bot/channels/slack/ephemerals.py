"""Words for one person only: ephemeral in the thread, a direct message where that cannot be."""

from slack_sdk.errors import SlackApiError

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
