"""App Homes kept current: everybody who opened theirs sees every change, at most a moment later."""

import asyncio
import json

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.base import Lookup
from bot.channels.slack import home
from bot.channels.slack.places import actor_of
from bot.channels.slack.workspaces import Workspaces
from bot.domain.chat import Clock
from bot.errors import ChannelError
from bot.store.database import Database
from bot.store.slack import homes, remember_home
from bot.telemetry.logs import logger

log = logger(__name__)

_CALM = 0.5  # seconds; changes within them are shown together


class Homes:
    def __init__(self, workspaces: Workspaces, database: Database, lookup: Lookup, clock: Clock) -> None:
        self._workspaces = workspaces
        self._database = database
        self._lookup = lookup
        self._clock = clock
        self._shown: dict[tuple[str, str], int] = {}
        self._behind = False
        self._task: asyncio.Task[None] | None = None

    async def opened(self, team: str, user: str) -> None:
        """Show a person's home and keep it current from now on."""
        await self._database.write(remember_home, team, user, self._clock())
        self._shown.pop((team, user), None)
        await self._publish(team, user)

    def changed(self) -> None:
        """Note that some proposal changed: refresh every home soon, one refresh after the other."""
        self._behind = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _refresh(self) -> None:
        while self._behind:
            await asyncio.sleep(_CALM)
            self._behind = False
            try:
                for team, user in await self._database.read(homes):
                    await self._publish(team, user)
            except Exception:
                log.exception("App Homes not refreshed")

    async def _publish(self, team: str, user: str) -> None:
        shown = home.view(await self._lookup.overview(actor_of(team, user)), self._lookup.notice)
        mark = hash(json.dumps(shown, sort_keys=True))
        if self._shown.get((team, user)) == mark:
            return
        try:
            client = await self._workspaces.client(team)
            await client.views_publish(user_id=user, view=shown)
        except (SlackClientError, aiohttp.ClientError, OSError, ChannelError) as error:
            log.warning("App Home not published", team=team, why=str(error))
            return
        self._shown[team, user] = mark
