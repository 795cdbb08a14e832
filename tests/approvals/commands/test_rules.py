"""Rules that admins set at run time: what needs approval, who decides, how many, and the kill switch."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlmodel import Session

from bot.approvals.team.plans import LEAD
from bot.channels.base import Overview
from bot.domain.call_facts import CallFacts, Place
from bot.domain.chat import Address, Answer
from bot.domain.people import LOCAL, Actor, Person, with_names
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Escalation, Quorum, RuleValue, Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import EVERYWHERE, Rule, covers
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.times import format_length
from bot.domain.verbs import Verb
from bot.store import rules
from bot.store.audit import log
from bot.store.tables.workspaces import WorkspaceRow
from bot.tools.call import Arguments
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, BEN, EVE, MakeNod, Nod, call

HALL = Address("chat", "T1/hall")
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def asked(tool: str) -> CallFacts:
    return CallFacts(tool, Risk(Level.WRITE, ""), Place("chat:room", private=False), Person(""), NOW)


@pytest.fixture
def ruled(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA])


async def rule(nod: Nod, words: str) -> None:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text


async def test_the_strictest_of_several_matching_rules_wins_and_is_named(ruled: Nod) -> None:
    await rule(ruled, "policy never")
    await rule(ruled, "policy always for pa*")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))

    assert painted.state is State.PROPOSED
    assert painted.rule_text == "rule 2: policy always for pa*"


async def test_a_rule_for_one_place_does_not_reach_its_neighbour(ruled: Nod) -> None:
    await rule(ruled, "policy destructive in chat:T1/hall")
    (there,) = await ruled.asked(call("paint", lamp="desk", color="red"), at=Address("chat", "T1/hall/7"))
    (elsewhere,) = await ruled.asked(
        call("paint", lamp="door", color="red"), at=Address("chat", "T1/hallway")
    )

    assert (await ruled.now(there)).state is State.SUCCEEDED
    assert elsewhere.state is State.PROPOSED


async def test_what_runs_without_asking_is_shown_as_a_resolved_card_that_says_why(ruled: Nod) -> None:
    await rule(ruled, "policy never for paint")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    card = ruled.chat.card_of(painted)

    assert (await ruled.now(painted)).state is State.SUCCEEDED
    assert not card.pending
    assert any("No one was asked: rule 1: policy never" in note for note in card.notes)


async def test_an_admin_may_raise_a_tools_risk_but_a_read_made_a_write_then_asks(ruled: Nod) -> None:
    await rule(ruled, "risk destructive for paint")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    assert painted.risk.level == "destructive"
    assert "rule 1" in painted.risk.reason

    await rule(ruled, "risk write for look")
    (looked,) = await ruled.asked(call("look", lamp="desk"))
    assert looked.tool_name == "look"
    assert ruled.world.reads == []


async def test_destructive_calls_need_other_eyes_once_there_is_a_second_approver(ruled: Nod) -> None:
    await rule(ruled, "roles add chat:ben approver")
    (smashed,) = await ruled.asked(call("smash", lamp="desk"), private=False)
    refused = await ruled.press(Verb.APPROVE, smashed, by=ANA)
    assert refused.answer is Answer.REFUSED
    assert "Four eyes" in refused.text
    assert (await ruled.now(smashed)).state is State.PROPOSED

    assert (await ruled.approve(smashed, by=BEN)).state is State.SUCCEEDED


async def test_the_requester_may_still_decline_what_needs_other_eyes(ruled: Nod) -> None:
    await rule(ruled, "roles add chat:ben approver")
    (smashed,) = await ruled.asked(call("smash", lamp="desk"), private=False)
    assert (await ruled.press(Verb.DECLINE, smashed, by=ANA)).answer is Answer.ACCEPTED


async def test_self_approval_through_a_second_linked_account_is_refused(ruled: Nod) -> None:
    await rule(ruled, "roles add chat:ben approver")
    await rule(ruled, "roles add chat:ana2 approver")
    second = type(ANA)("chat", "ana2", "Ana")
    assert "An admin has to allow it" in await ruled.link(ANA, second)
    await rule(ruled, "link chat:ana chat:ana2")
    (smashed,) = await ruled.asked(call("smash", lamp="desk"), private=False)

    assert (await ruled.press(Verb.APPROVE, smashed, by=second)).answer is Answer.REFUSED


async def test_a_quorum_gathers_one_vote_per_person_with_a_live_tally(ruled: Nod) -> None:
    await rule(ruled, "roles add chat:ben approver")
    await rule(ruled, "quorum 2 for paint")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"), private=False)
    assert (await ruled.press(Verb.APPROVE, painted, by=ANA)).text == "Your vote counts: 1 of 2."
    await ruled.idle()
    assert "1 of 2 approvals so far." in ruled.chat.card_of(painted).notes
    assert (await ruled.press(Verb.APPROVE, painted, by=ANA)).answer is Answer.ALREADY
    assert ruled.world.lamps["desk"] == "white"

    assert (await ruled.approve(painted, by=BEN)).state is State.SUCCEEDED


async def test_a_vote_from_before_it_expired_does_not_count_when_it_is_asked_again(ruled: Nod) -> None:
    await rule(ruled, "roles add chat:ben approver")
    await rule(ruled, "quorum 2 for paint")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"), private=False)
    await ruled.press(Verb.APPROVE, painted, by=ANA)
    ruled.clock.forward((await ruled.now(painted)).ttl)
    assert (await ruled.press(Verb.APPROVE, painted, by=BEN)).answer is Answer.STALE
    assert (await ruled.now(painted)).votes == ()

    assert (await ruled.press(Verb.APPROVE, painted, by=BEN)).text == "Your vote counts: 1 of 2."
    assert ruled.world.runs == []


async def test_two_linked_accounts_are_one_vote(ruled: Nod) -> None:
    second = type(ANA)("chat", "ana2", "Ana")
    await rule(ruled, "approvers requester chat:ana2 chat:ben")
    await rule(ruled, "quorum 2")
    await ruled.link(ANA, second)
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    await ruled.press(Verb.APPROVE, painted, by=ANA)

    assert (await ruled.press(Verb.APPROVE, painted, by=second)).answer is Answer.ALREADY
    assert (await ruled.now(painted)).state is State.PROPOSED


async def test_with_n_of_m_it_takes_m_minus_n_plus_one_declines(ruled: Nod) -> None:
    await rule(ruled, "approvers chat:ana chat:ben chat:eve")
    await rule(ruled, "quorum 2 of 3")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    first = await ruled.press(Verb.DECLINE, painted, by=EVE, reason="no")
    assert first.text == "Your vote counts: 1 of the 2 that decline it."
    assert (await ruled.now(painted)).state is State.PROPOSED

    await ruled.press(Verb.DECLINE, painted, by=BEN)
    assert (await ruled.now(painted)).state is State.DECLINED


async def test_setting_a_rule_says_what_no_one_could_decide_under_it(ruled: Nod) -> None:
    assert "refused" not in (await ruled.command("/approvals approvers chat:ben for paint", by=ADA)).text
    told = (await ruled.command("/approvals quorum 9", by=ADA)).text
    assert "are refused now: 9 approvals are needed, but only" in told


async def test_a_rule_on_some_calls_is_not_said_to_refuse_all_of_them(ruled: Nod) -> None:
    await rule(ruled, "policy forbid for paint where color = red")
    assert "refused" not in (await ruled.command("/approvals approvers chat:ben for paint", by=ADA)).text
    await rule(ruled, "policy forbid for paint")
    told = (await ruled.command("/approvals approvers chat:ben for paint", by=ADA)).text
    assert "Calls of paint are refused now" in told


async def test_who_asked_and_is_named_is_not_among_those_who_decide_under_four_eyes(ruled: Nod) -> None:
    await rule(ruled, f"approvers {ANA} {BEN} for smash")
    [p] = await ruled.asked(call("smash", lamp="desk"))
    assert p.deciders.four_eyes
    assert p.deciders.describe("Ana") == str(BEN)


async def test_a_quorum_that_can_never_gather_is_refused_when_it_is_proposed(ruled: Nod) -> None:
    await rule(ruled, "approvers chat:ben")
    await rule(ruled, "quorum 2")
    assert await ruled.asked(call("paint", lamp="desk", color="red")) == []
    assert ruled.model.results[-1].startswith("REFUSED: 2 approvals are needed, but only 1 may decide")


async def test_with_no_one_to_decide_the_call_is_refused_with_the_reason(ruled: Nod) -> None:
    await rule(ruled, "approvers approver")
    assert await ruled.asked(call("paint", lamp="desk", color="red")) == []
    assert ruled.model.results[-1].startswith("REFUSED: no one may decide this here")


async def test_members_of_a_chat_may_decide_there_and_nowhere_else(ruled: Nod) -> None:
    await rule(ruled, "approvers member in chat:T1/hall")
    (painted,) = await ruled.asked(
        call("paint", lamp="desk", color="red"), at=Address("chat", "T1/hall/7"), private=False
    )
    elsewhere = await ruled.press(Verb.APPROVE, painted, by=EVE, at=Address("chat", "T1/hallway"))
    assert elsewhere.answer is Answer.REFUSED
    assert (await ruled.press(Verb.APPROVE, painted, by=EVE)).answer is Answer.REFUSED

    there = await ruled.press(Verb.APPROVE, painted, by=EVE, at=Address("chat", "T1/hall/7"))
    assert there.answer is Answer.ACCEPTED


async def test_while_paused_nothing_executes_and_no_clock_runs(ruled: Nod, clock: object) -> None:
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    (waiting,) = await ruled.asked(call("paint", lamp="door", color="red"))
    await rule(ruled, "pause")
    assert (await ruled.approve(painted)).state is State.APPROVED
    from datetime import timedelta

    await ruled.tick(timedelta(hours=30))
    assert (await ruled.now(waiting)).state is State.PROPOSED
    assert ruled.world.runs == []

    await rule(ruled, "resume")
    await ruled.tick(timedelta(hours=23))
    assert (await ruled.now(painted)).state is State.SUCCEEDED
    assert (await ruled.now(waiting)).state is State.PROPOSED
    await ruled.tick(timedelta(hours=2))
    assert (await ruled.now(waiting)).state is State.EXPIRED


async def test_policy_test_says_what_would_happen_and_which_rule_says_so(ruled: Nod) -> None:
    await rule(ruled, "policy always for look")
    arguments = json.dumps({"lamp": "desk"})
    reply = await ruled.command(f"/approvals policy test look {arguments}", by=ADA)
    assert "It would ask for one approval" in reply.text
    assert "rule 1: policy always for look" in reply.text
    assert ruled.world.reads == []


@pytest.mark.parametrize("arguments", ['{"lamp": desk}', '{"lamp": ' + "[" * 100_000], ids=["words", "deep"])
async def test_policy_test_of_arguments_that_are_no_json_says_how_to_write_them(
    ruled: Nod, arguments: str
) -> None:
    reply = await ruled.command(f"/approvals policy test look {arguments}", by=ADA)
    assert reply.text.startswith('The arguments must be JSON, such as {"number": 3}.\n')


async def test_policy_test_does_not_take_a_fault_of_the_tool_for_one_of_the_arguments(
    make_nod: MakeNod,
) -> None:
    def classify(_: Arguments) -> Risk:
        raise ValueError("no lamps")

    @tool(classify=classify)
    async def broken(lamp: str) -> str:
        """Look at a lamp."""
        return lamp

    nod = make_nod(admins=[ADA])
    nod.toolset = FixedToolset("lamps", (broken,))
    nod.rebuild()
    with pytest.raises(ValueError, match="no lamps"):
        await nod.command('/approvals policy test broken {"lamp": "desk"}', by=ADA)


async def test_who_is_not_an_admin_is_refused_and_changes_nothing(ruled: Nod) -> None:
    reply = await ruled.command("/approvals policy never", by=EVE)
    assert reply.answer is Answer.REFUSED
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    assert painted.state is State.PROPOSED


async def test_a_rule_can_be_dropped_and_stays_in_the_record(ruled: Nod) -> None:
    await rule(ruled, "policy never")
    await rule(ruled, "drop 1")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    assert painted.state is State.PROPOSED
    again = await ruled.command("/approvals drop 1", by=ADA)
    assert "no rule 1" in again.text


@pytest.mark.parametrize(
    ("words", "mend"),
    [
        ("policy sometimes", "always, writes, destructive, never"),
        ("ttl tomorrow", "90s, 15m, 24h"),
        ("quorum 3 of 2", "not more than there are"),
        ("roles add somebody admin", "not an account"),
        ("digest 25:00 chat:room", "HH:MM"),
        ("revoke all of them", "Which grant"),
        ("polcy never", "Did you mean"),
        ("unset 3", "Did you mean `/approvals drop NUMBER`?"),
    ],
)
async def test_words_that_do_not_fit_change_nothing_and_say_the_fix(
    ruled: Nod, words: str, mend: str
) -> None:
    reply = await ruled.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.INVALID
    assert mend in reply.text
    assert "rule" not in (await ruled.command("/approvals rules", by=ADA)).text


async def test_an_admin_may_reassign_expire_and_extend(ruled: Nod) -> None:
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    await rule(ruled, f"reassign {painted.id} chat:ben")
    assert (await ruled.press(Verb.APPROVE, painted, by=ANA)).answer is Answer.REFUSED
    assert (await ruled.press(Verb.EXTEND, painted, by=BEN)).answer is Answer.ACCEPTED
    await rule(ruled, f"expire {painted.id}")
    assert (await ruled.now(painted)).state is State.EXPIRED


async def test_settings_and_rules_both_make_admins(make_nod: MakeNod) -> None:
    nod = make_nod(policy=Policy(admins=frozenset({str(ADA)})))
    await nod.command("/approvals roles add chat:ben admin", by=ADA)
    assert (await nod.command("/approvals roles", by=BEN)).answer is Answer.ACCEPTED
    await nod.command("/approvals roles remove chat:ben admin", by=ADA)
    assert (await nod.command("/approvals roles", by=BEN)).answer is Answer.REFUSED


def test_a_scope_covers_itself_and_what_lies_below_it_only() -> None:
    assert covers(EVERYWHERE, "slack:T1/C1/1")
    assert covers("slack:*", "slack:T1/C1/1")
    assert covers("slack:T1/C1", "slack:T1/C1/1")
    assert not covers("slack:T1/C1", "slack:T1/C11/1")
    assert not covers("slack:*", "slackish:T1")


def test_of_two_times_to_live_the_shorter_counts() -> None:
    book = Rulebook(
        1,
        (
            Rule(1, Subject.TTL, EVERYWHERE, EVERYWHERE, timedelta(minutes=1)),
            Rule(2, Subject.TTL, EVERYWHERE, "paint", timedelta(hours=1)),
        ),
    )
    assert book.ttl(asked("paint"), timedelta(seconds=5)) == (timedelta(minutes=1), book.rules[0])
    assert book.ttl(asked("look"), timedelta(days=1)).value == timedelta(minutes=1)


async def test_accounts_linked_after_they_voted_are_one_vote(ruled: Nod) -> None:
    second = type(ANA)("chat", "ana2", "Ana")
    await rule(ruled, "approvers requester chat:ana2 chat:ben")
    await rule(ruled, "quorum 3")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    await ruled.press(Verb.APPROVE, painted, by=ANA)
    await ruled.press(Verb.APPROVE, painted, by=second)
    await ruled.link(second, ANA)

    assert (await ruled.press(Verb.APPROVE, painted, by=ANA)).answer is Answer.ALREADY
    assert (await ruled.press(Verb.APPROVE, painted, by=BEN)).text == "Your vote counts: 2 of 3."
    assert (await ruled.now(painted)).state is State.PROPOSED


async def test_the_vote_of_someone_who_has_lost_the_role_counts_no_longer(ruled: Nod) -> None:
    for each in (BEN, EVE):
        await rule(ruled, f"roles add {each} approver")
    await rule(ruled, "quorum 2")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"), private=False)
    await ruled.press(Verb.APPROVE, painted, by=BEN)
    await rule(ruled, f"roles remove {BEN} approver")

    assert (await ruled.press(Verb.APPROVE, painted, by=EVE)).text == "Your vote counts: 1 of 2."
    assert [vote.actor for vote in (await ruled.now(painted)).votes] == [EVE]
    await rule(ruled, f"roles add {BEN} approver")
    assert (await ruled.press(Verb.APPROVE, painted, by=BEN)).text == "Approved."


async def test_who_asked_does_not_help_to_approve_by_an_account_that_was_linked_after_it_voted(
    ruled: Nod,
) -> None:
    second = type(ANA)("chat", "ana2", "Ana")
    await rule(ruled, "approvers chat:ana2 chat:ben chat:eve")
    await rule(ruled, "quorum 2")
    (smashed,) = await ruled.asked(call("smash", lamp="desk"), private=False)
    await ruled.press(Verb.APPROVE, smashed, by=second)
    await ruled.link(second, ANA)

    assert (await ruled.press(Verb.APPROVE, smashed, by=BEN)).text == "Your vote counts: 1 of 2."
    assert (await ruled.press(Verb.APPROVE, smashed, by=EVE)).text == "Approved."


async def test_an_admin_cannot_name_four_eyes_away(ruled: Nod) -> None:
    await rule(ruled, "roles add chat:ben approver")
    (smashed,) = await ruled.asked(call("smash", lamp="desk"), by=ADA, private=False)
    alone = await ruled.command(f"/approvals reassign {smashed.id} chat:ada", by=ADA)
    assert "no one may decide this here" in alone.text
    await rule(ruled, f"reassign {smashed.id} chat:ada chat:ben")

    assert "Four eyes" in (await ruled.press(Verb.APPROVE, smashed, by=ADA)).text
    assert (await ruled.approve(smashed, by=BEN)).state is State.SUCCEEDED


async def test_where_anyone_in_a_group_decides_the_requester_alone_cannot_destroy(ruled: Nod) -> None:
    await rule(ruled, "approvers member in chat:T1/hall")
    hall = Address("chat", "T1/hall/7")
    (smashed,) = await ruled.asked(call("smash", lamp="desk"), at=hall, private=False)
    assert (await ruled.press(Verb.APPROVE, smashed, by=ANA, at=hall)).answer is Answer.REFUSED
    assert (await ruled.press(Verb.APPROVE, smashed, by=EVE, at=hall)).answer is Answer.ACCEPTED


async def test_after_a_pause_every_clock_continues_where_it_stood(ruled: Nod) -> None:
    from datetime import timedelta

    await rule(ruled, "remind 2h")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    await rule(ruled, "pause")
    await ruled.tick(timedelta(hours=30))
    await rule(ruled, "resume")
    now = await ruled.now(painted)
    assert now.warn_at is not None
    assert painted.warn_at is not None
    assert now.warn_at - painted.warn_at == timedelta(hours=30)
    assert now.remind_at == ruled.clock() + timedelta(hours=2)
    await ruled.tick()
    assert not any("Still waiting" in text for _, text in ruled.chat.texts)


async def test_where_nothing_asks_the_admin_and_every_card_are_warned(ruled: Nod) -> None:
    told = await ruled.command("/approvals policy never", by=ADA)
    assert "From now on it runs without asking anyone." in told.text
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    assert any("warning: nothing here asks" in note for note in ruled.chat.card_of(painted).notes)


def test_a_rule_is_told_as_an_admin_would_write_it() -> None:
    def told(subject: Subject, value: RuleValue) -> str:
        return Rule(1, subject, EVERYWHERE, EVERYWHERE, value).description

    assert told(Subject.QUORUM, Quorum(2, 3)) == "rule 1: quorum 2 of 3"
    assert told(Subject.QUORUM, Quorum(2)) == "rule 1: quorum 2"
    assert told(Subject.TTL, timedelta(hours=2)) == "rule 1: ttl 2h"
    assert told(Subject.TTL, timedelta(minutes=90)) == "rule 1: ttl 90m"
    assert (
        told(Subject.ESCALATE, Escalation(timedelta(days=2), "slack:T1/C2"))
        == "rule 1: escalate 2d slack:T1/C2"
    )


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("member", "chat:ada chat:ben"),
        ("requester", "approver admin"),
        ("approver", "chat:ada chat:ben"),
        ("approver admin", "admin"),
        ("chat:ada chat:ben", "chat:ada"),
    ],
)
def test_of_two_circles_the_narrower_one_decides(wide: str, narrow: str) -> None:
    circles = [
        Rule(n, Subject.DECIDERS, EVERYWHERE, EVERYWHERE, tuple(words.split()))
        for n, words in enumerate((wide, narrow))
    ]
    for each in (circles, circles[::-1]):
        found = Rulebook(1, tuple(each)).deciders(asked("paint"), ("member",))
        assert found.value == tuple(narrow.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("route slak:T1/C2", "There is no channel slak. Did you mean slack?"),
        ("ttl 4h in telegramm:*", "Did you mean telegram?"),
        ("approvers htpp:ana", "Did you mean http?"),
        ("reassign", "Who should decide?"),
        ("reassign abc", "Who should decide?"),
        ("drop ²", "Which rule?"),
        (f"drop {10**30}", "Which rule?"),
        ("revoke G-²", "Which grant?"),
        ("revoke G-" + "9" * 30, "Which grant?"),
        ("quorum ²", "Give a number of approvals"),
        ("quorum 2 of many", "Give a number of approvals"),
        ("audit G-²", "Nothing is recorded about that."),
        ("revoke G-7", "There is no live grant G-7."),
        ("policy always for delete_isue", "There is no tool called delete_isue."),
        ("policy always for delete_isue*", "There is no tool called delete_isue* right now."),
    ],
)
async def test_words_that_miss_their_mark_are_reported(ruled: Nod, words: str, told: str) -> None:
    assert told in (await ruled.command(f"/approvals {words}", by=ADA)).text


@pytest.mark.parametrize(
    ("seconds", "words"), [(86400, "1d"), (129600, "36h"), (5400, "90m"), (3725.4, "1h 2m 5s"), (0.2, "0s")]
)
def test_a_length_of_time_is_told_as_an_admin_would_write_it(seconds: float, words: str) -> None:
    assert format_length(seconds) == words


async def test_a_tool_called_reading_by_a_rule_still_runs_through_a_claimed_and_audited_proposal(
    ruled: Nod,
) -> None:
    reply = await ruled.command("/approvals risk read for paint", by=ADA)
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"), by=EVE)
    card = ruled.chat.card_of(painted)

    assert (await ruled.now(painted)).state is State.SUCCEEDED
    history = await ruled.database.read(log.list_rows_of_proposal, painted.id)
    assert [each.verb for each in history] == ["propose", "execute", "succeeded"]
    assert any("No one was asked: rule 1: risk read for paint" in note for note in card.notes)
    assert "without asking anyone" in reply.text


async def test_a_rule_cannot_call_reading_what_cannot_be_undone(ruled: Nod) -> None:
    reply = await ruled.command("/approvals risk read for smash", by=ADA)
    assert "smash" in reply.text
    assert "can't be undone" in reply.text
    rule = Rule(0, Subject.RISK, EVERYWHERE, "s*", Level.READ)
    await ruled.database.write(rules.set_rule, rule, ADA, ruled.clock())
    (smashed,) = await ruled.asked(call("smash", lamp="desk"))
    assert smashed.state is State.PROPOSED


async def test_a_tool_called_reading_still_asks_where_everything_asks(ruled: Nod) -> None:
    await rule(ruled, "risk read for paint")
    await rule(ruled, "policy always")
    (painted,) = await ruled.asked(call("paint", lamp="desk", color="red"))
    assert painted.state is State.PROPOSED


async def test_a_pause_shows_on_every_open_card_and_in_the_answer_to_a_press(ruled: Nod) -> None:
    red, blue = await ruled.asked(
        call("paint", lamp="desk", color="red"), call("paint", lamp="door", color="blue")
    )
    await rule(ruled, "pause")
    await ruled.idle()
    note = "Paused by Ada since 2 Mar, 09:00 UTC. Nothing runs until an admin uses /approvals resume."
    assert note in ruled.chat.card_of(red).notes
    reply = await ruled.press(Verb.APPROVE, red)
    assert "paused" in reply.text
    await ruled.idle()
    assert note in ruled.chat.card_of(red).notes
    await rule(ruled, "resume")
    await ruled.tick()
    assert note not in ruled.chat.card_of(blue).notes
    assert (await ruled.now(red)).state is State.SUCCEEDED


async def test_a_person_with_the_name_of_a_policy_is_still_a_person(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[Actor("chat", "mallory", "policy (never)")])
    (asked,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.approve(asked, by=Actor("chat", "mallory", "policy (never)"))
    assert not any("No one was asked" in note for note in nod.chat.card_of(asked).notes)


@pytest.mark.parametrize(
    "name",
    [
        "policy (never)",
        "\N{FULLWIDTH LATIN SMALL LETTER P}olicy (never)",
        "you",
        "Y\u200bou",
        "Nod",
        "the lead agent",
        "Ben's grant G-3",
    ],
)
async def test_a_person_with_a_name_of_nods_own_words_is_shown_with_the_account(
    make_nod: MakeNod, name: str
) -> None:
    mallory = Actor("chat", "mallory", name)
    nod = make_nod(admins=[mallory])
    (asked,) = await nod.asked(call("paint", lamp="desk", color="red"), by=mallory)
    await nod.approve(asked, by=mallory)
    card = nod.chat.card_of(asked)
    assert card.outcome == f"Done. Approved by {name} (chat:mallory)."
    assert card.asked_by == f"{name} (chat:mallory)"


def test_who_sits_at_the_machine_and_the_lead_agent_are_called_so() -> None:
    assert (LOCAL.label, LEAD.label, Actor("chat", "eve", "Yousef").label) == (
        "you",
        "the lead agent",
        "Yousef",
    )


async def test_policy_test_judges_for_another_person_at_another_place(ruled: Nod) -> None:
    await rule(ruled, "policy never in chat:T1/hall")
    await rule(ruled, "approvers chat:ben in chat:T2")
    paint = 'policy test paint {"lamp": "desk in hall", "color": "red"}'

    async def said(words: str) -> str:
        return (await ruled.command(f"/approvals {words}", by=ADA)).text

    assert "Because: policy writes" in await said(paint)
    assert "It would run immediately" in await said(f"{paint} in chat:T1/hall/7")
    assert "Who may decide: chat:ben" in await said(f"{paint} as chat:eve in chat:T2/x")
    assert "four eyes" in (await said(paint)).lower() or "chat:ben" not in await said(f"{paint} as chat:eve")
    assert "write as WHO, in PLACE" in await said(f"{paint} for chat:eve")


async def test_roles_and_the_audit_log_name_people_whose_name_is_known(ruled: Nod) -> None:
    await ruled.say("hello", by=ADA)
    await ruled.idle()
    await rule(ruled, "roles add chat:ben approver")
    assert (await ruled.command("/approvals roles", by=ADA)).text == (
        "- admin: Ada (`chat:ada`)\n- approver: chat:ben"
    )
    assert "set by Ada" in (await ruled.command("/approvals audit 7d", by=ADA)).text


async def test_people_and_places_are_called_by_name_wherever_a_rule_or_a_grant_is_told(ruled: Nod) -> None:
    hall = Address("chat", "hall")
    await ruled.say("hello", by=BEN, at=hall, private=False, names={"chat:hall": "the hall"})
    await ruled.idle()
    set_up = await ruled.command("/approvals approvers chat:ben requester in chat:hall", by=ADA)
    assert set_up.text == "Set: rule 1: approvers Ben requester in the hall."
    await rule(ruled, "route chat:hall for paint")
    asked = await ruled.asked(call("paint", lamp="desk", color="red"), at=hall, private=False)
    shown = ruled.chat.card_of(asked[0])
    assert shown.deciders == "Ana or Ben"
    refused = await ruled.press(Verb.APPROVE, asked[0], by=Actor("chat", "eve", "Eve"), at=hall)
    assert refused.text == "You may not decide this one. Who may: Ana or Ben. It stays open."
    await ruled.press(Verb.SIMILAR, asked[0], by=BEN, rung=GrantScope.TOOL, lasting=GrantDuration.HOUR)
    told = [(await ruled.command(f"/approvals {word}", by=ADA)).text for word in ("rules", "grants", "audit")]
    assert "rule 2: route the hall for paint" in told[0]
    assert "paint with any arguments, for Ana in one conversation in the hall" in told[1]
    assert "propose by nod for Ana in the hall" in told[2]
    assert "chat:" not in "".join(told)


async def test_the_audit_log_calls_a_private_chat_that(ruled: Nod) -> None:
    room = Address("chat", "T1/D5")
    await ruled.asked(call("paint", lamp="desk", color="red"), at=room)
    told = (await ruled.command("/approvals audit", by=ADA)).text
    assert "for Ana in a private chat" in told
    assert "D5" not in told


async def test_a_name_is_what_the_channel_says_last_and_what_is_in_backticks_stays(ruled: Nod) -> None:
    for name in ("Ben", "Benjamin"):
        await ruled.say("hello", by=replace(BEN, name=name))
        await ruled.idle()
    told = await ruled.command("/approvals approvers chat:ben for paint", by=ADA)
    assert "approvers Benjamin for paint" in told.text
    assert with_names("`chat:ben`, chat:ben", {"chat:ben": "Ben"}) == "`chat:ben`, Ben"


class TestWorkspaces:
    """Nod in two workspaces, each with an admin of its own."""

    LEA = Actor("chat", "T1/lea", "Lea")
    TOM = Actor("chat", "T2/tom", "Tom")
    KIM = Actor("chat", "T2/kim", "Kim")
    SHOP = Address("chat", "T2/shop/1")

    @pytest.fixture
    async def two(self, make_nod: MakeNod) -> Nod:
        nod = make_nod(admins=[ADA, self.LEA, self.TOM])

        def install(session: Session) -> None:
            for team in ("T1", "T2"):
                row = WorkspaceRow(team=team, token="x", bot_id="B", bot_user="U", installed_at=nod.clock())
                session.add(row)

        await nod.database.write(install)
        return nod

    async def painted(self, nod: Nod) -> Proposal:
        coats = len(await nod.proposals()) + 1  # what is open already is not asked for again
        painting = call("paint", lamp="desk", color="red", coats=coats)
        (p,) = await nod.asked(painting, by=self.KIM, at=self.SHOP, private=False)
        return p

    async def test_an_admin_of_another_workspace_neither_sees_nor_decides(self, two: Nod) -> None:
        p = await self.painted(two)

        assert await two.lookup.card(p.id, self.LEA) is None
        assert (await two.lookup.overview(self.LEA)).waiting == ()
        assert "Nothing is waiting" in (await two.command("/approvals list", by=self.LEA)).text
        for word in ("show", "approve", "cancel", "expire", "extend"):
            said = await two.command(f"/approvals {word} {p.id[:8]}", by=self.LEA)
            assert said.answer is Answer.INVALID, said.text
        for verb in (Verb.APPROVE, Verb.DECLINE, Verb.CANCEL, Verb.EXPIRE, Verb.SIMILAR):
            assert (await two.press(verb, p, by=self.LEA)).answer is Answer.REFUSED
        assert (await two.now(p)).state is State.PROPOSED

    async def test_its_own_admin_and_one_without_a_workspace_decide(self, two: Nod) -> None:
        first, second = await self.painted(two), await self.painted(two)

        assert p_ids(await two.lookup.overview(self.TOM)) == {first.id, second.id}
        assert (await two.press(Verb.APPROVE, first, by=self.TOM)).answer is Answer.ACCEPTED
        assert (await two.press(Verb.APPROVE, second, by=ADA)).answer is Answer.ACCEPTED

    @pytest.mark.parametrize("removed", ["", " everywhere"])
    async def test_a_rule_can_make_an_admin_one_of_every_workspace(self, two: Nod, removed: str) -> None:
        await rule(two, f"roles add {self.LEA} admin everywhere")
        p = await self.painted(two)

        assert (await two.press(Verb.APPROVE, p, by=self.LEA)).answer is Answer.ACCEPTED
        await rule(two, f"roles remove {self.LEA} admin{removed}")
        assert (await two.press(Verb.APPROVE, await self.painted(two), by=self.LEA)).answer is Answer.REFUSED

    async def test_an_admin_of_one_workspace_rules_that_one_alone(self, two: Nod) -> None:
        for words in (
            "policy never",
            "policy never in chat:T2",
            f"approvers {self.LEA} in chat:T2/shop",
            f"roles add {self.LEA} admin everywhere",
            "audit",
            "pause",
            "revoke all",
        ):
            said = await two.command(f"/approvals {words}", by=self.LEA)
            assert said.answer in (Answer.INVALID, Answer.REFUSED), words
        await rule(two, "ttl 2h in chat:T2")
        assert (await two.command("/approvals drop 1", by=self.LEA)).answer is Answer.INVALID
        assert len(await two.database.read(rules.list_rules)) == 1
        assert (
            await two.command("/approvals policy always in chat:T1", by=self.LEA)
        ).answer is Answer.ACCEPTED

    async def test_where_only_another_workspaces_admin_could_decide_it_is_refused(
        self, make_nod: MakeNod
    ) -> None:
        nod = make_nod(admins=[ADA, self.LEA])
        await rule(nod, "approvers admin in chat:T2")
        await rule(nod, "quorum 2 in chat:T2")
        await nod.asked(call("paint", lamp="desk", color="red"), by=self.KIM, at=self.SHOP, private=False)

        assert "only 1 may decide" in nod.model.results[-1]


def p_ids(overview: Overview) -> set[str]:
    return {card.proposal_id for card in overview.waiting}
