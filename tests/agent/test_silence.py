"""Where people talk with each other, saying nothing is an answer."""

import pytest

from tests.kit import ANA, BEN, MakeNod, Nod, call, says
from tests.kit.sql import sql


@pytest.mark.parametrize("silence", ["[silent]", " [Silent]\n", "`[silent]`", "", "\n"])
async def test_among_people_the_model_may_say_nothing_and_nothing_is_posted(nod: Nod, silence: str) -> None:
    nod.model.will(says(silence))
    await nod.say("Ben, lunch?", by=ANA, private=False)
    await nod.idle()
    assert nod.chat.shown == ""
    assert [row["text"] for row in sql(nod.url, "SELECT text FROM message WHERE role != 'user'")] == [""]
    nod.model.will(says("Hello Ben."))
    await nod.say("Nod, say hello", by=BEN, private=False)
    await nod.idle()
    assert nod.chat.shown.strip() == "Hello Ben."
    assert nod.model.heard == ["Ben, lunch?", "Nod, say hello"]


async def test_a_call_without_a_word_runs_among_people_too(nod: Nod) -> None:
    nod.model.will(says("[silent]", call("look", lamp="desk")), says("It is white."))
    await nod.say("which color has the desk lamp?", private=False)
    await nod.idle()
    assert nod.chat.shown.strip() == "It is white."


async def test_what_only_begins_like_silence_is_said(nod: Nod) -> None:
    nod.model.will(says("[silent] is what I would say."))
    await nod.say("please", private=False)
    await nod.idle()
    assert nod.chat.shown == "[silent] is what I would say."


async def test_only_among_people_the_model_is_told_how_to_say_nothing(make_nod: MakeNod) -> None:
    for private in (True, False):
        nod = make_nod()
        await nod.say(private=private)
        await nod.idle()
        assert ("[silent]" in nod.model.prompt) is not private
