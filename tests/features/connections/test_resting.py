"""The account of a chat rests while people of another company read along there."""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.domain.chat import Address, Message
from bot.domain.connections import Connection, ConnectionOwner, Identity
from bot.domain.people import Actor
from bot.errors import ChannelError
from tests.features.connections.conftest import (
    ANA,
    BEN,
    Connect,
    Connectable,
    entry,
    port_of,
    write_config,
)
from tests.features.connections.tracker import Tracker
from tests.kit.channel import RecordingChannel
from tests.web.scripted import say

CHAT = "slack:T1/C1"
RESTS = "People of another company read along in slack:T1/C1 now, so its account at tracker rests."


class SharedSlack(RecordingChannel):
    """A Slack whose chats may be shared with another company."""

    def __init__(self) -> None:
        super().__init__("slack")
        self.shared: set[str] = set()
        self.gone: set[Actor] = set()
        self.asked = 0

    async def is_shared(self, address: Address) -> bool:
        self.asked += 1
        self.maybe_refuse("is_shared")
        return str(address) in self.shared

    async def has_account(self, actor: Actor) -> bool:
        return actor not in self.gone


@pytest.fixture
def slack() -> SharedSlack:
    return SharedSlack()


@pytest.fixture
async def there(
    start: Connect, tracker: Tracker, tmp_path: Path, slack: SharedSlack
) -> AsyncIterator[Connectable]:
    write_config(tmp_path, tracker=entry(tracker, identity="place"))
    async with start(NOD_ADMINS=(str(BEN),)) as nod:
        nod.app.channels["slack"] = slack
        made = Connectable(nod, tracker)
        yield made
        await made.close()


async def connect(there: Connectable, admin: Actor = BEN, chat: str = "T1/C1") -> None:
    """Connect an account for a chat, by an admin."""
    said = (await there.say("connect tracker", admin, at=f"{chat}/17.1")).text
    there.tracker.people.user = "team-bot"
    page = await there.browser().sign_in(said.partition("(")[2].partition(")")[0])
    digits = page.text.split('class="digits"><strong>')[1][:6]
    assert "Connected" in (await there.say(f"confirm {digits}", admin)).text


def held(there: Connectable) -> Connection:
    whose = ConnectionOwner(frozenset({"slack:T1/U7"}), f"{CHAT}/99.9")

    def find(session: object) -> Connection | None:
        return port_of(there).find(session, "tracker", Identity.PLACE, whose)  # type: ignore[arg-type]

    found = there.nod.app.database.read_now(find)
    assert found is not None
    return found


async def token(there: Connectable) -> str | None:
    return await port_of(there).access(held(there)).get_token()


async def test_a_shared_chat_s_account_gives_no_token_and_its_admin_is_told(
    there: Connectable, slack: SharedSlack
):
    await connect(there)
    assert await token(there)
    slack.shared.add(CHAT)
    there.nod.clock.forward(timedelta(minutes=2))
    assert await token(there) is None
    assert "another company" in port_of(there).access(held(there)).failure_reason
    assert held(there).is_resting
    assert there.told(BEN)[-1].startswith(RESTS)
    assert "rests: people of another company read along in its chat" in (await there.say("", BEN)).text


async def test_it_comes_back_when_the_chat_is_shared_no_longer(there: Connectable, slack: SharedSlack):
    await connect(there)
    slack.shared.add(CHAT)
    await there.sweep()
    assert held(there).is_resting
    slack.shared.clear()
    there.nod.clock.forward(timedelta(minutes=11))
    await there.sweep()
    assert not held(there).is_resting
    assert there.told(BEN)[-1].startswith("No other company reads along in slack:T1/C1 any longer")
    assert await token(there)
    assert len([text for text in there.told(BEN) if "company" in text]) == 2


async def test_where_the_platform_does_not_say_who_reads_along_it_is_not_used(
    there: Connectable, slack: SharedSlack
):
    await connect(there)
    assert await token(there)
    slack.refusals["is_shared"] = ChannelError("Slack says missing_scope.")
    there.nod.clock.forward(timedelta(minutes=2))
    assert await token(there) is None
    assert "Slack says missing_scope" in port_of(there).access(held(there)).failure_reason
    assert not held(there).is_resting
    assert [text for text in there.told(BEN) if "company" in text] == []


async def test_the_platform_is_asked_once_a_minute_for_a_chat(there: Connectable, slack: SharedSlack):
    await connect(there)
    before = slack.asked
    for _ in range(20):
        await token(there)
    assert slack.asked == before + 1


async def test_a_shared_chat_gets_no_account(there: Connectable, slack: SharedSlack):
    slack.shared.add(CHAT)
    said = await there.say("connect tracker", BEN, at="T1/C1")
    assert said.text == "People of another company read along here, so this chat gets no account."


async def test_the_model_is_told_that_it_rests(there: Connectable, slack: SharedSlack):
    await connect(there)
    slack.shared.add(CHAT)
    await there.sweep()
    there.nod.model.answer(say("It rests."))
    said = Message(Address("slack", "T1/C1/17.1"), BEN, "what is open?", "e-1")
    await there.nod.app.core.assistant.handle(said)
    await there.nod.app.dispatcher.wait_until_idle()
    assert "The account of this chat at tracker rests" in str(there.nod.model.seen[-1][0])


async def test_an_admin_ends_the_account_of_a_chat_by_its_name_there_alone(there: Connectable):
    await connect(there)
    for actor, at in ((ANA, "T1/C1"), (BEN, "T1/C2")):
        assert (await there.say("end tracker", actor, at=at)).text == "You have no connection tracker."
    assert len(there.rows()) == 1
    assert (await there.say("end tracker", BEN, at="T1/C1/17.1")).text.startswith("Disconnected: tracker")
    assert there.rows() == []


@contextlib.asynccontextmanager
async def with_admins(
    start: Connect, tracker: Tracker, folder: Path, *admins: Actor
) -> AsyncIterator[Connectable]:
    write_config(folder, tracker=entry(tracker, identity="place"))
    async with start(NOD_ADMINS=tuple(map(str, admins))) as nod:
        nod.app.channels["slack"] = SharedSlack()
        made = Connectable(nod, tracker)
        yield made
        await made.close()


async def test_it_rests_while_who_connected_it_is_no_longer_an_admin_and_the_admins_are_told(
    start: Connect, tracker: Tracker, tmp_path: Path
):
    async with with_admins(start, tracker, tmp_path, BEN, ANA) as there:
        await connect(there)
    async with with_admins(start, tracker, tmp_path, ANA) as there:
        assert await token(there) is None
        assert "no longer an admin" in port_of(there).access(held(there)).failure_reason
        assert held(there).is_resting
        await there.sweep()
        [text] = [each for each in there.told(ANA) if "rests" in each]
        assert "connected the account of slack:T1/C1 at tracker and is no longer an admin there" in text
        assert "rests: who connected it is no longer an admin there" in (await there.say("", ANA)).text
    async with with_admins(start, tracker, tmp_path, BEN, ANA) as there:
        assert await token(there)
        assert not held(there).is_resting
        assert "is an admin of slack:T1/C1 again" in there.told(ANA)[-1]


async def test_another_admin_connects_an_account_in_its_place(
    start: Connect, tracker: Tracker, tmp_path: Path
):
    async with with_admins(start, tracker, tmp_path, BEN) as there:
        await connect(there)
    async with with_admins(start, tracker, tmp_path, ANA) as there:
        await there.sweep()
        await connect(there, ANA)
        assert await token(there)
        assert not held(there).is_resting
        assert len(there.rows()) == 1


async def test_it_ends_once_the_account_of_who_connected_it_is_gone(there: Connectable, slack: SharedSlack):
    await connect(there)
    slack.gone.add(BEN)
    there.nod.clock.forward(timedelta(days=1))
    await there.sweep()
    assert there.rows() == []
    assert len(there.tracker.people.revoked) == 2
