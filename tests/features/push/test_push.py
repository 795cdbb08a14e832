"""A card that waits is shown on the devices of those who may decide it, replaced, and closed everywhere."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import Session

from bot.app.assembly import build
from bot.domain.chat import Address, Answer, Command
from bot.domain.doctor_findings import Health
from bot.domain.people import LOCAL
from bot.errors import SettingsError
from bot.features.feature import FeatureParts
from bot.features.push import watcher
from bot.features.push.feature import PUSH
from bot.features.push.tables import DeviceRow
from bot.settings import EXAMPLE_PUSH_KEY, Settings
from bot.store import proposals
from bot.store.tables.people import AccountRow
from tests.fakes.push_service import FakePushService
from tests.features.push.conftest import KEY, PUSHING, add, list_devices, propose, push
from tests.kit import MakeNod, call
from tests.kit.plans import AskedTexts, read_from_end_to_end
from tests.web.conftest import Serve, Served

HERE = Address("http", "local/1")


async def test_a_card_is_shown_with_tool_and_place_and_no_argument(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        device = await add(nod, browser)
        assert (device["name"], device["host"], device["mine"]) == ("Phone", "127.0.0.1", True)
        [proposal] = await propose(nod)
        await push(nod)
        [message] = browser.messages
        assert message.shown == {
            "v": 1,
            "tag": proposal["id"],
            "id": proposal["id"],
            "title": "keep waits for you",
            "body": "Asked in the console",
            "at": int(nod.clock().timestamp() * 1000),
            "again": False,
        }
        assert message.size < 4096
        assert message.headers["urgency"] == "normal"
        assert int(message.headers["ttl"]) == 24 * 3600
        assert len(message.headers["topic"]) == 32
        assert proposal["id"] not in str(message.headers)
        await push(nod, timedelta(minutes=5))
        assert len(browser.messages) == 1
        assert service.refused == []
        assert (await list_devices(nod))[0]["sent_at"]


async def test_what_is_decided_elsewhere_is_closed_on_every_device(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browsers = [service.subscribe(KEY.public) for _ in range(3)]
        for browser in browsers:
            await add(nod, browser)
        [proposal] = await propose(nod)
        await push(nod)
        await nod.press(proposal, "approve")
        await nod.idle()
        await push(nod)
        await push(nod)
        for browser in browsers:
            shown, closed = browser.messages
            assert closed.shown == {"v": 1, "tag": proposal["id"], "close": True}
            assert closed.headers["topic"] == shown.headers["topic"]


async def test_what_is_decided_before_it_is_sent_is_never_shown(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        [proposal] = await propose(nod)
        await nod.press(proposal, "decline")
        await push(nod)
        assert browser.tries == 0


async def test_what_is_asked_again_takes_the_place_of_what_was_shown(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        [proposal] = await propose(nod)
        await push(nod)
        await nod.press(proposal, "edit", arguments={"text": "bread"}, round=proposal["round"])
        await push(nod)
        first, second = browser.messages
        assert (first.shown["tag"], first.headers["topic"]) == (second.shown["tag"], second.headers["topic"])
        assert (first.shown["again"], second.shown["again"]) == (False, True)


async def test_a_person_can_want_to_read_what_is_asked_without_its_secrets(
    serve: Serve, service: FakePushService
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        device = await add(nod, browser, detailed=True)
        await propose(nod, ("keep", {"text": "the word is hunter2xyz", "password": "hunter2xyz"}))
        await push(nod)
        [shown] = browser.shown
        assert shown["title"] == "Keep the note “the word is ••••••”"
        assert shown["body"] == "keep, asked by you in the console"
        answer = await nod.client.patch(f"/api/push/devices/{device['id']}", json={"detailed": False})
        assert answer.status_code == 200
        await propose(nod)
        await push(nod)
        assert browser.shown[-1]["title"] == "keep waits for you"


async def test_the_longest_words_stay_within_three_kilobytes(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser, detailed=True)
        await propose(nod, ("keep", {"text": "\U0001f600" * 5000}))
        await push(nod)
        [message] = browser.messages
        assert message.size <= 3000 + 103


async def test_calls_of_one_answer_that_stand_in_one_table_are_one_notification(
    serve: Serve, service: FakePushService
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        proposals = await propose(nod, *(("keep", {"text": f"note {n}"}) for n in range(3)))
        await push(nod)
        [shown] = browser.shown
        assert shown["title"] == "keep (3 changes) waits for you"
        for proposal in proposals:
            await nod.press(proposal, "decline")
        await push(nod)
        await push(nod)
        assert [each.get("close", False) for each in browser.shown] == [False, True]


async def test_what_is_beyond_twenty_is_told_once(serve: Serve, service: FakePushService):
    async with serve(**PUSHING, NOD_MAX_OPEN_BY_PERSON=100, NOD_MAX_OPEN_IN_CONVERSATION=100) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        for number in range(25):
            await propose(nod, ("keep", {"text": f"note {number}"}))
        for _ in range(12):
            await push(nod)
        titles = [shown["title"] for shown in browser.shown]
        assert titles == ["keep waits for you"] * 20 + ["More cards wait for you"]
        assert browser.shown[-1]["tag"] == "more"


@pytest.mark.parametrize("key", ["short", "A" * 43, "ZL5OVp3FyGqDhxYCqfWrNrBt9eZAXqPYGpFRv0JfhB9"])
async def test_an_invalid_key_stops_the_start_with_what_to_do(key: str):
    with pytest.raises(SettingsError, match=r"NOD_PUSH_KEY: .*nod push keys"):
        build(Settings.load(NOD_PUSH_KEY=key))


@pytest.mark.parametrize("ending", ["", "="])
async def test_the_example_of_the_settings_is_no_key(ending: str):
    with pytest.raises(SettingsError, match="NOD_PUSH_KEY: this is the example that anyone can read"):
        build(Settings.load(NOD_PUSH_KEY=EXAMPLE_PUSH_KEY + ending))


async def test_without_a_key_nothing_is_stored_and_nothing_runs(serve: Serve, service: FakePushService):
    async with serve(NOD_ADMINS=("http:local",)) as nod:
        assert [each.name for each in nod.app.sweeps if each.name == "push"] == []
        shown = (await nod.client.get("/api/push")).json()
        assert (shown["on"], shown["key"], shown["devices"]) == (False, "", [])
        refused = await nod.client.post(
            "/api/push/devices", json=service.subscribe(KEY.public).subscription()
        )
        assert refused.status_code == 409
        assert "nod push keys" in refused.json()["error"]
        await propose(nod)


async def test_a_step_of_a_rule_says_when_devices_are_told(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        rule = Command(LOCAL, "approvals", "notify push after 2m for keep", HERE)
        assert (await nod.app.core.assistant.handle(rule)).answer is Answer.ACCEPTED
        await propose(nod)
        await push(nod)
        assert browser.tries == 0
        nod.clock.forward(timedelta(minutes=2))
        await nod.app.core.reminders.remind(nod.clock())
        await push(nod)
        await push(nod)
        assert [each["again"] for each in browser.shown] == [False]


async def test_a_step_shows_again_what_is_shown(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        [proposal] = await propose(nod)
        await push(nod)
        found = await nod.app.database.read(proposals.get, proposal["id"])
        assert found is not None
        await nod.app.database.write(watcher.note_card_asks_again, found, 0, nod.clock())
        await push(nod)
        assert [each["again"] for each in browser.shown] == [False, True]


async def test_a_step_that_names_devices_is_refused_where_they_are_off(serve: Serve):
    async with serve(NOD_ADMINS=("http:local",)) as nod:
        rule = Command(LOCAL, "approvals", "notify push after 2m for keep", HERE)
        reply = await nod.app.core.assistant.handle(rule)
        assert (reply.answer, "nod push keys" in reply.text) == (Answer.INVALID, True)


async def test_admins_see_the_devices_in_the_list_of_what_is_on(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        await add(nod, service.subscribe(KEY.public))
        shown = await nod.app.core.assistant.handle(Command(LOCAL, "approvals", "features", HERE))
        assert "Phone of" in shown.text, shown.text


async def test_what_attention_holds_back_is_one_notification_when_it_is_released(
    serve: Serve, service: FakePushService
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        rule = Command(LOCAL, "approvals", "attention 3 an hour for http:local", HERE)
        assert (await nod.app.core.assistant.handle(rule)).answer is Answer.ACCEPTED
        for number in range(6):
            await propose(nod, ("keep", {"text": f"note {number}"}))
        for _ in range(4):
            await push(nod)
        assert len(browser.messages) == 3
        nod.clock.forward(timedelta(minutes=31))
        [release] = [each for each in nod.app.sweeps if each.name == "release_held"]
        await release.run(nod.clock())
        for _ in range(4):
            await push(nod)
        assert len({each["tag"] for each in browser.shown}) == len(browser.messages) == 4


async def test_a_delivery_reads_the_devices_of_the_deciders_alone(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        await add(nod, service.subscribe(KEY.public))
        asked = AskedTexts(nod.app.database)
        await propose(nod)
        await nod.idle()
        texts = [text for text in asked.texts if "push_device" in text]
        assert texts
        assert [text for text in texts if read_from_end_to_end(nod.app.database, text)] == []


def add_owner(session: Session, account: str, person: str = "") -> None:
    """Give an account a device, and link it to a person if one is named."""
    now, columns = datetime(2026, 3, 2, tzinfo=UTC), dict.fromkeys(("endpoint", "secret", "public_key"), "")
    named = {"name": "Phone", "host": "push.example.com", "vapid": "", "created_at": now, "next_at": now}
    row = DeviceRow(id=account, account=account, account_name="", **named, **columns)  # type: ignore[arg-type]
    session.add(row)
    if person:
        link(session, account, person)


def link(session: Session, account: str, person: str) -> None:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    session.add(AccountRow(actor=account, name="", person_id=person, linked_at=at))


def prepare_owners(session: Session) -> None:
    add_owner(session, "chat:ana", "P1")
    link(session, "slack:T1/U7", "P1")
    add_owner(session, "chat:ben")
    link(session, "slack:T1/U9", "P2")
    add_owner(session, "chat:eve")


async def test_a_device_stands_for_all_accounts_of_its_person(make_nod: MakeNod):
    nod = make_nod()
    [proposal] = await nod.asked(call("paint", lamp="desk", color="red"))
    nod.database.write_now(prepare_owners)
    deciders = {"chat:ana", "slack:T1/U7", "slack:T1/U9", "chat:ben", "chat:nobody"}
    push_watcher = watcher.PushWatcher()
    reached = nod.database.read_now(push_watcher.list_reached, proposal, deciders)
    assert reached == {"chat:ana", "slack:T1/U7", "chat:ben"}
    assert nod.database.read_now(push_watcher.list_reached, proposal, set()) == set()


async def take_step(nod: Served) -> None:
    """Let the steps that are due take place, and send what they notify of."""
    nod.clock.forward(timedelta(minutes=2))
    await nod.app.core.reminders.remind(nod.clock())
    for _ in range(4):
        await push(nod)


async def release_held(nod: Served) -> None:
    nod.clock.forward(timedelta(minutes=31))
    [release] = [each for each in nod.app.sweeps if each.name == "release_held"]
    await release.run(nod.clock())
    for _ in range(4):
        await push(nod)


async def test_attention_counts_the_steps_to_devices_and_holds_back_those_beyond_it(
    serve: Serve, service: FakePushService
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        for words in ("attention 3 an hour for http:local", "notify push after 2m for keep"):
            rule = Command(LOCAL, "approvals", words, HERE)
            assert (await nod.app.core.assistant.handle(rule)).answer is Answer.ACCEPTED
        made = [await propose(nod, ("keep", {"text": f"note {number}"})) for number in range(6)]
        await take_step(nod)
        assert len(browser.messages) == 3
        held = await nod.app.database.read(proposals.get, made[-1][-1]["id"])
        assert held is not None
        assert [each.name for each in held.annotations] == ["Attention"]
        await release_held(nod)
        assert len({each["tag"] for each in browser.shown}) == len(browser.messages) == 4


async def test_a_step_sends_nothing_about_a_card_that_is_held_back(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        rule = Command(LOCAL, "approvals", "attention 3 an hour for http:local", HERE)
        assert (await nod.app.core.assistant.handle(rule)).answer is Answer.ACCEPTED
        for number in range(4):
            [held] = await propose(nod, ("keep", {"text": f"note {number}"}))
        for _ in range(4):
            await push(nod)
        assert len(browser.messages) == 3
        found = await nod.app.database.read(proposals.get, held["id"])
        assert found is not None
        assert [each.name for each in found.annotations] == ["Attention"]
        await nod.app.database.write(watcher.note_card_asks_again, found, 0, nod.clock())
        await take_step(nod)
        assert len(browser.messages) == 3
        await release_held(nod)
        assert [each["tag"] for each in browser.shown][3:] == [held["id"]]


@pytest.mark.parametrize(
    ("settings", "health", "words"),
    [
        ({}, [], []),
        (PUSHING, [Health.OK], ["1 are notified"]),
        (PUSHING | {"NOD_PUBLIC_URL": "http://nod.example.com"}, [Health.WARN], ["NOD_PUBLIC_URL"]),
        (PUSHING | {"NOD_PUSH_KEY": "A" * 43}, [Health.FAIL], ["nod push keys"]),
    ],
    ids=["off", "on", "plain HTTP", "no key"],
)
async def test_the_doctor_examines_the_key_the_address_and_the_devices(
    serve: Serve, service: FakePushService, settings: dict[str, Any], health: list[Health], words: list[str]
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        given = FeatureParts(
            settings=Settings.load(**settings),
            database=nod.app.database,
            policies=nod.app.core.gate.policies,
            clock=nod.clock,
        )
        found = await PUSH.examine(given)
        assert [each.health for each in found] == health
        assert all(word in each.fix for each, word in zip(found, words, strict=True))
