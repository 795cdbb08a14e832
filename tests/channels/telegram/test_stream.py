"""One turn being shown: drafts in private, throttled edits in groups, the final text always."""

import asyncio
import sys

import pytest

from bot.domain.chat import Address, Answer, Command, Message, Reply
from bot.domain.events import (
    Ending,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnFailed,
)
from bot.domain.people import Actor
from bot.errors import ChannelError
from tests.channels.telegram.conftest import ANA, FakeTime
from tests.channels.telegram.core import FakeCore
from tests.fakes.telegram_server import FakeTelegram

HERE = Address("telegram", str(ANA))
TEAM = -100200
THERE = Address("telegram", str(TEAM))
WHO = Actor("telegram", str(ANA), "Ana")


async def play(channel, seconds: FakeTime, address: Address, *events, gap: float = 5.0):
    stream = channel.open_stream(address, WHO)
    for event in events:
        await stream.send(event)
        seconds.now += gap


async def test_in_private_a_draft_grows_and_the_text_is_posted(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    await play(
        channel,
        seconds,
        HERE,
        TextDelta("Hello"),
        TextDelta(" **world"),
        TextDelta("**"),
        end("Hello **world**"),
    )
    assert [text for _, _, text in telegram.drafts] == ["Hello", "Hello **world", "Hello world"]
    assert len({draft for _, draft, _ in telegram.drafts}) == 1
    (posted,) = telegram.shown(ANA)
    assert (posted.text, posted.entities[0]["type"]) == ("Hello world", "bold")


async def test_in_a_group_one_message_is_edited_within_the_limit(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    words = [TextDelta(f"word{i} ") for i in range(300)]
    text = "".join(w.text for w in words)
    await play(channel, seconds, THERE, *words, end(text), gap=0.2)
    calls = [c for c in telegram.calls if c[0] in ("sendMessage", "editMessageText")]
    assert 3 <= len(calls) <= 14
    (posted,) = telegram.shown(TEAM)
    assert posted.text == text.strip()
    assert not telegram.drafts
    assert seconds.slept == []


async def test_a_full_group_still_gets_the_final_text(channel, telegram: FakeTelegram, seconds: FakeTime):
    telegram.group(TEAM)
    for i in range(20):
        await channel.post(THERE, f"card {i}")
    await play(channel, seconds, THERE, TextDelta("Hello"), end("Hello"), gap=0.0)
    assert [m.text for m in telegram.shown(TEAM, "Hello")] == ["Hello"]
    assert 0 < sum(seconds.slept) <= 61


async def test_a_long_answer_is_split(channel, telegram: FakeTelegram, seconds: FakeTime):
    telegram.group(TEAM)
    text = "\n\n".join(f"paragraph {i} " + "x" * 300 for i in range(40))
    await play(channel, seconds, THERE, TextDelta(text), end(text))
    posted = telegram.shown(TEAM)
    assert len(posted) >= 3
    assert "paragraph 0" in posted[0].text
    assert "paragraph 39" in posted[-1].text
    assert not any("▍" in m.text for m in posted)


@pytest.mark.parametrize("where", [HERE, THERE])
async def test_an_answer_too_long_to_read_in_a_chat_comes_as_a_file(
    channel, telegram: FakeTelegram, seconds: FakeTime, where: Address
):
    telegram.group(TEAM)
    text = "\n\n".join(f"paragraph {i} " + "x" * 300 for i in range(140))
    await play(channel, seconds, where, TextDelta(text), end(text))
    await channel.post(where, text)
    first, file, *later = telegram.shown(int(where.key))
    assert first.text.startswith("paragraph 0 ")
    assert file.document == text
    assert [each.document for each in later] == [None, text]


async def test_why_a_long_answer_ended_is_said_with_the_file(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    await play(channel, seconds, HERE, TextDelta("long words " * 3000), TurnFailed("The model is away.", 1))
    assert telegram.shown(int(HERE.key))[-1].text.endswith("in the file.\n\n⚠️ The model is away.")


@pytest.mark.parametrize("where", [HERE, THERE])
async def test_a_text_that_telegram_took_a_part_of_is_continued_there(
    channel, telegram: FakeTelegram, seconds: FakeTime, where: Address
):
    telegram.group(TEAM)
    text = "\n\n".join(f"paragraph {i} " + "x" * 300 for i in range(40))
    telegram.fail("sendMessage", 502, "Bad Gateway", after=1 if where == HERE else 2)
    with pytest.raises(ChannelError) as refused:
        await play(channel, seconds, where, TextDelta(text), end(text))
    await channel.post(where, text, refused.value.arrived)
    shown = "".join(m.text for m in telegram.shown(int(where.key)))
    assert [shown.count(f"paragraph {i} ") for i in range(40)] == [1] * 40


async def test_what_a_tool_does_is_shown_while_it_runs(channel, telegram: FakeTelegram, seconds: FakeTime):
    events = [
        TextDelta("Let me look."),
        ToolStarted("1", "issue_list", "Reading the open issues", {}),
        ToolFinished("1", "issue_list", ok=True, result="[]"),
        end("Let me look. None."),
    ]
    await play(channel, seconds, HERE, *events)
    assert any("⏳ Reading the open issues" in text for _, _, text in telegram.drafts)
    assert [m.text for m in telegram.shown(ANA)] == ["Let me look. None."]


async def test_an_answer_that_begins_again_forgets_its_first_try(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    await play(channel, seconds, HERE, TextDelta("wrong"), TextRestarted(), TextDelta("right"), end("right"))
    assert telegram.drafts[-1][2] == "right"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (TurnFailed("The model could not answer.", 1), "So far\n\n⚠️ The model could not answer."),
        (TurnEnded(Ending.STOPPED, 1, ""), "So far\n\n⏹ Stopped."),
    ],
)
async def test_a_turn_that_was_cut_off_says_so(
    channel, telegram: FakeTelegram, seconds: FakeTime, event, words
):
    await play(channel, seconds, HERE, TextDelta("So far"), event)
    assert [m.text for m in telegram.shown(ANA)] == [words]


async def test_what_may_be_said_next_is_a_button_that_says_it_once(
    channel, core: FakeCore, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    await play(channel, seconds, THERE, TextDelta("So far"), TurnFailed("Away.", 1, ("Try again",)))
    (posted,) = telegram.shown(TEAM)
    query = await telegram.press(ANA, posted, "Try again")
    (said,) = [each for each in core.taken if isinstance(each, Message)]
    assert (said.address, said.actor, said.text, said.private) == (THERE, WHO, "Try again", False)
    assert said.event_id == f"{TEAM}/{posted.message_id} nod:say:Try again"
    assert (query.text, query.alert) == ("Try again", False)
    await telegram.until(lambda: not posted.buttons, "the button is gone")
    core.reply = Reply(Answer.DUPLICATE, "")
    again = await telegram.press_data(ANA, posted, "nod:say:Try again")
    assert again.text == "This was pressed already."


async def test_a_budget_is_extended_by_a_press_that_stays_where_it_was_refused(
    channel, core: FakeCore, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    await play(channel, seconds, THERE, TurnFailed("Used up.", 1, ("/approvals budget extend 7",)))
    (posted,) = telegram.shown(TEAM)
    core.reply = Reply(Answer.REFUSED, "Only admins can do this.")
    query = await telegram.press(ANA, posted, "Extend the budget")
    assert (query.text, query.alert, bool(posted.buttons)) == ("Only admins can do this.", True, True)
    core.reply = Reply(Answer.ACCEPTED, "Extended.")
    query = await telegram.press(ANA, posted, "Extend the budget")
    assert (query.text, query.alert) == ("Extended.", True)
    (*_, said) = [each for each in core.taken if isinstance(each, Command)]
    assert (said.address, said.actor, said.name, said.text) == (THERE, WHO, "approvals", "budget extend 7")
    await telegram.until(lambda: not posted.buttons, "the button is gone")


async def test_a_stranger_presses_as_little_as_they_may_write(
    channel, core: FakeCore, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    telegram.person(999, "Eve")
    await play(channel, seconds, THERE, TurnFailed("Away.", 1, ("Try again",)))
    query = await telegram.press(999, telegram.shown(TEAM)[0], "Try again")
    assert query.alert
    assert core.taken == []


async def test_a_turn_of_cards_only_leaves_no_empty_message(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    await play(channel, seconds, THERE, ToolStarted("1", "x", "Reading", {}), end("", Ending.WAITING))
    assert telegram.shown(TEAM) == []


async def test_a_server_without_drafts_still_gets_the_text(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.fail("sendMessageDraft", 404, "Not Found")
    await play(channel, seconds, HERE, TextDelta("a"), TextDelta("b"), end("ab"))
    assert telegram.drafts == []
    assert [m.text for m in telegram.shown(ANA)] == ["ab"]


async def test_a_preview_that_was_removed_is_posted_again(channel, telegram: FakeTelegram, seconds: FakeTime):
    telegram.group(TEAM)
    stream = channel.open_stream(THERE, WHO)
    await stream.send(TextDelta("Hello"))
    telegram.shown(TEAM)[0].deleted = True
    await stream.send(end("Hello there"))
    assert [m.text for m in telegram.shown(TEAM)] == ["Hello there"]


async def test_a_preview_that_telegram_did_not_let_end_is_removed_below_the_answer(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    stream = channel.open_stream(THERE, WHO)
    await stream.send(TextDelta("Hello"))
    telegram.fail("editMessageText", 502, "Bad Gateway")
    await stream.send(end("Hello there"))
    assert [m.text for m in telegram.shown(TEAM)] == ["Hello there"]


async def test_told_to_wait_a_preview_is_skipped_and_the_end_waits(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    telegram.limited[TEAM].append(12)
    stream = channel.open_stream(THERE, WHO)
    await stream.send(TextDelta("Hello"))
    assert seconds.slept == []
    await stream.send(end("Hello"))
    assert sum(seconds.slept) == 12
    assert [m.text for m in telegram.shown(TEAM)] == ["Hello"]


async def test_a_final_text_that_cannot_be_posted_is_an_error(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.blocked[ANA] = "bot was blocked by the user"
    with pytest.raises(ChannelError):
        await play(channel, seconds, HERE, TextDelta("x"), end("x"))


def end(text: str, ending: Ending = Ending.DONE) -> TurnEnded:
    return TurnEnded(ending, 1, text)


@pytest.mark.slow
async def test_while_it_is_written_only_the_end_of_a_long_answer_is_rendered(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    telegram.group(TEAM)
    lines = [TextDelta(f"line {i} " + "x" * 90 + "\n") for i in range(200)]
    calls = 0

    def count(_frame, event, _arg):
        nonlocal calls
        calls += event == "call"

    took = []
    stream = channel.open_stream(THERE, WHO)
    for part in (lines[:100], lines[100:]):
        calls = 0
        sys.setprofile(count)
        try:
            for line in part:
                await stream.send(line)
                seconds.now += 5
        finally:
            sys.setprofile(None)
        took.append(calls)
    assert took[1] < 1.5 * took[0]
    assert "line 199" in telegram.shown(TEAM)[-1].text


async def test_an_answer_of_list_markers_is_shown_as_it_was_written(
    channel, telegram: FakeTelegram, seconds: FakeTime
):
    text = "- " * 4000 + "word"
    await play(channel, seconds, HERE, *[TextDelta("- " * 40)] * 100, TextDelta("word"), end(text))
    assert "".join(m.text for m in telegram.shown(ANA)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(("key", "chat", "topic"), [(str(ANA), ANA, None), (f"{TEAM}/5", TEAM, 5)])
async def test_nod_types_until_its_first_word(
    make_channel, core, telegram: FakeTelegram, key: str, chat: int, topic: int | None
):
    telegram.group(TEAM, forum=True)
    ticks = asyncio.Semaphore(0)

    async def sleep(_: float) -> None:
        await ticks.acquire()

    channel = make_channel()
    channel._sleep = sleep
    await channel.start(core.inbox, core)
    stream = channel.open_stream(Address("telegram", key), WHO)
    await telegram.until(lambda: telegram.actions)
    ticks.release()
    await telegram.until(lambda: len(telegram.actions) == 2)
    assert set(telegram.actions) == {(chat, topic, "typing")}
    await stream.send(TextDelta("Here it is."))
    for _ in range(5):
        ticks.release()
    await stream.send(end("Here it is."))
    assert len(telegram.actions) == 2
    await channel.stop()
