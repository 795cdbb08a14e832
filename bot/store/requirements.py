"""The requirements of a proposal, raised while it waits: who may decide, and how many must approve."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.domain.deciders import Deciders
from bot.domain.people import is_group
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal, start_timers
from bot.store.audit.log import Author
from bot.store.transitions import change_proposal

_TIMER_FIELDS = frozenset({"warn_at", "remind_at", "notify_at", "escalate_at", "steps"})
"""The fields of a proposal that say when something is due while it waits."""


def raise_requirements(
    session: Session,
    before: Proposal,
    author: Author,
    now: datetime,
    *,
    deciders: Deciders,
    quorum: int | None = None,
    **times: Any,
) -> Proposal | None:
    """Let further people decide, or need more votes, guarded and recorded as by `change_proposal`.

    Votes that were given still count. An approved proposal that was not claimed waits for people again, for
    as long as at first.

    - ``deciders``: the present deciders with roles, user groups or chats added
    - ``quorum``: the number of votes, no lower than before; None keeps it
    - ``times``: the new values of due times, by the names of their fields (`_TIMER_FIELDS`)

    Returns the changed proposal, or None if another change was faster. Raises ValueError for a proposal that
    is neither waiting nor approved, and for any other change.
    """
    if quorum is None:
        quorum = before.quorum
    if before.state not in (State.PROPOSED, State.APPROVED):
        raise ValueError("only the requirements of a waiting or approved proposal can be raised")
    if quorum < before.quorum or not _only_adds(before.deciders, deciders):
        raise ValueError("requirements can only be raised")
    if not times.keys() <= _TIMER_FIELDS:
        raise ValueError("with the requirements, only due times can change")
    changes: dict[str, Any] = {"deciders": deciders, "quorum": quorum, **times}
    if before.state is State.APPROVED:
        no_decision = dict.fromkeys(("decided_by", "decided_from", "decided_at"))
        changes |= {**no_decision, **start_timers(before.ttl, before.remind_every, now)}
        return change_proposal(session, before, author, now, State.PROPOSED, **changes)
    return change_proposal(session, before, author, now, **changes)


def _only_adds(before: Deciders, after: Deciders) -> bool:
    """Return whether deciders differ from those before at most by more roles, user groups and chats."""
    added_people = set(after.people) - set(before.people)
    has_added_account = not all(map(is_group, added_people))
    has_dropped = (
        not set(before.roles) <= set(after.roles)
        or not set(before.people) <= set(after.people)
        or not set(before.escalation_chats) <= set(after.escalation_chats)
    )
    if has_added_account or has_dropped:
        return False
    # all else is as before: with the earlier lists, they are the earlier deciders
    with_earlier_lists = replace(
        after,
        roles=before.roles,
        people=before.people,
        escalated=before.escalated,  # with ``also_escalated``, these are the `escalation_chats`
        also_escalated=before.also_escalated,
    )
    return with_earlier_lists == before
