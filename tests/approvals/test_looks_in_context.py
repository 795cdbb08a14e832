"""Looks of a tool that ask for whom and where they look; and toolsets that ask for whom they list."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from bot.domain.chat import Answer
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.tools.call import Arguments, CallContext, InverseCall, Ran, ToolOutput
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from tests.kit import ADA, ANA, BEN, ROOM, WALL, FakeClock, Nod, RecordingChannel, call, cores, says
from tests.kit.urls import Urls


class Desk:
    """A toolset with a tool of which each look takes its context, and one that Ben alone is told of."""

    name = "desk"

    def __init__(self) -> None:
        self.looks: dict[str, set[tuple[str, str]]] = {}
        self.asked_for: list[str | None] = []

    async def tools(self, context: CallContext | None = None) -> Sequence[Tool]:
        self.asked_for.append(context and context.requested_by)
        for_ben = context is not None and context.requested_by == str(BEN)
        return [self.write_tool(), *([self.secret_tool()] if for_ben else [])]

    def note(self, look: str, context: CallContext) -> None:
        assert not context.idempotency_key
        self.looks.setdefault(look, set()).add((context.requested_by, context.conversation_id))

    def secret_tool(self) -> Tool:
        @tool(writes=False)
        async def secret() -> str:
            return "for Ben"

        return secret

    def write_tool(self) -> Tool:
        async def preview(arguments: Arguments, context: CallContext) -> Sequence[PreviewField]:
            self.note("preview", context)
            return [PreviewField("owner", None, context.requested_by)]

        async def title(arguments: Arguments, *, there: CallContext) -> str:
            self.note("title", there)
            return f"Note {arguments['text']} as {there.requested_by}"

        async def key(arguments: Arguments, context: CallContext) -> Mapping[str, Any]:
            self.note("key", context)
            return {"owner": context.requested_by}

        async def current(arguments: Arguments, context: CallContext) -> Mapping[str, str | None]:
            self.note("current", context)
            return {"owner": context.requested_by}

        async def undo(ran: Ran, context: CallContext) -> InverseCall | str:
            self.note("undo", context)
            return "It stays."

        @tool(preview=preview, title=title, key=key, current=current, undo=undo)
        async def note(text: str, context: CallContext) -> ToolOutput:
            return ToolOutput(context.requested_by)

        return note


class DeskNod(Nod):
    """The core with that toolset."""

    def tools(self) -> Desk:
        self.desk = getattr(self, "desk", None) or Desk()
        return self.desk


@pytest.fixture
async def nod(database_of: Urls, clock: FakeClock) -> AsyncIterator[DeskNod]:
    async with cores(DeskNod, database_of, clock) as make:
        yield make(
            channels=[RecordingChannel(), RecordingChannel("wall")],
            admins=[ADA],
        )


async def test_every_look_of_a_call_is_told_who_asked_and_where_and_the_run_sees_the_same(
    nod: DeskNod,
) -> None:
    [proposal] = await nod.asked(call("note", text="hello"))
    assert proposal.description == f"Note hello as {ANA}"
    assert proposal.preview[0].new_value == str(ANA)
    await nod.press(Verb.APPROVE, proposal, by=ANA)
    await nod.idle()
    done = await nod.now(proposal)
    assert (done.state, done.result) == (State.SUCCEEDED, str(ANA))
    there = (str(ANA), proposal.conversation_id)
    assert set(nod.desk.looks) == {"preview", "title", "key", "current", "undo"}
    assert all(seen == {there} for seen in nod.desk.looks.values())


async def test_an_edit_is_looked_at_for_who_asked_and_not_for_who_edits(nod: DeskNod) -> None:
    await nod.command(f"/approvals approvers {BEN} for note", by=ADA)
    [proposal] = await nod.asked(call("note", text="hello"))
    reply = await nod.press(Verb.EDIT, proposal, by=BEN, arguments={"text": "bye"})
    assert reply.answer is Answer.ACCEPTED, reply.text
    await nod.idle()
    assert (await nod.now(proposal)).description == f"Note bye as {ANA}"
    assert {asker for seen in nod.desk.looks.values() for asker, _ in seen} == {str(ANA)}


async def test_a_toolset_lists_for_who_asks_and_for_no_one_where_that_is_not_known(nod: DeskNod) -> None:
    def offered() -> set[str]:
        return {spec.name for spec in nod.model.offered[-1]} & {"note", "secret"}

    nod.model.rule = lambda _: says("Well.")
    await nod.say("hello", by=ANA, at=ROOM)
    await nod.idle()
    assert offered() == {"note"}
    await nod.say("hello", by=BEN, at=WALL)
    await nod.idle()
    assert offered() == {"note", "secret"}
    assert {str(ANA), str(BEN)} <= set(nod.desk.asked_for)
