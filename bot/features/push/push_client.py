"""The client of push services: it signs, encrypts and sends one message to one device.

An answer of a service has 10 s, its body is not read, and no redirect is followed.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from sqlmodel import Session

from bot.errors import SettingsError
from bot.features.push import vapid
from bot.features.push.push_message import Letter
from bot.features.push.rows import Subscription
from bot.features.push.tables import DeviceRow
from bot.features.push.vapid import PushKey
from bot.jobs.outbound_post import PinnedClient, PostAnswer
from bot.settings import EXAMPLE_PUSH_KEY, Settings
from bot.store.secrets import decrypt_in

MAX_ASKED_PAUSE = timedelta(hours=6)
"""The longest pause that a service may ask for in ``Retry-After``."""
_GONE_STATUSES = frozenset({404, 410})
_DOMAIN = re.compile(r"[\w-]+(\.[\w-]+)+", re.ASCII)  # "nod.example.com", and no name of a single machine


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of sending a message to a device."""

    fault: str = ""  # the reason why it did not arrive, in words; empty if the service took it
    is_gone: bool = False  # the subscription has ended
    is_final: bool = False  # this message would never arrive, so it is not sent again
    pause: timedelta | None = None  # the time for which the service asks to be left alone


@dataclass(frozen=True, slots=True)
class PushClient:
    """The sender of letters, which are messages to devices, signed with the key pair of this Nod."""

    key: PushKey
    client: PinnedClient

    async def send(self, subscription: Subscription, letter: Letter, now: datetime) -> Outcome:
        """Encrypt a letter for a device, and send it."""
        try:
            signature = self.key.sign(subscription.endpoint, now)
            body = vapid.encrypt(letter.text, subscription.public_key, subscription.secret)
        except ValueError as error:
            return Outcome(f"could not be encrypted ({error})", is_final=True)
        headers = [
            ("Authorization", signature),
            ("Content-Encoding", "aes128gcm"),
            ("Content-Type", "application/octet-stream"),
            ("TTL", str(letter.ttl_seconds)),
            ("Topic", letter.topic),
            ("Urgency", letter.urgency),
            ("User-Agent", "nod"),
        ]
        return judge_answer(await self.client.post(subscription.endpoint, headers, body), now)


def make_push_client(settings: Settings) -> PushClient | None:
    """Return the sender with the key of ``NOD_PUSH_KEY``; None without a key. Raises SettingsError."""
    if settings.push_key is None:
        return None
    private = settings.push_key.get_secret_value()
    if private.removesuffix("=") == EXAMPLE_PUSH_KEY:
        raise SettingsError("NOD_PUSH_KEY: this is the example that anyone can read. Run: nod push keys")
    key = PushKey(private, _find_contact(settings))
    try:
        key.check()
    except ValueError:
        raise SettingsError("NOD_PUSH_KEY: no key pair has this private key. Run: nod push keys") from None
    return PushClient(key, PinnedClient(settings.webhook_hosts))


def _find_contact(settings: Settings) -> str:
    """Return the contact of this Nod's operators for push services, as RFC 8292 asks."""
    parts = urlsplit(settings.public_url or "")
    if parts.scheme == "https" and _DOMAIN.fullmatch(parts.hostname or ""):
        return f"https://{parts.hostname}"
    return "mailto:nod@localhost"


def judge_answer(answer: PostAnswer, now: datetime) -> Outcome:
    """Return the outcome that an answer of a push service means."""
    status = answer.status
    if not answer.fault:
        return Outcome()
    if status in _GONE_STATUSES:
        return Outcome(answer.fault, is_gone=True)
    if answer.is_final:
        return Outcome(answer.fault, is_final=True)
    return Outcome(answer.fault, pause=answer.read_pause(now, MAX_ASKED_PAUSE))


def open_subscription(session: Session, device: DeviceRow) -> Subscription:
    """Return the subscription of a device. Raises SecretLost."""
    endpoint = decrypt_in(session, DeviceRow, "endpoint", device.id, device.endpoint)
    secret = decrypt_in(session, DeviceRow, "secret", device.id, device.secret)
    return Subscription(endpoint, device.public_key, secret)
