"""A tool's defaults are part of the call: what is shown, recorded and run is one set of arguments."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from bot.approvals.requests import RequestGate
from bot.domain.chat import Address, Answer, Request
from bot.domain.digests import make_digest
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import KeyTaken
from bot.store.audit import log
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, MakeNod, Nod, call

printed: list[tuple[Any, ...]] = []


@tool(key=("printer",))
async def print_out(
    page: str,
    printer: str = "hall",
    copies: Annotated[int, Field(ge=1)] = 1,
    most: Annotated[int, Field(ge=1)] = 0,
    *,
    force: bool = False,
    note: str | None = None,
) -> str:
    """Print a page."""
    printed.append((page, printer, copies, most, force, note))
    return "printed"


@tool(writes=False, open_world=True)
async def read_page(page: str, url: str = "https://pages.example/") -> str:
    """Read a page."""
    return f"{page} of {url}"


FULL = {"page": "one", "printer": "hall", "copies": 1, "most": 0, "force": False}


def forget_defaults(each: Tool) -> Tool:
    """The tool as releases before had it: what was not given is not stored."""

    def validate(raw: Any) -> dict[str, Any]:
        return {name: value for name, value in each.validate(raw).items() if name in raw}

    return replace(each, validate=validate)


async def use(nod: Nod, *tools: Tool) -> Nod:
    nod.toolset = FixedToolset("office", tools)
    await nod.restart()
    printed.clear()
    return nod


@pytest.fixture
async def office(make_nod: MakeNod) -> Nod:
    return await use(make_nod(admins=[ADA]), print_out, read_page)


@pytest.fixture
async def before(make_nod: MakeNod) -> Nod:
    return await use(make_nod(admins=[ADA]), forget_defaults(print_out))


async def about(nod: Nod, p: Proposal) -> Mapping[str, Any]:
    return [row.about for row in await nod.database.read(log.list_rows_of_proposal, p.id) if row.about][-1]


async def test_what_is_shown_recorded_and_run_is_one_set_of_arguments(office: Nod) -> None:
    (p,) = await office.asked(call("print_out", page="one"))
    assert p.arguments == FULL
    assert p.digest == make_digest("print_out", print_out.version, FULL)
    assert (await about(office, p))["arguments"] == FULL
    card = office.chat.card_of(p)
    assert card.title == "Print out: page = one"
    assert [(f.field, f.new_value) for f in card.shown_fields] == [
        ("Page", "one"),
        ("Printer", "hall (default)"),
        ("Copies", "1 (default)"),
        ("Most", "0 (default)"),
        ("Force", "no (default)"),
    ]
    await office.approve(p)
    assert printed == [("one", "hall", 1, 0, False, None)]


async def test_what_is_given_comes_before_the_defaults_and_a_given_default_is_the_same_call(
    office: Nod,
) -> None:
    first, second = await office.asked(
        call("print_out", page="one", force=True),
        call("print_out", page="one", copies=1, most=0, printer=None),
    )
    shown = [(f.field, f.new_value) for f in office.chat.card_of(first).shown_fields]
    assert shown[:3] == [("Page", "one"), ("Force", "yes"), ("Printer", "hall (default)")]
    assert second.arguments == FULL


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        ("policy never for print_out where force = false and copies <= 1", State.SUCCEEDED),
        ("policy never for print_out where force = true", State.PROPOSED),
        ("policy never for print_out where printer = hall", State.SUCCEEDED),
    ],
)
async def test_rules_see_defaults(office: Nod, rule: str, state: State) -> None:
    assert (await office.command(f"/approvals {rule}", by=ADA)).answer is Answer.ACCEPTED
    (p,) = await office.asked(call("print_out", page="one"))
    assert p.state is state


async def test_a_proposal_of_an_earlier_release_keeps_its_digest_and_runs_as_it_was_shown(
    before: Nod,
) -> None:
    waits, also, asked = await before.asked(
        *(call("print_out", page=page) for page in ("one", "two", "three"))
    )
    assert waits.arguments == {"page": "one"}
    await use(before, print_out)
    ran = await before.approve(waits)
    assert (ran.state, ran.digest, ran.arguments) == (State.SUCCEEDED, waits.digest, {"page": "one"})
    assert printed == [("one", "hall", 1, 0, False, None)]

    # sent back as it is, it is no edit; and an edit tells of what a person changed alone
    await before.press(Verb.APPROVE, also, arguments={"page": "two"})
    await before.idle()
    assert ((await before.now(also)).edits, (await before.now(also)).state) == ((), State.SUCCEEDED)
    await before.press(Verb.EDIT, asked, arguments={"page": "three", "copies": 2})
    edited = await before.now(asked)
    assert edited.arguments == FULL | {"page": "three", "copies": 2}
    assert [edit.description for edit in edited.edits] == ["Ana changed copies: 1 → 2"]


@pytest.mark.parametrize("rung", [GrantScope.EXACT, GrantScope.KEY])
async def test_a_grant_of_an_earlier_release_for_an_argument_that_has_a_default_now_asks_again(
    before: Nod, rung: GrantScope
) -> None:
    (p,) = await before.asked(call("print_out", page="one"))
    await before.press(Verb.SIMILAR, p, rung=rung, lasting=GrantDuration.DAY)
    await before.idle()
    (again,) = await before.asked(call("print_out", page="one"))
    assert again.state is State.SUCCEEDED
    await use(before, print_out)
    (p,) = await before.asked(call("print_out", page="one"))
    assert p.state is State.PROPOSED
    await before.press(Verb.SIMILAR, p, rung=rung, lasting=GrantDuration.DAY)
    await before.idle()
    (again,) = await before.asked(call("print_out", page="one", printer="hall"))
    assert again.state is State.SUCCEEDED
    (other,) = await before.asked(call("print_out", page="one", printer="attic"))
    assert other.state is State.PROPOSED


async def test_a_request_that_is_sent_again_after_an_update_is_the_same_one(before: Nod) -> None:
    request = Request(ANA, "print_out", {"page": "one"}, Address("chat", "script"), "please", event_id="one")
    opened = await RequestGate(before.gate).open(request)
    await use(before, print_out)
    again = await RequestGate(before.gate).open(request)
    assert (again.was_open_before, again.proposal.id) == (True, opened.proposal.id)
    with pytest.raises(KeyTaken):
        await RequestGate(before.gate).open(replace(request, arguments={"page": "one", "copies": 2}))


async def test_a_default_address_of_the_tools_own_is_no_output_of_the_model(office: Nod) -> None:
    assert await office.asked(call("read_page", page="one")) == []
    (p,) = await office.asked(call("read_page", page="one", url="https://elsewhere.example/?q=1"))
    assert p.state is State.PROPOSED
