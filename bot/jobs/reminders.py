"""Timed messages other than expiry: warnings, steps, the daily digest, audit anchors.

A *step* is what happens while a proposal waits: a reminder in the places of its card, an escalation to other
people, or a message by a notifier, such as the feature for push notifications. Proposals that one card shows
share one message. An *audit anchor* is the number and hash of the audit log's newest row.

Due times are in the proposals' rows. A process claims a step by a guarded change of the row (a *move*), so
several processes never send a message twice. Quiet hours hold back reminders, notifiers and digests, but
neither the warnings before an expiry nor escalations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals.groups import Groups
from bot.channels.delivery.audience import tell_added_deciders
from bot.channels.delivery.cards import Cards
from bot.channels.delivery.notices import Notices
from bot.domain.audit import Act
from bot.domain.batch_groups import describe_others, group_by_card
from bot.domain.chat import Address
from bot.domain.people import Role, is_group
from bot.domain.proposals import Proposal, time_steps
from bot.domain.rule_values import DailyDigest, Hours, Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import Rule
from bot.domain.steps import REMINDER, is_place, take_steps
from bot.domain.text import SHORT_ID_CHARS, escape_markdown
from bot.domain.times import format_span
from bot.store import notices, proposals, requirements, rules, transitions
from bot.store.audit import admin_changes, verification
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.hooks import find_notifier, hooks_of
from bot.store.rules import Policies
from bot.store.state import claim_day, load_task_state, store_task_state
from bot.telemetry.logs import logger

log = logger(__name__)

_BATCH = 100  # the most proposals with a due step that one transaction takes
# the name of the task whose state says up to which row of the audit log admins were told of links
_LINKS_TASK = "told links"
_ANCHOR_USE_TEXT = (
    "It proves later that the audit log up to now was not changed: `nod audit verify --anchor`."
)
_MAX_LISTED = 50  # the most proposals in a digest, which is one post to read
_MAX_PRIVATE_CARDS = 10  # the most private cards to members of a group to which a card is escalated
_ACTS = (Act.WARN, Act.REMIND, Act.ESCALATE)
"""The acts outside quiet hours; `Act.NOTIFY` comes after them and the digests."""
_ACTS_AT_ANY_HOUR = (Act.WARN, Act.ESCALATE)
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
        """Store the due messages, and send them. While Nod is paused, store only those for admins."""
        await self.database.write(self._store_admin_news, now)
        rulebook = (await self.database.read(self.policies.load)).rulebook
        if rulebook.list_ended(now):
            await self.database.write(rules.end_overdue_rules, rulebook, now)
        if not rulebook.paused:
            quiet = is_quiet(rulebook, now)
            await self._ask_for_groups(rulebook, now)
            for act in _ACTS_AT_ANY_HOUR if quiet else _ACTS:
                await self.database.write(self._take_due, act, now)
            if not quiet:
                await self._store_digests(rulebook, now)
                await self.database.write(self._take_due, Act.NOTIFY, now)
        await self.send(now)

    def _store_admin_news(self, session: Session, now: datetime) -> None:
        """Store notices of a due audit anchor and of newly linked accounts."""
        anchor = verification.take_due_anchor(session, now)
        if anchor:
            log.info("audit anchor", anchor=anchor)
            self.notices.queue_for_approvers(session, f"Audit anchor `{anchor}`. {_ANCHOR_USE_TEXT}")
        for text in _take_new_links(session, now):
            self.notices.queue_for_admins(session, text)

    async def send(self, now: datetime) -> None:
        """Post the stored notices that are due, also those to be tried again."""
        await self.notices.send(now, self.cards.post_at)

    def _take_due(self, session: Session, act: Act, now: datetime) -> None:
        """Claim the due steps of proposals, and tell each target about each card."""
        steps_by_card: dict[str, list[_ClaimedStep]] = {}
        for proposal in proposals.list_due_for_action(session, act, now, _BATCH):
            claimed = self._claim_step(session, act, proposal, now)
            if claimed is not None:
                steps_by_card.setdefault(claimed.proposal.card_id, []).append(claimed)
        for steps in steps_by_card.values():
            targets = dict.fromkeys(target for step in steps for target in step.targets)
            for target in targets:
                on_card = [step.proposal for step in steps if target in step.targets]
                self._tell_target(session, act, target, on_card, now)

    def _claim_step(
        self, session: Session, act: Act, proposal: Proposal, now: datetime
    ) -> _ClaimedStep | None:
        """Claim a due step of a proposal. Returns None if another process was faster."""
        if act is Act.ESCALATE:
            return self._escalate(session, proposal, now)
        targets: tuple[str, ...] = (REMINDER,)  # a reminder in the places of the card
        due_columns: dict[str, Any] = {f"{act}_at": None}  # the new due times by column, such as ``warn_at``
        reason = None
        if act is Act.REMIND and proposal.remind_every:
            due_columns = {"remind_at": now + proposal.remind_every}
        elif act is Act.NOTIFY:
            targets, steps_after = take_steps(proposal.steps, now, escalating=False)
            due_columns = time_steps(steps_after)
            reason = ", ".join(targets)
        # the row is changed only if no other process has changed it: that claims the step
        moved = transitions.change_proposal(session, proposal, Author.of_nod(act, reason), now, **due_columns)
        return _ClaimedStep(moved, targets) if moved else None

    def _escalate(self, session: Session, proposal: Proposal, now: datetime) -> _ClaimedStep | None:
        """Escalate: approvers, admins and the people at the due targets may decide, too."""
        policy = self.policies.load(session)
        place = proposal.deciders.place
        added_roles = [role for role in (Role.APPROVER, Role.ADMIN) if policy.list_holders(role, place)]
        targets, steps_after = take_steps(proposal.all_steps, now, escalating=True)
        due_columns: dict[str, Any] = {"escalate_at": None}  # without steps, a proposal escalates once
        if proposal.steps:
            due_columns = time_steps(steps_after)
        deciders = proposal.deciders.escalate(added_roles, targets)
        author = Author.of_nod(Act.ESCALATE)
        moved = requirements.raise_requirements(
            session, proposal, author, now, deciders=deciders, **due_columns
        )
        if moved is None:
            return None
        tell_added_deciders(session, self.policies, proposal, moved, now)
        return _ClaimedStep(moved, targets)

    def _tell_target(
        self, session: Session, act: Act, target: str, on_card: Sequence[Proposal], now: datetime
    ) -> None:
        """Store the message to a target about proposals that share a card."""
        proposal = on_card[0]
        more_count = len(on_card) - 1
        if target == REMINDER:
            self.notices.queue_reminders(session, proposal, _format_reminder(act, proposal, more_count, now))
        elif is_group(target):
            self._tell_group(session, target, proposal, more_count, now)
        elif is_place(target):
            # a notice with an empty text posts the card
            notices.store_notice(session, Address.parse(target), "", now, proposal.card_id)
        else:
            self._use_notifier(session, target, proposal, more_count, now)

    def _tell_group(
        self, session: Session, group: str, proposal: Proposal, more_count: int, now: datetime
    ) -> None:
        """Send the card to the first members of a group. If there are more, or none is known, also remind."""
        policy = self.policies.load(session)
        user_group = policy.groups.get(group)
        members = sorted(user_group.members) if user_group else []
        for account in members[:_MAX_PRIVATE_CARDS]:
            notices.store_notice(session, Address.parse(account), "", now, proposal.card_id)
        if not members or len(members) > _MAX_PRIVATE_CARDS:
            self.notices.queue_reminders(
                session, proposal, _format_reminder(Act.REMIND, proposal, more_count, now)
            )

    def _use_notifier(
        self, session: Session, name: str, proposal: Proposal, more_count: int, now: datetime
    ) -> None:
        """Send by a notifier, or tell the admins that it can't send."""
        notifier = find_notifier(session, name)
        if notifier is None or notifier.hindrance:
            hindrance = notifier.hindrance if notifier else f"Nothing here is called {name}."
            about = escape_markdown(f"{proposal.description}{describe_others(more_count)}")
            change = "Change the rule: `/approvals rules`."
            text = f"The step `{name}` can't be taken for {about}. {hindrance} {change}"
            self.notices.queue_for_admins(session, text)
            return
        notifier.notify(session, proposal, more_count, now)

    async def _ask_for_groups(self, rulebook: Rulebook, now: datetime) -> None:
        """Ask platforms for the members of the groups to which proposals are escalated now."""
        steps = [step for rule in rulebook.list_about(Subject.NOTIFY) for step in rule.steps]
        if not any(is_group(step.target) for step in steps):
            return
        due = await self.database.read(proposals.list_due_for_action, Act.ESCALATE, now, _BATCH)
        targets: set[str] = set()
        for proposal in due:
            targets.update(take_steps(proposal.steps, now, escalating=True).targets)
        await self.groups.ask(filter(is_group, sorted(targets)))

    async def _store_digests(self, rulebook: Rulebook, now: datetime) -> None:
        """Store the digests that are due today, each for its scope."""
        for rule in rulebook.list_about(Subject.DIGEST):
            local_time = now.astimezone(rulebook.zone)
            if isinstance(rule.value, DailyDigest) and local_time.time() >= rule.value.at:
                await self.database.write(
                    _store_digest_once, rule, Address.parse(rule.value.to), now, local_time.date()
                )


def _format_reminder(act: Act, proposal: Proposal, more_count: int, now: datetime) -> str:
    left = format_span(proposal.expires_at - now)
    about = f"{proposal.description}{describe_others(more_count)}"
    if act is Act.WARN:
        return f"Expires in {left} if no one decides: {about}"
    return f"Still waiting for a decision ({left} left): {about}"


def _take_new_links(session: Session, now: datetime) -> list[str]:
    """Return the accounts that were linked or unlinked since admins were last told, in words."""
    last = load_task_state(session, _LINKS_TASK)
    changes = admin_changes.list_link_changes_after(session, last.get("row", 0))
    if changes:  # another process may have stored a state since ``last``: then this transaction runs again
        store_task_state(session, _LINKS_TASK, last, {"row": changes[-1].row, "at": now.isoformat()})
    return [change.description for change in changes]


def is_quiet(rulebook: Rulebook, now: datetime) -> bool:
    """Return whether it is a quiet hour in the team's time zone. Quiet hours may go over midnight."""
    time_of_day = now.astimezone(rulebook.zone).time()
    return any(
        rule.value.contains(time_of_day)
        for rule in rulebook.list_about(Subject.QUIET)
        if isinstance(rule.value, Hours)
    )


def _store_digest_once(session: Session, rule: Rule, to: Address, now: datetime, today: date) -> None:
    if claim_day(session, f"digest {rule.id}", today):
        notices.store_notice(session, to, _format_digest(session, rule.scope, now), now)
        for send_digest in hooks_of(session).send_digest:
            send_digest(session, rule.scope, to, now)


def _format_digest(session: Session, scope: str, now: datetime) -> str:
    """Return the text of a digest: the open proposals in a scope, soonest to expire first."""
    listed, total = proposals.list_soonest(session, scope, _MAX_LISTED)
    if not listed:
        return "Nothing is waiting for a decision today."
    lines = [
        f"- `{first.id[:SHORT_ID_CHARS]}` {first.description}{describe_others(len(more))} "
        f"(asked by {first.requester.label}, {format_span(first.expires_at - now)} left)"
        for first, *more in group_by_card(listed)  # the proposals of one card are one line
    ]
    if total > len(listed):
        lines.append(f"…and {total - len(listed)} more")
    return f"**{total} waiting for a decision**\n" + "\n".join(lines)
