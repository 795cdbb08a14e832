"""Timed messages other than expiry: warnings, reminders, escalation, the daily digest, audit anchors.

Due times live in the proposals' rows and each is taken by a guarded move, so several tickers never tell
twice. Quiet hours hold back reminders and digests, not warnings before an expiry or escalations.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from sqlmodel import Session

from bot.channels.delivery.cards import Cards
from bot.channels.delivery.notices import Notices
from bot.domain.chat import Address
from bot.domain.people import Role
from bot.domain.proposals import Proposal, others, together
from bot.domain.record import Act
from bot.domain.rules import DailyDigest, Hours, Rule, Rulebook, Subject
from bot.domain.times import format_span
from bot.store import notices, proposals, rules, transitions
from bot.store.audit import admin_changes, verification
from bot.store.audit.log import By
from bot.store.database import Database
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.store.state import claim_day, keep_task_state, load_task_state
from bot.telemetry.logs import logger

log = logger(__name__)

_BATCH = 100
_TOLD_LINKS = "told links"
_KEEP = "It proves later that the audit log up to now was not changed: `nod audit verify --anchor`."
_LISTED = 50  # in a digest, which is one post to read


@dataclass(frozen=True, slots=True)
class Reminders:
    """Warns, reminds, escalates, and posts digests and audit anchors when they are due."""

    database: Database
    policies: Policies
    cards: Cards
    notices: Notices

    async def remind(self, now: datetime) -> None:
        """Send what is due. While paused only the audit anchor, and who became one person, is found."""
        await self.database.write(self._news, now)
        book = (await self.database.read(self.policies.load)).book
        if book.list_ended(now):
            await self.database.write(rules.end_due, book, now)
        if not book.paused:
            quiet = is_quiet(book, now)
            for what in (Act.WARN, Act.ESCALATE) if quiet else (Act.WARN, Act.REMIND, Act.ESCALATE):
                await self.database.write(self._take, what, now)
            if not quiet:
                await self._digest(book, now)
        await self.send(now)

    def _news(self, session: Session, now: datetime) -> None:
        anchor = verification.anchor_due(session, now)
        if anchor:
            log.info("audit anchor", anchor=anchor)
            self.notices.for_approvers(session, f"Audit anchor `{anchor}`. {_KEEP}")
        for text in _new_links(session, now):
            self.notices.for_admins(session, text)

    async def send(self, now: datetime) -> None:
        """Post what is to be said, or tried again, by now."""
        await self.notices.send(now, self.cards.post_at)

    def _take(self, session: Session, what: Act, now: datetime) -> None:
        """Claim what is due, each in a guarded move with its audit row, and have it told; a batch once."""
        told: dict[str, Proposal] = {}
        many: Counter[str] = Counter()
        for proposal in proposals.calling(session, what, now, _BATCH):
            if what is Act.ESCALATE:
                moved = self._escalate(session, proposal, now)
            else:
                due: dict[str, Any] = {f"{what}_at": None}
                if what is Act.REMIND and proposal.remind_every:
                    due = {"remind_at": now + proposal.remind_every}
                moved = transitions.move(session, proposal, By.nod(what), now, **due)
            if moved is not None:
                told.setdefault(moved.card_id, moved)
                many[moved.card_id] += 1
        for shown, moved in told.items():
            if what is not Act.ESCALATE:
                self.notices.nudge(session, moved, _words(what, moved, many[shown] - 1, now))
            elif moved.escalate_to:
                notices.store_notice(session, Address.parse(moved.escalate_to), "", now, shown)

    def _escalate(self, session: Session, proposal: Proposal, now: datetime) -> Proposal | None:
        """Let approvers and admins decide as well."""
        policy, before = self.policies.load(session), proposal.deciders
        added = (role for role in (Role.APPROVER, Role.ADMIN) if policy.holders(role, before.place))
        roles = tuple(dict.fromkeys((*before.roles, *added)))
        deciders = replace(before, roles=roles, escalated=proposal.escalate_to)
        by = By.nod(Act.ESCALATE)
        return transitions.raise_requirements(session, proposal, by, now, deciders=deciders, escalate_at=None)

    async def _digest(self, book: Rulebook, now: datetime) -> None:
        for rule in book.list_about(Subject.DIGEST):
            here = now.astimezone(book.zone)
            if isinstance(rule.value, DailyDigest) and here.time() >= rule.value.at:
                await self.database.write(_digest_once, rule, Address.parse(rule.value.to), now, here.date())


def _words(what: Act, proposal: Proposal, more: int, now: datetime) -> str:
    left = format_span(proposal.expires_at - now)
    about = f"{proposal.description}{others(more)}"
    if what is Act.WARN:
        return f"Expires in {left} if no one decides: {about}"
    return f"Still waiting for a decision ({left} left): {about}"


def _new_links(session: Session, now: datetime) -> list[str]:
    """Return the accounts that were linked or unlinked since admins were last told, in words."""
    last = load_task_state(session, _TOLD_LINKS).get("row", 0)
    found = admin_changes.links_after(session, last)
    if found:
        keep_task_state(session, _TOLD_LINKS, {"row": found[-1].row, "at": now.isoformat()})
    return [change.words for change in found]


def is_quiet(book: Rulebook, now: datetime) -> bool:
    """Return whether the team's time of day lies in quiet hours, which may go over midnight."""
    clock = now.astimezone(book.zone).time()
    return any(
        rule.value.cover(clock) for rule in book.list_about(Subject.QUIET) if isinstance(rule.value, Hours)
    )


def _digest_once(session: Session, rule: Rule, to: Address, now: datetime, today: date) -> None:
    if claim_day(session, f"digest {rule.id}", today):
        notices.store_notice(session, to, _open_in(session, rule.scope, now), now)
        for send_digest in hooks_of(session).send_digest:
            send_digest(session, rule.scope, to, now)


def _open_in(session: Session, scope: str, now: datetime) -> str:
    """Return the digest's text: what is open in a scope, soonest to expire first."""
    found, many = proposals.soonest(session, scope, _LISTED)
    if not found:
        return "Nothing is waiting for a decision today."
    lines = [
        f"- `{p.id[:8]}` {p.description}{others(len(rest))} "
        f"(asked by {p.requester.label}, {format_span(p.expires_at - now)} left)"
        for p, *rest in together(found)
    ]
    lines += [f"…and {many - len(found)} more"] if many > len(found) else []
    return f"**{many} waiting for a decision**\n" + "\n".join(lines)
