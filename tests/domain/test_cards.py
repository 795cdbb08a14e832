"""A card tells everything a person needs, pending or resolved."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.domain import kinds
from bot.domain.call_text import format_call
from bot.domain.card_rendering import find_accounts_on_card, render_card
from bot.domain.deciders import Deciders
from bot.domain.outcomes import describe_too_late
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State, Tone
from bot.domain.proposals import Proposal, Vote
from bot.domain.redaction import HIDDEN
from bot.domain.risks import Level, Risk
from bot.domain.verbs import Verb

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ANA = Actor("chat", "ana", "Ana")


def make_proposal(**changes: Any) -> Proposal:
    values: dict[str, Any] = {
        "id": "p1",
        "kind": kinds.CALL,
        "conversation_id": "c1",
        "message_id": 1,
        "call_id": "call_1",
        "position": 0,
        "tool_name": "paint",
        "tool_version": "1",
        "arguments": {"lamp": "desk", "color": "red"},
        "description": "Paint lamp desk red",
        "preview": (PreviewField("color", "white", "red"), PreviewField("coats", None, "1")),
        "risk": Risk(Level.WRITE, ""),
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
    card = render_card(make_proposal(), {})
    assert card.pending
    assert card.title == "Paint lamp desk red"
    assert (card.reason, card.level, card.risk_reason) == ("it is drab", Level.WRITE, "")
    assert card.deciders == "Ana, any approver or any admin"
    assert card.expires_at == AT
    assert card.verbs == (Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.ASK, Verb.EXTEND, Verb.SIMILAR)


ENDS = [
    ({"state": State.APPROVED}, Tone.WAITING, "Approved by Ben. It has not run yet."),
    ({"state": State.EXECUTING}, Tone.WAITING, "Approved by Ben. Running…"),
    ({"state": State.SUCCEEDED}, Tone.GOOD, "Done. Approved by Ben."),
    ({"state": State.DECLINED}, Tone.QUIET, "Declined by Ben."),
    (
        {"state": State.DECLINED, "decline_reason": "Not now."},
        Tone.QUIET,
        "Declined by Ben: Not now.",
    ),
    (
        {"state": State.EXPIRED, "decided_by": None},
        Tone.QUIET,
        "Expired: no one decided in time. Nothing was changed.",
    ),
    ({"state": State.EXPIRED}, Tone.QUIET, "Expired: Ben ended the wait. Nothing was changed."),
    (
        {"state": State.CANCELLED, "cause": Cause.TAKEN_BACK},
        Tone.QUIET,
        "Withdrawn by Ben.",
    ),
    (
        {"state": State.CANCELLED, "cause": Cause.UNDELIVERABLE},
        Tone.BAD,
        "Could not be delivered to anyone who may decide. Nothing was changed.",
    ),
    (
        {"state": State.FAILED, "cause": Cause.ERROR},
        Tone.BAD,
        "Failed after Ben approved it.",
    ),
    (
        {"state": State.FAILED, "cause": Cause.OUTCOME_UNKNOWN},
        Tone.BAD,
        (
            "Outcome unknown: Ben approved it and it started, but never reported back. "
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
    card = render_card(make_proposal(**changes), {})
    assert (card.tone, card.outcome, card.pending) == (tone, outcome, False)


def test_no_two_ends_read_the_same() -> None:
    assert len({outcome for _, _, outcome in ENDS}) == len(ENDS)


def test_a_failure_offers_a_retry_unless_the_tool_changed() -> None:
    failed = make_proposal(state=State.FAILED, cause=Cause.ERROR)
    assert render_card(failed, {}).verbs == (Verb.RETRY,)
    assert render_card(replace(failed, cause=Cause.OUTCOME_UNKNOWN), {}).verbs == (Verb.RETRY,)
    assert render_card(replace(failed, cause=Cause.TOOL_CHANGED), {}).verbs == ()


def test_retry_asks_first_where_it_may_have_happened_or_can_not_be_undone() -> None:
    failed = make_proposal(state=State.FAILED, cause=Cause.ERROR)
    assert render_card(failed, {}).button(Verb.RETRY).confirmation is None
    unknown = render_card(replace(failed, cause=Cause.OUTCOME_UNKNOWN), {}).button(Verb.RETRY).confirmation
    assert unknown is not None
    assert unknown.warning == "It runs again exactly as shown. Check first whether it already happened."
    harmful = (
        render_card(replace(failed, risk=Risk(Level.DESTRUCTIVE, "")), {}).button(Verb.RETRY).confirmation
    )
    assert harmful is not None
    assert harmful.warning == "This can't be undone."


def test_a_failure_that_the_tool_calls_permanent_offers_no_retry() -> None:
    assert render_card(make_proposal(state=State.FAILED, cause=Cause.REFUSED), {}).verbs == ()


def test_a_result_is_shown_as_the_sentence_that_the_tool_gave_for_people() -> None:
    done = make_proposal(
        state=State.SUCCEEDED, result='{"lamp": "desk"}', result_sentence="Painted lamp desk red"
    )
    card = render_card(done, {})
    assert (card.headline, card.outcome, card.result) == ("Painted lamp desk red", "Approved by Ben.", "")
    assert "Result\nLamp: desk" in format_call(card)


LATE = [
    ({"state": State.SUCCEEDED}, "Already approved by Ben, 2 min ago."),
    ({"state": State.FAILED, "cause": Cause.ERROR}, "Already approved by Ben, 2 min ago, but it failed."),
    (
        {"state": State.FAILED, "cause": Cause.OUTCOME_UNKNOWN},
        "Already approved by Ben, 2 min ago. No one knows whether it happened: check before you retry.",
    ),
    (
        {"state": State.FAILED, "cause": Cause.TOOL_CHANGED},
        "Already approved by Ben, 2 min ago. It was not run, because the tool changed.",
    ),
    ({"state": State.DECLINED}, "Already declined by Ben, 2 min ago."),
    ({"state": State.CANCELLED, "cause": Cause.TAKEN_BACK}, "Already withdrawn by Ben, 2 min ago."),
    (
        {"state": State.EXPIRED, "decided_by": None},
        "Already expired, 2 min ago: no one decided in time. Nothing was changed.",
    ),
    ({"state": State.EXPIRED}, "Already expired, 2 min ago: Ben ended the wait. Nothing was changed."),
]


@pytest.mark.parametrize(("changes", "told"), LATE, ids=[told for _, told in LATE])
def test_a_press_that_comes_too_late_is_told_what_really_became_of_it(
    changes: dict[str, Any], told: str
) -> None:
    late = make_proposal(**changes, decided_at=AT)
    assert describe_too_late(late, AT + timedelta(minutes=2)) == told


def test_the_card_of_a_group_offers_all_while_more_than_one_waits() -> None:
    last = make_proposal(id="p3", position=2, state=State.FAILED, cause=Cause.ERROR)
    waiting = [make_proposal(id="p1"), make_proposal(id="p2", round=2)]
    card = render_card(last, {}, [*waiting, last])
    assert card.verbs == (Verb.RETRY, Verb.APPROVE_ALL, Verb.DECLINE_ALL)
    assert card.group is not None
    assert (card.group.size, card.group.open_count, card.group.round) == (3, 2, 4)
    one_left = [waiting[0], replace(waiting[1], state=State.DECLINED), last]
    assert render_card(last, {}, one_left).verbs == (Verb.RETRY,)


def test_votes_edits_and_moved_previews_are_told() -> None:
    vote = Vote("chat:ben", Actor("chat", "ben", "Ben"), "approve", "looks good", AT)
    card = render_card(make_proposal(votes=(vote,), quorum=2, edited_by="Ben", values_changed=True), {})
    assert card.votes == ("Ben: approve (looks good)",)
    assert card.notes == (
        "1 of 2 approvals so far.",
        "Edited by Ben before approval.",
        "The data changed after approval, so this needs a new decision.",
    )


def test_a_field_that_the_schema_calls_secret_is_hidden_in_old_and_new() -> None:
    schema = {"properties": {"code": {"writeOnly": True}}}
    card = render_card(make_proposal(preview=(PreviewField("code", "old one", "new one"),)), schema)
    assert card.fields == (PreviewField("Code", HIDDEN, HIDDEN),)


def test_the_whole_text_has_every_field_and_argument_uncut() -> None:
    long = "x" * 50_000
    arguments = {"lamp": "desk", "text": long, "nested": {"a": [1, {"b": "c"}]}}
    preview = (PreviewField("text", None, long), PreviewField("lamp", "old lamp", None))
    whole = format_call(render_card(make_proposal(arguments=arguments, preview=preview), {}))
    for part in (long, "old lamp", "(removed)", '"b": "c"', "paint", "it is drab"):
        assert part in whole
    assert whole.count(long) == 1


def test_what_a_program_printed_stands_on_the_card_line_by_line() -> None:
    printed = '{"exit_code": 0, "stdout": "one\\ntwo\\n"}'
    assert render_card(make_proposal(state=State.SUCCEEDED, result=printed), {}).result == (
        "Exit code: 0\nStdout:\none\ntwo\n"
    )


def test_field_names_are_labels() -> None:
    fields = (PreviewField("due_date", None, "x"), PreviewField("src/app.py", "a", "b"))
    assert [f.field for f in render_card(make_proposal(preview=fields), {}).fields] == [
        "Due date",
        "src/app.py",
    ]


def test_a_person_who_is_an_argument_is_called_by_name_and_view_all_has_the_account() -> None:
    schema = {"properties": {"who": {"type": "string", "format": "user"}, "text": {"type": "string"}}}
    fields = (PreviewField("who", None, "slack:T1/U8"), PreviewField("text", None, "slack:T1/U8"))
    given = {"who": "slack:T1/U8", "text": "slack:T1/U8"}
    p = make_proposal(preview=fields, arguments=given)
    assert find_accounts_on_card(p, schema) == {"slack:T1/U8"}
    card = render_card(p, schema, names={"slack:T1/U8": "Ben"})
    assert [(f.field, f.new_value) for f in card.fields] == [("Who", "Ben"), ("Text", "slack:T1/U8")]
    assert '"who": "slack:T1/U8"' in format_call(card)


def test_an_ordinary_change_has_no_warning_and_what_cannot_be_undone_has_one() -> None:
    assert render_card(make_proposal(), {}).warning == ""
    gone = make_proposal(risk=Risk(Level.DESTRUCTIVE, "it cannot be undone"), description="Delete lamp desk")
    card = render_card(gone, {})
    assert card.warning == "Can't be undone."
    assert card.button(Verb.APPROVE).label == "Approve deletion"
    odd = make_proposal(risk=Risk(Level.WRITE, "shop does not say that it only reads"))
    assert render_card(odd, {}).warning == "Shop does not say that it only reads."


def test_votes_are_listed_only_where_more_than_one_counts() -> None:
    vote = Vote("chat:ben", Actor("chat", "ben", "Ben"), "approve", None, AT)
    assert render_card(make_proposal(votes=(vote,), state=State.SUCCEEDED), {}).shown_votes == ()
    assert render_card(make_proposal(votes=(vote,), quorum=2), {}).shown_votes == ("Ben: approve",)


def test_the_whole_text_shows_each_value_once_and_every_argument_to_the_letter() -> None:
    note = "a note that is long enough to be known again"
    arguments = {"color": "red", "note": note, "coats": 2, "parts": ["a, b", "c"]}
    preview = (PreviewField("color", "white", "red"), PreviewField("text", None, note))
    whole = format_call(render_card(make_proposal(arguments=arguments, preview=preview), {}))
    assert (whole.count("new: red"), whole.count('"color"'), whole.count(note)) == (1, 0, 1)
    assert '"coats": 2' in whole
    assert '"a, b",' in whole


def test_the_whole_text_has_what_runs_by_default_where_the_preview_leaves_it_out() -> None:
    schema = {
        "properties": {
            "lamp": {"type": "string"},
            "color": {"type": "string", "default": "red"},
            "coats": {"type": "integer", "default": 1},
        }
    }
    preview = (PreviewField("color", "white", "red"),)
    p = make_proposal(arguments={"lamp": "desk"}, preview=preview, tool_name="paint")
    assert "Defaults\n- Coats: 1 (default)" in format_call(render_card(p, schema))
    assert "Color: red" not in format_call(render_card(p, schema))
    full = format_call(
        render_card(replace(p, arguments={"lamp": "desk", "color": "red", "coats": 1}), schema)
    )
    assert full == format_call(render_card(p, schema))
    given = format_call(render_card(replace(p, arguments={"lamp": "desk", "coats": 2}), schema))
    assert '"coats": 2' in given
    assert "Defaults" not in given


def test_each_button_has_one_name_whatever_the_channel() -> None:
    labels = {
        a: render_card(make_proposal(), {}).button(a).label for a in render_card(make_proposal(), {}).verbs
    }
    assert labels == {
        Verb.APPROVE: "Approve",
        Verb.DECLINE: "Decline",
        Verb.EDIT: "Edit",
        Verb.ASK: "Ask",
        Verb.EXTEND: "Extend 24 h",
        Verb.SIMILAR: "Approve similar",
    }
    short = render_card(make_proposal(ttl=timedelta(seconds=30)), {})
    assert short.button(Verb.EXTEND).label == "Extend"
    plan = render_card(make_proposal(kind=kinds.PLAN, teammate="painter"), {})
    assert [plan.button(a).label for a in plan.verbs[:2]] == ["Approve plan", "Reject"]
    asked = render_card(make_proposal(kind=kinds.FORM), {})
    assert asked.button(Verb.APPROVE).label == "Done, continue"
