"""Timed messages other than expiry: warnings, steps, the daily digest, audit anchors.

A step reaches the card's own places (a reminder), other people (an escalation), or a notifier that a feature
brings. Due times are in the proposals' rows, and each is claimed by a guarded move, so several tickers never
send a message twice. Quiet hours hold back reminders, notifiers and digests, not warnings before an expiry or
escalations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals.groups import Groups
from bot.channels.delivery.audience import tell_added
from bot.channels.delivery.cards import Cards
from bot.channels.delivery.notices import Notices
from bot.domain.chat import Address
from bot.domain.people import Role, is_group
from bot.domain.proposals import Proposal, others, time_steps, together
from bot.domain.record import Act
from bot.domain.rules import DailyDigest, Hours, Rule, Rulebook, Subject
from bot.domain.steps import REMINDER, is_place, take_steps
from bot.domain.text import as_written
from bot.domain.times import format_span
from bot.store import notices, proposals, rules, transitions
from bot.store.audit import admin_changes, verification
from bot.store.audit.log import By
from bot.store.database import Database
from bot.store.hooks import find_notifier, hooks_of
from bot.store.rules import Policies
from bot.store.state import claim_day, keep_task_state, load_task_state
from bot.telemetry.logs import logger

log = logger(__name__)

_BATCH = 100
_LINKS_STATE = "told links"
_ANCHOR_USE_TEXT = (
    "It proves later that the audit log up to now was not changed: `nod audit verify --anchor`."
)
_MAX_LISTED = 50  # the most proposals in a digest, which is one post to read
_MAX_PRIVATE_CARDS = 10  # the most private cards to members of a group to which a card is escalated
_LOUD = (Act.WARN, Act.ESCALATE)
"""The acts that quiet hours do not hold back."""


class _ClaimedStep(NamedTuple):
    """A proposal with a due step, and the targets of the step."""

    proposal: Proposal
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reminders:
    """Warns, reminds, escalates, and posts digests and audit anchors when they are due."""

    database: Database
    policies: Policies
    cards: Cards
    notices: Notices
    groups: Groups

    async def remind(self, now: datetime) -> None:
        """Make and send due messages. While paused, make only audit anchors and news of linked accounts."""
        await self.database.write(self._news, now)
        book = (await self.database.read(self.policies.load)).book
        if book.list_ended(now):
            await self.database.write(rules.end_due, book, now)
        if not book.paused:
            quiet = is_quiet(book, now)
            await self._ask_for_groups(book, now)
            for what in _LOUD if quiet else (Act.WARN, Act.REMIND, Act.ESCALATE):
                await self.database.write(self._take, what, now)
            if not quiet:
                await self._digest(book, now)
                await self.database.write(self._take, Act.NOTIFY, now)
        await self.send(now)

    def _news(self, session: Session, now: datetime) -> None:
        anchor = verification.anchor_due(session, now)
        if anchor:
            log.info("audit anchor", anchor=anchor)
            self.notices.for_approvers(session, f"Audit anchor `{anchor}`. {_ANCHOR_USE_TEXT}")
        for text in _take_new_links(session, now):
            self.notices.for_admins(session, text)

    async def send(self, now: datetime) -> None:
        """Post the due notices, also those to be tried again."""
        await self.notices.send(now, self.cards.post_at)

    def _take(self, session: Session, what: Act, now: datetime) -> None:
        """Claim due proposals, each in a guarded move, and store their notices, one for each batch."""
        cards: dict[str, list[_ClaimedStep]] = {}
        for proposal in proposals.list_due_for(session, what, now, _BATCH):
            taken = self._claim(session, what, proposal, now)
            if taken is not None:
                cards.setdefault(taken.proposal.card_id, []).append(taken)
        for taken_together in cards.values():
            targets = dict.fromkeys(target for each in taken_together for target in each.targets)
            for target in targets:
                reached = [each.proposal for each in taken_together if target in each.targets]
                self._tell(session, what, target, reached, now)

    def _claim(self, session: Session, what: Act, proposal: Proposal, now: datetime) -> _ClaimedStep | None:
        """Claim a due step of a proposal. Returns it with its targets; None if another process was faster."""
        if what is Act.ESCALATE:
            return self._escalate(session, proposal, now)
        targets: tuple[str, ...] = (REMINDER,)
        due: dict[str, Any] = {f"{what}_at": None}
        reason = None
        if what is Act.REMIND and proposal.remind_every:
            due = {"remind_at": now + proposal.remind_every}
        elif what is Act.NOTIFY:
            targets, left = take_steps(proposal.steps, now, escalating=False)
            due, reason = time_steps(left), ", ".join(targets)
        moved = transitions.move(session, proposal, By.nod(what, reason), now, **due)
        return _ClaimedStep(moved, targets) if moved else None

    def _escalate(self, session: Session, proposal: Proposal, now: datetime) -> _ClaimedStep | None:
        """Let approvers, admins and the people at the due targets decide, too."""
        policy, before = self.policies.load(session), proposal.deciders
        added = [role for role in (Role.APPROVER, Role.ADMIN) if policy.holders(role, before.place)]
        targets, left = take_steps(proposal.all_steps, now, escalating=True)
        due: dict[str, Any] = {"escalate_at": None}
        if proposal.steps:
            due = time_steps(left)
        deciders = before.escalate(added, targets)
        by = By.nod(Act.ESCALATE)
        moved = transitions.raise_requirements(session, proposal, by, now, deciders=deciders, **due)
        if moved is None:
            return None
        tell_added(session, self.policies, proposal, moved, now)
        return _ClaimedStep(moved, targets)

    def _tell(
        self, session: Session, what: Act, target: str, reached: Sequence[Proposal], now: datetime
    ) -> None:
        """Store the notice to a target about proposals that share a card."""
        proposal, more = reached[0], len(reached) - 1
        if target == REMINDER:
            self.notices.nudge(session, proposal, _format_reminder(what, proposal, more, now))
        elif is_group(target):
            self._tell_group(session, target, proposal, more, now)
        elif is_place(target):
            notices.store_notice(session, Address.parse(target), "", now, proposal.card_id)
        else:
            self._use_notifier(session, target, proposal, more, now)

    def _tell_group(self, session: Session, group: str, proposal: Proposal, more: int, now: datetime) -> None:
        """Send the card to each member of a group; where the members are many or unknown, remind instead."""
        policy = self.policies.load(session)
        known = policy.groups.get(group)
        members = sorted(known.members) if known else []
        for account in members[:_MAX_PRIVATE_CARDS]:
            notices.store_notice(session, Address.parse(account), "", now, proposal.card_id)
        if not 0 < len(members) <= _MAX_PRIVATE_CARDS:
            self.notices.nudge(session, proposal, _format_reminder(Act.REMIND, proposal, more, now))

    def _use_notifier(
        self, session: Session, name: str, proposal: Proposal, more: int, now: datetime
    ) -> None:
        """Send by a notifier, or tell the admins that it can't send."""
        notifier = find_notifier(session, name)
        if notifier is None or notifier.hindrance:
            why = notifier.hindrance if notifier else f"Nothing here is called {name}."
            about = as_written(f"{proposal.description}{others(more)}")
            text = f"The step `{name}` can't be taken for {about}. {why} Change the rule: `/approvals rules`."
            self.notices.for_admins(session, text)
            return
        notifier.notify(session, proposal, more, now)

    async def _ask_for_groups(self, book: Rulebook, now: datetime) -> None:
        """Ask platforms for the members of the groups to which proposals are escalated now."""
        steps = [step for rule in book.list_about(Subject.NOTIFY) for step in rule.steps]
        if not any(is_group(step.to) for step in steps):
            return
        due = await self.database.read(proposals.list_due_for, Act.ESCALATE, now, _BATCH)
        targets = {target for each in due for target in take_steps(each.steps, now, escalating=True)[0]}
        await self.groups.ask(filter(is_group, sorted(targets)))

    async def _digest(self, book: Rulebook, now: datetime) -> None:
        for rule in book.list_about(Subject.DIGEST):
            here = now.astimezone(book.zone)
            if isinstance(rule.value, DailyDigest) and here.time() >= rule.value.at:
                await self.database.write(_digest_once, rule, Address.parse(rule.value.to), now, here.date())


def _format_reminder(what: Act, proposal: Proposal, more: int, now: datetime) -> str:
    left = format_span(proposal.expires_at - now)
    about = f"{proposal.description}{others(more)}"
    if what is Act.WARN:
        return f"Expires in {left} if no one decides: {about}"
    return f"Still waiting for a decision ({left} left): {about}"


def _take_new_links(session: Session, now: datetime) -> list[str]:
    """Return the accounts that were linked or unlinked since admins were last told, in words."""
    last = load_task_state(session, _LINKS_STATE).get("row", 0)
    found = admin_changes.links_after(session, last)
    if found:
        keep_task_state(session, _LINKS_STATE, {"row": found[-1].row, "at": now.isoformat()})
    return [change.words for change in found]


def is_quiet(book: Rulebook, now: datetime) -> bool:
    """Return whether the team's time of day lies in quiet hours, which may go over midnight."""
    clock = now.astimezone(book.zone).time()
    return any(
        rule.value.cover(clock) for rule in book.list_about(Subject.QUIET) if isinstance(rule.value, Hours)
    )


def _digest_once(session: Session, rule: Rule, to: Address, now: datetime, today: date) -> None:
    if claim_day(session, f"digest {rule.id}", today):
        notices.store_notice(session, to, _format_digest(session, rule.scope, now), now)
        for send_digest in hooks_of(session).send_digest:
            send_digest(session, rule.scope, to, now)


def _format_digest(session: Session, scope: str, now: datetime) -> str:
    """Return the text of a digest: the open proposals in a scope, soonest to expire first."""
    found, many = proposals.list_soonest(session, scope, _MAX_LISTED)
    if not found:
        return "Nothing is waiting for a decision today."
    lines = [
        f"- `{p.id[:8]}` {p.description}{others(len(rest))} "
        f"(asked by {p.requester.label}, {format_span(p.expires_at - now)} left)"
        for p, *rest in together(found)
    ]
    lines += [f"…and {many - len(found)} more"] if many > len(found) else []
    return f"**{many} waiting for a decision**\n" + "\n".join(lines)
