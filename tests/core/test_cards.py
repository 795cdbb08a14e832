"""A card tells everything a person needs, pending or resolved."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.domain.cards import Action, Tone, card_of, whole_text
from bot.domain.people import Actor
from bot.domain.proposals import Cause, Deciders, Kind, PreviewField, Proposal, State, Vote
from bot.domain.redaction import HIDDEN
from bot.domain.risk import Level, Risk

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ANA = Actor("chat", "ana", "Ana")


def make_proposal(**changes: Any) -> Proposal:
    values: dict[str, Any] = {
        "id": "p1",
        "kind": Kind.CALL,
        "conversation_id": "c1",
        "message_id": 1,
        "call_id": "call_1",
        "position": 0,
        "tool_name": "paint",
        "tool_version": "1",
        "arguments": {"lamp": "desk", "color": "red"},
        "description": "Paint lamp desk red",
        "preview": (PreviewField("color", "white", "red"), PreviewField("coats", None, "1")),
        "risk": Risk(Level.WRITE, "it changes something"),
        "reason": "it is drab",
        "requester": ANA,
        "deciders": Deciders(requester=True, roles=("approver", "admin")),
        "quorum": 1,
        "state": State.PROPOSED,
        "round": 1,
        "version": 1,
        "digest": "d",
        "created_at": AT,
        "updated_at": AT,
        "expires_at": AT,
        "decided_by": "Ben",
        "decided_from": "slack",
    }
    return Proposal(**(values | changes))


def test_a_pending_card_says_what_why_how_risky_who_decides_and_until_when() -> None:
    card = card_of(make_proposal(), {})
    assert card.pending
    assert card.title == "Paint lamp desk red"
    assert (card.reason, card.level, card.risk_reason) == ("it is drab", Level.WRITE, "it changes something")
    assert card.deciders == "Ana, any approver or any admin"
    assert card.expires_at == AT
    assert card.actions == (Action.APPROVE, Action.DECLINE, Action.EDIT, Action.EXTEND, Action.SIMILAR)


ENDS = [
    ({"state": State.APPROVED}, Tone.WAITING, "Approved by Ben from Slack. It has not run yet."),
    ({"state": State.EXECUTING}, Tone.WAITING, "Approved by Ben from Slack. It is running now."),
    ({"state": State.SUCCEEDED}, Tone.GOOD, "Done. Approved by Ben from Slack."),
    ({"state": State.DECLINED}, Tone.QUIET, "Declined by Ben from Slack. Nothing was changed."),
    (
        {"state": State.DECLINED, "decline_reason": "Not now."},
        Tone.QUIET,
        "Declined by Ben from Slack: Not now. Nothing was changed.",
    ),
    ({"state": State.EXPIRED}, Tone.QUIET, "Expired: nobody decided in time. Nothing was changed."),
    (
        {"state": State.CANCELLED, "cause": Cause.TAKEN_BACK},
        Tone.QUIET,
        "Cancelled by Ben from Slack. Nothing was changed.",
    ),
    (
        {"state": State.CANCELLED, "cause": Cause.UNDELIVERABLE},
        Tone.BAD,
        "Could not be delivered to anybody who may decide. Nothing was changed.",
    ),
    (
        {"state": State.FAILED, "cause": Cause.ERROR},
        Tone.BAD,
        "Failed after Ben approved it from Slack.",
    ),
    (
        {"state": State.FAILED, "cause": Cause.OUTCOME_UNKNOWN},
        Tone.BAD,
        (
            "Outcome unknown: approved by Ben from Slack, started, and never heard back from. "
            "Check whether it happened before you retry."
        ),
    ),
    (
        {"state": State.FAILED, "cause": Cause.TOOL_CHANGED},
        Tone.BAD,
        "Not run: the tool changed after Ben approved it. Nothing was changed.",
    ),
]


@pytest.mark.parametrize(("changes", "tone", "outcome"), ENDS, ids=[str(i) for i in range(len(ENDS))])
def test_a_resolved_card_says_how_it_ended_in_a_sentence_of_its_own(
    changes: dict[str, Any], tone: Tone, outcome: str
) -> None:
    card = card_of(make_proposal(**changes), {})
    assert (card.tone, card.outcome, card.pending) == (tone, outcome, False)


def test_no_two_ends_read_the_same() -> None:
    assert len({outcome for _, _, outcome in ENDS}) == len(ENDS)


def test_a_failure_offers_a_retry_unless_the_tool_changed() -> None:
    failed = make_proposal(state=State.FAILED, cause=Cause.ERROR)
    assert card_of(failed, {}).actions == (Action.RETRY,)
    assert card_of(replace(failed, cause=Cause.OUTCOME_UNKNOWN), {}).actions == (Action.RETRY,)
    assert card_of(replace(failed, cause=Cause.TOOL_CHANGED), {}).actions == ()


def test_the_card_of_a_group_offers_all_while_more_than_one_waits() -> None:
    last = make_proposal(id="p3", position=2, state=State.FAILED, cause=Cause.ERROR)
    waiting = [make_proposal(id="p1"), make_proposal(id="p2", round=2)]
    card = card_of(last, {}, [*waiting, last])
    assert card.actions == (Action.RETRY, Action.APPROVE_ALL, Action.DECLINE_ALL)
    assert card.group is not None
    assert (card.group.size, card.group.open, card.group.round) == (3, 2, 4)
    one_left = [waiting[0], replace(waiting[1], state=State.DECLINED), last]
    assert card_of(last, {}, one_left).actions == (Action.RETRY,)


def test_votes_edits_and_moved_previews_are_told() -> None:
    vote = Vote("chat:ben", Actor("chat", "ben", "Ben"), "approve", "looks good", AT)
    card = card_of(make_proposal(votes=(vote,), quorum=2, edited_by="Ben", changed=True), {})
    assert card.votes == ("Ben: approve (looks good)",)
    assert card.notes == (
        "1 of 2 approvals so far.",
        "Edited by Ben before approval.",
        "Changed since it was approved: the old values moved, so it needs a fresh look.",
    )


def test_a_field_that_the_schema_calls_secret_is_hidden_in_old_and_new() -> None:
    schema = {"properties": {"code": {"writeOnly": True}}}
    card = card_of(make_proposal(preview=(PreviewField("code", "old one", "new one"),)), schema)
    assert card.fields == (PreviewField("code", HIDDEN, HIDDEN),)


def test_the_whole_text_has_every_field_and_argument_uncut() -> None:
    long = "x" * 50_000
    arguments = {"lamp": "desk", "text": long, "nested": {"a": [1, {"b": "c"}]}}
    preview = (PreviewField("text", None, long), PreviewField("lamp", "old lamp", None))
    whole = whole_text(card_of(make_proposal(arguments=arguments, preview=preview), {}))
    for part in (long, "old lamp", "(nothing)", '"b": "c"', "paint", "it is drab", "it changes something"):
        assert part in whole
    assert whole.count(long) == 2


def test_what_a_program_printed_stands_on_the_card_line_by_line() -> None:
    printed = '{"exit_code": 0, "stdout": "one\\ntwo\\n"}'
    assert card_of(make_proposal(state=State.SUCCEEDED, result=printed), {}).result == (
        "exit_code: 0\nstdout:\none\ntwo\n"
    )
