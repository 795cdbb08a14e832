"""The devices that are notified, for an admin's list of active parts, and for ``nod doctor``."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from sqlmodel import Session

from bot.domain.active import ActiveLine
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.errors import SettingsError
from bot.features.feature import FeatureParts
from bot.features.push import rows
from bot.features.push.push_client import make_push_client
from bot.features.push.tables import DeviceRow
from bot.settings import LOOPBACK

_PART = "Devices"
_NAME = "devices"


def list_all_devices(session: Session, now: datetime) -> Sequence[ActiveLine]:
    """Return the devices that are notified, of everyone."""
    return [_describe(each) for each in rows.list_live(session, now)]


def _describe(device: DeviceRow) -> ActiveLine:
    words = f"{device.name} of {device.account}, through {device.host}"
    return ActiveLine(_PART, words, device.account, device.created_at)


async def examine_devices(parts: FeatureParts) -> Sequence[Finding]:
    """Return the findings on the key, the address of the console, and the devices; none without a key."""
    try:
        post = make_push_client(parts.settings)
    except SettingsError as error:
        return (fail(_NAME, error.message),)
    if post is None:
        return ()
    address = urlsplit(parts.settings.site_url())
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        return (warn(_NAME, "browsers subscribe only over HTTPS. Set NOD_PUBLIC_URL to an https:// address"),)
    found = await parts.database.read(rows.list_live, parts.clock())
    failing = sum(bool(each.fault) for each in found)
    if failing:
        return (warn(_NAME, f"{failing} of {len(found)} got no message last time. The console says why"),)
    return (ok(_NAME, f"{len(found)} are notified"),)
