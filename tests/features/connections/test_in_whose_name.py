"""Two people in one thread, each with their own account at a server behind OAuth, in the whole program."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from sqlmodel import Session, select

from bot.app.assembly import build
from bot.domain import kinds
from bot.domain.chat import Address, Message, Press, Reply
from bot.domain.people import Actor
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store import proposals
from bot.store.tables.proposals import ProposalRow
from tests.features.connections.conftest import ANA, BEN, KEY, Connectable
from tests.features.connections.tracker import Tracker
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls
from tests.web.conftest import TOKENS, Notes, Served
from tests.web.scripted import ScriptedModel, ask, say

pytestmark = pytest.mark.slow

THREAD = Address("slack", "T1/C1/17.1")
_events = count(1)


@pytest.fixture
async def there(
    tracker: Tracker,
    database_of: Urls,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Connectable]:
    """A running Nod with the tools of its settings: those of the tracker. A parameter has more settings."""
    monkeypatch.chdir(tmp_path)  # no .env of anybody's
    make_tables(url := database_of("nod"))
    settings = Settings.load(
        NOD_DATABASE_URL=url,
        NOD_PORT=0,
        NOD_MCP_CONFIG="mcp.json",
        NOD_SECRET_KEY=(KEY,),
        NOD_HTTP_TOKENS=TOKENS,
        **getattr(request, "param", {}),
    )
    model = ScriptedModel()
    app = build(settings, model=model, clock=clock)
    async with asyncio.timeout(120), app.running(ticking=False), httpx.AsyncClient() as client:
        made = Connectable(Served(app, model, Notes(), clock, client), tracker)
        yield made
        await made.close()


async def write(there: Connectable, actor: Actor, words: str, *, at: Address = THREAD) -> None:
    message = Message(at, actor, words, f"e-{next(_events)}", private=at is not THREAD)
    await there.nod.app.core.assistant.handle(message)
    await there.nod.app.dispatcher.wait_until_idle()


async def press(there: Connectable, actor: Actor, verb: Verb, p: Proposal) -> Reply:
    reply = await there.nod.app.core.assistant.handle(Press(actor, verb, p.id, p.round))
    await there.nod.app.dispatcher.wait_until_idle()
    return reply


def find(there: Connectable) -> list[Proposal]:
    def read(session: Session) -> list[Proposal]:
        idents = session.exec(select(ProposalRow.id).order_by(ProposalRow.message_id)).all()
        return [found for ident in idents if (found := proposals.get(session, ident))]

    return there.nod.app.database.read_now(read)


def close(number: int) -> list[object]:
    return ask(("tracker_close_issue", {"number": number, "approval_reason": "done"}))


def writes(there: Connectable) -> list[tuple[str, int]]:
    return [(who, given["number"]) for who, tool, given in there.tracker.log if tool == "close_issue"]


async def test_each_changes_and_reads_with_their_own_account_alone(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    await there.connect(BEN, "hubot")
    there.nod.model.answer(close(1), close(2), say("Done."), say("Done."))
    await write(there, ANA, "close 1")
    await write(there, BEN, "close 2")
    of_ana, of_ben = find(there)
    assert [p.connection and p.connection.acts_as for p in (of_ana, of_ben)] == [
        "As Ana at tracker (octocat)",
        "As Ben at tracker (hubot)",
    ]
    await press(there, BEN, Verb.APPROVE, of_ana)
    assert writes(there) == []
    await press(there, BEN, Verb.APPROVE, of_ben)
    await press(there, ANA, Verb.APPROVE, of_ana)
    assert writes(there) == [("hubot", 2), ("octocat", 1)]


async def test_a_read_in_a_thread_asks_its_owner_and_in_private_runs(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    there.tracker.log.clear()
    there.nod.model.answer(ask(("tracker_list_issues", {})), say("One."))
    await write(there, ANA, "what is open?", at=Address("slack", "T1/D7"))
    assert [(who, tool) for who, tool, _ in there.tracker.log] == [("octocat", "list_issues")]
    there.nod.model.answer(ask(("tracker_list_issues", {})), say("One."))
    await write(there, ANA, "what is open?")
    [asked] = find(there)
    assert (asked.kind, asked.state, len(there.tracker.log)) == (kinds.READING, State.PROPOSED, 1)
    await press(there, ANA, Verb.APPROVE, asked)
    assert [(who, tool) for who, tool, _ in there.tracker.log] == [("octocat", "list_issues")] * 2


async def test_what_ended_between_card_and_run_runs_nothing(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    there.nod.model.answer(close(1), say("It did not run."), say("Done."))
    await write(there, ANA, "close 1")
    [p] = find(there)
    await there.say("end tracker")
    await press(there, ANA, Verb.APPROVE, p)
    [failed] = find(there)
    assert (failed.state, failed.cause, writes(there)) == (State.FAILED, Cause.DISCONNECTED, [])
    await there.connect(ANA, "hubot")  # another account is another card
    await press(there, ANA, Verb.RETRY, failed)
    assert writes(there) == []


async def test_the_api_and_the_rows_say_in_whose_name_and_hold_no_token(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    there.nod.model.answer(close(1), say("Done."))
    await write(there, ANA, "close 1")
    [p] = find(there)
    await press(there, ANA, Verb.APPROVE, p)
    [done] = find(there)
    assert done.connection is not None
    kept = json.dumps(
        [done.connection.as_json, done.result, done.result_sentence, there.nod.model.seen], default=str
    )
    assert [each for each in there.tracker.people.whose if each in kept] == []
    assert done.connection.subject == "id-of-octocat"
