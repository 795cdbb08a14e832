"""Rules that say more: what is forbidden, conditions, one person, hours, and rules that end by themselves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.domain.chat import Address, Answer
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.rulebook import Rulebook
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store.audit import verification
from tests.kit import ADA, ANA, BEN, MakeNod, Nod, call

pytestmark = pytest.mark.slow

HALL = Address("chat", "T1/hall")
OSLO = ZoneInfo("Europe/Oslo")


@pytest.fixture
def ruled(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA], policy=Policy(rulebook=Rulebook(zone=OSLO)))


async def rule(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return reply.text


async def refused(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.INVALID, reply.text
    return reply.text


async def at(nod: Nod, hour: int, minute: int = 0) -> None:
    """Let time pass until then, in Oslo."""
    now = nod.clock().astimezone(OSLO)
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    await nod.tick((then if then > now else then + timedelta(days=1)) - now)


def red(lamp: str = "desk", **more: object) -> object:
    return call("paint", lamp=lamp, color="red", **more)


def offered(nod: Nod) -> set[str]:
    return {spec.name for spec in nod.model.offered[-1]}


# forbid


async def test_what_is_forbidden_is_not_offered_there_and_refused_with_the_rules_words(ruled: Nod) -> None:
    await rule(ruled, "policy forbid for paint in chat:T1/hall")
    assert await ruled.asked(red(), at=HALL) == []
    assert "paint" not in offered(ruled)
    assert ruled.model.results[-1] == "REFUSED: rule 1: policy forbid for paint in chat:T1/hall"
    [elsewhere] = await ruled.asked(red())
    assert "paint" in offered(ruled)
    assert elsewhere.state is State.PROPOSED


@pytest.mark.parametrize("words", ["policy never for paint", "risk read for paint", "policy always"])
async def test_no_other_rule_outweighs_one_that_forbids(ruled: Nod, words: str) -> None:
    await rule(ruled, "policy forbid for paint")
    await rule(ruled, words)
    assert await ruled.asked(red()) == []


async def test_a_read_is_forbidden_too(ruled: Nod) -> None:
    await rule(ruled, "policy forbid for look where lamp = desk")
    await ruled.asked(call("look", lamp="desk"), call("look", lamp="door"))
    assert "look" in offered(ruled), "it is forbidden for some arguments alone"
    assert ruled.world.reads == ["door"]


async def test_a_grant_does_not_reach_what_is_forbidden(ruled: Nod) -> None:
    [first] = await ruled.asked(red())
    await ruled.press(Verb.SIMILAR, first, rung=GrantScope.TOOL, lasting=GrantDuration.HOUR)
    await ruled.idle()
    await rule(ruled, "policy forbid for paint where lamp = door")
    assert await ruled.asked(red("door")) == []


async def test_a_rule_set_after_the_approval_stops_it_before_it_runs(ruled: Nod) -> None:
    [p] = await ruled.asked(red())
    ruled.valve.shut = True
    await ruled.press(Verb.APPROVE, p)
    await rule(ruled, "policy forbid for paint")
    ruled.valve.shut = False
    await ruled.recovery.recover(ruled.clock())
    await ruled.idle()
    ended = await ruled.now(p)
    assert (ended.state, ended.cause) == (State.FAILED, Cause.FORBIDDEN)
    assert ended.error == "This is now forbidden: rule 1: policy forbid for paint."
    assert ruled.world.runs == []
    assert ruled.chat.card_of(ended).outcome == (
        "Not run: Ana approved it, but a rule now forbids it. Nothing was changed."
    )
    again = await ruled.press(Verb.RETRY, ended)
    assert (again.answer, again.text) == (
        Answer.REFUSED,
        "This is now forbidden: rule 1: policy forbid for paint. Nothing runs.",
    )
    await rule(ruled, "drop 1")
    await ruled.press(Verb.RETRY, ended)
    await ruled.idle()
    assert (await ruled.now(p)).state is State.SUCCEEDED


async def test_another_process_that_has_not_heard_of_the_rule_does_not_run_it_either(ruled: Nod) -> None:
    other = ruled.beside()
    [p] = await other.asked(red())
    other.valve.shut = True
    await other.press(Verb.APPROVE, p)
    await rule(ruled, "policy forbid for paint")
    assert not other.gate.policies.latest_policy.rulebook.has_forbid_rule
    await other.execution.start(p.id)
    assert (await ruled.now(p)).cause is Cause.FORBIDDEN
    await other.close()


async def test_an_open_card_of_what_is_forbidden_can_be_declined_and_not_approved(ruled: Nod) -> None:
    [p] = await ruled.asked(red())
    await rule(ruled, "policy forbid for paint")
    assert (await ruled.press(Verb.APPROVE, p)).answer is Answer.REFUSED
    assert (await ruled.press(Verb.DECLINE, p)).answer is Answer.ACCEPTED


# conditions


async def test_a_rule_with_a_condition_is_about_the_calls_it_picks_out(ruled: Nod) -> None:
    await rule(ruled, "policy never for paint where color in (white, red) and coats < 3")
    [few, many] = await ruled.asked(red(), red("door", coats=3))
    assert (await ruled.now(few)).state is State.SUCCEEDED
    assert many.state is State.PROPOSED


async def test_what_runs_by_default_is_what_a_condition_sees(ruled: Nod) -> None:
    await rule(ruled, "quorum 2 for paint where coats = 1")
    [one, two] = await ruled.asked(red(), red("door", coats=2))
    assert (one.quorum, two.quorum) == (2, 1)


async def test_a_condition_is_checked_when_it_is_set(ruled: Nod) -> None:
    assert "it has no colour (did you mean color?)" in await refused(
        ruled, "policy never for paint where colour = red"
    )
    assert "coats is a number, not text" in await refused(ruled, "policy never for paint where coats = few")
    assert "`few` does not fit here" in await refused(ruled, "policy never for paint where coats > few")
    assert "Write `where` and its condition last." in await refused(
        ruled, "policy never for paint where coats > 1 in chat:T1/hall"
    )
    assert "is hidden, so no rule can look at it" in await refused(
        ruled, "policy never for enroll where code = 1234"
    )


async def test_a_grant_given_for_another_call_does_not_reach_what_a_condition_picks_out(ruled: Nod) -> None:
    await rule(ruled, "policy always for paint where coats > 2")
    [p] = await ruled.asked(red())
    await ruled.press(Verb.SIMILAR, p, rung=GrantScope.TOOL, lasting=GrantDuration.HOUR)
    await ruled.idle()
    [few, many] = await ruled.asked(red("door"), red("roof", coats=3))
    assert few.grant_id == 1
    assert many.state is State.PROPOSED
    await ruled.press(Verb.SIMILAR, many, rung=GrantScope.TOOL, lasting=GrantDuration.HOUR)
    await ruled.idle()
    [many] = await ruled.asked(red("desk", coats=4))
    assert many.grant_id == 2, "this one was given for a call that the rule picked out"


async def test_a_new_rule_with_a_condition_ends_the_grants_it_may_reach(ruled: Nod) -> None:
    [p] = await ruled.asked(red())
    await ruled.press(Verb.SIMILAR, p, rung=GrantScope.TOOL, lasting=GrantDuration.HOUR)
    await ruled.idle()
    assert "Grants ended" not in await rule(ruled, "quorum 2 for paint by chat:ben where coats > 2")
    assert "Grants ended" not in await rule(ruled, "policy never for paint where coats > 2")
    assert "Grants ended with it: G-1." in await rule(ruled, "quorum 2 for paint where coats > 2")


async def test_a_rule_that_another_outweighs_says_which(ruled: Nod) -> None:
    await rule(ruled, "policy always for paint")
    said = await rule(ruled, "policy never for pain* where coats = 1")
    assert "Where both apply, this counts: rule 1: policy always for paint." in said
    assert "Where both apply" not in await rule(ruled, "policy forbid for paint by chat:ben")
    assert "Where both apply" not in await rule(ruled, "policy never for smash")


async def test_a_condition_stands_in_the_audit_log_and_in_what_policy_test_says(ruled: Nod) -> None:
    await rule(ruled, "policy never for paint where coats = 1")
    told = await ruled.command('/approvals policy test paint {"lamp": "desk", "color": "red"}', by=ADA)
    assert told.text.startswith("It would run immediately.")
    assert "rule 1: policy never for paint where coats = 1" in told.text
    told = await ruled.command(
        '/approvals policy test paint {"lamp": "desk", "color": "red", "coats": 2}', by=ADA
    )
    assert told.text.startswith("It would ask for one approval.")
    audit = (await ruled.command("/approvals audit paint", by=ADA)).text
    assert "rule policy for paint in * where coats = 1: set by Ada" in audit
    assert await ruled.database.read(verification.find_faults_in_session) == []


async def test_rules_with_other_limits_stand_side_by_side_and_the_same_is_replaced(ruled: Nod) -> None:
    each = ["where coats > 2", "where coats > 9", "by chat:ben", "between 9:00 and 10:00", "for 2h", ""]
    for words in each:
        await rule(ruled, f"quorum 2 for paint {words}")
    await rule(ruled, "quorum 3 for paint where  coats > 2")
    listed = (await ruled.command("/approvals rules", by=ADA)).text.splitlines()[1:]
    assert [line.split(":")[0] for line in listed] == [f"- rule {n}" for n in (2, 3, 4, 5, 6, 7)]
    assert listed[-1] == "- rule 7: quorum 3 for paint where coats > 2"


# one person, hours, ends


async def test_a_rule_for_one_person_is_about_all_of_their_accounts_and_no_one_elses(ruled: Nod) -> None:
    await rule(ruled, "policy forbid for paint by chat:ben")
    assert await ruled.asked(red(), by=BEN) == []
    assert "paint" not in offered(ruled)
    [p] = await ruled.asked(red())
    assert p.state is State.PROPOSED
    await ruled.link(ANA, BEN)
    assert await ruled.asked(red("door")) == []


async def test_a_rule_by_time_of_day_counts_in_the_teams_time_zone(ruled: Nod) -> None:
    await rule(ruled, "policy never for paint between 18:00 and 08:00")
    await at(ruled, 17, 59)
    [asks] = await ruled.asked(red())
    await at(ruled, 18)
    [evening] = await ruled.asked(red("door"))
    await at(ruled, 7, 59)
    [morning] = await ruled.asked(red("roof"))
    await at(ruled, 8)
    [day] = await ruled.asked(call("paint", lamp="desk", color="blue"))
    states = [(await ruled.now(p)).state for p in (asks, evening, morning, day)]
    assert states == [State.PROPOSED, State.SUCCEEDED, State.SUCCEEDED, State.PROPOSED]


async def test_a_rule_on_some_days_counts_by_the_teams_calendar(ruled: Nod) -> None:
    """It is Monday; hours that go over midnight are of the day on which they begin."""
    await rule(ruled, "policy never for paint between 22:00 and 06:00 on Friday")
    await rule(ruled, "policy forbid for smash on weekends")
    states = []
    for hour, minute, days in [(22, 0, 3), (21, 59, 0), (22, 0, 0), (5, 59, 0), (6, 0, 0), (22, 0, 0)]:
        await ruled.tick(timedelta(days=days))
        await at(ruled, hour, minute)
        [p] = await ruled.asked(red(coats=len(states) + 1))
        states.append((f"{ruled.clock().astimezone(OSLO):%a %H:%M}", p.state is State.SUCCEEDED))
    assert states == [
        ("Thu 22:00", False),
        ("Fri 21:59", False),
        ("Fri 22:00", True),
        ("Sat 05:59", True),
        ("Sat 06:00", False),
        ("Sat 22:00", False),
    ]
    assert await ruled.asked(call("smash", lamp="desk")) == []
    await ruled.tick(timedelta(days=2))
    [smash] = await ruled.asked(call("smash", lamp="desk"))
    assert smash.state is State.PROPOSED
    assert "between 22:00 and 06:00 on friday" in (await ruled.command("/approvals audit", by=ADA)).text
    assert await ruled.database.read(verification.find_faults_in_session) == []


async def test_a_rule_ends_by_itself_and_that_is_recorded(ruled: Nod) -> None:
    said = await rule(ruled, "policy never for paint for 2h")
    until = ruled.clock().astimezone(OSLO) + timedelta(hours=2)
    assert f"until {until:%Y-%m-%d %H:%M}" in said
    [before] = await ruled.asked(red())
    ruled.clock.forward(timedelta(hours=2))
    [after] = await ruled.asked(red("door"))
    assert (await ruled.now(before)).state is State.SUCCEEDED
    assert after.state is State.PROPOSED, "also before any sweep"
    await ruled.tick()
    assert "rule 1" not in (await ruled.command("/approvals rules", by=ADA)).text
    assert "end by itself by nod" in (await ruled.command("/approvals audit paint", by=ADA)).text
    assert await ruled.database.read(verification.find_faults_in_session) == []


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("policy never for paint until yesterday", "'yesterday': write a moment"),
        ("policy never for paint until 2020-01-01", "that time has passed"),
        ("policy never for paint until 2029-01-01", "too far away"),
        ("policy never for paint between 8:00 and 8:00", "two different times"),
        ("policy never for paint between 25:00 and 8:00", "is not a time of day"),
        ("policy never for paint on funday", "`on funday` names no day. Write weekdays"),
        ("policy never for paint on friday on weekdays", "one too many"),
        ("policy never for paint for smash", "one too many"),
        ("policy never for paint for 2h until friday", "one too many"),
        ("policy never for paint by ben", "is not an account"),
        ("quiet 22:00 07:00 for 2h", "has no by, until"),
        ("quiet 00:00 00:00", "two different times"),
        ("plans human where x = 1", "has no by, until"),
        ("policy never for paint where", "stops too early"),
    ],
)
async def test_a_limit_that_is_wrong_is_refused_in_words(ruled: Nod, words: str, what: str) -> None:
    assert what in await refused(ruled, words)


async def test_the_parts_of_a_rule_may_stand_in_any_order(ruled: Nod) -> None:
    ruled.clock.forward(datetime(2027, 1, 1, 12, tzinfo=UTC) - ruled.clock())
    parts = [
        "for paint",
        "in chat:T1/hall",
        "by chat:ben",
        "until 2027-06-01 18:00",
        "between 18:00 and 08:00",
        "on monday and thursday",
    ]
    said = await rule(ruled, f"policy never {' '.join(reversed(parts))} where coats > 1")
    assert said.startswith(f"Set: rule 1: policy never {' '.join(parts)} where coats > 1.")
    await ruled.restart()
    listed = (await ruled.command("/approvals rules", by=ADA)).text
    assert f"policy never {' '.join(parts)} where coats > 1" in listed


async def test_a_rule_that_no_longer_fits_its_tool_is_named_and_asks_but_spares_nothing(ruled: Nod) -> None:
    await rule(ruled, "policy never for look")
    await rule(ruled, "policy always for look where lamp = desk")
    await rule(ruled, "policy never for paint where coats = 1")
    form = {"properties": {"light": {"type": "string"}}, "type": "object"}
    [look] = (each for each in ruled.toolset.fixed if each.name == "look")
    ruled.toolset = replace(ruled.toolset, fixed=(replace(look, parameters=form, validate=dict),))
    await ruled.restart()
    listed = (await ruled.command("/approvals rules", by=ADA)).text
    assert "rule 2: policy always for look where lamp = desk (does not fit look: it has no lamp)" in listed
    [p] = await ruled.asked(call("look", light="desk"))
    assert p.rule_text.startswith("rule 2")
