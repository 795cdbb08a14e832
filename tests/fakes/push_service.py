"""A push service on loopback, and the browsers that subscribe there: it refuses what real ones refuse.

It checks the request as RFC 8030 and 8292 ask, keeps what it took, and fails as it is told to. A browser
reads its messages with its own keys, by RFC 8291 as it is written and not by the library that Nod uses.
"""

import asyncio
import base64
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MAX_BODY_BYTES = 4096
_ONE_DAY = timedelta(hours=24)
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,32}")
_URGENCIES = ("very-low", "low", "normal", "high")
_GIGABYTE = 1 << 30

Json = dict[str, Any]


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _extract(salt: bytes, material: bytes) -> bytes:
    mac = hmac.HMAC(salt, hashes.SHA256())
    mac.update(material)
    return mac.finalize()


def _expand(key: bytes, info: bytes, size: int) -> bytes:
    """One step of HKDF is enough for up to 32 bytes."""
    return _extract(key, info + b"\x01")[:size]


def decrypt(body: bytes, key: ec.EllipticCurvePrivateKey, secret: bytes) -> bytes:
    """RFC 8291, section 3.4, and the one record of RFC 8188 that a message is."""
    salt, size, id_size = body[:16], int.from_bytes(body[16:20], "big"), body[20]
    sender, record = body[21 : 21 + id_size], body[21 + id_size :]
    assert id_size == 65
    assert 18 <= len(record) <= size
    own = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    shared = key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
    material = _expand(_extract(secret, shared), b"WebPush: info\x00" + own + sender, 32)
    derived = _extract(salt, material)
    content_key = _expand(derived, b"Content-Encoding: aes128gcm\x00", 16)
    nonce = _expand(derived, b"Content-Encoding: nonce\x00", 12)
    padded = AESGCM(content_key).decrypt(nonce, record, None).rstrip(b"\x00")
    assert padded.endswith(b"\x02")
    return padded[:-1]


@dataclass(frozen=True)
class PushedMessage:
    """A message that the service took for a browser."""

    headers: Mapping[str, str]
    shown: Json
    size: int


@dataclass
class FakeBrowser:
    """A browser with a subscription. ``answer``: how the service fails for it; None: it works."""

    endpoint: str
    application_key: str
    answer: "Answer | None" = None
    messages: list[PushedMessage] = field(default_factory=list)
    tries: int = 0
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    secret: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def keys(self) -> Json:
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return {"p256dh": encode(point), "auth": encode(self.secret)}

    def subscription(self, name: str = "Phone", **more: Any) -> Json:
        """The body of ``POST /api/push/devices``."""
        return {"endpoint": self.endpoint, "keys": self.keys, "name": name, **more}

    @property
    def shown(self) -> list[Json]:
        return [each.shown for each in self.messages]


@dataclass(frozen=True)
class Answer:
    """An answer of a service that fails. ``body_bytes`` of it are sent, or as many as are taken.

    ``raw`` replaces all of it. ``hangs``: it says nothing until the service is told to let go.
    """

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body_bytes: int = 0
    raw: bytes = b""
    hangs: bool = False


ENDLESS = Answer(201, body_bytes=_GIGABYTE)
NONSENSE = Answer(raw=b"\x16\x03\x01 no HTTP at all\r\n\r\n" * 20)
HANGING = Answer(hangs=True)


class FakePushService:
    """``now``: its clock. ``let_go`` ends the connections that hang."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.now = now
        self.browsers: dict[str, FakeBrowser] = {}
        self.refused: list[str] = []
        self.hanging = asyncio.Event()
        self.let_go = asyncio.Event()
        self.sent_bytes = 0
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self.let_go.set()
        self._server.close()

    def subscribe(self, application_key: str, answer: Answer | None = None) -> FakeBrowser:
        path = f"/push/{secrets.token_urlsafe(24)}"
        browser = FakeBrowser(f"{self.url}{path}", application_key, answer)
        self.browsers[path] = browser
        return browser

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:-2])}
            body = await reader.readexactly(int(headers["content-length"]))
            await self._answer(method, path, headers, body, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # who asks may leave
        finally:
            writer.close()

    async def _answer(
        self, method: str, path: str, headers: Json, body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        browser = self.browsers.get(path)
        if browser is None or method != "POST":
            await self._send(writer, Answer(404))
            return
        browser.tries += 1
        answer = browser.answer
        if answer is None or answer.status == 201:
            answer = self._take(browser, headers, body) or answer or Answer(201)
        if answer.hangs:
            self.hanging.set()
            await self.let_go.wait()
            return
        await self._send(writer, answer)

    def _take(self, browser: FakeBrowser, headers: Json, body: bytes) -> Answer | None:
        """Keep a message; the refusal where a real service would refuse it."""
        status, why = self._find_fault(browser, headers, body)
        if why:
            self.refused.append(why)
            return Answer(status)
        shown = json.loads(decrypt(body, browser.key, browser.secret))
        browser.messages.append(PushedMessage(headers, shown, len(body)))
        return None

    def _find_fault(self, browser: FakeBrowser, headers: Json, body: bytes) -> tuple[int, str]:
        if len(body) > MAX_BODY_BYTES:
            return 413, f"{len(body)} bytes"
        if not headers.get("ttl", "").isdigit():
            return 400, "no TTL"
        if not _TOPIC.fullmatch(headers.get("topic", "x")):
            return 400, "no topic"
        if headers.get("urgency", "normal") not in _URGENCIES:
            return 400, "no urgency"
        if headers.get("content-encoding") != "aes128gcm":
            return 400, "not encrypted"
        return self._find_fault_of_signature(browser, headers.get("authorization", ""))

    def _find_fault_of_signature(self, browser: FakeBrowser, header: str) -> tuple[int, str]:
        found = re.fullmatch(r"vapid t=([\w.-]+), ?k=([\w-]+)", header)
        if found is None:
            return 401, "not signed"
        token, key = found.groups()
        if key != browser.application_key:
            return 403, "signed with another key"
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(key))
        try:
            claims = jwt.decode(
                token, public, algorithms=["ES256"], audience=self.url, options={"verify_exp": False}
            )
        except jwt.InvalidTokenError as error:
            return 403, str(error)
        until = datetime.fromtimestamp(claims["exp"], UTC)
        if not self.now() < until <= self.now() + _ONE_DAY:
            return 403, "signed for too long, or no longer"
        if not re.match(r"mailto:.+@.+|https://", claims.get("sub", "")):
            return 403, "no contact"
        return 201, ""

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        if answer.raw:
            writer.write(answer.raw)
            await writer.drain()
            return
        head = [f"HTTP/1.1 {answer.status} As told", f"Content-Length: {answer.body_bytes}"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*head, "", ""]).encode())
        left, piece = answer.body_bytes, b"x" * 65536
        while left > 0:
            writer.write(piece)
            await writer.drain()
            left -= len(piece)
            self.sent_bytes += len(piece)
        await writer.drain()
