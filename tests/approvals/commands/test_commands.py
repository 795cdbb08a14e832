"""Slash commands, the same words in every channel."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.chat import Answer
from bot.domain.model import ToolCall
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from tests.kit import ADA, ANA, BEN, EVE, Hold, MakeNod, Nod, call, says
from tests.kit.people import WALL


def red(lamp: str = "desk") -> ToolCall:
    return call("paint", lamp=lamp, color="red")


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    return make_nod(policy=Policy(admins=frozenset({str(ADA)})))


async def test_help_lists_the_words_for_everyone_and_for_admins(nod: Nod) -> None:
    assert "`/nod status`" in (await nod.command("/nod")).text
    every = (await nod.command("/approvals", by=ADA)).text
    assert " decline, " in every
    assert " policy, " in every
    assert len(every) < 500  # a phone shows it without scrolling
    one = (await nod.command("/approvals help decline", by=ADA)).text
    assert one == "`/approvals decline ID [reason]`: decline it"
    assert "Did you mean" in (await nod.command("/approvals help declin", by=ADA)).text


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/nod statsu", "Did you mean `/nod status`?"),
        ("/nod zzz", "Unknown command `zzz`. `/nod help` lists them all."),
        ("/gibberish", "Try /nod help."),
    ],
)
async def test_an_unknown_word_gets_one_line_with_the_near_word(nod: Nod, typed: str, words: str) -> None:
    reply = await nod.command(typed)
    assert reply.answer is Answer.INVALID
    assert words in reply.text
    assert "\n" not in reply.text


async def test_help_on_admin_commands_is_for_everyone(nod: Nod) -> None:
    assert "approve, decline, ask" in (await nod.command("/approvals help")).text
    reply = await nod.command("/approvals help decline")
    assert reply.answer is Answer.ACCEPTED
    assert "`/approvals decline ID [reason]`" in reply.text
    assert (await nod.command("/approvals pause")).answer is Answer.REFUSED


async def test_new_ends_the_conversation_and_open_proposals_stay_open(nod: Nod) -> None:
    assert (await nod.command("/nod new")).text == "No conversation to end here. Just write to me."
    [p] = await nod.asked(red())
    assert (await nod.command("/nod new")).text.startswith("Done.")
    await nod.say("a fresh start")
    await nod.idle()
    assert nod.model.heard == ["a fresh start"]
    assert (await nod.approve(p)).state is State.SUCCEEDED
    assert nod.model.heard == ["please"]


async def test_new_stops_what_is_being_written(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("A long story.", hold=hold))
    await nod.say("tell me")
    await hold.reached.wait()
    await nod.command("/nod new")
    await nod.idle()
    await nod.tick(timedelta(hours=1))
    assert len(nod.model.transcripts) == 1


async def test_status_tells_what_waits_for_me_and_what_i_asked_for(nod: Nod) -> None:
    assert (await nod.command("/nod status")).text == "Nothing is waiting."
    [p] = await nod.asked(red())
    mine = (await nod.command("/nod status")).text
    assert "**Waiting for you to decide**" in mine
    assert "**Asked for by you, still open**" in mine
    assert mine.count(f"`{p.id[:8]}` Paint lamp desk red (asked by Ana, expires in 24 h)") == 2
    assert "**Asked for" not in (await nod.command("/nod status", by=ADA)).text
    assert (await nod.command("/nod status", by=EVE)).text == "Nothing is waiting."
    nod.clock.forward(timedelta(hours=26))
    assert "(asked by Ana, was due to expire 2 h ago)" in (await nod.command("/nod status")).text


async def test_rules_are_for_admins(nod: Nod) -> None:
    for words in ("pause", "policy never", "roles", "Rules", "link chat:ana chat:eve"):
        reply = await nod.command(f"/approvals {words}", by=ANA)
        assert reply.answer is Answer.REFUSED
        assert reply.text.startswith(f"/approvals {words.split()[0].lower()} is for admins. Ask one of them")


async def test_who_may_decide_by_a_button_may_by_a_command(nod: Nod) -> None:
    [mine] = await nod.asked(red())
    [others] = await nod.asked(red("door"), by=BEN, at=WALL)
    listed = (await nod.command("/approvals list")).text
    assert mine.id[:8] in listed
    assert others.id[:8] not in listed
    assert "Approved." in (await nod.command(f"/approvals approve {mine.id[:8]}")).text
    for verb in ("show", "approve", "decline", "extend", "cancel"):
        told = await nod.command(f"/approvals {verb} {others.id}")
        assert told.text.startswith("There is no proposal"), verb
    assert "Only an admin" in (await nod.command(f"/approvals expire {others.id}", by=BEN)).text
    assert (await nod.now(others)).state is State.PROPOSED


async def test_an_admin_lists_shows_and_decides_by_the_beginning_of_an_id(nod: Nod) -> None:
    one, two, three = await nod.asked(red(), red("door"), red("roof"))
    assert one.id[:8] in (await nod.command("/approvals list", by=ADA)).text
    shown = (await nod.command(f"/approvals show {one.id[:8]}", by=ADA)).text
    assert '"color": "red"' in shown
    assert "propose by nod" in shown
    assert "Approved." in (await nod.command(f"/approvals approve {one.id}", by=ADA)).text
    assert "Declined." in (await nod.command(f"/approvals decline {two.id} not that one", by=ADA)).text
    assert "Withdrawn." in (await nod.command(f"/approvals cancel {three.id}", by=ADA)).text
    await nod.idle()
    ended = await nod.proposals()
    assert [p.state for p in ended] == [State.SUCCEEDED, State.DECLINED, State.CANCELLED]
    assert ended[1].decline_reason == "not that one"
    assert [p.decided_by for p in ended] == ["Ada"] * 3


async def test_an_id_that_names_nothing_or_several_changes_nothing(nod: Nod) -> None:
    found = await nod.asked(*(red() for _ in range(17)))
    shared = next(a.id[0] for a in found for b in found if a is not b and a.id[0] == b.id[0])
    short = await nod.command(f"/approvals approve {shared}", by=ADA)
    assert "Give at least 4 characters of the ID" in short.text
    assert "There is no proposal xyzz" in (await nod.command("/approvals approve xyzz", by=ADA)).text
    assert "There is no proposal %%%%" in (await nod.command("/approvals approve %%%%", by=ADA)).text
    assert "Which one?" in (await nod.command("/approvals approve", by=ADA)).text
    assert {p.state for p in await nod.proposals()} == {State.PROPOSED}


@pytest.mark.parametrize(
    "pasted", ["show “{}”", "show *{}*", "show\u00a0{}", "show\n{}", "“show” <{}>", "show `{}`\u200b"]
)
async def test_an_id_pasted_with_marks_and_other_spaces_is_found(nod: Nod, pasted: str) -> None:
    [found] = await nod.asked(red())
    assert found.id in (await nod.command(f"/approvals {pasted.format(found.id[:8])}", by=ADA)).text


async def test_a_rule_for_a_tool_in_smart_quotes_is_for_that_tool(nod: Nod) -> None:
    said = await nod.command("/approvals policy never for “paint”", by=ADA)
    assert said.answer is Answer.ACCEPTED
    assert "for paint" in (rules := (await nod.command("/approvals rules", by=ADA)).text)
    assert "“" not in rules


@pytest.mark.parametrize("unseen", ["\u200b", "\u2060\u3164", "\ufe0f \u200b\n"])
async def test_a_message_of_unseen_characters_alone_starts_nothing(nod: Nod, unseen: str) -> None:
    assert (await nod.say(unseen)).answer is Answer.INVALID


async def test_five_wrong_link_codes_in_a_minute_are_all_that_an_account_may_try(nod: Nod) -> None:
    code = (await nod.command("/nod link", by=BEN)).text.split("`")[1]
    for _ in range(5):
        assert "invalid" in (await nod.command("/nod link 0000000000", by=ANA)).text
    assert "Too many wrong codes" in (await nod.command(f"/nod link {code}", by=ANA)).text
    assert "Too many wrong codes" in (await nod.command(f"/nod link {code} yes", by=ANA)).text
    assert "Too many" not in (await nod.command("/nod link 0000000000", by=EVE)).text
    nod.clock.forward(timedelta(minutes=1))
    assert "That code is from Ben" in (await nod.command(f"/nod link {code}", by=ANA)).text


async def test_a_link_code_works_once_and_only_for_ten_minutes(nod: Nod) -> None:
    phone, tablet = Actor("phone", "9", "Phone"), Actor("tablet", "3", "Tablet")
    code = (await nod.command("/nod link")).text.split("`")[1]
    assert "/nod link yes phone:9" in (await nod.command(f"/nod link {code.lower()} yes", by=phone)).text
    assert "invalid" in (await nod.command(f"/nod link {code}", by=tablet)).text
    assert "invalid" in (await nod.command(f"/nod link {code} yes", by=tablet)).text
    late = (await nod.command("/nod link", by=ANA)).text.split("`")[1]
    nod.clock.forward(timedelta(minutes=10))
    assert "invalid" in (await nod.command(f"/nod link {late}", by=tablet)).text


async def test_a_link_waits_for_an_admin_for_a_day_however_often_it_is_confirmed(nod: Nod) -> None:
    await nod.command(f"/approvals roles add {BEN} approver", by=ADA)
    code = (await nod.command("/nod link", by=ANA)).text.split("`")[1]
    await nod.command(f"/nod link {code} yes", by=BEN)
    for _ in range(2):
        assert "An admin has to allow it" in (await nod.command(f"/nod link yes {BEN}", by=ANA)).text
        nod.clock.forward(timedelta(hours=20))
    allowed = await nod.command(f"/approvals link {ANA} {BEN}", by=ADA)
    assert "don't wait for an admin" in allowed.text


async def test_of_two_confirmations_at_the_same_time_the_later_names_the_way_to_a_new_code(nod: Nod) -> None:
    code = (await nod.command("/nod link", by=ANA)).text.split("`")[1]
    await nod.command(f"/nod link {code} yes", by=EVE)
    replies = await asyncio.gather(*(nod.command(f"/nod link yes {EVE}", by=ANA) for _ in range(2)))
    linked, late = sorted((reply.text for reply in replies), key=lambda text: not text.startswith("Linked"))
    assert linked.startswith("Linked")
    assert "Ask for a new one with `/nod link`." in late
    assert "other account" not in late


@pytest.mark.parametrize(
    ("words", "is_private"),
    [
        ("status", True),
        ("link", True),
        ("link 12AB", True),
        ("console", True),
        ("schedules", True),
        ("schedules pause", True),
        ("memory", True),
        ("unlink", False),
        ("team", False),
        ("help", False),
    ],
)
async def test_an_answer_says_whether_it_tells_what_may_be_from_other_chats(
    nod: Nod, words: str, is_private: bool
) -> None:
    assert (await nod.command(f"/nod {words}")).is_private is is_private
