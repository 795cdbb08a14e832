"""The tokens of connections: fresh, one process at a time, never elsewhere, gone with their person."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import Session, select, text

from bot.app.features import FEATURES
from bot.approvals.accounts import linking
from bot.domain.chat import Address, Command
from bot.domain.connections import Connection, ConnectionAccess, ConnectionOwner, Identity
from bot.domain.people import Actor
from bot.domain.text import escape_markdown
from bot.features.connections import ending, revocations, tokens
from bot.features.connections.sweep import ConnectionSweep
from bot.features.connections.tables import RevocationRow
from bot.store.audit import verification
from bot.store.connections import get_connections
from tests.features.connections.conftest import ANA, BEN, Connect, Connectable, entry, port_of, write_config
from tests.features.connections.tracker import Tracker
from tests.kit.channel import RecordingChannel


def found(there: Connectable, actor: Actor = ANA) -> Connection | None:
    """The connection of a person as the kernel finds it."""
    port, whose = port_of(there), ConnectionOwner(frozenset({str(actor)}), f"slack:T1/D{actor.key[-1]}")
    return there.nod.app.database.read_now(
        lambda session: port.find(session, "tracker", Identity.PERSON, whose)
    )


def access(there: Connectable, actor: Actor = ANA) -> ConnectionAccess:
    connection = found(there, actor)
    assert connection is not None
    return port_of(there).access(connection)


async def test_each_person_has_the_token_of_their_own_account(there: Connectable):
    await there.connect(ANA, "octocat")
    await there.connect(BEN, "hubot")
    given = [await access(there, each).get_token() for each in (ANA, BEN)]
    assert [there.tracker.people.whose[each or ""] for each in given] == ["octocat", "hubot"]
    assert found(there, Actor("slack", "T1/U9")) is None


async def test_a_token_that_ends_is_renewed_before_it_is_sent(there: Connectable):
    await there.connect()
    first = await access(there).get_token()
    there.nod.clock.forward(timedelta(hours=2))
    second = await access(there).get_token()
    assert second is not None
    assert (second != first, there.tracker.people.refreshed) == (True, 1)


async def test_a_refresh_that_many_ask_for_is_made_once(there: Connectable):
    await there.connect()
    there.nod.clock.forward(timedelta(hours=2))
    one = found(there)
    assert one is not None
    several = [port_of(there).access(one) for _ in range(2)]
    given = await asyncio.gather(*(each.get_token() for each in several for _ in range(10)))
    assert len(set(given)) == 1
    assert there.tracker.people.refreshed == 1


async def test_a_lease_of_another_process_is_waited_for(there: Connectable):
    await there.connect()
    there.nod.clock.forward(timedelta(hours=2))
    [row] = there.rows()
    database, now = there.nod.app.database, there.nod.clock()
    held = database.read_now(tokens.find, row.id, row.url)
    assert held is not None
    assert database.write_now(tokens.claim_refresh, held, now, now + timedelta(seconds=60))
    assert not database.write_now(tokens.claim_refresh, held, now, now + timedelta(seconds=60))
    waiting = asyncio.create_task(access(there).get_token())
    database.write_now(
        tokens.store_refreshed_tokens, held, '{"access_token": "by-the-other", "token_type": "Bearer"}', None
    )
    assert await waiting == "by-the-other"
    assert there.tracker.people.refreshed == 0


async def test_a_refresh_that_is_refused_once_works_later_and_nothing_is_lost(there: Connectable):
    await there.connect()
    there.nod.clock.forward(timedelta(hours=2))
    there.tracker.people.refusals = 1
    assert await access(there).get_token() is None
    connection = found(there)
    assert connection is not None
    assert not connection.is_expired
    assert await access(there).get_token() is not None


async def test_a_refresh_that_stays_refused_has_the_same_account_connected_again(there: Connectable):
    await there.connect()
    before = found(there)
    there.nod.clock.forward(timedelta(hours=2))
    there.tracker.people.refusals = 2
    for _ in range(2):
        assert await access(there).get_token() is None
    connection = found(there)
    assert connection is not None
    assert connection.is_expired
    assert "Send: /nod connections connect tracker" in access(there).failure_reason
    await there.connect()
    again = found(there)
    assert again is not None
    assert before is not None
    assert (again.is_expired, again.key) == (False, before.key)


async def test_a_disconnected_account_gives_no_token_any_longer_and_is_revoked(there: Connectable):
    await there.connect()
    kept = access(there)
    assert (await there.say("end tracker")).text == "Disconnected: tracker (octocat)."
    assert await kept.get_token() is None
    assert found(there) is None
    await there.sweep()
    assert len(there.tracker.people.revoked) == 2
    await there.sweep()
    assert len(there.tracker.people.revoked) == 2


async def test_a_server_that_can_not_be_reached_is_asked_to_revoke_up_to_the_most_tries(there: Connectable):
    await there.connect()
    await there.say("end tracker")
    await there.tracker.down()
    for tries in range(revocations.MOST_TRIES):
        assert there.nod.app.database.read_now(list_tries) == [tries]
        await there.sweep()
        there.nod.clock.forward(timedelta(minutes=1))
    assert there.nod.app.database.read_now(list_tries) == []
    await there.tracker.up()


def list_tries(session: Session) -> list[int]:
    """The number of tries so far to revoke each connection's tokens."""
    return list(session.exec(select(RevocationRow.tries)))


async def test_everywhere_ends_all_of_one_person_and_none_of_another(there: Connectable):
    await there.connect(ANA, "octocat")
    await there.connect(BEN, "hubot")
    await there.say("end everywhere")
    assert [row.owner for row in there.rows()] == [str(BEN)]


@pytest.mark.parametrize("which", ["tracker", "everywhere"])
async def test_an_account_s_name_is_told_as_it_is_written_when_it_ends(there: Connectable, which: str):
    name = "**Nod** [ended](https://evil.example)"
    there.tracker.named = name
    await there.connect(ANA, "octocat")
    said = await there.say(f"end {which}")
    assert said.text == escape_markdown(f"Disconnected: tracker ({name}).")


async def test_a_person_sees_and_ends_their_own_alone(there: Connectable):
    await there.connect(ANA, "octocat")
    [row] = there.rows()
    assert "octocat" not in (await there.say("", BEN)).text
    assert (await there.say(f"end {row.id}", BEN)).text.startswith("You have no connection")
    assert "octocat" in (await there.say("", ANA)).text


async def test_an_admin_sees_who_is_connected_and_never_a_token(start: Connect, tracker: Tracker):
    async with start(NOD_ADMINS=(str(BEN),)) as nod:
        there = Connectable(nod, tracker)
        await there.connect(ANA, "octocat")
        told = (await there.say("", BEN)).text
        assert "As Ana at tracker (octocat)" in told
        assert not any(secret in told for secret in tracker.people.seen)
        await there.close()


async def test_a_connection_ends_where_an_account_of_its_person_is_unlinked(there: Connectable):
    phone = Actor("telegram", "991", "Ana")
    database, now = there.nod.app.database, there.nod.clock()
    policies = port_of(there).policies
    await there.connect(ANA, "octocat")
    database.write_now(linking.link_accounts, policies, ANA, phone, ANA, now)
    assert len(there.rows()) == 1
    database.write_now(linking.unlink_account, str(phone), phone, now)
    assert there.rows() == []


async def test_a_linked_account_uses_the_connection_of_its_person(there: Connectable):
    await there.connect(ANA, "octocat")
    phone = Actor("telegram", "991", "Ana")
    database, port = there.nod.app.database, port_of(there)
    database.write_now(linking.link_accounts, port.policies, ANA, phone, ANA, there.nod.clock())
    whose = ConnectionOwner(frozenset({str(ANA), str(phone)}), "telegram:991")
    one = database.read_now(lambda session: port.find(session, "tracker", Identity.PERSON, whose))
    assert one is not None
    assert one.owner == str(ANA)


async def test_a_changed_address_takes_the_tokens_with_it(start: Connect, tracker: Tracker, tmp_path):
    async with start() as nod:
        there = Connectable(nod, tracker)
        await there.connect()
        await there.close()
    write_config(tmp_path, tracker=entry(tracker, url=f"{tracker.url}/moved"))
    async with start() as nod:
        there = Connectable(nod, tracker)
        assert found(there) is None
        await there.sweep()
        assert there.rows() == []
        assert "The address of tracker changed" in there.told()[-1]
        await there.close()


async def test_no_token_stands_in_the_database_in_a_log_or_in_what_people_read(there: Connectable, caplog):
    caplog.set_level("DEBUG")
    await there.connect()
    there.nod.clock.forward(timedelta(hours=2))
    await access(there).get_token()
    told = [*there.told(), (await there.say("")).text, caplog.text]
    told.append(there.nod.app.database.read_now(dump))
    for secret in there.tracker.people.seen:
        assert not [each for each in told if secret in each]
    assert frozenset(there.tracker.people.seen) & access(there).secrets


def dump(session: Session) -> str:
    """All rows of all tables that may hold one."""
    tables = ("connection", "connecting", "revocation", "notice", "audit", "ledger", "dialogue")
    there = [each for each in tables if session.connection().dialect.has_table(session.connection(), each)]
    return "\n".join(str(row) for each in there for row in session.execute(text(f"SELECT * FROM {each}")))


async def test_the_audit_log_has_who_connected_and_ended_what_and_verifies(there: Connectable):
    await there.connect()
    await there.say("end tracker")
    assert there.nod.app.database.read_now(verification.find_faults_in_session) == []


async def test_a_connection_that_no_one_made_is_seen_in_the_audit_log(there: Connectable):
    await there.connect()
    there.nod.app.database.write_now(
        lambda session: session.execute(text("UPDATE connection SET owner = 'slack:T1/U8'"))
    )
    assert there.nod.app.database.read_now(verification.find_faults_in_session)


async def test_where_no_server_asks_for_it_nothing_of_it_is_there(serve):
    async with serve() as nod:
        assert get_connections(nod.app.database) is None
        assert not [each for each in nod.app.sweeps if each.name == "end_connections"]
        command = Command(ANA, "nod", "connections", Address("slack", "T1/D7"))
        said = await nod.app.core.assistant.handle(command)
        assert said.text.startswith("Unknown command")
        listed = (await nod.client.get("/api/connections")).json()
        assert (listed["servers"], listed["connections"]) == ([], [])
    assert [each.name for each in FEATURES].count("connections") == 1


@pytest.mark.parametrize("number", ["", "12345", "abcdef", "no"])
async def test_what_is_no_number_ends_the_sign_in(there: Connectable, number: str):
    await there.digits()
    said = await there.say(f"confirm {number}")
    if number:
        assert "this sign-in has ended" in said.text
    assert there.rows() == []


async def test_a_connection_ends_with_an_account_that_its_platform_no_longer_knows(there: Connectable):
    await there.connect(ANA, "octocat")
    await there.connect(BEN, "hubot")
    asked: list[str] = []

    async def has_account(actor: Actor) -> bool:
        asked.append(str(actor))
        return actor != ANA

    sweep = ConnectionSweep(port_of(there), has_account)
    await sweep.run(there.nod.clock())
    assert [row.owner for row in there.rows()] == [str(BEN)]
    await sweep.run(there.nod.clock())
    assert sorted(asked) == [str(ANA), str(BEN)]  # once a day


async def test_an_admin_connects_an_account_for_a_chat_and_it_moves_with_the_chat(
    start: Connect, tracker: Tracker, tmp_path
):
    write_config(tmp_path, tracker=entry(tracker, identity="place"))
    async with start(NOD_ADMINS=(str(BEN),)) as nod:
        nod.app.channels["slack"] = RecordingChannel("slack")
        there, database, now = Connectable(nod, tracker), nod.app.database, nod.clock()
        assert (await there.say("connect tracker", at="T1/C1")).text == (
            "Only an admin connects an account for a chat."
        )
        said = (await there.say("connect tracker", BEN, at="T1/C1/17.1")).text
        tracker.people.user = "team-bot"
        page = await there.browser().sign_in(said.partition("(")[2].partition(")")[0])
        digits = page.text.split('class="digits"><strong>')[1][:6]
        await there.say(f"confirm {digits}", BEN)
        port = port_of(there)

        def held(place: str) -> Connection | None:
            whose = ConnectionOwner(frozenset({str(ANA)}), place)
            return database.read_now(lambda session: port.find(session, "tracker", Identity.PLACE, whose))

        assert [row.owner for row in there.rows()] == ["slack:T1/C1"]
        assert held("slack:T1/C1/99.9") is not None
        assert held("slack:T1/C2") is None
        old, new = Address("slack", "T1/C1"), Address("slack", "T1/C9")
        database.write_now(ending.move_chat, old, new, now)
        assert held("slack:T1/C9/1.1") is not None
        assert held("slack:T1/C1") is None
        assert database.read_now(verification.find_faults_in_session) == []
        await there.close()
