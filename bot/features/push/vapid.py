"""The encryption of messages for a browser (RFC 8291), and the signature for its push service (RFC 8292).

The signature is called VAPID: with it a service knows that a message comes from the Nod to which the browser
subscribed. Keys are on the curve P-256, and written as base64url. The libraries, which the package installs
with its extra ``push``, are loaded only when they are needed.
"""

import base64
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from bot.domain.text import hash_text

MAX_BYTES = 3_000
"""The size of a message before it is encrypted: every service takes 4,096 bytes with what encryption adds."""
_SIGNED_FOR = timedelta(hours=12)  # a service takes at most 24 h
_PUBLIC_KEY_BYTES = 65
_SECRET_BYTES = 16
_UNCOMPRESSED = 4  # the first byte of a public key that is written with both coordinates
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+={0,2}")


@dataclass(frozen=True)
class PushKey:
    """The key pair of ``NOD_PUSH_KEY``."""

    private: str = field(repr=False)  # the private key: 32 bytes as base64url
    contact: str = ""  # a ``mailto:`` or ``https:`` address for those who run a push service

    @classmethod
    def generate(cls) -> "PushKey":
        """Return a new random key pair."""
        from cryptography.hazmat.primitives.asymmetric import ec

        private_key = ec.generate_private_key(ec.SECP256R1())
        number = private_key.private_numbers().private_value
        return cls(encode(number.to_bytes(32, "big")))

    def check(self) -> None:
        """Raise ValueError if the private key is not valid."""
        _ = self.public  # to compute the public key, the private key is checked

    @cached_property
    def public(self) -> str:
        """The public key as base64url, which browsers subscribe with."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        point = self._vapid.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return encode(point)

    @cached_property
    def fingerprint(self) -> str:
        """A short name of the public key, stored with each device."""
        return hash_text(self.public)[:16]

    def sign(self, endpoint: str, now: datetime) -> str:
        """Return the header ``Authorization`` for a push service. Raises ValueError for a wrong address."""
        from py_vapid import VapidException

        parts = urlsplit(endpoint)
        claims = {
            "aud": f"{parts.scheme}://{parts.netloc}",
            "exp": int((now + _SIGNED_FOR).timestamp()),
            "sub": self.contact,
        }
        try:
            header: str = self._vapid.sign(claims)["Authorization"]
        except VapidException as error:
            raise ValueError(str(error)) from None
        return header

    @cached_property
    def _vapid(self) -> Any:
        from py_vapid import Vapid02

        return Vapid02.from_raw(self.private.encode())


def encrypt(text: bytes, public_key: str, secret: str) -> bytes:
    """Return a body in the encoding ``aes128gcm`` that only the browser with these keys can read.

    Raises ValueError for keys that are not valid, and for a text of more than `MAX_BYTES`.
    """
    import http_ece
    from cryptography.hazmat.primitives.asymmetric import ec

    if len(text) > MAX_BYTES:
        raise ValueError(f"it has {len(text)} bytes, the most is {MAX_BYTES}")
    one_time_key = ec.generate_private_key(ec.SECP256R1())
    body: bytes = http_ece.encrypt(
        text, private_key=one_time_key, dh=decode(public_key), auth_secret=decode(secret), version="aes128gcm"
    )
    return body


def find_key_fault(public_key: str, secret: str) -> str:
    """Return why these are not the keys of a subscription; empty if they are."""
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        point = decode(public_key)
        auth_secret = decode(secret)
        if len(point) != _PUBLIC_KEY_BYTES or point[0] != _UNCOMPRESSED:
            return "p256dh is not a public key of P-256, 65 bytes as base64url."
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        return "p256dh and auth are base64url, as the browser gives them."
    if len(auth_secret) != _SECRET_BYTES:
        return "auth is 16 bytes as base64url."
    return ""


def encode(raw: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Read base64url, with padding or without. Raises ValueError."""
    if not _BASE64URL.fullmatch(text):
        raise ValueError("not base64url")
    bare = text.rstrip("=")
    return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
