"""Hooks refuse and add words: whatever a feature does in one, nothing runs that no one allowed."""

import asyncio
import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlmodel import Session

from bot.approvals.accounts import linking
from bot.domain.chat import Address, Answer, ChatMoved
from bot.domain.hooks import Hooks
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store import posted_cards
from bot.store.rules import Policies
from tests.kit import ADA, ANA, BEN, EVE, ROOM, WALL, MakeNod, Nod, RecordingChannel, call, says
from tests.tiers import thin

pytestmark = pytest.mark.slow

CHOICES = (Verb.APPROVE, Verb.DECLINE, Verb.SIMILAR, None)
STORIES = 60


def hostile(random: Random) -> Hooks:
    """A feature whose hooks answer what they should not, raise, and let others wait."""

    def act() -> Any:
        match random.choice(["answer", "none", "word", "thing", "raise"]):
            case "answer":
                return random.choice(["", "approved", "allow", "The rule allows it."])
            case "none":
                return None
            case "word":
                return {"allow": True}
            case "thing":
                return [object()]
            case _:
                raise RuntimeError(random.choice(["no", "approved"]))

    async def later(*_: Any) -> Any:
        for _ in range(random.randrange(3)):
            await asyncio.sleep(0)
        return act()

    def now(*_: Any) -> Any:
        return act()

    def rarely(*_: Any) -> Any:
        return act() if not random.randrange(4) else ""

    async def rarely_later(*_: Any) -> Any:
        return await later() if not random.randrange(4) else ""

    def nothing_or_raise(*_: Any) -> Any:
        if not random.randrange(4):
            raise RuntimeError("no")
        return ()

    return Hooks(
        stop_model_call=(rarely_later,),
        count_answer=(nothing_or_raise,),
        add_to_prompt=(rarely_later,),
        annotate_card=(nothing_or_raise, lambda *_: act() if not random.randrange(8) else ()),
        refuse_grant=(random.choice([now, rarely]),),
        forget_conversations=(nothing_or_raise,),
        send_digest=(nothing_or_raise,),
        end_proposal=(nothing_or_raise,),
        change_person=(nothing_or_raise,),
        move_chat=(nothing_or_raise,),
        quiet_audience=(random.choice([now, lambda _, __, notified: notified]),),
        watch_delivery=(HostileWatcher(now),),
    )


@dataclass
class HostileWatcher:
    """A part in deliveries that answers what it should not, or raises."""

    act: Callable[..., Any]

    def is_watching(self) -> bool:
        return True

    def list_reached(self, *_: Any) -> Any:
        return self.act()

    def hold_back(self, *_: Any) -> Any:
        return self.act()

    def tell_people(self, *_: Any) -> None:
        self.act()

    def tell_later(self, *_: Any) -> None:
        self.act()


async def play(nod: Nod, random: Random) -> dict[str, set[Verb]]:
    """People ask and press at random; gives what they pressed on each proposal."""
    pressed: dict[str, set[Verb]] = {}
    for lamp in ("desk", "door", "roof", "desk"):
        wanted = random.choice([call("paint", lamp=lamp, color="red"), call("smash", lamp=lamp)])
        nod.model.will(says("I will.", wanted))
        nod.model.rule = lambda _: says("Well.")
        await nod.say(f"do it to {lamp}", by=ANA)
        await nod.idle()
        with contextlib.suppress(RuntimeError):
            await nod.assistant.handle(ChatMoved(ROOM, WALL))
        for proposal in await nod.proposals():
            verb = random.choice(CHOICES)
            if verb is None or proposal.state is not State.PROPOSED:
                continue
            pressed.setdefault(proposal.id, set()).add(verb)
            given: dict[str, Any] = {}
            if verb is Verb.SIMILAR:
                given = {"rung": GrantScope.TOOL, "lasting": GrantDuration.DAY}
            with contextlib.suppress(RuntimeError, TypeError):  # a hook failed its transaction
                await nod.press(verb, proposal, by=ANA, **given)
            await nod.idle()
    return pressed


def may_have_run(nod: Nod, proposal: Proposal, pressed: dict[str, set[Verb]]) -> bool:
    """Whether someone said yes to it, or to calls like it before it was asked for."""
    yes = {Verb.APPROVE, Verb.SIMILAR} & pressed.get(proposal.id, set())
    return bool(yes) or (proposal.grant_id is not None and proposal.tool_name == "paint")


@pytest.mark.parametrize("seed", thin(range(STORIES)))
async def test_whatever_hooks_answer_or_raise_nothing_runs_that_no_one_allowed(
    make_nod: MakeNod, seed: int
) -> None:
    random = Random(seed)
    nod = make_nod(hooks=hostile(random))
    pressed = await play(nod, random)
    for proposal in await nod.proposals():
        runs = nod.world.runs_of(proposal)
        assert len(runs) <= 1
        assert not runs or may_have_run(nod, proposal, pressed)
    grants = {p.grant_id for p in await nod.proposals() if p.grant_id is not None}
    assert not grants or any(Verb.SIMILAR in verbs for verbs in pressed.values())


@pytest.mark.parametrize("seed", range(10))
async def test_whatever_hooks_answer_each_open_card_stands_and_someone_who_may_decide_is_reminded(
    make_nod: MakeNod, seed: int
) -> None:
    random = Random(seed)
    nod = make_nod(hooks=Hooks(quiet_audience=hostile(random).quiet_audience))
    await play(nod, random)
    still_open = [each for each in await nod.proposals() if each.state is State.PROPOSED]
    await nod.tick(timedelta(hours=20))
    reminded = {ref: people for ref, _, people in nod.chat.reminders}
    for proposal in still_open:
        [copy] = nod.database.read_now(posted_cards.list_copies, proposal.card_id)
        assert copy.ref in nod.chat.cards
        assert reminded[copy.ref] == (ANA,)


async def remind_of_a_card_for_two(make_nod: MakeNod, *quiet: str) -> tuple[Nod, list[tuple[Actor, ...]]]:
    """Have Ben and Eve decide, with hooks that leave some out; gives who was named in each reminder."""
    hooks = Hooks(quiet_audience=(lambda *_: quiet,))
    nod = make_nod(admins=[ADA], channels=[RecordingChannel(), RecordingChannel("wall")], hooks=hooks)
    for words in (f"approvers {BEN} {EVE} for paint", f"route {WALL} for paint"):
        reply = await nod.command(f"/approvals {words}", by=ADA)
        assert reply.answer is Answer.ACCEPTED, reply.text
    await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.tick(timedelta(hours=20))
    wall = nod.channels["wall"]
    return nod, [people for each in (nod.chat, wall) for _, _, people in each.reminders]


@pytest.mark.parametrize(
    ("quiet", "reminders"),
    [
        ((), [(BEN, EVE), (BEN, EVE)]),
        ((str(EVE),), [(BEN,), (BEN,)]),
        ((str(ROOM),), [(BEN, EVE)]),
        ((str(BEN), str(EVE)), [(BEN, EVE), (BEN, EVE)]),  # no one who may decide would be left
        ((str(ROOM), str(WALL)), [(BEN, EVE), (BEN, EVE)]),
    ],
)
async def test_a_hook_leaves_people_and_places_out_of_a_reminder_but_never_the_last_who_may_decide(
    make_nod: MakeNod, quiet: tuple[str, ...], reminders: list[tuple[Actor, ...]]
) -> None:
    nod, named = await remind_of_a_card_for_two(make_nod, *quiet)
    assert named == reminders
    [proposal] = await nod.proposals()
    assert len(nod.database.read_now(posted_cards.list_copies, proposal.id)) == 2


@dataclass
class Watcher:
    """A part in deliveries that notifies and holds back these accounts, and notes who was notified."""

    reached: Collection[str] = ()
    held: Collection[str] = ()
    told: list[Collection[str]] = field(default_factory=list)

    def is_watching(self) -> bool:
        return True

    def list_reached(self, *_: Any) -> Collection[str]:
        return self.reached

    def hold_back(self, *_: Any) -> Collection[str]:
        return self.held

    def tell_people(self, _: Session, __: Proposal, notified: Collection[str], ___: datetime) -> None:
        self.told.append(notified)

    def tell_later(self, *_: Any) -> None:
        raise AssertionError


async def deliver_to_two(
    make_nod: MakeNod, watcher: Watcher, *quiet: str, quorum: int = 1, private: bool = True
) -> Nod:
    """Have Ana ask in her private chat, or in the room, for what Ben and Eve may decide."""
    hooks = Hooks(watch_delivery=(watcher,), quiet_audience=(lambda *_: quiet,))
    nod = make_nod(admins=[ADA], hooks=hooks)
    for words in (f"approvers {BEN} {EVE} for paint", f"quorum {quorum} for paint"):
        reply = await nod.command(f"/approvals {words}", by=ADA)
        assert reply.answer is Answer.ACCEPTED, reply.text
    await nod.asked(call("paint", lamp="desk", color="red"), private=private)
    return nod


def list_places(nod: Nod) -> list[Address]:
    return sorted(nod.chat.places.values(), key=str)


async def test_who_is_held_back_gets_no_private_card_and_no_mention_and_a_shared_chat_keeps_its_card(
    make_nod: MakeNod,
) -> None:
    watcher = Watcher(held=[str(BEN)])
    nod = await deliver_to_two(make_nod, watcher)
    own, eves = ROOM, Address("chat", EVE.key)
    assert list_places(nod) == sorted([own, eves], key=str)
    assert watcher.told == [[str(EVE)]]
    nod = await deliver_to_two(make_nod, watcher, private=False)
    assert list_places(nod) == [ROOM]
    [card] = nod.chat.cards.values()
    assert [part for part in card.decider_names.parts if isinstance(part, Actor)] == [EVE]
    assert str(BEN) in card.deciders


async def test_who_is_quiet_is_told_all_the_same_where_too_few_others_may_decide(make_nod: MakeNod) -> None:
    both = [str(BEN), str(EVE)]
    for quiet, quorum, told in (([str(BEN)], 1, [str(EVE)]), ([str(BEN)], 2, both), (both, 1, both)):
        watcher = Watcher()
        nod = await deliver_to_two(make_nod, watcher, *quiet, quorum=quorum)
        assert watcher.told == [sorted(told)]
        [card] = [card for ref, card in nod.chat.cards.items() if nod.chat.places[ref] == ROOM]
        says_why = any("too few others may decide" in each.text for each in card.annotations)
        assert says_why is (len(told) == len(both))


async def test_those_that_a_feature_notifies_itself_are_told_where_they_may_decide(make_nod: MakeNod) -> None:
    watcher = Watcher(reached=[str(ADA), str(BEN), str(WALL)])
    await deliver_to_two(make_nod, watcher, private=False)
    assert watcher.told == [sorted([str(BEN), str(EVE)])]


async def test_a_hook_that_stops_the_model_is_told_in_its_words(make_nod: MakeNod) -> None:
    async def stop(_: Any) -> str:
        return "The budget of this feature is spent."

    nod = make_nod(hooks=Hooks(stop_model_call=(stop,)))
    await nod.say("hello", by=ANA)
    await nod.idle()
    assert any("The budget of this feature is spent." in text for text in await nod.said())
    assert nod.model.transcripts == []


async def test_a_hook_refuses_grants_and_the_card_offers_none(make_nod: MakeNod) -> None:
    nod = make_nod(hooks=Hooks(refuse_grant=(lambda *_: "Not for this one.",)))
    nod.model.will(says("I will.", call("paint", lamp="desk", color="red")), says("Well."))
    await nod.say("paint it", by=ANA)
    await nod.idle()
    [proposal] = await nod.proposals()
    reply = await nod.press(Verb.SIMILAR, proposal, by=ANA, rung=GrantScope.TOOL, lasting=GrantDuration.DAY)
    assert "Not for this one." in reply.text
    assert nod.world.runs == []


async def test_the_end_of_each_proposal_and_each_link_is_told_in_its_transaction(make_nod: MakeNod) -> None:
    told: list[str] = []
    hooks = Hooks(
        end_proposal=(lambda _, proposal, __: told.append(str(proposal.state)),),
        change_person=(lambda _, account, __: told.append(str(account)) or (),),
    )
    nod = make_nod(hooks=hooks)
    nod.model.will(
        says("I will.", call("paint", lamp="desk", color="red"), call("paint", lamp="door", color="red")),
        says("Well."),
    )
    await nod.say("paint both", by=ANA)
    await nod.idle()
    one, other = await nod.proposals()
    await nod.press(Verb.APPROVE, one, by=ANA)
    await nod.press(Verb.DECLINE, other, by=ANA)
    await nod.idle()
    assert sorted(told) == ["declined", "succeeded"]
    told.clear()

    def link(session: Session) -> None:
        linking.link_accounts(session, Policies(nod.policy, nod.clock), ANA, BEN, ANA, nod.clock())

    nod.database.write_now(link)
    assert sorted(told) == [str(ANA), str(BEN)]
    told.clear()
    nod.database.write_now(linking.unlink_account, str(BEN), ANA, nod.clock())
    assert str(BEN) in told
