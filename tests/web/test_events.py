"""``GET /api/events``: every change of a visible proposal, once, in order, also after an absence."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from bot.approvals import decide, lifecycle
from bot.domain.chat import Press
from bot.domain.model import Finished, StopReason, Text
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.verbs import Verb
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.web.streams import Pace
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Json, Serve, Stream
from tests.web.scripted import ScriptedModel, ask, say

MILK = ask(("keep", {"text": "milk"}))


async def hear(stream: Stream, ident: str, state: str) -> list[tuple[int, str, str]]:
    """Ids, proposals and states up to the one that is waited for."""
    heard = []
    while not heard or heard[-1][1:] != (ident, state):
        event = await stream.next()
        assert event["type"] == "proposal_update"
        heard.append((int(stream.last_id or 0), event["proposal"]["id"], event["proposal"]["state"]))
    return heard


async def test_every_change_is_told_with_an_id_that_rises(serve: Serve):
    async with serve(model=ScriptedModel(MILK)) as nod, nod.stream("GET", "/api/events") as feed:
        assert await feed.raw() == ["id: 0", ": listening"]
        (proposal,) = await nod.proposed()
        heard = await hear(feed, proposal["id"], "proposed")
        await nod.press(proposal, "approve")
        heard += await hear(feed, proposal["id"], "succeeded")
        ids = [ident for ident, *_ in heard]
        assert ids == sorted(set(ids))


async def test_the_answer_to_a_question_is_told_with_all_that_was_asked(serve: Serve):
    known = asyncio.Event()
    async with serve(model=ScriptedModel(MILK, [known, *say("It is fresh.")])) as nod:
        (proposal,) = await nod.proposed()
        async with nod.stream("GET", "/api/events") as feed:
            await feed.raw()
            await nod.press(proposal, "ask", reason="How old?")
            await feed.until("proposal_update")
            known.set()
            told = await feed.until("question_answered")
            await nod.idle()
        assert told["proposal_id"] == proposal["id"]
        assert told["questions"] == [{"asker": "you", "question": "How old?", "answer": "It is fresh."}]
        kept = await nod.client.get(f"/api/proposals/{proposal['id']}/questions")
        assert kept.json()["questions"] == told["questions"]


async def test_a_resumed_feed_has_no_gap_and_no_repeat_across_a_restart(serve: Serve):
    async with serve(model=ScriptedModel(MILK, MILK)) as nod:
        async with nod.stream("GET", "/api/events", headers={"Last-Event-ID": "0"}) as feed:
            (first,) = await nod.proposed()
            await hear(feed, first["id"], "proposed")
            seen = feed.last_id
        (second,) = await nod.proposed()
        await nod.press(first, "decline")
        await nod.idle()
    async with serve() as nod, nod.stream("GET", "/api/events", headers={"Last-Event-ID": seen}) as feed:
        heard = await hear(feed, first["id"], "declined")
        assert [(ident, state) for _, ident, state in heard] == [
            (second["id"], "proposed"), (first["id"], "declined"),
        ]  # fmt: skip
        await nod.press(second, "decline")
        assert (await hear(feed, second["id"], "declined"))[0][2] == "declined"


async def test_a_feed_that_breaks_between_two_changes_of_one_batch_misses_neither(serve: Serve):
    two = ask(("keep", {"text": "a"}), ("keep", {"text": "b"}))
    async with serve(model=ScriptedModel(two)) as nod:
        first, second = await nod.proposed()
        await nod.press(first, "decline")  # rows: first, second, first again
        await nod.idle()
        seen, told = "0", set()
        for _ in range(2):  # the connection breaks after each single event
            async with nod.stream("GET", "/api/events", headers={"Last-Event-ID": seen}) as feed:
                event = await feed.next()
                told.add((event["proposal"]["id"], event["proposal"]["state"]))
                seen = feed.last_id or ""
        assert told == {(first["id"], "declined"), (second["id"], "proposed")}


async def test_only_visible_proposals_are_told(serve: Serve):
    given = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "token": ANA}
    async with (
        serve(model=ScriptedModel(MILK, MILK), **given) as nod,
        nod.caller(BEN) as ben,
        nod.caller(CHIEF) as chief,
        nod.stream("GET", "/api/events", ben) as bens,
        nod.stream("GET", "/api/events", chief) as chiefs,
    ):
        (anas,) = await nod.proposed()
        (bens_own,) = await nod.proposed("go on", ben)
        assert (await bens.next())["proposal"]["id"] == bens_own["id"]
        assert [(await chiefs.next())["proposal"]["id"] for _ in range(2)] == [anas["id"], bens_own["id"]]


async def test_a_change_made_by_another_process_shows_up(serve: Serve):
    async with serve(model=ScriptedModel(MILK), pace=Pace(poll_seconds=0.02)) as nod:
        (proposal,) = await nod.proposed()
        other = Database(nod.app.settings.database_url)
        async with nod.stream("GET", "/api/events") as feed:
            await feed.raw()
            press = Press(Actor("cli", "root"), Verb.DECLINE, proposal["id"])
            policies = Policies(Policy())
            refused = other.write_now(decide.decide, press, policies, nod.clock())
            assert refused.reply.answer == "refused"
            other.write_now(lifecycle.expire_due, policies, nod.clock() + timedelta(days=2), 10)
            await hear(feed, proposal["id"], "expired")
        other.close()


async def test_anyone_who_talks_is_told_of_a_change_made_by_another_process(serve: Serve):
    async with serve(model=ScriptedModel(MILK), pace=Pace(poll_seconds=0.02)) as nod:
        (proposal,) = await nod.proposed()
        path = f"/api/conversations/{proposal['conversation_id']}/events"
        async with nod.stream("GET", path) as stream:
            await stream.raw()
            policies = Policies(Policy())
            other = Database(nod.app.settings.database_url)
            other.write_now(lifecycle.expire_due, policies, nod.clock() + timedelta(days=2), 10)
            other.close()
            while (await stream.until("proposal_update"))["proposal"]["state"] != "expired":
                pass


async def test_a_quiet_feed_is_kept_open_by_comments(serve: Serve):
    async with (
        serve(pace=Pace(poll_seconds=0.01, keep_alive_seconds=0.02)) as nod,
        nod.stream("GET", "/api/events") as feed,
    ):
        assert await feed.raw() == ["id: 0", ": listening"]
        assert await feed.raw() == [": still there"]
        assert await feed.raw() == [": still there"]


async def test_a_last_event_id_that_is_not_one_is_refused(serve: Serve):
    async with serve(model=ScriptedModel([Finished(StopReason.FINISHED)])) as nod:
        for bad in ("x", "-1", "9" * 30):
            answer = await nod.client.get("/api/events", headers={"Last-Event-ID": bad})
            assert answer.status_code == 422


async def test_an_id_ahead_of_a_restored_backup_begins_again(serve: Serve):
    async with (
        serve(model=ScriptedModel(MILK)) as nod,
        nod.stream("GET", "/api/events", headers={"Last-Event-ID": "99999"}) as feed,
    ):
        assert (await feed.next())["type"] == "reload"
        assert await feed.raw() == ["id: 0", ": listening"]
        (proposal,) = await nod.proposed()
        await hear(feed, proposal["id"], "proposed")


async def test_how_far_a_running_call_is_is_told_without_being_a_change(serve: Serve):
    ready = asyncio.Event()

    @tool(summary="Copy the files")
    async def copy(context: CallContext) -> dict[str, int]:
        """Copy files."""
        await context.progress("3 of 10 files")
        await ready.wait()
        return {"files": 10}

    asks = ScriptedModel(ask(("copy", {})))
    async with serve(model=asks, tools=(copy,)) as nod, nod.stream("GET", "/api/events") as feed:
        (proposal,) = await nod.proposed()
        watching = nod.stream("GET", f"/api/conversations/{proposal['conversation_id']}/events")
        async with watching as watched:
            await nod.press(proposal, "approve")
            for stream in (feed, watched):
                running = await shown(stream, lambda p: "(3 of 10 files)" in p["outcome"])
                assert running["outcome"].endswith("Running (3 of 10 files)…")
            now = await nod.proposal(proposal["id"])
            assert (now["state"], now["version"]) == ("executing", running["version"])
            ready.set()
            done = await shown(watched, lambda p: p["state"] == "succeeded")
            assert done["result_fields"] == [{"label": "Files", "value": "10"}]


async def shown(stream: Stream, wanted: Callable[[Json], bool]) -> Json:
    """The proposal, once an event tells it as it is wanted."""
    while not ((event := await stream.next()).get("proposal") and wanted(event["proposal"])):
        pass
    found: Json = event["proposal"]
    return found


async def test_one_stream_tells_what_changes_and_the_turns_of_every_conversation(serve: Serve):
    more = asyncio.Event()
    model = ScriptedModel([Text("I look"), more, *say(" once more.")], MILK)
    async with (
        serve(model=model) as nod,
        nod.stream("GET", "/api/events", params={"turns": True}) as feed,
        nod.chatting("look") as chat,
    ):
        conversation = (await chat.next())["conversation_id"]
        told = await feed.until("turn")
        assert (told["conversation_id"], told["event"]["text"]) == (conversation, "I look")
        more.set()
        while told["event"]["type"] != "done":
            told = await feed.until("turn")
        (proposal,) = await nod.proposed()
        while told["event"]["type"] != "proposal_opened":
            told = await feed.until("turn")
        assert told["conversation_id"] == proposal["conversation_id"] != conversation


async def test_the_turns_of_others_are_not_told(serve: Serve):
    given = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "token": ANA}
    async with (
        serve(model=ScriptedModel(say("For Ana."), say("For the chief.")), **given) as nod,
        nod.caller(CHIEF) as chief,
        nod.stream("GET", "/api/events", chief, params={"turns": True}) as feed,
    ):
        await nod.chat("hello")
        await nod.chat("hello", chief)
        assert (await feed.until("turn"))["event"]["text"] == "For the chief."


async def test_without_turns_a_stream_tells_changes_alone(serve: Serve):
    async with (
        serve(model=ScriptedModel(say("Hello."), MILK)) as nod,
        nod.stream("GET", "/api/events") as feed,
    ):
        await nod.chat("hello")
        await nod.proposed()
        assert (await feed.next())["type"] == "proposal_update"


async def test_a_stream_with_turns_ends_when_the_server_stops(serve: Serve):
    async with serve() as nod:
        async with nod.stream("GET", "/api/events", params={"turns": True}) as feed:
            await feed.raw()
            hub = nod.app.channels["http"].broadcaster  # type: ignore[attr-defined]
            hub.close()
            assert await feed.rest() == []
        assert not hub._owner_listeners


async def test_a_page_of_one_person_does_nothing_in_the_name_of_another(serve: Serve):
    given = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "token": ANA}
    async with serve(model=ScriptedModel(MILK), **given) as nod, nod.caller(CHIEF) as chief:
        (proposal,) = await nod.proposed()
        page_of_ana = {"Nod-Account": "http%3Aana"}
        answer = await chief.post(f"/api/proposals/{proposal['id']}/approve", json={}, headers=page_of_ana)
        assert (answer.status_code, answer.json()["account"]) == (409, "http:chief")
        assert answer.json()["error"] == "This browser is signed in as someone else now. Load the page again."
        assert (await nod.proposal(proposal["id"]))["state"] == "proposed"
        assert (await nod.client.get("/api/me", headers=page_of_ana)).status_code == 200
