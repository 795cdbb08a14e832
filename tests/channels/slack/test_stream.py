"""A turn is shown as it happens: a native stream, or edits where that is refused."""

from datetime import timedelta
from typing import Any

import pytest

from bot.channels.base import Stream
from bot.channels.markdown import open_fence
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
from bot.domain.hooks import CommandOffer
from bot.domain.people import Actor
from bot.errors import ChannelError, NotDeliverable
from tests.channels.slack.conftest import FakeCore, Running
from tests.kit import FakeClock
from tests.kit.waiting import until
from tests.tiers import thin

ANA = Actor("slack", "T1/U7", "Ana")
DM = Address("slack", "T1/D7/1700.1")
CHANNEL = Address("slack", "T1/C1/1700.1")


@pytest.fixture
def transport() -> str:
    return "http"


def _end(text: str = "", ending: Ending = Ending.DONE) -> TurnEnded:
    return TurnEnded(ending, 1, text)


async def _send_all(stream: Stream, clock: FakeClock, *texts: str) -> None:
    for text in texts:
        await stream.send(TextDelta(text))
        clock.forward(timedelta(seconds=2))
    await stream.send(_end("".join(texts)))


@pytest.mark.parametrize("address", [DM, CHANNEL])
async def test_text_comes_as_it_is_written_and_the_stream_is_closed(
    running: Running, clock: FakeClock, address: Address
) -> None:
    stream = running.channel.open_stream(address, ANA)
    await stream.send(TextDelta("Hello"))
    (message,) = [m for m in running.slack.posted if m.stream]
    assert (message.stream, message.markdown) == ("open", "Hello")

    clock.forward(timedelta(seconds=1))
    await stream.send(TextDelta(" **world**"))
    assert message.markdown == "Hello **world**"
    await stream.send(_end("Hello **world**"))
    assert (message.stream, message.markdown) == ("closed", "Hello **world**")
    assert running.slack.sessions[message.channel, "1700.1"] == ["processing", "active"]


async def test_deltas_closer_than_the_pace_are_sent_together(running: Running) -> None:
    stream = running.channel.open_stream(DM, ANA)
    for word in ("a ", "b ", "c ", "d"):
        await stream.send(TextDelta(word))
    await stream.send(_end("a b c d"))

    assert len(running.slack.called("chat.appendStream")) == 1
    (message,) = [m for m in running.slack.posted if m.stream]
    assert message.markdown == "a b c d"


async def test_a_turn_that_waits_for_people_suspends_the_session(running: Running) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("I need a yes."))
    await stream.send(_end("I need a yes.", Ending.WAITING))

    assert running.slack.sessions["D7", "1700.1"] == ["processing", "suspended"]


async def test_a_turn_without_words_only_sets_the_session(running: Running) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(_end("", Ending.WAITING))

    assert running.slack.in_channel("D7") == []
    assert running.slack.sessions["D7", "1700.1"] == ["processing", "suspended"]


async def test_an_answer_that_was_never_streamed_is_shown_at_the_end(running: Running) -> None:
    await running.channel.open_stream(DM, ANA).send(_end("The whole answer."))

    assert running.slack.in_channel("D7")[0].markdown == "The whole answer."


async def test_tool_activity_is_shown_as_tasks(running: Running, clock: FakeClock) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(ToolStarted("c1", "read_file", "Reading <!channel> notes.txt", {}))
    (message,) = [m for m in running.slack.posted if m.stream]
    assert message.tasks["c1"]["status"] == "in_progress"
    assert "<!" not in message.tasks["c1"]["title"]

    clock.forward(timedelta(seconds=1))
    await stream.send(ToolFinished("c1", "read_file", ok=False, result="no such file"))
    await stream.send(_end())
    assert message.tasks["c1"]["status"] == "error"


async def test_mentions_are_broken_up_even_across_deltas(running: Running, clock: FakeClock) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await _send_all(stream, clock, "hi <", "!channel> and <@U", "8> <")

    (message,) = [m for m in running.slack.posted if m.stream]
    assert "<!" not in message.markdown
    assert "<@" not in message.markdown
    assert message.markdown.endswith("<")


async def test_a_link_that_misleads_is_shown_even_across_deltas(running: Running, clock: FakeClock) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await _send_all(stream, clock, "see [good.com", "](https://", "evil.com) and [1] and [x")

    (message,) = [m for m in running.slack.posted if m.stream]
    assert message.markdown == "see good.com (https://evil.com) and [1] and [x"


async def test_an_answer_beyond_one_message_continues_in_the_next(running: Running, clock: FakeClock) -> None:
    code = "\n".join(f"line {n} = {n}" for n in range(1600))
    text = f"Look:\n\n```python\n{code}\n```\n\nThat is all."
    pieces = [text[i : i + 3000] for i in range(0, len(text), 3000)]
    stream = running.channel.open_stream(DM, ANA)
    await _send_all(stream, clock, *pieces)

    messages = [m for m in running.slack.posted if m.stream]
    assert len(messages) > 2
    assert all(m.stream == "closed" and open_fence(m.markdown) is None for m in messages)
    found = [line for m in messages for line in m.markdown.splitlines() if line.startswith("line ")]
    assert found == code.splitlines()


@pytest.mark.parametrize(
    "error", ["method_not_supported_for_channel_type", "not_allowed_token_type", "unknown_method"]
)
async def test_where_streaming_is_refused_one_message_is_edited(
    running: Running, clock: FakeClock, error: str
) -> None:
    running.slack.fail("chat.startStream", error, times=9)
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(ToolStarted("c1", "read_file", "Reading notes_v2.txt", {}))
    await stream.send(TextDelta("Hel"))
    clock.forward(timedelta(seconds=2))
    await stream.send(TextDelta("lo"))
    await stream.send(_end("Hello"))

    (message,) = running.slack.in_channel("D7")
    assert message.stream is None
    assert message.markdown.endswith("Hello")
    assert r"Reading notes\_v2.txt" in message.markdown
    assert len(running.slack.called("chat.update")) <= 2
    assert not message.unfurls


async def test_edits_keep_their_pace(running: Running, clock: FakeClock) -> None:
    running.slack.fail("chat.startStream", "unknown_method", times=9)
    stream = running.channel.open_stream(DM, ANA)
    for n in range(40):
        await stream.send(TextDelta(f"{n} "))
        clock.forward(timedelta(seconds=0.1))
    await stream.send(_end())

    assert len(running.slack.called("chat.update")) <= 5
    assert running.slack.in_channel("D7")[0].markdown == " ".join(map(str, range(40)))


async def test_a_stream_that_dies_continues_as_edits_of_the_same_message(
    running: Running, clock: FakeClock
) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("First. "))
    running.slack.kill_streams()
    clock.forward(timedelta(minutes=6))
    await stream.send(TextDelta("Second. "))
    clock.forward(timedelta(seconds=2))
    await stream.send(TextDelta("Third."))
    await stream.send(_end())

    (message,) = running.slack.in_channel("D7")
    assert message.markdown == "First. Second. Third."


async def test_a_stream_that_dies_at_the_very_end_loses_nothing(running: Running) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("All of it."))
    running.slack.kill_streams()
    await stream.send(_end("All of it."))

    assert running.slack.in_channel("D7")[0].markdown == "All of it."
    assert running.slack.sessions["D7", "1700.1"][-1] == "active"


async def test_a_person_who_pressed_stop_sees_that_it_stopped(running: Running, clock: FakeClock) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("One. "))
    (message,) = [m for m in running.slack.posted if m.stream]
    message.stream = "stopped"
    clock.forward(timedelta(seconds=2))
    await stream.send(TextDelta("Two. "))
    assert message.markdown == "One. "
    await stream.send(_end("One. Two. ", Ending.STOPPED))

    assert "Stopped" in message.markdown
    assert running.slack.sessions["D7", "1700.1"][-1] == "active"


async def test_an_answer_that_begins_again_replaces_what_was_shown(
    running: Running, clock: FakeClock
) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("Half an ans"))
    await stream.send(TextRestarted())
    clock.forward(timedelta(seconds=2))
    await _send_all(stream, clock, "The whole", " answer.")

    (message,) = running.slack.in_channel("D7")
    assert message.markdown == "The whole answer."


async def test_a_failed_turn_says_why(running: Running) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("Let me see"))
    await stream.send(TurnFailed("The model did not answer.", 1))

    assert "⚠️ The model did not answer." in running.slack.in_channel("D7")[0].markdown


@pytest.mark.parametrize("native", [True, False])
async def test_what_may_be_said_next_is_a_button_that_says_it_once(
    running: Running, core: FakeCore, native: bool
) -> None:
    if not native:
        running.slack.fail("chat.startStream", "unknown_method")
    stream = running.channel.open_stream(CHANNEL, ANA)
    await stream.send(TextDelta("Let me see"))
    await stream.send(TurnFailed("The model did not answer.", 1, ("Try again",)))
    (message,) = running.slack.in_channel("C1")
    assert "did not answer" in message.words
    await running.slack.click(message, "Try again", "U8")

    await running.slack.until(lambda: core.got)
    said = core.last
    assert isinstance(said, Message)
    assert (said.address, said.actor.key, said.text, said.private) == (CHANNEL, "T1/U8", "Try again", False)
    assert said.event_id == f"T1/C1/{message.ts} nod:say:Try again"
    told = await running.slack.until(lambda: running.slack.in_channel("C1")[1:])
    assert (told[0].words.strip(), told[0].thread) == ("Ben: Try again", "1700.1")
    core.reply = Reply(Answer.DUPLICATE, "")
    await running.slack.click(message, "Try again", "U8")
    await running.slack.until(lambda: [m for m in running.slack.posted if m.only_for == "U8"])
    assert [m.words.strip() for m in running.slack.posted if m.only_for] == ["This was pressed already."]


async def test_a_budget_is_extended_by_a_press_that_is_a_command_of_who_presses(
    running: Running, core: FakeCore
) -> None:
    stream = running.channel.open_stream(CHANNEL, ANA)
    await stream.send(TurnFailed("The budget is used up.", 1, ("/approvals budget extend 7",)))
    (message,) = running.slack.in_channel("C1")
    core.reply = Reply(Answer.REFUSED, "Only admins can do this.")
    await running.slack.click(message, "Extend the budget", "U8")
    await running.slack.until(lambda: core.got)
    said = core.last
    assert isinstance(said, Command)
    assert (said.actor.key, said.name, said.text) == ("T1/U8", "approvals", "budget extend 7")
    await running.slack.until(lambda: [m for m in running.slack.posted if m.only_for == "U8"])
    assert [m.words.strip() for m in running.slack.posted if m.only_for] == ["Only admins can do this."]


async def test_where_nothing_can_arrive_the_stream_says_so(running: Running) -> None:
    running.slack.channels["C1"].archived = True
    with pytest.raises(NotDeliverable, match="archived"):
        await running.channel.open_stream(CHANNEL, ANA).send(TextDelta("hello"))


async def test_when_edits_fail_as_well_delivery_is_told(running: Running) -> None:
    running.slack.fail("chat.startStream", "unknown_method")
    running.slack.fail("chat.postMessage", "internal_error")
    with pytest.raises(ChannelError, match="internal_error"):
        await running.channel.open_stream(DM, ANA).send(TextDelta("hello"))


async def test_someone_from_another_channel_has_no_live_stream_in_a_slack_channel(
    running: Running,
) -> None:
    stream = running.channel.open_stream(CHANNEL, Actor("http", "ci"))
    await stream.send(TextDelta("hello"))
    await stream.send(_end("hello"))

    (message,) = running.slack.in_channel("C1")
    assert (message.stream, message.markdown) == (None, "hello")


async def test_a_workspace_without_agent_sessions_is_not_asked_twice(running: Running) -> None:
    running.slack.fail("agents.sessions.setStatus", "not_allowed_token_type", times=9)
    for _ in range(3):
        stream = running.channel.open_stream(DM, ANA)
        await stream.send(TextDelta("hi"))
        await stream.send(_end("hi"))

    assert len(running.slack.called("agents.sessions.setStatus")) == 1
    assert len(running.slack.in_channel("D7")) == 3


REFUSALS: dict[str, dict[str, Any]] = {
    "for a while": {"error": "ratelimited", "status": 429, "retry_after": 30},
    "its own fault": {"error": "internal_error"},
    "a gateway's": {"error": "", "status": 502},
    "no answer": {"error": "", "cut_off": True},
    "no answer, though done": {"error": "", "cut_off": True, "acts": True},
    "plain text": {"error": "Bad gateway", "plain": True},
    "a conflict": {"error": "streaming_state_conflict"},
    "the stream is over": {"error": "message_not_in_streaming_state"},
    "an unknown word": {"error": "a_word_of_tomorrow"},
    **{
        each: {"error": each}
        for each in (
            "access_denied",
            "channel_not_found",
            "channel_type_not_supported",
            "fatal_error",
            "invalid_arguments",
            "invalid_auth",
            "invalid_blocks",
            "is_archived",
            "message_not_found",
            "message_not_owned_by_app",
            "missing_scope",
            "msg_too_long",
            "not_in_channel",
            "request_timeout",
            "restricted_action",
            "service_unavailable",
        )
    },
}
"""Slack's documented answers to the methods of a turn, and what stands between it and Nod."""


@pytest.mark.slow
@pytest.mark.parametrize("refusal", thin(REFUSALS))
@pytest.mark.parametrize(
    "method", ["agents.sessions.setStatus", "chat.startStream", "chat.appendStream", "chat.stopStream"]
)
async def test_one_refusal_leaves_the_text_once_no_stream_open_and_a_status(
    running: Running, clock: FakeClock, method: str, refusal: str
) -> None:
    running.slack.fail(method, **REFUSALS[refusal])
    stream = running.channel.open_stream(DM, ANA)
    await _send_all(stream, clock, "One. ", "Two. ", "Three.")

    (message,) = running.slack.in_channel("D7")
    assert message.markdown == "One. Two. Three."
    if (method, refusal) != ("chat.stopStream", "for a while"):  # closed when Slack takes that again
        assert message.stream != "open"
    await running.slack.until(lambda: running.slack.sessions["D7", "1700.1"][-1] == "active")
    assert len(running.slack.calls) < 15


async def test_a_stream_of_a_turn_that_a_restart_cut_off_is_closed_and_says_so(running: Running) -> None:
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("Let me see"))
    await running.channel.stop()

    (message,) = running.slack.in_channel("D7")
    assert message.stream == "closed"
    assert "restarted" in message.markdown
    assert len(running.slack.called("chat.stopStream")) == 1


async def test_a_status_that_slack_limits_or_leaves_without_an_answer_holds_up_no_word(
    running: Running,
) -> None:
    """The calls of the answer are made while the status still waits."""
    running.slack.fail("agents.sessions.setStatus", "ratelimited", status=429, retry_after=10, times=9)
    stream = running.channel.open_stream(DM, ANA)
    await stream.send(TextDelta("All of it."))
    await stream.send(_end("All of it."))

    assert running.slack.in_channel("D7")[0].markdown == "All of it."
    assert len(running.slack.called("agents.sessions.setStatus")) <= 2


async def test_a_status_that_is_still_retried_does_not_replace_that_of_the_next_turn(
    running: Running,
) -> None:
    statuses = running.slack.sessions["D7", "1700.1"]
    first = running.channel.open_stream(DM, ANA)
    await until(lambda: statuses == ["processing"])
    running.slack.fail("agents.sessions.setStatus", "internal_error")
    await first.send(_end())
    running.channel.open_stream(DM, ANA)
    await until(lambda: len(statuses) > 1 and statuses[-1] == "processing")


def _long() -> str:
    return "\n\n".join(f"paragraph {n} " + "x" * 300 for n in range(220))


NO_THREAD = Address("slack", "T1/C1")


@pytest.mark.parametrize("address", [DM, CHANNEL, NO_THREAD])
async def test_an_answer_of_more_than_five_messages_continues_as_a_file(
    running: Running, clock: FakeClock, address: Address
) -> None:
    stream, whole = running.channel.open_stream(address, ANA), _long()
    for at in range(0, len(whole), 4_000):
        await stream.send(TextDelta(whole[at : at + 4_000]))
        clock.forward(timedelta(seconds=2))
    await stream.send(ToolStarted("c1", "read_file", "Reading notes", {}))
    await stream.send(_end(whole))

    *shown, words, file = running.slack.in_channel(address.key.split("/")[1])
    assert len(shown) == 5
    assert {m.stream for m in shown} == ({"closed"} if address is not NO_THREAD else {None})
    seen = "".join("".join(m.markdown.split("Reading notes")[-1].split()) for m in shown)
    assert "".join(whole.split()).startswith(seen)
    assert words.markdown == "This is a long answer. All of it is in the file."
    assert (file.text, file.file, file.thread) == ("answer.md", whole, shown[0].thread)


async def test_what_ended_a_long_answer_is_said_above_the_file(running: Running) -> None:
    stream, whole = running.channel.open_stream(DM, ANA), _long()
    await stream.send(TextDelta(whole))
    await stream.send(TurnFailed("The model is away.", 1, ("continue",)))
    *_, words, file = running.slack.in_channel("D7")
    assert words.markdown.endswith("in the file.\n\n⚠️ The model is away.")
    assert file.file == whole


async def test_a_file_that_could_not_be_posted_is_all_that_is_left_to_post(running: Running) -> None:
    running.slack.fail("files.getUploadURLExternal", "internal_error", times=9)
    stream, whole = running.channel.open_stream(DM, ANA), _long()
    await stream.send(TextDelta(whole))
    with pytest.raises(ChannelError) as refused:
        await stream.send(_end(whole))
    assert refused.value.arrived == 1
    before = len(running.slack.in_channel("D7"))
    running.slack.heal()
    await running.channel.post(DM, whole, refused.value.arrived)
    [*_, file] = after = running.slack.in_channel("D7")[before:]
    assert file.file == whole
    assert len(after) <= 2


async def test_commands_are_offered_with_a_button_each_that_stays(running: Running, core: FakeCore) -> None:
    offers = [
        CommandOffer(f"Delete <!channel> {number}, asked by Ana, 23 h left", "Open", f"open {number:016}")
        for number in range(20)
    ]
    await running.channel.post_offers(CHANNEL, "20 cards waited for you.", offers)
    (message,) = running.slack.in_channel("C1")
    assert [each["text"]["type"] for each in message.blocks[1:]] == ["plain_text"] * 20
    for _ in range(2):
        core.reply = Reply(Answer.ACCEPTED, "The card follows.")
        await running.slack.click(message, "Open", "U8")
    await running.slack.until(lambda: core.got[1:])
    said = core.last
    assert isinstance(said, Command)
    assert (said.actor.key, said.name, said.text) == ("T1/U8", "nod", f"open {19:016}")
