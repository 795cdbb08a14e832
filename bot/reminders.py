"""What time does besides expiring: warnings, reminders, escalation, the daily digest, the audit's seal.

Due times live in the proposals' rows and each is taken by a guarded move, so several tickers never tell
twice. Quiet hours hold back reminders and digests, not warnings before an expiry or escalations.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from sqlmodel import Session

from bot.delivery import Delivery
from bot.domain.chat import Address
from bot.domain.people import Role
from bot.domain.proposals import Proposal, State
from bot.domain.rules import EVERYWHERE, Rulebook, Subject, covers
from bot.store import checkpoints, conversations, proposals, rules
from bot.store.audit import By
from bot.store.database import Database
from bot.store.rules import Policies

_BATCH = 100
_LISTED = 50  # in a digest, which is one post to read


class Reminders:
    def __init__(self, database: Database, policies: Policies, delivery: Delivery) -> None:
        self._database = database
        self._policies = policies
        self._delivery = delivery

    async def sweep(self, now: datetime) -> None:
        """Tell people what is due to be told. Nothing happens while approvals are paused."""
        book = (await self._database.read(self._policies.load)).book
        if book.paused:
            return
        await self._tell(await self._database.write(self._take, "warn", now), self._warning, now)
        if not is_quiet(book, now):
            await self._tell(await self._database.write(self._take, "remind", now), self._reminder, now)
            await self._digest(book, now)
        for proposal in await self._database.write(self._take, "escalate", now):
            if proposal.escalate_to:
                await self._delivery.post_at(proposal.id, Address.parse(proposal.escalate_to))
        await self._database.write_aside(checkpoints.seal, now)

    async def _tell(
        self, due: list[Proposal], words: Callable[[Proposal, datetime], str], now: datetime
    ) -> None:
        for proposal in due:
            await self._delivery.nudge(proposal.id, words(proposal, now))

    def _take(self, session: Session, what: str, now: datetime) -> list[Proposal]:
        """Claim what is due, each in a guarded move with its audit row."""
        taken = []
        for proposal in proposals.calling(session, what, now, _BATCH):
            changes: dict[str, Any] = {f"{what}_at": None}
            if what == "remind" and proposal.remind_every:
                changes = {"remind_at": now + proposal.remind_every}
            if what == "escalate":
                policy = self._policies.load(session)
                roles = tuple(role for role in (Role.APPROVER, Role.ADMIN) if policy.holders(role))
                widened = dict.fromkeys((*proposal.deciders.roles, *roles))
                changes["deciders"] = replace(proposal.deciders, roles=tuple(widened))
            moved = proposals.move(session, proposal, By.nod(what), now, **changes)
            if moved is not None:
                taken.append(moved)
        return taken

    @staticmethod
    def _warning(proposal: Proposal, now: datetime) -> str:
        return f"Expires in {_left(proposal, now)} if nobody decides: {proposal.description}"

    @staticmethod
    def _reminder(proposal: Proposal, now: datetime) -> str:
        return f"Still waiting for a decision ({_left(proposal, now)} left): {proposal.description}"

    async def _digest(self, book: Rulebook, now: datetime) -> None:
        for rule in book.about(Subject.DIGEST):
            at, address = rule.value
            if now.time() < time.fromisoformat(at):
                continue
            if not await self._database.write(_first_today, f"digest {rule.id}", now):
                continue
            text = await self._database.read_aside(_open_in, rule.scope, now)
            await self._delivery.say(Address.parse(address), text)


def is_quiet(book: Rulebook, now: datetime) -> bool:
    """Whether the time of day (UTC) lies in quiet hours, which may go over midnight."""
    for rule in book.about(Subject.QUIET):
        begin, end = (time.fromisoformat(t) for t in rule.value)
        clock = now.time()
        if (begin <= clock < end) if begin <= end else (clock >= begin or clock < end):
            return True
    return False


def _left(proposal: Proposal, now: datetime) -> str:
    minutes = max(int((proposal.expires_at - now) / timedelta(minutes=1)), 0)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004


def _first_today(session: Session, name: str, now: datetime) -> bool:
    day = now.date().isoformat()
    if rules.state_of(session, name).get("day") == day:
        return False
    rules.keep_state(session, name, {"day": day})
    return True


def _open_in(session: Session, scope: str, now: datetime) -> str:
    """The digest's text: what is open in a scope, soonest to expire first."""
    found = proposals.in_states(session, [State.PROPOSED])
    if scope != EVERYWHERE:
        found = [p for p in found if covers(scope, _place(session, p))]
    if not found:
        return "Nothing waits for a decision today."
    found.sort(key=lambda p: p.expires_at)
    lines = [
        f"- `{p.id[:8]}` {p.description} (asked by {p.requester.label}, {_left(p, now)} left)"
        for p in found[:_LISTED]
    ]
    lines += [f"…and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    return f"**{len(found)} waiting for a decision**\n" + "\n".join(lines)


def _place(session: Session, proposal: Proposal) -> str:
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    return str(conversation.origin) if conversation else ""
