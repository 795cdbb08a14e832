"""Slack's OAuth install flow, by which further workspaces install Nod; its rows are in Nod's own database."""

import logging
import secrets

from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.slack.manifest import SCOPES
from bot.channels.slack.rows import consume_install_state, save_workspace, store_install_state
from bot.domain.chat import Clock
from bot.errors import ChannelError
from bot.settings import Settings
from bot.store.database import Database
from bot.store.tables.workspaces import WorkspaceRow

INSTALL_PATH = "/slack/install"
REDIRECT_PATH = "/slack/oauth_redirect"


class _OAuthRows(AsyncInstallationStore, AsyncOAuthStateStore):
    """The rows of installations and of started OAuth flows: any process may finish a flow, and only once.

    A flow begins with `async_issue`, which returns its state, a random text. Slack sends the state back, and
    `async_consume` tells if it is valid and uses it up. `async_save` stores the new installation. Only these
    methods are called by the flow; ``workspaces.py`` reads installations.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @property
    def logger(self) -> logging.Logger:
        return logging.getLogger(__name__)

    async def async_save(self, installation: Installation) -> None:
        if installation.is_enterprise_install:
            team, name = installation.enterprise_id, installation.enterprise_name
        else:
            team, name = installation.team_id, installation.team_name
        if not (team and installation.bot_token):
            raise ChannelError("Slack sent an installation without its name or a bot token")
        row = WorkspaceRow(
            team=team,
            name=name or "",
            token=installation.bot_token,
            bot_id=installation.bot_id or "",
            bot_user=installation.bot_user_id or "",
            scopes=",".join(installation.bot_scopes or ()),
            installed_by=installation.user_id or "",
            installed_at=self._clock(),
        )
        await self._database.write(save_workspace, row)

    async def async_issue(self, *_: object, **__: object) -> str:
        state = secrets.token_urlsafe(24)
        await self._database.write(store_install_state, state, self._clock())
        return state

    async def async_consume(self, state: str) -> bool:
        return await self._database.write(consume_install_state, state, self._clock())


def oauth_flow(
    settings: Settings, database: Database, clock: Clock, client: AsyncWebClient
) -> AsyncOAuthFlow | None:
    """Return the install flow, or None without SLACK_CLIENT_ID and SLACK_CLIENT_SECRET."""
    if not (settings.slack_client_id and settings.slack_client_secret):
        return None
    rows = _OAuthRows(database, clock)
    public_url = settings.public_url.rstrip("/") if settings.public_url else None
    return AsyncOAuthFlow(
        client=client,
        logger=logging.getLogger(__name__),
        settings=AsyncOAuthSettings(
            client_id=settings.slack_client_id,
            client_secret=settings.slack_client_secret.get_secret_value(),
            scopes=list(SCOPES),
            redirect_uri=f"{public_url}{REDIRECT_PATH}" if public_url else None,
            install_path=INSTALL_PATH,
            redirect_uri_path=REDIRECT_PATH,
            installation_store=rows,
            installation_store_bot_only=True,
            state_store=rows,
        ),
    )
