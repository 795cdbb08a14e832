"""Lists of proposals: everybody's first page costs the same, and pages lead through all of it, once."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event
from sqlmodel import Session

from bot.app.app import App
from bot.domain.deciders import Deciders
from bot.domain.people import Actor
from bot.store import transitions
from bot.store.audit.log import Author
from bot.store.tables.conversations import ConversationRow, MessageRow
from tests.channels.slack.conftest import make_proposal
from tests.web.conftest import ANA, BEN, CHIEF, DEE, TOKENS, Json, Serve
from tests.web.scripted import ask

BEFORE = "/api/proposals"


async def parked(
    app: App, count: int, requester: str = "http:ben", people: tuple[str, ...] = (), **fields: Any
) -> list[str]:
    """So many open proposals of one person in one conversation, all of one moment."""

    def store(session: Session) -> list[str]:
        now = app.clock()
        ident = f"of{requester.rpartition(':')[2]}{len(people)}{count}"
        session.add(
            ConversationRow(
                id=ident,
                channel="http",
                key=f"x/{ident}",
                private=True,
                owner=requester,
                title="",
                created_at=now,
            )
        )
        session.flush()
        line = MessageRow(conversation_id=ident, role="assistant", text="", created_at=now)
        session.add(line)
        session.flush()
        made = [
            make_proposal(
                id=f"{ident}n{n:06}",
                conversation_id=ident,
                message_id=line.id,
                call_id=f"c{n}",
                position=n,
                requester=Actor.parse(requester),
                deciders=Deciders(requester=True, people=people),
                created_at=now,
                updated_at=now,
                expires_at=now + timedelta(days=1),
                **fields,
            )
            for n in range(count)
        ]
        transitions.insert_proposals(session, made, Author.of_nod("propose"))
        return [p.id for p in made]

    return await app.database.write(store)


async def read_all(client: Any, limit: int, **params: str) -> list[Json]:
    found: list[Json] = []
    before: dict[str, str] = {}
    while True:
        page = (await client.get(BEFORE, params={"limit": str(limit)} | params | before)).json()
        found += page["proposals"]
        assert len(page["proposals"]) <= limit
        if page["next"] is None:
            return found
        before = {"before": page["next"]}


async def test_pages_lead_through_everything_once_also_where_all_changed_at_the_same_moment(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, NOD_ADMINS=("http:chief",)) as nod:
        mine = await parked(nod.app, 7, "http:ana")
        others = await parked(nod.app, 5, "http:ben")
        async with nod.caller(ANA) as ana, nod.caller(CHIEF) as chief, nod.caller(DEE) as dee:
            assert [p["id"] for p in await read_all(ana, 3)] == sorted(mine, reverse=True)
            seen = [p["id"] for p in await read_all(chief, 4, state="proposed")]
            assert sorted(seen) == sorted([*mine, *others])
            assert await read_all(dee, 3) == []


async def test_who_is_named_to_decide_or_voted_finds_it(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS) as nod:
        named = await parked(nod.app, 3, "http:ben", people=("http:dee",))
        async with nod.caller(DEE) as dee:
            assert sorted(p["id"] for p in await read_all(dee, 2)) == named
            assert [p["id"] for p in await read_all(dee, 2, state="declined")] == []


@pytest.mark.parametrize("before", ["x", "~", "2026-01-01~a", "2026-01-01T00:00:00+00:00~a b", "\x00~a"])
async def test_a_page_that_no_one_gave_is_422(serve: Serve, before):
    async with serve() as nod:
        answer = await nod.client.get(BEFORE, params={"before": before})
        assert (answer.status_code, list(answer.json()["fields"])) == (422, ["before"])


async def test_five_hundred_writes_in_one_answer_become_a_hundred_rows_of_one_batch(serve: Serve):
    async with serve() as nod:
        nod.model.answer(ask(*(("keep", {"text": f"n{n}"}) for n in range(500))))
        opened = await nod.proposed()
        assert len(opened) == 100
        [conversation] = {p["conversation_id"] for p in opened}
        path = f"/api/conversations/{conversation}/proposals"
        listed = (await nod.client.get(path)).json()["proposals"]
        assert [p["group"] for p in listed] == [None] * 100  # a batch has its own way to decide all
        places = [{"id": listed[0]["id"], "size": 100, "position": n} for n in range(1, 101)]
        assert [p["batch"] for p in listed] == places


async def test_a_page_of_two_hundred_cards_of_one_answer_reads_their_group_once(serve: Serve):
    async with serve(NOD_HTTP_TOKENS=TOKENS, token=BEN) as nod:
        await parked(nod.app, 200)
        statements: list[str] = []

        event.listen(
            nod.app.database.engine,
            "before_cursor_execute",
            lambda _c, _cursor, statement, *_: statements.append(statement),
        )
        page = (await nod.client.get(BEFORE)).json()
        assert len(page["proposals"]) == 200
        assert sum("proposal.round" in s and "ORDER BY proposal.message_id" in s for s in statements) == 1


async def test_who_asks_for_too_much_gets_429_in_words_and_when_to_come_back(serve: Serve):
    bounds = {"NOD_MAX_MESSAGES": 1, "NOD_MAX_OPEN_PER_PERSON": 1}
    async with serve(NOD_HTTP_TOKENS=TOKENS, NOD_APPROVERS=("http:ben",), token=ANA, **bounds) as nod:
        await nod.chat("hello")
        refused = await nod.client.post("/api/chat", json={"message": "again"})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert refused.json()["error"] == (
            "You sent 1 messages within an hour. Please wait, then send it again."
        )
        asked = [await nod.client.post("/api/approvals", json={"summary": "Ship it"}) for _ in range(2)]
        assert [a.status_code for a in asked] == [201, 429]
        assert "wait for a decision already" in asked[1].json()["error"]
