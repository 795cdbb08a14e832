"""One turn in Discord: one message grows within what Discord takes, and the text is complete."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.channels.discord.places import DiscordPlace
from bot.channels.discord.stream import DiscordStream
from bot.channels.discord.transport import DiscordRest
from bot.domain.events import (
    Ending,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.errors import NotDeliverable
from bot.settings import Settings
from tests.fakes.discord_server import CHANNEL, SERVER, TOKEN, FakeDiscord
from tests.kit import FakeClock

PLACE = DiscordPlace(SERVER, CHANNEL)


class Scene:
    """A channel, and time that passes when it is told to or when Nod waits."""

    def __init__(self, discord: FakeDiscord, clock: FakeClock) -> None:
        self.discord = discord
        self.clock = clock
        settings = Settings(_env_file=None, DISCORD_BOT_TOKEN=TOKEN, DISCORD_API_URL=discord.url)
        self.rest = DiscordRest(settings, self._sleep, lambda: clock().timestamp())

    async def _sleep(self, seconds: float) -> None:
        self.clock.forward(timedelta(seconds=seconds))

    async def play(self, *events: TurnEvent, gap: float = 2.0) -> list[list[str]]:
        """Give what people saw after each event."""
        stream, seen = DiscordStream(self.rest, self.clock, PLACE), []
        for event in events:
            await stream.send(event)
            seen.append(self.texts())
            self.clock.forward(timedelta(seconds=gap))
        return seen

    def texts(self) -> list[str]:
        return [message.text for message in self.discord.seen(CHANNEL)]


@pytest.fixture
async def scene(clock: FakeClock) -> AsyncIterator[Scene]:
    discord = FakeDiscord(str, clock)
    await discord.start()
    made = Scene(discord, clock)
    yield made
    await made.rest.close()
    await discord.stop()
    assert discord.refused == []


def end(text: str, ending: Ending = Ending.DONE) -> TurnEnded:
    return TurnEnded(ending, 1, text)


async def test_one_message_grows_and_ends_as_the_answer(scene: Scene) -> None:
    seen = await scene.play(
        TextDelta("Hello"),
        TextDelta(" **world"),
        TextRestarted(),
        TextDelta("Hello **there**"),
        end("Hello **there**"),
    )
    assert seen == [
        ["Hello ▍"],
        ["Hello **world ▍"],
        ["Hello **world ▍"],
        ["Hello **there** ▍"],
        ["Hello **there**"],
    ]


async def test_what_is_done_right_now_is_shown_until_the_text_continues(scene: Scene) -> None:
    started = ToolStarted("1", "list", "Looking at the *lamps*", {})
    seen = await scene.play(
        started, ToolFinished("1", "list", ok=True, result="2"), TextDelta("Two."), end("Two.")
    )
    assert seen[0] == ["*⏳ Looking at the *lamps**"]
    assert seen[-1] == ["Two."]


@pytest.mark.parametrize("room", [1, 2, 5])
async def test_previews_never_ask_more_than_discord_takes(scene: Scene, room: int) -> None:
    scene.discord.room = room
    words = [TextDelta(f"word{number} ") for number in range(90)]
    text = "".join(word.text for word in words)
    await scene.play(*words, gap=0.3)
    assert scene.discord.limited == 0
    asked = len(scene.discord.requests)
    assert 5 <= asked <= 1 + 6 * room
    await scene.play(*words, end(text), gap=0.1)
    assert scene.texts()[-1] == text.strip()


async def test_a_long_answer_becomes_several_messages_and_a_preview_shows_its_end(scene: Scene) -> None:
    text = "\n\n".join(f"Paragraph {number} " + "x" * 300 for number in range(15))
    seen = await scene.play(TextDelta(text), end(text))
    assert "Paragraph 14" in seen[0][0]
    assert len(seen[1]) > 2
    assert "".join(seen[1]).count("Paragraph") == 15
    assert seen[1][0].startswith("Paragraph 0 ")


async def test_an_answer_too_long_to_read_in_a_chat_comes_as_a_file(scene: Scene) -> None:
    text = "\n\n".join(f"Paragraph {number} " + "x" * 300 for number in range(140))
    await scene.play(TextDelta(text), end(text))
    first, last = scene.discord.messages
    assert first.body["content"].startswith("Paragraph 0 ")
    assert "in the file" in last.body["content"]
    assert last.files == [text]
    await scene.play(TextDelta(text), TurnFailed("The model is away.", 1))
    assert scene.texts()[-1].endswith("in the file.\n\n⚠️ The model is away.")


async def test_a_stopped_and_a_failed_turn_keep_what_was_said(scene: Scene) -> None:
    await scene.play(TextDelta("Half an ans"), end("", Ending.STOPPED))
    await scene.play(TextDelta("Half an ans"), TurnFailed("The model is away.", 1))
    assert scene.texts() == ["Half an ans\n\n⏹ Stopped.", "Half an ans\n\n⚠️ The model is away."]


async def test_what_may_be_said_next_is_a_button_below_the_last_message(scene: Scene) -> None:
    failed = TurnFailed("The model is away.", 1, ("Try again", "Continue"))
    await scene.play(TextDelta("Half an ans"), failed)
    await scene.play(failed)
    await scene.play(TextDelta("\n\n".join("x" * 900 for _ in range(4))), failed)
    shown = [list(message.buttons) for message in scene.discord.seen(CHANNEL)]
    assert shown == [["Try again", "Continue"]] * 2 + [[], [], ["Try again", "Continue"]]


async def test_a_preview_of_nothing_is_removed_and_one_that_was_removed_is_posted_again(scene: Scene) -> None:
    assert (await scene.play(ToolStarted("1", "list", "Looking", {}), end("")))[-1] == []
    stream = DiscordStream(scene.rest, scene.clock, PLACE)
    await stream.send(TextDelta("Hel"))
    scene.discord.messages.clear()
    await stream.send(end("Hello"))
    assert scene.texts() == ["Hello"]


@pytest.mark.parametrize("times", [1, 10])
async def test_an_answer_that_discord_did_not_let_end_is_there_once(scene: Scene, times: int) -> None:
    scene.discord.fail("PATCH", f"channels/{CHANNEL}/messages", times)
    assert (await scene.play(TextDelta("Hello"), end("Hello there")))[-1] == ["Hello there"]
    assert [method for method, _ in scene.discord.requests].count("POST") == min(times, 2)


async def test_a_refused_preview_does_not_stop_the_turn_but_a_refused_answer_does(scene: Scene) -> None:
    scene.discord.blocked.add(CHANNEL)
    stream = DiscordStream(scene.rest, scene.clock, PLACE)
    await stream.send(TextDelta("Hello"))
    with pytest.raises(NotDeliverable):
        await stream.send(end("Hello"))
