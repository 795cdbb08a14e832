"""A private channel that Slack gives another id stays the chat that it was, for all but Slack."""

from collections.abc import Callable

from bot.channels.slack.moved_chats import ChannelMoves
from bot.domain.cards import Card
from bot.domain.chat import Address, Command, Message, Press
from bot.store.database import Database
from tests.channels.slack.conftest import Running
from tests.fakes.slack_state import Channel
from tests.kit import FakeClock

OLD, NEW = "G5", "C9"
HERE = Address("slack", f"T1/{OLD}")


async def test_its_threads_commands_posts_and_cards_keep_their_address(
    running: Running, card_factory: Callable[..., Card]
) -> None:
    running.slack.channels[OLD] = Channel("board", private=True)
    ts = await running.slack.mention("U7", "close the roof", channel=OLD)
    thread = Address("slack", f"T1/{OLD}/{ts}")
    running.core.cards["p1"] = card_factory()
    ref = await running.channel.post_card(thread, running.core.cards["p1"])
    assert (await running.slack.share(OLD, NEW)).status == 200

    await running.slack.mention("U7", "and the door", channel=NEW, thread=ts)
    message = running.core.last
    assert isinstance(message, Message)
    assert message.address == thread

    (card,) = running.slack.cards(NEW)
    await running.slack.click(card, "Approve")
    press = running.core.last
    assert isinstance(press, Press)
    assert (press.address, press.ref) == (thread, ref)

    await running.slack.slash("U7", "/approvals", f"policy always in <#{NEW}|board>", channel=NEW)
    command = running.core.last
    assert isinstance(command, Command)
    assert (command.address, command.text) == (HERE, f"policy always in {HERE}")

    await running.channel.post(HERE, "It is done")
    again = await running.channel.post_card(HERE, running.core.cards["p1"])
    assert again.startswith(f"T1/{OLD}/")
    await running.channel.redraw_card(thread, ref, card_factory(description="Change issue 8"))
    assert {message.channel for message in running.slack.posted} == {NEW}
    assert "Change issue 8" in str(card.blocks)


async def test_what_people_wrote_is_not_changed(running: Running) -> None:
    running.slack.channels[OLD] = Channel("board", private=True)
    await running.slack.share(OLD, NEW)
    await running.slack.mention("U7", NEW, channel=NEW)
    message = running.core.last
    assert isinstance(message, Message)
    assert message.text == NEW
    await running.channel.post(HERE, f"{OLD} was its id")
    (posted,) = running.slack.in_channel(NEW)
    assert f"{OLD} was its id" in str(posted)


async def test_a_move_is_of_one_workspace_and_known_after_a_restart(
    database: Database, clock: FakeClock
) -> None:
    await ChannelMoves(database, clock).remember_move("T1", OLD, NEW)
    moves = ChannelMoves(database, clock)
    await moves.load()
    said = {"channel": NEW, "container": {"channel_id": NEW}, "text": f"<#{NEW}|board>"}
    known = {"channel": OLD, "container": {"channel_id": OLD}, "text": f"<#{OLD}|board>"}
    assert moves.from_slack("T1", said) == known
    assert moves.to_slack("T1", known) == said
    assert moves.from_slack("T2", said) == said


async def test_a_channel_that_moves_twice_keeps_its_first_id(database: Database, clock: FakeClock) -> None:
    moves = ChannelMoves(database, clock)
    await moves.remember_move("T1", OLD, NEW)
    await moves.remember_move("T1", NEW, "C10")
    assert moves.to_slack("T1", {"channel": OLD}) == {"channel": "C10"}
    assert moves.from_slack("T1", {"channel": "C10"}) == {"channel": OLD}


async def test_what_is_no_id_teaches_nothing(running: Running) -> None:
    changed = {"type": "channel_id_changed", "old_channel_id": OLD, "new_channel_id": "C9/../x"}
    assert (await running.slack.deliver_event(changed)).status == 200
    assert (await running.slack.deliver_event({"type": "channel_id_changed"})).status == 200
    running.slack.channels[OLD] = Channel("board", private=True)
    await running.channel.post(HERE, "still here")
    assert len(running.slack.in_channel(OLD)) == 1
