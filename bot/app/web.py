"""The parts of the web: the application, who may enter it, and webhooks."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from starlette.routing import BaseRoute

from bot.app.features import FEATURES
from bot.approvals.lookup.console_sessions import ConsoleSessions
from bot.domain.chat import Clock
from bot.features.feature import RouteParts
from bot.jobs.webhooks import Webhooks
from bot.settings import Settings
from bot.store import tokens
from bot.store.database import Database
from bot.web import api
from bot.web.sign_in.oidc import RETURN_PATH, OidcSignIn
from bot.web.sign_in.tokens import Authenticator
from bot.web.site import Site


def make_application(
    settings: Settings, site: Site, routes: Sequence[BaseRoute], route_parts: RouteParts
) -> FastAPI:
    """Return the application of the API and the console, with the routes of channels and features.

    ``route_parts``: what the routes of features receive.
    """
    application = api.create(
        site,
        proxies=settings.trusted_proxies,
        user_header=settings.user_header,
        connections=settings.max_connections,
        more_routes=routes,
        more_parts=[router for feature in FEATURES for router in feature.api],
        more_tags={name: text for feature in FEATURES for name, text in feature.tags.items()},
    )
    application.state.features = route_parts
    return application


def make_authenticator(
    settings: Settings, database: Database, sessions: ConsoleSessions, clock: Clock
) -> Authenticator:
    return Authenticator(
        names_by_token=settings.names_by_token,
        find_holder=lambda token: database.read(tokens.find_holder, token, clock()),
        find_session_account=sessions.find_session_account,
        has_token_named=lambda name: database.read(tokens.is_working_name, name),
        is_allowed=sessions.may_enter,
        has_organisation=settings.has_organisation_sign_in,
        has_naming_proxy=bool(settings.user_header),
    )


def make_webhooks(settings: Settings, database: Database) -> Webhooks:
    secret = settings.webhook_secret
    return Webhooks(database, secret.get_secret_value() if secret else None, settings.webhook_hosts)


def make_organisation(settings: Settings, site_url: Callable[[], str], clock: Clock) -> OidcSignIn | None:
    """Return the organisation's sign-in, if the settings have one."""
    if not settings.oidc_issuer:
        return None
    secret = settings.oidc_client_secret
    return OidcSignIn(
        name=settings.oidc_name,
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=secret.get_secret_value() if secret else "",
        allowed=settings.oidc_allowed,
        return_url=lambda: f"{site_url()}{RETURN_PATH}",
        clock=clock,
    )
