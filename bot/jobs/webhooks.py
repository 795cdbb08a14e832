"""Webhooks, by which a script's server is told how the script's request ended.

A webhook is signed, and sent again until it is delivered or given up. Webhooks to send are rows
(``bot/store/webhooks.py``), so none is lost with the process; a webhook may be sent twice, with the same
``webhook-id``. Headers and signature follow https://www.standardwebhooks.com.
"""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.domain.outcomes import name_outcome
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.errors import ToolError
from bot.jobs.outbound_post import PinnedClient
from bot.store import proposals, webhooks
from bot.store.database import Database
from bot.store.tables.proposals import CallbackRow
from bot.telemetry.logs import logger

log = logger(__name__)

PAUSES = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600))
"""The time after each attempt until the next one. As many attempts are made as there are times.

The last time counts only if the process ended during the last attempt, which is then made again.
"""

_BATCH = 20  # the most webhooks in one run of the sweep
_GONE = 410  # the status by which a receiver says that it wants no more webhooks
_UNSIGNED_TEXT = "this server signs no webhooks; set NOD_WEBHOOK_SECRET, or ask GET /api/approvals/ID?wait=60"


class _DueWebhook(NamedTuple):
    """A webhook to send now."""

    row: CallbackRow  # the table calls a webhook a callback
    ident: str  # the header ``webhook-id``
    content: dict[str, Any]


class Webhooks:
    """Sends webhooks until they arrive or are given up.

    ``secret`` signs them; without it no webhook is accepted. ``hosts`` may be reached although internal.
    """

    def __init__(self, database: Database, secret: str | None, hosts: Collection[str] = ()) -> None:
        self._database = database
        self._secret = secret
        self._client = PinnedClient(hosts)

    async def find_url_objection(self, url: str) -> str | None:
        """Return why nothing can be sent to this address, with the fix; None when it can."""
        if self._secret is None:
            return _UNSIGNED_TEXT
        try:
            await self._client.check(url)
        except ToolError as error:
            return f"{error.message} To allow an internal host, add it to NOD_WEBHOOK_HOSTS."
        return None

    async def send_due(self, now: datetime) -> None:
        """Send the webhooks that are due, at most `_BATCH`. Without a secret, send none."""
        if self._secret is None:
            return
        due = await self._database.read(_list_due, now)
        await asyncio.gather(*(self._deliver(webhook, now) for webhook in due))

    async def _deliver(self, due: _DueWebhook, now: datetime) -> None:
        """Claim an attempt, make it, and store how it ended. Do nothing if another process has claimed it."""
        webhook = due.row
        is_last = webhook.attempts + 1 >= len(PAUSES)
        next_attempt = now + PAUSES[min(webhook.attempts, len(PAUSES) - 1)]
        if not await self._database.write(webhooks.claim, webhook, next_attempt):
            return
        fault, is_unwanted = await self._send(due, now)
        if not fault:
            await self._database.write(webhooks.mark_arrived, webhook, now)
            return
        gives_up = is_last or is_unwanted
        await self._database.write(partial(webhooks.mark_failed, over=gives_up), webhook, fault)
        write_log = log.error if gives_up else log.warning
        write_log(
            "webhook not delivered",
            proposal=webhook.proposal_id,
            url=webhook.url,
            why=fault,
            given_up=gives_up,
        )

    async def _send(self, due: _DueWebhook, now: datetime) -> tuple[str, bool]:
        """Send a webhook. Returns the fault (empty: it arrived), and True if the receiver wants no more."""
        body = json.dumps(due.content, ensure_ascii=False).encode()
        headers = sign_webhook(self._secret or "", due.ident, now, body)
        answer = await self._client.post(due.row.url, headers, body)
        return answer.fault, answer.status == _GONE


def make_webhook_content(proposal: Proposal, hidden_values: Sequence[str] = ()) -> dict[str, Any]:
    """Return the content of a webhook: how a request ended, without the request, which the requester knows.

    ``hidden_values``: the secret values of the arguments, which the content must not repeat.
    """

    def redact(text: str) -> str:
        return redact_text(text, hidden_values)

    return {
        "type": "approval.ended",
        "timestamp": proposal.updated_at.isoformat(),
        "data": {
            "id": proposal.id,
            "end": name_outcome(proposal),
            "summary": redact(proposal.description),
            "decided_by": proposal.decided_by,
            "decided_at": proposal.decided_at.isoformat() if proposal.decided_at else None,
            "reason": redact(proposal.decline_reason) if proposal.decline_reason else None,
            "edited_by": proposal.edited_by,
            "error": redact(proposal.error) if proposal.error else None,
        },
    }


def sign_webhook(secret: str, ident: str, now: datetime, body: bytes) -> list[tuple[str, str]]:
    """Return the headers of a webhook, with its signature: HMAC-SHA256 over ``id.timestamp.body``."""
    moment = str(int(now.timestamp()))
    mac = hmac.new(decode_secret(secret), f"{ident}.{moment}.".encode() + body, hashlib.sha256).digest()
    return [
        ("Content-Type", "application/json"),
        ("User-Agent", "nod"),
        ("webhook-id", ident),
        ("webhook-timestamp", moment),
        ("webhook-signature", f"v1,{base64.b64encode(mac).decode()}"),
    ]


def decode_secret(secret: str) -> bytes:
    """Return the key in a secret. After ``whsec_`` it is base64, as libraries for receivers expect it."""
    if secret.startswith("whsec_"):
        return base64.b64decode(secret.removeprefix("whsec_"))
    return secret.encode()


def _list_due(session: Session, now: datetime) -> list[_DueWebhook]:
    due = []
    for webhook in webhooks.list_due(session, now, _BATCH):
        proposal = proposals.get(session, webhook.proposal_id)
        if proposal is not None:
            schema = proposals.load_schema(session, proposal.tool_name, proposal.tool_version)
            content = make_webhook_content(proposal, secrets_in(proposal.arguments, schema))
            due.append(_DueWebhook(webhook, f"{proposal.id}-{proposal.version}", content))
    return due
