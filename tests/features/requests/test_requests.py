"""Proposals that no model call led to, tools hidden from models, and schemas that outlive their tool."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlmodel import select

from bot.domain import kinds
from bot.domain.chat import Address, Answer, Request
from bot.domain.conversations import LineRole
from bot.domain.outcomes import name_outcome
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import HIDDEN
from bot.domain.rule_values import Mode
from bot.domain.verbs import Verb
from bot.errors import NotDeliverable
from bot.store import messages
from bot.store.tables.conversations import TurnRow
from bot.tools.call import ToolOutput
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, BEN, ROOM, WALL, Hold, Nod, RecordingChannel, ShowingChannel, call, says

SCRIPT = Actor("chat", "ci", "ci")


def hide(nod: Nod, **changes: object) -> None:
    """Take the tool `paint` out of every model's sight; of a kind that has no run it has none."""
    if changes.get("kind") is kinds.REQUEST:
        changes |= {"run": None, "conclude": lambda _: ToolOutput("approved")}
    tools = [replace(t, offered=False, **changes) if t.name == "paint" else t for t in nod.toolset.fixed]
    nod.toolset = FixedToolset("lamps", tuple(tools))
    nod.rebuild()


async def asked(nod: Nod, **changes: object) -> Proposal:
    paint = {"lamp": "desk", "color": "red"}
    given = {"actor": ANA, "tool_name": "paint", "arguments": paint, "address": ROOM, "text": "Please look."}
    reply = await nod.assistant.handle(Request(**given | changes))  # type: ignore[arg-type]
    assert reply.answer is Answer.ACCEPTED, reply.text
    await nod.idle()
    return reply.proposals[0]


async def test_what_no_model_asked_for_is_shown_decided_and_run_and_starts_no_turn(nod):
    p = await asked(nod)
    assert nod.chat.texts == [(ROOM, "Please look.")]
    assert nod.chat.card_of(p).pending
    done = await nod.approve(p)
    assert (done.state, nod.world.lamps["desk"]) == (State.SUCCEEDED, "red")
    assert nod.chat.card_of(p).state is State.SUCCEEDED
    assert nod.model.transcripts == []
    assert [line.role for line in (await nod.transcript()).lines] == [LineRole.NOTICE]
    assert await nod.database.read(lambda session: session.exec(select(TurnRow)).all()) == []


async def test_the_model_is_not_told_of_its_end_where_people_spoke_in_the_meantime(nod):
    p = await asked(nod)
    await nod.say("more")
    await nod.idle()
    await nod.approve(p)
    assert [line.role for line in (await nod.transcript()).lines].count(LineRole.NOTE) == 0


@pytest.mark.parametrize("verb", [Verb.DECLINE, Verb.CANCEL])
async def test_its_end_without_a_run_starts_no_turn_either(nod, verb):
    p = await asked(nod)
    await nod.press(verb, p)
    await nod.idle()
    assert (await nod.now(p)).settled
    assert nod.model.transcripts == []


async def test_it_joins_a_conversation_without_the_model_hearing_of_it(nod):
    nod.model.will(says("Hello."), says("And again."))
    await nod.say("hello")
    await nod.idle()
    await nod.approve(await asked(nod))
    await nod.say("more")
    await nod.idle()
    assert await nod.said() == ["hello", "Hello.", "Please look.", "more", "And again."]
    assert nod.model.heard == ["hello", "more"]
    assert nod.model.calls == []


async def test_the_same_event_opens_it_once(nod):
    p = await asked(nod, event_id="k1")
    paint = {"lamp": "desk", "color": "red"}
    again = Request(ANA, "paint", paint, ROOM, "Please look.", event_id="k1")
    reply = await nod.assistant.handle(again)
    assert (reply.answer, reply.proposals) == (Answer.DUPLICATE, (await nod.now(p),))
    other = await nod.assistant.handle(replace(again, arguments=paint | {"color": "blue"}))
    assert other.answer is Answer.STALE
    assert len(await nod.proposals()) == 1


async def test_of_two_that_come_together_under_one_key_the_second_is_the_first_or_is_told(nod):
    paint = {"lamp": "desk", "color": "red"}
    request = Request(ANA, "paint", paint, ROOM, "Please look.", event_id="k1")
    same = await asyncio.gather(nod.assistant.handle(request), nod.assistant.handle(request))
    assert sorted(each.answer for each in same) == [Answer.ACCEPTED, Answer.DUPLICATE]
    assert same[0].proposals[0].id == same[1].proposals[0].id
    for key, tool_name, arguments in (
        ("k2", "paint", paint | {"color": "blue"}),
        ("k3", "smash", {"lamp": "desk"}),
    ):
        first = replace(request, event_id=key)
        other = replace(first, tool_name=tool_name, arguments=arguments)
        answers = await asyncio.gather(nod.assistant.handle(first), nod.assistant.handle(other))
        assert sorted(each.answer for each in answers) == [Answer.ACCEPTED, Answer.STALE]
    await nod.idle()
    assert len(await nod.proposals()) == 3


async def test_what_does_not_fit_or_is_not_there_is_told_and_opens_nothing(nod):
    for name, arguments in (("paint", {"lamp": "desk"}), ("fly", {}), ("paint", {"lamp": "x", "color": "y"})):
        reply = await nod.assistant.handle(Request(ANA, name, arguments, ROOM, "Look."))
        assert reply.answer is Answer.INVALID
        assert reply.text
    assert await nod.proposals() == []


async def test_it_waits_no_longer_than_the_rules_let_it(nod):
    short = await asked(nod, ttl=timedelta(minutes=5))
    long = await asked(nod, ttl=timedelta(days=300))
    assert short.expires_at == nod.clock() + timedelta(minutes=5)
    assert long.expires_at == nod.clock() + timedelta(hours=24)


async def test_it_is_found_and_shown_after_a_crash(nod):
    nod.valve.shut = True
    p = await asked(nod)
    await nod.crash()
    assert nod.chat.card_of(p).pending


async def test_what_the_shell_opens_is_shown_where_cards_are_routed_to(make_nod):
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL], admins=[ADA])
    nod.valve.shut = True
    p = await asked(nod, address=Address("cli", "operator"), actor=Actor("cli", "operator"))
    nod.valve.shut = False
    await nod.tick()
    assert nod.channels["wall"].card_of(p).pending
    assert nod.chat.texts == []
    undelivered = await nod.database.read(messages.list_undelivered, p.conversation_id)
    assert undelivered == []


# --- hidden tools


async def test_a_hidden_tool_is_never_told_to_a_model_and_refused_as_unknown_when_it_calls_it(nod):
    hide(nod)
    assert await nod.asked(call("paint", lamp="desk", color="red")) == []
    assert "paint" not in {spec.name for specs in nod.model.offered for spec in specs}
    [line] = [line for line in (await nod.transcript()).lines if line.calls]
    said = next(iter(line.results.values())).text
    assert said.startswith("ERROR: There is no tool called 'paint'")
    assert "paint" not in said.partition("There are:")[2]
    assert nod.world.runs == []


async def test_the_gate_itself_knows_no_hidden_tool_whatever_shelf_it_is_handed(nod):
    hide(nod)
    await nod.say()
    await nod.idle()
    transcript = await nod.transcript()
    gate = nod.gate
    whole = await gate.registry.load_tools()
    assert "paint" in whole.tools
    [judged] = await gate.consider(whole, [call("paint", lamp="desk", color="red")], transcript, "")
    assert judged.proposal is None
    assert judged.result.text.startswith("ERROR: There is no tool called 'paint'")


async def test_a_hidden_tool_is_shown_edited_and_run_like_any_other(nod):
    hide(nod)
    p = await asked(nod)
    edited = {"lamp": "desk", "color": "blue"}
    reply = await nod.press(Verb.APPROVE, p, arguments=edited)
    assert reply.answer is Answer.ACCEPTED, reply.text
    await nod.idle()
    assert nod.world.lamps["desk"] == "blue"


# --- a script's request


@pytest.mark.parametrize("mode", sorted(set(Mode) - {Mode.FORBID}))
async def test_a_request_is_asked_whatever_the_policy_and_never_decided_by_who_asks(make_nod, mode):
    nod = make_nod(policy=Policy(mode, approvers=frozenset({str(BEN), str(SCRIPT)})))
    hide(nod, kind=kinds.REQUEST)
    p = await asked(nod, actor=SCRIPT)
    assert p.state is State.PROPOSED
    assert p.deciders.four_eyes
    own = await nod.press(Verb.APPROVE, p, by=SCRIPT)
    assert (own.answer, own.text) == (
        Answer.REFUSED, "Four eyes: you asked for it, so someone else must approve it.",
    )  # fmt: skip
    assert (await nod.approve(p, by=BEN)).state is State.SUCCEEDED


async def test_a_request_that_no_one_else_could_decide_is_refused_with_the_reason(make_nod):
    nod = make_nod(policy=Policy(admins=frozenset({str(SCRIPT)})))
    hide(nod, kind=kinds.REQUEST)
    request = Request(SCRIPT, "paint", {"lamp": "desk", "color": "red"}, ROOM, "Look.")
    reply = await nod.assistant.handle(request)
    assert reply.answer is Answer.REFUSED
    assert "no one may decide this here" in reply.text
    assert await nod.proposals() == []


async def test_an_admins_script_cannot_hand_its_own_request_to_itself(make_nod):
    nod = make_nod(policy=Policy(admins=frozenset({str(BEN), str(SCRIPT)})))
    hide(nod, kind=kinds.REQUEST)
    p = await asked(nod, actor=SCRIPT)
    await nod.press(Verb.REASSIGN, p, by=SCRIPT, reason=f"requester {SCRIPT}")
    assert (await nod.press(Verb.APPROVE, p, by=SCRIPT)).answer is Answer.REFUSED


async def test_a_scripts_card_goes_where_cards_are_routed_to_and_is_decided_there(make_nod):
    web, wall = ShowingChannel("web"), RecordingChannel("wall")
    nod = make_nod(channels=[web, wall], routes=[WALL], policy=Policy(approvers=frozenset({str(BEN)})))
    hide(nod, kind=kinds.REQUEST)
    p = await asked(nod, actor=SCRIPT, address=Address("web", "ci/1"))
    assert wall.card_of(p).pending
    reply = await nod.press(Verb.APPROVE, p, by=BEN, at=WALL)
    await nod.idle()
    assert reply.answer is Answer.ACCEPTED
    assert wall.card_of(p).outcome == "Approved by Ben."


async def test_a_request_whose_card_can_arrive_nowhere_is_ended_as_undeliverable(make_nod):
    web, wall = ShowingChannel("web"), RecordingChannel("wall")
    wall.refusals["post_card"] = NotDeliverable("archived")
    nod = make_nod(channels=[web, wall], routes=[WALL], policy=Policy(approvers=frozenset({str(BEN)})))
    hide(nod, kind=kinds.REQUEST)
    p = await nod.now(await asked(nod, actor=SCRIPT, address=Address("web", "ci/1")))
    assert name_outcome(p) == "undeliverable"
    assert nod.model.transcripts == []


async def test_an_edit_lets_no_one_outside_wait_longer(make_nod):
    nod = make_nod(policy=Policy(approvers=frozenset({str(BEN)})))
    hide(nod, kind=kinds.REQUEST)
    p = await asked(nod, actor=SCRIPT, ttl=timedelta(minutes=5))
    nod.clock.forward(timedelta(minutes=4))
    await nod.press(Verb.EDIT, p, by=BEN, arguments={"lamp": "desk", "color": "blue"})
    edited = await nod.now(p)
    assert (edited.arguments["color"], edited.expires_at) == ("blue", p.expires_at)


async def test_what_is_no_call_cannot_be_stopped_while_it_runs(make_nod):
    nod = make_nod(policy=Policy(approvers=frozenset({str(BEN)})))
    hide(nod, kind=kinds.MEMORY)
    nod.world.before["paint"] = hold = Hold()
    p = await asked(nod, actor=SCRIPT)
    await nod.press(Verb.APPROVE, p, by=BEN)
    await hold.reached.wait()
    reply = await nod.press(Verb.STOP, p, by=BEN)
    assert (reply.answer, reply.text) == (Answer.INVALID, "This can't be stopped.")
    assert reply.proposals == (await nod.now(p),)
    hold.go.set()
    await nod.idle()
    p = await nod.now(p)
    assert (p.state, p.cause) == (State.SUCCEEDED, None)


async def test_an_approved_request_runs_nothing(make_nod):
    nod = make_nod(policy=Policy(approvers=frozenset({str(BEN)})))
    hide(nod, kind=kinds.REQUEST)
    p = await nod.approve(await asked(nod, actor=SCRIPT), by=BEN)
    assert (p.state, p.result) == (State.SUCCEEDED, "approved")
    assert nod.world.runs == []


async def test_a_tool_of_a_kind_without_a_run_can_have_none(nod):
    paint = next(tool for tool in nod.toolset.fixed if tool.name == "paint")
    with pytest.raises(TypeError, match="one of kind request has to conclude, and no run"):
        replace(paint, kind=kinds.REQUEST)
    with pytest.raises(TypeError, match="one of kind call has a run"):
        replace(paint, run=None)


async def test_an_approved_request_is_refused_where_its_tool_is_of_another_kind_by_then(make_nod):
    nod = make_nod(policy=Policy(approvers=frozenset({str(BEN)})))
    fixed = nod.toolset.fixed
    hide(nod, kind=kinds.REQUEST)
    p = await asked(nod, actor=SCRIPT)
    nod.toolset = FixedToolset("lamps", fixed)  # the same tool and version, as an ordinary call
    nod.rebuild()
    p = await nod.approve(p, by=BEN)
    assert (p.state, p.cause) == (State.FAILED, Cause.TOOL_CHANGED)
    assert nod.world.runs == []


async def test_no_grant_reaches_a_request(make_nod):
    nod = make_nod(policy=Policy(approvers=frozenset({str(BEN)})))
    hide(nod, kind=kinds.REQUEST)
    p = await asked(nod, actor=SCRIPT)
    assert "similar" not in nod.chat.card_of(p).verbs
    assert await nod.lookup.ladder(p.id, BEN) == []


# --- a server's question


async def test_a_question_is_asked_while_its_turn_still_runs_and_only_where_the_call_was(make_nod):
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL], admins=[ADA])
    hide(nod, kind=kinds.FORM)
    hold = Hold()
    nod.model.will(says("I look.", call("look", lamp="desk")), says("Seen.", hold=hold))
    await nod.say()
    await hold.reached.wait()
    conversation = (await nod.transcript()).conversation
    paint = {"lamp": "desk", "color": "red", "coats": 1}
    question = Request(ANA, "paint", paint, ROOM, "lamps has a question.", conversation_id=conversation.id)
    p = (await nod.assistant.handle(question)).proposals[0]
    async with asyncio.timeout(20):
        while p.id not in {card.proposal_id for card in nod.chat.cards.values()}:  # noqa: ASYNC110 - a fake
            await asyncio.sleep(0)
    assert not hold.go.is_set()
    for stranger in (ADA, BEN):
        assert (await nod.press(Verb.APPROVE, p, by=stranger)).answer is Answer.REFUSED
    hold.go.set()
    assert (await nod.approve(p)).state is State.SUCCEEDED
    assert nod.chat.texts == [(ROOM, "lamps has a question.")]
    assert nod.chat.shown.count("I look.") == 1
    assert len([card for card in nod.chat.cards.values() if card.proposal_id == p.id]) == 1
    assert nod.channels["wall"].cards == {}


# --- schemas


async def test_a_card_hides_what_is_secret_also_when_the_tool_is_gone(nod):
    [p] = await nod.asked(call("enroll", name="Zoe", code="1234"))
    nod.toolset = FixedToolset("nothing", ())
    await nod.restart()
    card = await nod.lookup.card(p.id, ANA)
    assert card is not None
    assert card.arguments == {"name": "Zoe", "code": HIDDEN}
    assert "1234" not in str(card.fields)


async def test_a_tool_that_no_longer_says_what_is_secret_reveals_nothing(nod):
    [p] = await nod.asked(call("enroll", name="Zoe", code="1234"))
    open_now = [
        replace(t, version="2", parameters={"type": "object", "properties": {}}) if t.name == "enroll" else t
        for t in nod.toolset.fixed
    ]
    nod.toolset = FixedToolset("lamps", tuple(open_now))
    await nod.restart()
    card = await nod.lookup.card(p.id, ANA)
    assert card is not None
    assert card.arguments["code"] == HIDDEN


async def test_the_schema_is_written_once_for_each_version(nod):
    await nod.asked(call("paint", lamp="desk", color="red"))
    before = nod.database.writes
    await nod.asked(call("paint", lamp="door", color="red"))
    second = nod.database.writes - before
    before = nod.database.writes
    await nod.asked(call("paint", lamp="roof", color="red"))
    assert nod.database.writes - before == second
