"""The routes of notifications on devices: list, add, change, test and remove devices, and set quiet hours.

A device is a browser that has subscribed to a push service. The console adds its browser here. A device ends
with the session in which it was added.
"""

from datetime import datetime, time
from functools import partial
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter, Path, Request
from pydantic import Field, field_validator
from sqlmodel import Session

from bot.approvals.accounts import sign_in_links
from bot.domain.people import LOCAL, Actor
from bot.domain.rule_values import Hours
from bot.domain.text import hash_text, is_blank, one_line
from bot.errors import SecretLost, ToolError
from bot.features.feature import PartsDep, RouteParts
from bot.features.push import rows
from bot.features.push.push_client import PushClient, make_push_client, open_subscription
from bot.features.push.push_message import write_test
from bot.features.push.rows import DeviceRefused, NewDevice, QuietHours, Subscription
from bot.features.push.tables import DeviceRow
from bot.features.push.vapid import find_key_fault
from bot.web.answers import HttpError, NotFound, require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, SaidBody, Time, View
from bot.web.sign_in.tokens import COOKIE
from bot.web.site import Caller, make_router

OFF_TEXT = "Notifications on devices are off here. An admin sets NOD_PUSH_KEY: nod push keys prints one."
_NO_DEVICE_TEXT = "You have no such device."
_TOKEN_TEXT = "A token is no session that could end. Write /nod console in a chat, and sign in with its link."  # noqa: S105 - words
_PLAIN_TEXT = "The address of a push service begins with https://."
_NO_ADDRESS_TEXT = "That is not the address of a push service."
_TIME_OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"  # "22:00"

router: APIRouter = make_router("push", prefix="/api")

DeviceId = Annotated[str, Path(min_length=1, max_length=64)]


class DeviceView(View):
    """A device, without the secret address of its subscription. ``host``: the host of its push service.

    ``detailed``: its notifications say what is asked and by whom. ``fault``: why the last notification did
    not arrive; empty if it did. ``mine``: it is the caller's.
    """

    id: str
    name: str
    host: str
    owner_name: str
    detailed: bool
    created_at: Time
    sent_at: Time | None
    fault: str
    mine: bool


class QuietView(View):
    """Quiet hours, as times of day in a time zone."""

    begins: str
    ends: str
    zone: str


class DeviceList(DoneBody):
    """``on``: this Nod notifies devices. ``key``: the public key with which a browser subscribes.

    ``most``: how many devices one person can have. ``everyone``: devices of other people are listed, too.
    ``quiet``: the caller's quiet hours, or null.
    """

    on: bool
    key: str
    most: int
    everyone: bool
    devices: list[DeviceView]
    quiet: QuietView | None


class SubscriptionKeys(Body):
    p256dh: Annotated[str, Field(min_length=1, max_length=200)]
    auth: Annotated[str, Field(min_length=1, max_length=100)]


class DeviceBody(Body):
    """A subscription as a browser gives it, and the name of the device for its list."""

    endpoint: Annotated[str, Field(min_length=1, max_length=2000)]
    keys: SubscriptionKeys
    name: Annotated[str, Field(min_length=1, max_length=80)]
    detailed: bool = False

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if is_blank(name):
            raise ValueError("write a name")
        return one_line(name)


class DeviceChange(Body):
    detailed: bool


class QuietBody(Body):
    """``begins`` and ``ends``: times of day such as 22:00; quiet hours may go over midnight."""

    begins: Annotated[str, Field(pattern=_TIME_OF_DAY)]
    ends: Annotated[str, Field(pattern=_TIME_OF_DAY)]
    zone: Annotated[str, Field(min_length=1, max_length=60)]


class DeviceAdded(DoneBody):
    device: DeviceView


@router.get("/push", summary="Your devices that are notified")
async def devices(actor: Caller, parts: PartsDep) -> DeviceList:
    """Return your devices; to admins of all of Nod everyone's."""
    push_client = make_push_client(parts.settings)
    visible = await parts.database.read(rows.list_devices, parts.policies, actor, parts.clock())
    quiet = await parts.database.read(rows.find_quiet, actor)
    mine = [_make_view(each, mine=True) for each in visible.mine]
    others = [_make_view(each, mine=False) for each in visible.others]
    return DeviceList(
        on=push_client is not None,
        key=push_client.key.public if push_client else "",
        most=rows.MAX_DEVICES,
        everyone=visible.everyone,
        devices=[*mine, *others],
        quiet=_make_quiet_view(quiet) if quiet else None,
    )


@router.post("/push/devices", summary="Notify this device", status_code=201)
async def add(body: DeviceBody, actor: Caller, request: Request, parts: PartsDep) -> DeviceAdded:
    """Add a browser by its subscription, which ends with the session in which the browser is signed in."""
    push_client = _require_push_client(parts)
    subscription = Subscription(body.endpoint, body.keys.p256dh, body.keys.auth)
    await _check_subscription(push_client, subscription, parts.clock())
    life = await _find_device_life(request, actor, parts)
    device = NewDevice(
        subscription, life.session_hash, life.until, body.name, push_client.key.fingerprint, body.detailed
    )
    try:
        added = await parts.database.write(rows.add_device, actor, device, parts.clock())
    except DeviceRefused as error:
        raise HttpError(409, error.message) from None
    return DeviceAdded(device=_make_view(added, mine=True))


@router.patch("/push/devices/{device_id}", summary="Change what a device shows")
async def change(device_id: DeviceId, body: DeviceChange, actor: Caller, parts: PartsDep) -> DoneBody:
    """Set whether the notifications of a device of yours say what is asked and by whom."""
    change_device = partial(rows.change_device, is_detailed=body.detailed)
    if not await parts.database.write(change_device, device_id, actor, parts.clock()):
        raise NotFound(_NO_DEVICE_TEXT)
    return DoneBody()


@router.post("/push/devices/{device_id}/test", summary="Send a test to a device")
async def test(device_id: DeviceId, actor: Caller, parts: PartsDep) -> SaidBody:
    """Send a test to a device of yours. The answer tells the outcome at the push service.

    429 if the last test was a moment ago.
    """
    push_client = _require_push_client(parts)
    now = parts.clock()
    device = require_or_404(await parts.database.read(_copy_own, device_id, actor, now), _NO_DEVICE_TEXT)
    if not await parts.database.write(rows.claim_test, device_id, actor, now):
        seconds = int(rows.TEST_PAUSE.total_seconds())
        raise HttpError(429, f"Wait {seconds} s between two tests.", {"Retry-After": str(seconds)})
    try:
        subscription = await parts.database.read(open_subscription, device)
    except SecretLost:
        raise HttpError(409, "Nod lost the key of this device. Remove it, then add it again.") from None
    outcome = await push_client.send(subscription, write_test(device), now)
    if outcome.is_gone:
        await parts.database.write(rows.end_devices, [device_id])
        raise HttpError(409, "This browser takes no more notifications. Turn them on there again.")
    if outcome.fault:
        raise HttpError(409, f"The push service {device.host} did not take it: {outcome.fault}.")
    return SaidBody(text=f"Sent to {device.name}.")


@router.delete("/push/devices/{device_id}", summary="Notify a device no longer")
async def remove(device_id: DeviceId, actor: Caller, parts: PartsDep) -> SaidBody:
    """Remove a device of yours; admins of all of Nod remove anyone's."""
    removed = await parts.database.write(rows.remove_device, parts.policies, device_id, actor, parts.clock())
    return SaidBody(text=f"Removed: {require_or_404(removed, _NO_DEVICE_TEXT).name}.")


@router.put("/push/quiet", summary="Set your quiet hours")
async def set_quiet(body: QuietBody, actor: Caller, parts: PartsDep) -> SaidBody:
    """Set the hours in which your devices show nothing new. Cards that still wait are shown at their end."""
    begins, ends = time.fromisoformat(body.begins), time.fromisoformat(body.ends)
    if begins == ends:
        raise HttpError(422, "Quiet hours end at another time than they begin.")
    try:
        ZoneInfo(body.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise HttpError(422, "That is not a time zone. Use a name such as Europe/London.") from None
    quiet = QuietHours(Hours(begins, ends), body.zone)
    await parts.database.write(rows.set_quiet, actor, quiet, parts.clock())
    return SaidBody(text=f"Quiet from {body.begins} to {body.ends} ({body.zone}).")


@router.delete("/push/quiet", summary="End your quiet hours")
async def clear_quiet(actor: Caller, parts: PartsDep) -> SaidBody:
    """End your quiet hours. 404 if you have none."""
    if not await parts.database.write(rows.clear_quiet, actor):
        raise NotFound("You have no quiet hours.")
    return SaidBody(text="You have no quiet hours now.")


def _require_push_client(parts: RouteParts) -> PushClient:
    push_client = make_push_client(parts.settings)
    if push_client is None:
        raise HttpError(409, OFF_TEXT)
    return push_client


async def _check_subscription(push_client: PushClient, subscription: Subscription, now: datetime) -> None:
    """Raise HttpError for a subscription that is not valid, or whose address Nod must not send to."""
    try:
        address = urlsplit(subscription.endpoint)
    except ValueError:
        raise HttpError(422, _NO_ADDRESS_TEXT) from None
    if address.scheme != "https" and address.hostname not in push_client.client.hosts:
        raise HttpError(422, _PLAIN_TEXT)  # only hosts of NOD_WEBHOOK_HOSTS may be without TLS
    fault = find_key_fault(subscription.public_key, subscription.secret)
    if fault:
        raise HttpError(422, fault)
    try:
        push_client.key.sign(subscription.endpoint, now)
        await push_client.client.check(subscription.endpoint)
    except ToolError as error:
        raise HttpError(422, error.message) from None
    except ValueError:
        raise HttpError(422, _NO_ADDRESS_TEXT) from None


class _DeviceLife(NamedTuple):
    """The life of a device: until its session ends, or until a time. Exactly one of the two is None."""

    session_hash: str | None
    until: datetime | None


async def _find_device_life(request: Request, actor: Actor, parts: RouteParts) -> _DeviceLife:
    """Return the life of a device that is added by this request. Raises HttpError for a request with a token.

    A token is no session of a browser, and its end would not end the device.
    """
    if request.headers.get("authorization", "").lower().startswith("bearer"):
        raise HttpError(409, _TOKEN_TEXT)
    secret = request.cookies.get(COOKIE, "")
    is_own = bool(secret) and await parts.database.read(_is_session_of, secret, actor, parts.clock())
    if is_own:
        return _DeviceLife(hash_text(secret), None)
    # Nod has no session for this caller: no one signs in on its own machine, or a proxy signs people in
    life = sign_in_links.SESSION_LIFE if actor == LOCAL else sign_in_links.ORGANISATION_LIFE
    return _DeviceLife(None, parts.clock() + life)


def _is_session_of(session: Session, secret: str, actor: Actor, now: datetime) -> bool:
    signed_in = sign_in_links.find_signed_in(session, secret, now)
    return signed_in is not None and str(signed_in) == str(actor)  # the same account; names may differ


def _copy_own(session: Session, device_id: str, actor: Actor, now: datetime) -> DeviceRow | None:
    row = rows.find_own(session, device_id, actor, now)
    return DeviceRow(**row.model_dump()) if row else None


def _make_view(device: DeviceRow, *, mine: bool) -> DeviceView:
    return DeviceView(
        id=device.id,
        name=device.name,
        host=device.host,
        owner_name=device.account_name,
        detailed=device.is_detailed,
        created_at=device.created_at,
        sent_at=device.sent_at,
        fault=device.fault,
        mine=mine,
    )


def _make_quiet_view(quiet: QuietHours) -> QuietView:
    begins, ends = quiet.hours
    return QuietView(begins=f"{begins:%H:%M}", ends=f"{ends:%H:%M}", zone=quiet.zone)
