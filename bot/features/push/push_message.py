"""A letter: the push message to one device about one card.

A letter is written only when it is sent, so it follows the rights that the person has at that moment. There
are three sorts. The first shows a card. The second closes the notification of a card that no longer waits.
The third announces a "crowd": more cards wait than the device shows.

A letter names the tool and the place, and gives details only if the person wants them. It has no URL: the
service worker of the console makes the path from the id of the proposal, and refuses any text that is not an
id.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session, select

from bot.channels.delivery.audience import is_urgent
from bot.domain.people import Actor, find_name, name_of_channel
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.text import hash_text, one_line, shorten
from bot.features.push import cards, notifications, rows
from bot.features.push.tables import DeviceRow, NotificationRow
from bot.store import conversations, people, proposals
from bot.store.rules import Policies

MAX_SHOWN = 20
"""The most cards that one device shows. Further cards are announced together, once in `_CROWD_PAUSE`."""
CROWD_TAG = "more"
"""The tag of the notification about more waiting cards than the device shows."""
_CROWD_PAUSE = timedelta(minutes=10)
# the times for which a push service keeps a message for a device that can't be reached
_CLOSING_TTL_SECONDS = 7 * 86_400  # for a message that closes a notification, or announces a crowd
_MIN_TTL_SECONDS = 60  # the least; a message that shows a card is kept until the card expires
_MAX_TTL_SECONDS = 28 * 86_400  # services keep no message longer
_MAX_TITLE_CHARS = 120
_MAX_BODY_CHARS = 160
_TOPIC_CHARS = 32  # RFC 8030, section 5.4
_VERSION = 1  # the version of the format that the service worker reads


@dataclass(frozen=True, slots=True)
class Letter:
    """A message to a device: its text, and the headers of RFC 8030."""

    text: bytes  # JSON for the service worker, not encrypted yet
    topic: str  # see `find_topic`
    urgency: str
    ttl_seconds: int  # the time for which the push service keeps the message
    version: int = 0  # the version of the card, see `cards.sum_versions`
    shows_card: bool = False  # it shows a card, so it has to be closed later
    is_crowd: bool = False  # it announces more waiting cards than the device shows


@dataclass(frozen=True, slots=True)
class PostponedLetter:
    """The outcome that a letter is sent later, because the person has quiet hours now."""

    until: datetime


@dataclass(frozen=True, slots=True)
class EndedDevice:
    """The outcome that no letter is sent, because the device's session has ended."""


def write_letter(
    session: Session, policies: Policies, device: DeviceRow, notification: NotificationRow, now: datetime
) -> Letter | PostponedLetter | EndedDevice | None:
    """Return the letter about a card, by the rights that the device's person has now.

    ``notification``: the notification of the card on the device. Returns None if nothing has to be sent: no
    proposal of the card waits for the person, or a crowd was announced recently.
    """
    if_live = select(DeviceRow.id).where(DeviceRow.id == device.id, rows.is_live(now))
    if session.exec(if_live).first() is None:
        return EndedDevice()
    actor = Actor.parse(device.account, device.account_name)
    open_proposals = cards.list_open(session, notification.card_id)
    waiting = cards.list_decidable(session, policies, open_proposals, actor)
    version = cards.sum_versions(session, notification.card_id)
    if not waiting:
        return _write_closing(notification, version) if notification.is_shown else None
    quiet = rows.find_quiet(session, actor)
    until = quiet.find_end(now) if quiet else None
    if until is not None:
        return PostponedLetter(until)
    if not notification.is_shown and notifications.count_shown(session, device.id) >= MAX_SHOWN:
        return _write_crowd(device, now)
    return _write_card(session, device, notification, waiting, version, now)


def write_test(device: DeviceRow) -> Letter:
    """Return the message by which a person tries a device out."""
    body = f"{device.name} is notified when a card waits for you."
    content = {"tag": "test", "title": "Nod can reach this device", "body": shorten(body, _MAX_BODY_CHARS)}
    return Letter(_encode(content), find_topic("test"), "normal", _MIN_TTL_SECONDS)


def find_topic(tag: str) -> str:
    """Return the topic of a notification: a message replaces an earlier one of its topic at the service.

    ``tag``: the name of the notification on the device, such as the id of the card.
    """
    return hash_text(f"push {tag}")[:_TOPIC_CHARS]


def _write_card(
    session: Session,
    device: DeviceRow,
    notification: NotificationRow,
    waiting: list[Proposal],
    version: int,
    now: datetime,
) -> Letter:
    """Return the message that shows a card. ``waiting``: its proposals that the person may decide."""
    first = waiting[0]
    time_left = max(proposal.expires_at for proposal in waiting) - now
    ttl_seconds = int(min(max(time_left.total_seconds(), _MIN_TTL_SECONDS), _MAX_TTL_SECONDS))
    place = _describe_place(session, first)
    tool = first.tool_name
    if len(waiting) > 1:
        tool = f"{tool} ({len(waiting)} changes)"
    if device.is_detailed:
        title = _describe(session, first)
        body = f"{tool}, asked by {first.requester.label} in {place}"
    else:
        title = f"{tool} waits for you"
        body = f"Asked in {place}"
    content = {
        "tag": notification.card_id,
        "id": first.id,
        "title": shorten(one_line(title), _MAX_TITLE_CHARS),
        "body": shorten(one_line(body), _MAX_BODY_CHARS),
        "at": int(now.timestamp() * 1000),
        "again": notification.sent > 0,  # the device has been told of the card before
    }
    urgency = "high" if is_urgent(session, first) else "normal"
    return Letter(
        text=_encode(content),
        topic=find_topic(notification.card_id),
        urgency=urgency,
        ttl_seconds=ttl_seconds,
        version=version,
        shows_card=True,
    )


def _describe(session: Session, proposal: Proposal) -> str:
    """Return a call in words, without hidden arguments."""
    schema = proposals.load_schema(session, proposal.tool_name, proposal.tool_version)
    return redact_text(proposal.description, secrets_in(proposal.arguments, schema))


def _describe_place(session: Session, proposal: Proposal) -> str:
    """Return the place of a request: the platform, and the name of the chat unless it is private."""
    place = conversations.load_place(session, proposal.conversation_id)
    channel = name_of_channel(place.address.partition(":")[0])
    if place.private:
        return channel
    name = find_name(place.address, people.find_known_names(session, [place.address]))
    return f"{name}, {channel}" if name else channel


def _write_crowd(device: DeviceRow, now: datetime) -> Letter | None:
    """Return the message about more waiting cards than the device shows; None if it was sent recently."""
    if device.crowded_at is not None and device.crowded_at > now - _CROWD_PAUSE:
        return None
    content = {
        "tag": CROWD_TAG,
        "title": "More cards wait for you",
        "body": "Open the inbox to see them all.",
    }
    return Letter(_encode(content), find_topic(CROWD_TAG), "normal", _CLOSING_TTL_SECONDS, is_crowd=True)


def _write_closing(notification: NotificationRow, version: int) -> Letter:
    """Return the message that closes the notification of a card that no longer waits for the person."""
    text = _encode({"tag": notification.card_id, "close": True})
    return Letter(text, find_topic(notification.card_id), "normal", _CLOSING_TTL_SECONDS, version)


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps({"v": _VERSION, **content}, ensure_ascii=False).encode()
