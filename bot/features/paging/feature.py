"""Paging: alerts for the people on call about a card that no one decides.

`PAGING` names the feature's parts. A rule may say that the people on call are paged if a card has waited for
some time: then the notifier opens a page. A hook ends the page when the card is decided. A sweep sends both
events to the paging service. The feature is off without the settings of such a service.
"""

from collections.abc import Sequence

from bot.domain.doctor_findings import Finding, ok, warn
from bot.domain.hooks import Hooks, Notifier
from bot.errors import ToolError
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.paging import rows
from bot.features.paging.pager import SWEEP_SECONDS, Pager, PagingService
from bot.jobs.outbound_post import PinnedClient
from bot.jobs.scheduler import Sweep
from bot.settings import Settings

PAGE_NOTIFIER = "page"
"""The name by which steps of rules reach the people on call."""


def _make_service(settings: Settings) -> PagingService:
    """Return the paging service of the settings. Its ``missing_settings_text`` says what they lack."""
    key = settings.pager_key
    secret = settings.webhook_secret
    return PagingService(
        url=settings.pager_url or "",
        key=key.get_secret_value() if key else "",
        secret=secret.get_secret_value() if secret else "",
    )


def _is_on(settings: Settings) -> bool:
    return not _make_service(settings).missing_settings_text


def _make_hooks(parts: FeatureParts) -> Hooks:
    service = _make_service(parts.settings)
    # a rule can name the notifier also while paging is off; people are then told what the settings lack
    return Hooks(
        notifiers=(Notifier(PAGE_NOTIFIER, rows.open_page, service.missing_settings_text),),
        end_proposal=() if service.missing_settings_text else (rows.end_page,),
    )


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    settings = parts.settings
    if not _is_on(settings):
        return ()
    client = PinnedClient(settings.webhook_hosts)
    service = _make_service(settings)
    pager = Pager(parts.database, parts.policies, service, client, settings.site_url)
    return (Sweep("page", SWEEP_SECONDS, pager.sweep),)


async def _examine(parts: FeatureParts) -> Sequence[Finding]:
    """Return a finding on whether pages can be sent; none if paging is not set up."""
    settings = parts.settings
    service = _make_service(settings)
    if not (settings.pager_key or settings.pager_url):
        return ()
    if service.missing_settings_text:
        return (warn("paging", service.missing_settings_text),)
    try:
        await PinnedClient(settings.webhook_hosts).check(service.address)
    except ToolError as error:
        text = f"{error.message} To allow an internal host, add it to NOD_WEBHOOK_HOSTS."
        return (warn("paging", text),)
    host = service.address.split("/")[2]  # ``https://host/path``
    return (ok("paging", host),)


PAGING = Feature(
    name="paging",
    is_on=_is_on,
    make_hooks=_make_hooks,
    make_sweeps=_make_sweeps,
    examine=_examine,
)
