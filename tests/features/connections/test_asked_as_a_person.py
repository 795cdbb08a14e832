"""What a call in a person's name comes back to: a retry, an undo, and a server's question with an address.

The whole program runs, and a server made with the official SDK logs who did what.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ElicitRequest, ElicitRequestURLParams, ElicitResult, InputRequiredResult

from bot.domain.chat import Address, Answer, Press
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import conversations
from tests.features.agents.kit import call, look
from tests.features.agents.test_in_whose_name import agent_for
from tests.features.connections.conftest import ANA, BEN, Connectable, entry, write_config
from tests.features.connections.test_in_whose_name import (
    THREAD,
    close,
    find,
    press,
    there,  # noqa: F401 - a fixture
    write,
    writes,
)
from tests.features.connections.tracker import CHANGES, Tracker
from tests.tools.mcp.conftest import until
from tests.web.scripted import ask, say

pytestmark = pytest.mark.slow

PAGE = "https://wiki.example/sign-in?for=tracker"
CHIEF = Actor("http", "chief", "chief")


class AskingTracker(Tracker):
    """A tracker that sends people to a page in the middle of a call. ``failing``: it closes nothing now."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = False
        self.answers: list[str] = []

    def _add_tools(self, made: MCPServer[Any]) -> None:
        super()._add_tools(made)

        @made.tool(annotations=CHANGES)
        def archive_issue(number: int) -> str:
            """Archive an issue."""
            if self.failing:
                raise ToolError("the archive is closed")
            return f"{self._note('archive_issue', number=number)} archived #{number}"

        @made.tool(annotations=CHANGES)
        def link_wiki(number: int, context: Context[Any, Any]) -> str | InputRequiredResult:
            """Link an issue with the wiki, once its person has been to a page."""
            answer = (context.input_responses or {}).get("page")
            if answer is None:
                params = ElicitRequestURLParams(message="Sign in at the wiki", url=PAGE, elicitation_id="w1")
                asked = ElicitRequest(method="elicitation/create", params=params)
                return InputRequiredResult(input_requests={"page": asked}, request_state="linking")
            assert isinstance(answer, ElicitResult)
            self.answers.append(answer.action)
            if answer.action != "accept":
                raise ToolError("nobody went there")
            return f"{self._note('link_wiki', number=number)} linked #{number}"


@pytest.fixture
async def tracker(tmp_path: Path) -> AsyncIterator[AskingTracker]:
    served = AskingTracker()
    await served.up()
    write_config(tmp_path, tracker=entry(served))
    yield served
    await served.down()


def changes(there: Connectable) -> list[tuple[str, str]]:  # noqa: F811 - the fixture
    return [(who, tool) for who, tool, _ in there.tracker.log if tool not in ("get_me", "list_issues")]


def use(tool: str, number: int = 1) -> list[object]:
    return ask((f"tracker_{tool}", {"number": number, "approval_reason": "done"}))


async def wait_for(there: Connectable, true: Callable[[Proposal], bool]) -> Proposal:  # noqa: F811
    """The proposal of which this is so, once there is one."""
    await until(lambda: any(map(true, find(there))))
    return next(filter(true, find(there)))


def is_question(p: Proposal) -> bool:
    return p.tool_name.startswith("question:") and p.state is State.PROPOSED


# a retry, an undo


async def fail_to_archive(there: Connectable, tracker: AskingTracker) -> Proposal:  # noqa: F811
    await there.connect(ANA, "octocat")
    tracker.failing = True
    there.nod.model.answer(use("archive_issue"), say("It failed."))
    await write(there, ANA, "archive 1")
    [p] = find(there)
    await press(there, ANA, Verb.APPROVE, p)
    tracker.failing = False
    [failed] = find(there)
    assert (failed.state, changes(there)) == (State.FAILED, [])
    return failed


@pytest.mark.parametrize("there", [{"NOD_APPROVERS": (str(BEN),)}], indirect=True)
async def test_a_retry_by_someone_else_asks_the_owner_and_runs_as_them(
    there: Connectable,  # noqa: F811
    tracker: AskingTracker,
) -> None:
    failed = await fail_to_archive(there, tracker)
    await there.connect(BEN, "hubot")
    there.nod.model.answer(say("Done."))
    said = await press(there, BEN, Verb.RETRY, failed)
    assert (said.text, changes(there)) == ("It runs as Ana, so Ana is asked again.", [])
    [again] = find(there)
    assert again.state is State.PROPOSED
    await press(there, BEN, Verb.APPROVE, again)
    assert changes(there) == []
    await press(there, ANA, Verb.APPROVE, again)
    assert changes(there) == [("octocat", "archive_issue")]


async def test_a_retry_under_another_account_runs_nothing(
    there: Connectable,  # noqa: F811
    tracker: AskingTracker,
) -> None:
    failed = await fail_to_archive(there, tracker)
    await there.connect(ANA, "octodog")
    for who in (ANA, BEN):
        await press(there, who, Verb.RETRY, failed)
    for p in find(there):
        await press(there, ANA, Verb.APPROVE, p)
    assert changes(there) == []
    there.nod.model.answer(say("Done."))
    await there.connect(ANA, "octocat")
    [p] = find(there)
    await press(there, ANA, Verb.RETRY, p)
    assert changes(there) == [("octocat", "archive_issue")]


async def test_what_was_done_as_a_person_at_a_server_is_undone_by_no_press(there: Connectable) -> None:  # noqa: F811
    await there.connect(ANA, "octocat")
    there.nod.model.answer(close(1), say("Done."))
    await write(there, ANA, "close 1")
    [p] = find(there)
    await press(there, ANA, Verb.APPROVE, p)
    for who in (BEN, ANA):
        assert (await press(there, who, Verb.UNDO, p)).answer is not Answer.ACCEPTED
    assert (writes(there), len(find(there))) == ([("octocat", 1)], 1)


# a question with an address


async def answer_in_private(there: Connectable, tracker: AskingTracker) -> None:  # noqa: F811
    """Ana alone sees the question, and answers it; the call ends as hers."""
    question = await wait_for(there, is_question)
    async with there.nod.caller("ben-0123456789abcdef") as ben:
        assert (await ben.get(f"/api/proposals/{question.id}")).status_code == 404
    assert [field.new_value for field in question.preview] == [PAGE]
    place = there.nod.app.database.read_now(
        lambda session: conversations.load_place(session, question.conversation_id)
    )
    assert place.private
    for who in (BEN, CHIEF):
        await there.nod.app.core.assistant.handle(Press(who, Verb.APPROVE, question.id, question.round))
    assert (tracker.answers, changes(there)) == ([], [])
    await there.nod.app.core.assistant.handle(Press(ANA, Verb.APPROVE, question.id, question.round))
    await until(lambda: bool(tracker.answers))
    await there.nod.app.dispatcher.wait_until_idle()
    assert (tracker.answers, changes(there)) == (["accept"], [("octocat", "link_wiki")])


@pytest.mark.parametrize("at", [THREAD, Address("slack", "T1/D7")], ids=["in a thread", "in private"])
async def test_in_a_turn_the_question_goes_to_the_person_alone(
    there: Connectable,  # noqa: F811
    tracker: AskingTracker,
    at: Address,
) -> None:
    await there.connect(ANA, "octocat")
    there.nod.model.answer(use("link_wiki"), say("Done."))
    await write(there, ANA, "link 1", at=at)
    [p] = find(there)
    pressing = asyncio.create_task(press(there, ANA, Verb.APPROVE, p))
    await answer_in_private(there, tracker)
    await pressing
    assert next(each for each in find(there) if each.id == p.id).state is State.SUCCEEDED


async def test_in_an_agents_call_the_question_goes_to_its_person_alone(
    there: Connectable,  # noqa: F811
    tracker: AskingTracker,
) -> None:
    await there.connect(ANA, "octocat")
    async with await agent_for(there, servers=("tracker",)) as agent:
        made = await call(agent, "tracker_link_wiki", number=1)
        [p] = find(there)
        pressing = asyncio.create_task(press(there, ANA, Verb.APPROVE, p))
        await answer_in_private(there, tracker)
        await pressing
        ended = await look(agent, made)
    assert (ended["end"], PAGE in str(ended)) == ("succeeded", False)


async def test_a_server_whose_question_is_declined_is_told_and_nothing_is_done(
    there: Connectable,  # noqa: F811
    tracker: AskingTracker,
) -> None:
    await there.connect(ANA, "octocat")
    there.nod.model.answer(use("link_wiki"), say("It was not linked."))
    await write(there, ANA, "link 1")
    [p] = find(there)
    pressing = asyncio.create_task(press(there, ANA, Verb.APPROVE, p))
    question = await wait_for(there, is_question)
    await there.nod.app.core.assistant.handle(Press(ANA, Verb.DECLINE, question.id, question.round))
    await pressing
    assert (tracker.answers, changes(there)) == (["decline"], [])
