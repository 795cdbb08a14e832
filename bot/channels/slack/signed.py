"""Slack's signature over HTTP, looked at before anything else reads a request."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qs

from slack_sdk.signature import SignatureVerifier

_LONGEST_STAMP = 20


def signed(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """Whether Slack signed this body within the last five minutes."""
    stamp, signature = (headers.get(f"x-slack-{name}", "") for name in ("request-timestamp", "signature"))
    if not (secret and signature.isascii() and stamp.isascii() and stamp.isdecimal()):
        return False
    try:
        return len(stamp) < _LONGEST_STAMP and SignatureVerifier(secret).is_valid(body, stamp, signature)
    except UnicodeDecodeError:
        return False


def readable(body: bytes, content_type: str) -> bool:
    """Whether a body is one of the shapes Slack sends: a JSON object, or a form, maybe with one in it."""
    try:
        text = body.decode()
        if not content_type.startswith("application/x-www-form-urlencoded"):
            found = json.loads(text)
            return isinstance(found, dict) and isinstance(found.get("event", {}), dict)
        form = parse_qs(text, keep_blank_values=True)
        return "payload" not in form or isinstance(json.loads(form["payload"][0]), dict)
    except (ValueError, RecursionError):
        return False
