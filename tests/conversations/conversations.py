"""The ten conversations: what people say and press, and how the model answers.

Each is a function over a `Talk`; its first line says what it is about.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from bot.domain.verbs import Verb
from tests.conversations.nod import Json, Talk
from tests.fakes.openai_server import Reply, ask, chunk, fail, say, stream
from tests.kit import BEN

PLANTS = ("rose", "fern", "oak", "mint", "lily", "thyme", "ivy", "sage")
TOO_LONG = fail(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded")


async def two_hundred_turns(talk: Talk) -> None:
    """Ana talks for days. Every tenth message waters a plant, and in the end not all of it fits."""
    for turn in range(1, 201):
        plant = PLANTS[turn % len(PLANTS)]
        advice = f"The {plant} wants light, and water once the soil is dry to the depth of a finger. "
        asked = f"Message {turn}: how do I care for the {plant} in this kind of weather?"
        if turn % 10:
            await talk.say(asked, say(f"{turn}. {advice * 6}"))
        else:
            await talk.say(f"Message {turn}: water the {plant}.", ask(water(plant, turn)))
            await talk.press(Verb.APPROVE, say(f"The {plant} has its water."))
        talk.clock.forward(timedelta(hours=3 if turn % 25 == 0 else 0))


async def forty_calls(talk: Talk) -> None:
    """One answer has 28 calls that read and 12 that write; the twelve are approved together."""
    looks = [("plant_look", {"plant": f"{PLANTS[n % 8]} {n}"}) for n in range(28)]
    await talk.say("Look at all of them, and water those in the front row.", ask(
        *looks, *(water(f"{PLANTS[n % 8]} {n}", n + 1) for n in range(12)), text="I look, and I would water.",
    ))  # fmt: skip
    await talk.press(Verb.APPROVE_ALL, say("All twelve have their water."))
    await talk.say("Thank you.", say("You're welcome."))


async def thirty_calls_in_a_row(talk: Talk) -> None:
    """The model looks at one plant after the other, and is stopped where a turn may take no more steps."""
    looks = [ask(("plant_look", {"plant": f"{PLANTS[n % 8]} {n}"})) for n in range(30)]
    await talk.say("Look at thirty plants, one by one.", *looks[:12])
    await talk.say("continue", *looks[12:24])
    await talk.say("continue", *looks[24:], say("All thirty are well."))


async def five_megabytes(talk: Talk) -> None:
    """A tool answers five million characters; the model reads on, and later the answer is a handle."""

    def reads_further(request: Json) -> Reply:
        handle = re.search(r"handle='([^']+)'", request["messages"][-1]["content"])
        assert handle is not None
        return ask(("output_read", {"handle": handle[1], "offset": 1_000_000}))

    log = ("garden_log", {})
    await talk.say("What does the log say?", ask(log), reads_further, say("It rained, and roses grew."))
    await talk.say("Read it again, please.", ask(log), say("It still rains."))
    for turn in range(8):
        await talk.say(f"And part {turn}?", reads_again(turn), say("The same."))


def reads_again(turn: int) -> Callable[[Json], Reply]:
    """Read a part of the first long answer."""

    def answer(request: Json) -> Reply:
        handles = re.findall(r"handle=\\?'([^'\\]+)", json.dumps(request["messages"]))
        return ask(("output_read", {"handle": handles[0], "offset": 10_000 * turn}))

    return answer


async def refusals(talk: Talk) -> None:
    """The model refuses, its provider withholds, people decline, withdraw, and let a card expire."""
    refused = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
    await talk.say("Poison the neighbour's tree.", stream(chunk(refused), chunk(finish="stop")))
    await talk.say("Then tell me about it.", say("Poison is", finish="content_filter"))
    await talk.say("Water the oak.", ask(water("oak", 9)))
    await talk.press(Verb.DECLINE, ask(water("oak", 3)), reason="that is too much, take 3")
    await talk.press(Verb.DECLINE, say("Then I won't."))
    await talk.say("Water the fern.", ask(water("fern", 1)))
    await talk.press(Verb.CANCEL, say("It is withdrawn."))
    await talk.say("Water the mint.", ask(water("mint", 1)))
    talk.answers.append(say("No one decided about the mint."))
    await talk.wait(timedelta(days=2))
    await talk.say("So what was watered?", say("Nothing."))


async def streams_cut(talk: Talk) -> None:
    """The stream breaks in a word, in a call, and too often; the conversation continues."""
    await talk.say("Tell me about roses.", say("Roses are red and").cut(3), say("Roses are red and thorny."))
    cut = ask(water("rose", 2), text="I water").cut(4)
    await talk.say("Water the rose.", cut, cut, ask(water("rose", 2), text="I water it."))
    await talk.press(Verb.APPROVE, say("Watered."))
    await talk.say("And the fern?", *[say("The fern is").cut(2)] * 3)
    await talk.say("continue", say("The fern is well."))
    await talk.say("Write a long poem.", say("Roses are", finish="length"), say(" red.", finish="length"))
    await talk.say("Was that all?", say("Yes."))


async def malformed_calls(talk: Talk) -> None:
    """Arguments that are no JSON, no object, of other types or names; a call that is written as text."""
    wrong = [
        ("plant_look", '{"plant": "rose'),
        ("plant_look", '["rose"]'),
        ("plant_look", ""),
        ("plant_look", {"plant": 7, "colour": "red"}),
        ("plant_water", {"plant": "rose", "litres": "many", "approval_reason": ""}),
        ("plant_paint", {"plant": "rose"}),
        ("", {}),
        ("plant look!", {"plant": "rose"}),
    ]
    await talk.say("How is the rose?", *(ask(each) for each in wrong), say("I can't say."))
    await talk.say("Try all of that at the same time.", ask(*wrong), say("It stays so."))
    written = 'I look: {"name": "plant_look", "arguments": {"plant": "rose"}}'
    await talk.say("Again.", say(written), ask(("plant_look", {"plant": "rose"})), say("It is well."))
    await talk.say("And again.", say(""), say(" "), say("It is still well."))


async def too_long(talk: Talk) -> None:
    """The server takes less than Nod would send: it is sent less, and from then on no more than that."""
    for turn in range(12):
        await talk.say(
            f"Message {turn}: tell me of the {PLANTS[turn % 8]}.", say(f"Part {turn}. " + "It grows. " * 300)
        )
    await talk.say("Message 12: and now in short?", TOO_LONG, TOO_LONG, say("They grow."))
    await talk.say("Message 13: shorter?", say("Grow."))
    await talk.say("Message 14: look at the rose.", ask(("garden_log", {})), TOO_LONG, say("It rained."))
    await talk.say("Message 15: thank you.", TOO_LONG, TOO_LONG)
    await talk.say("Message 16: are you there?", say("Yes."))


async def repeats(talk: Talk) -> None:
    """The model asks for the same again and again: a change, then a reading call until it is stopped."""
    await talk.say("Water the rose.", ask(water("rose", 1)))
    await talk.say("Well?", ask(water("rose", 1)), say("It still waits."))
    await talk.press(Verb.DECLINE, say("Then it stays dry."))
    await talk.say("Water it.", ask(water("rose", 1)))
    await talk.press(Verb.DECLINE, ask(water("rose", 1)), say("I won't ask again."))
    await talk.say("Water it after all.", ask(water("rose", 1)))
    await talk.press(Verb.APPROVE, say("It has its water."))
    await talk.say("How is the rose?", *[ask(("plant_look", {"plant": "rose"})) for _ in range(12)])
    await talk.say("Well?", say("It is 24 cm high."))


async def two_people(talk: Talk) -> None:
    """Ana and Ben write in one channel while the model answers; some words are for no one."""
    talk.server.arrived.clear()
    slow = replace(say("The rose is well, Ana."), wait=asyncio.Event())
    talk.answers += [slow, ask(("plant_look", {"plant": "fern"})), say("The fern is 24 cm high.")]
    await talk.write("Nod, how is the rose?", private=False)
    await talk.server.arrived.wait()
    await talk.write("And the fern, Nod?", by=BEN, private=False)
    slow.wait.set()
    await talk.settle()
    await talk.say("Ben, are you coming to lunch?", say("[silent]"), private=False)
    await talk.say("Water the fern.", ask(water("fern", 1)), by=BEN, private=False)
    await talk.say("Water the rose, too.", ask(water("rose", 2)), private=False)
    await talk.press(Verb.APPROVE, say("Ben's fern is watered."), by=BEN, title="fern")
    await talk.press(Verb.DECLINE, say("Then the rose waits."), title="rose", reason="Ben did it")


def water(plant: str, litres: int) -> tuple[str, Json]:
    return ("plant_water", {"plant": plant, "litres": litres, "approval_reason": f"The {plant} is dry"})


CONVERSATIONS: dict[str, Callable[[Talk], Awaitable[None]]] = {
    each.__name__: each
    for each in (
        two_hundred_turns,
        forty_calls,
        thirty_calls_in_a_row,
        five_megabytes,
        refusals,
        streams_cut,
        malformed_calls,
        too_long,
        repeats,
        two_people,
    )
}
