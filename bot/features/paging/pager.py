"""The sender of pages: by PagerDuty's Events API v2, or as signed webhooks with the same contents.

A page is an alert about a card for the people on call. It has two events: ``trigger`` alerts them, and
``resolve`` ends the alert. The events are rows (`rows.py`), so none is lost with the process. If an event
arrives twice, the service takes both as one, by their ``dedup_key``. The API and its answers:
https://developer.pagerduty.com/docs/send-alert-event
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.domain.chat import Address
from bot.domain.people import Role, name_of_place
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.domain.text import escape_markdown, one_line, shorten
from bot.features.paging import rows
from bot.features.paging.rows import PageEvent
from bot.features.paging.tables import PageRow
from bot.jobs.outbound_post import MAX_POST_SECONDS, PinnedClient, PostAnswer
from bot.jobs.webhooks import sign_webhook
from bot.store import conversations, notices, people, proposals
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

SWEEP_SECONDS = 2
"""The time between two runs of the sweep."""
PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
PAUSES = tuple(timedelta(seconds=s) for s in (5, 15, 30, 60, 120, 300, 600, 1800, 3600, 3600, 3600))
"""The pause after each failed attempt. There are as many attempts as pauses; then the event is given up."""
# the number of failed attempts after which admins are told; the page is almost a minute late by then
_FAULTS_BEFORE_ADMINS = 4
_MAX_PAUSE = timedelta(hours=1)  # the longest pause, whatever the server asks for
_MAX_SUMMARY_CHARS = 1024
_MAX_SENT = 20  # the most events in one run of the sweep
_GRACE_SECONDS = 5.0  # the length of a claim beyond the longest time of one attempt


@dataclass(frozen=True, slots=True)
class PagingService:
    """The service that receives pages. Each text is empty if the settings don't have it."""

    url: str  # NOD_PAGER_URL: another address than PagerDuty's
    key: str  # NOD_PAGER_KEY: the routing key, for PagerDuty's API
    secret: str  # NOD_WEBHOOK_SECRET: signs the webhooks to ``url`` if there is no key

    @property
    def missing_settings_text(self) -> str:
        """The reason why no page can be sent, with advice; empty if pages can be sent."""
        if self.key or (self.url and self.secret):
            return ""
        if self.url:
            return "NOD_PAGER_URL needs NOD_PAGER_KEY or NOD_WEBHOOK_SECRET. Set one, then restart Nod."
        return "Paging is not set up here. Set NOD_PAGER_KEY, then restart Nod."

    @property
    def address(self) -> str:
        """The address to which events are sent."""
        return self.url or PAGERDUTY_URL


class _DueEvent(NamedTuple):
    """An event to send."""

    page: PageRow
    content: dict[str, Any]  # the body of the request
    card_text: str  # the card in words, for admins


class Pager:
    """The sweep that sends due events of pages to the service, and tells admins of failures."""

    def __init__(
        self,
        database: Database,
        policies: Policies,
        service: PagingService,
        client: PinnedClient,
        site_url: Callable[[], str],
    ) -> None:
        self._database, self._policies = database, policies
        self._service, self._client, self._site_url = service, client, site_url

    async def sweep(self, now: datetime) -> None:
        """Send the events that are due."""
        due = await self._database.read(self._read_due, now)
        await asyncio.gather(*(self._send(each, now) for each in due))

    def _read_due(self, session: Session, now: datetime) -> list[_DueEvent]:
        """Return the due events. Their contents are made now, from the current state of the card."""
        due = []
        for page in rows.list_due(session, now, _MAX_SENT):
            proposal = proposals.get(session, page.proposal_id)
            if proposal is not None:
                content = _describe_event(session, page, proposal, self._site_url())
                due.append(_DueEvent(page, content, escape_markdown(proposal.description)))
        return due

    async def _send(self, due: _DueEvent, now: datetime) -> None:
        """Claim an event, try to send it once, and store the outcome."""
        page = due.page
        pause = PAUSES[min(page.attempts, len(PAUSES) - 1)]
        claimed_until = now + timedelta(seconds=MAX_POST_SECONDS + _GRACE_SECONDS)
        if not await self._database.write(rows.claim_page, page, now + pause, claimed_until):
            return
        claimed = rows.copy_as_claimed(page)
        answer = await self._post(due, now)
        if not answer.fault:
            await self._database.write(rows.mark_sent, claimed)
            return
        is_given_up = answer.is_final or claimed.attempts >= len(PAUSES)
        next_at = None
        if not is_given_up:
            asked_pause = answer.read_pause(now, _MAX_PAUSE) or timedelta()
            next_at = now + max(pause, asked_pause)
        log.warning("page not delivered", proposal=page.proposal_id, why=answer.fault, given_up=is_given_up)
        await self._database.write(self._store_fault, due, claimed, answer.fault, next_at, now)

    async def _post(self, due: _DueEvent, now: datetime) -> PostAnswer:
        """Send an event with the routing key in its body, or without a key as a signed webhook."""
        content = due.content
        if self._service.key:
            body = json.dumps({"routing_key": self._service.key, **content}, ensure_ascii=False).encode()
            headers = [("Content-Type", "application/json"), ("User-Agent", "nod")]
        else:
            body = json.dumps(content, ensure_ascii=False).encode()
            paged_at_seconds = int(due.page.paged_at.timestamp())
            message_id = f"page-{due.page.proposal_id}-{paged_at_seconds}-{due.page.event}"
            headers = sign_webhook(self._service.secret, message_id, now, body)
        return await self._client.post(self._service.address, headers, body)

    def _store_fault(
        self,
        session: Session,
        due: _DueEvent,
        claimed: PageRow,
        fault: str,
        next_at: datetime | None,
        now: datetime,
    ) -> None:
        """Store a failed attempt, and tell admins if the event is late or given up.

        ``next_at``: the time of the next attempt; None: the event is given up.
        """
        if not rows.mark_failed(session, claimed, fault, next_at):
            return
        if next_at is None:
            next_step = "It is not tried again. Check NOD_PAGER_KEY and NOD_PAGER_URL."
        elif claimed.attempts == _FAULTS_BEFORE_ADMINS:
            next_step = "Nod tries again."
        else:
            return
        subject = "The page" if claimed.event == PageEvent.TRIGGER else "The end of the page"
        text = f"{subject} about {due.card_text} did not arrive: {fault.rstrip('.')}. {next_step}"
        for admin in sorted(self._policies.load(session).list_holders(Role.ADMIN)):
            notices.store_notice(session, Address.parse(admin), text, now)


def _describe_event(session: Session, page: PageRow, proposal: Proposal, site_url: str) -> dict[str, Any]:
    """Return the content of an event: the tool and the place, without the call's arguments."""
    content: dict[str, Any] = {"event_action": page.event, "dedup_key": f"nod-{page.proposal_id}"}
    if page.event == PageEvent.RESOLVE:
        return content
    place = _name_place(session, proposal)
    others = f" and {page.more} more" if page.more else ""
    summary = f"{one_line(proposal.tool_name)} in {place} waits for a decision{others}"
    return {
        **content,
        "payload": {
            "summary": shorten(summary, _MAX_SUMMARY_CHARS),
            "source": "nod",
            "severity": "critical" if proposal.risk.level is Level.DESTRUCTIVE else "warning",
            "timestamp": page.paged_at.isoformat(),
            "component": one_line(proposal.tool_name),
            "group": place,
            "class": "approval",
            "custom_details": {
                "proposal": proposal.id,
                "risk": str(proposal.risk.level),
                "asked_at": proposal.created_at.isoformat(),
                "expires_at": proposal.expires_at.isoformat(),
                "more": page.more,
            },
        },
        "client": "Nod",
        "client_url": f"{site_url}/#/inbox/{page.proposal_id}",
    }


def _name_place(session: Session, proposal: Proposal) -> str:
    """Return the name of the place of a proposal, without the name of a private chat."""
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    if conversation is None or conversation.private:
        return "a private chat"
    place = str(conversation.origin)
    return one_line(name_of_place(place, people.find_known_names(session, [place])))
