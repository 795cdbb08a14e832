"""A server that asks in the middle of a call: the question reaches the one person it is for, or no one."""

import asyncio

import pytest
from mcp import types

from bot.errors import ToolError
from bot.tools.call import CallContext
from bot.tools.mcp.interface import Action, Elicited, Question
from bot.tools.mcp.questions import answer_question
from tests.kit import call
from tests.tools.mcp.conftest import CONTEXT, until

pytestmark = pytest.mark.slow

OLD_AND_NEW = pytest.mark.parametrize("era", ["modern", "legacy"])
BEN = CallContext("c2", "chat:ben", "key-2")


class Person:
    """Answers every question with what the test says; remembers the questions."""

    def __init__(self, answer: Elicited | Exception) -> None:
        self.answer = answer
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Elicited:
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@OLD_AND_NEW
async def test_a_question_reaches_the_person_whose_call_it_is_and_the_answer_the_server(
    connect, stdio, done, era
):
    person = Person(Elicited(Action.ACCEPT, {"color": "red"}))
    lamps = connect(stdio(era), ask=person)
    assert await lamps.run("lamps_choose", lamp="desk") == "paint desk red"
    [question] = person.asked
    assert (question.server, question.message) == ("lamps", "Which color for desk?")
    assert (question.conversation_id, question.requested_by) == ("c1", "chat:ana")
    assert question.schema["properties"]["color"]["enum"] == ["red", "blue"]
    assert done() == ["paint desk red"]


@pytest.mark.parametrize(
    "answer",
    [
        Elicited(Action.DECLINE),
        Elicited(Action.CANCEL),
        Elicited(Action.ACCEPT, {"color": "green"}),
        Elicited(Action.ACCEPT),
        RuntimeError("the channel is down"),
    ],
    ids=["no", "nobody", "misfit", "empty", "broken"],
)
async def test_without_a_fitting_answer_the_server_does_not_continue(connect, http, done, answer):
    with pytest.raises(ToolError):
        await connect(http(), ask=Person(answer)).run("lamps_choose", lamp="desk")
    assert done() == []


async def test_where_no_one_can_be_asked_the_server_is_told_no(connect, http, done):
    with pytest.raises(ToolError, match="decline"):
        await connect(http()).run("lamps_choose", lamp="desk")
    assert done() == []


async def test_a_question_that_no_one_answers_in_time_is_given_up(connect, http, done):
    async def silence(_: Question) -> Elicited:
        await asyncio.Event().wait()
        raise AssertionError

    lamps = connect(http(), ask=silence, answer_seconds=0.01)
    with pytest.raises(ToolError, match="cancel"):
        await lamps.run("lamps_choose", lamp="desk")
    assert done() == []


async def test_the_time_a_person_takes_is_not_the_servers(connect, http):
    lamps = connect(http(timeout=7), answer_seconds=300)
    assert (await lamps.tool("lamps_choose")).timeout > 307


@OLD_AND_NEW
async def test_while_a_person_is_asked_the_calls_time_is_stopped(connect, stdio, era):
    limits: list[float | None] = []

    async def ask(_: Question) -> Elicited:
        call = lamps.toolset.servers[0]._calls.find_asking_call()
        limits.append(call.limit.when())
        return Elicited(Action.ACCEPT, {"color": "red"})

    lamps = connect(stdio(era), ask=ask)
    assert await lamps.run("lamps_choose", lamp="desk") == "paint desk red"
    assert limits == [None]


async def test_two_people_are_asked_each_for_their_own_call(connect, http, done):
    both = asyncio.Barrier(2)
    colors = {"chat:ana": "red", "chat:ben": "blue"}

    async def ask(question: Question) -> Elicited:
        await both.wait()
        return Elicited(Action.ACCEPT, {"color": colors[question.requested_by]})

    lamps = connect(http(), ask=ask)
    tool = await lamps.tool("lamps_choose")
    await asyncio.gather(tool.run({"lamp": "a"}, CONTEXT), tool.run({"lamp": "b"}, BEN))
    assert sorted(done()) == ["paint a red", "paint b blue"]


async def test_a_server_that_does_not_say_for_which_of_two_calls_it_asks_bothers_no_one(
    connect, stdio, folder
):
    person = Person(Elicited(Action.ACCEPT, {"color": "red"}))
    lamps = connect(stdio("legacy"), ask=person)
    tool = await lamps.tool("lamps_stare")
    other = asyncio.create_task(tool.run({}, BEN))
    await until((folder / "staring").exists)
    with pytest.raises(ToolError, match="decline"):
        await lamps.run("lamps_choose", lamp="desk")
    assert person.asked == []
    other.cancel()


async def test_an_answer_to_a_server_is_no_approval(connect, http, make_nod, done):
    person = Person(Elicited(Action.ACCEPT, {"color": "red"}))
    nod = make_nod(connect(http(), ask=person))
    [proposal] = await nod.asked(call("lamps_choose", lamp="desk"))
    assert person.asked == []
    assert (await nod.approve(proposal)).result == "paint desk red"
    assert person.asked[0].conversation_id == proposal.conversation_id


@pytest.mark.parametrize(
    ("url", "action"),
    [
        ("https://bank.example/login", "accept"),
        ("javascript:alert(1)", "decline"),
        ("file:///etc", "decline"),
    ],
)
async def test_an_address_to_open_is_shown_only_where_it_is_one_of_the_web(url, action):
    person = Person(Elicited(Action.ACCEPT, {"ignored": 1}))
    asked = types.ElicitRequestURLParams(message="Please log in", url=url, elicitation_id="1")
    result = await answer_question("lamps", person, 1, CONTEXT, asked)
    assert (result.action, result.content) == (action, None)
    assert [q.url for q in person.asked] == ([url] if action == "accept" else [])


def test_a_form_can_be_checked_before_it_is_sent():
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    question = Question("lamps", "How large?", "c1", "chat:ana", schema)
    assert question.find_faults({"size": "x"}) == {"size": "should be integer"}
    assert question.find_faults({"size": 3}) == {}
