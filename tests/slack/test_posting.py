"""Posts, cards and their copies: what arrives, what never will, what is tried again."""

from collections.abc import Callable

import pytest

from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.proposals import State
from bot.errors import ChannelError, CopyGone, NotDeliverable
from tests.slack.conftest import Running

Factory = Callable[..., Card]
THREAD = Address("slack", "T1/C1/1700.1")


@pytest.fixture
def transport() -> str:
    return "http"


async def test_long_text_is_posted_in_pieces_without_mentions_or_previews(running: Running) -> None:
    await running.channel.post(THREAD, "<!channel> see https://example.org\n\n" + "word " * 5000)

    posts = running.slack.in_channel("C1")
    assert len(posts) == 3
    assert all(p.thread == "1700.1" and not p.unfurls for p in posts)
    assert "<!" not in posts[0].markdown


async def test_a_card_is_posted_in_the_thread_and_its_copy_redrawn(
    running: Running, card_factory: Factory
) -> None:
    ref = await running.channel.post_card(THREAD, card_factory())
    (posted,) = running.slack.cards("C1")
    assert ref == f"T1/C1/{posted.ts}"
    assert (posted.thread, posted.text) == (
        "1700.1",
        "Change issue 7: Waiting for a decision. Nothing has been changed.",
    )

    await running.channel.redraw_card(THREAD, ref, card_factory(state=State.SUCCEEDED, decided_by="Ana"))
    assert posted.buttons == {}
    assert "Done. Approved by Ana." in posted.words


async def test_a_card_for_a_person_goes_to_their_dm_and_the_copy_knows_it(
    running: Running, card_factory: Factory
) -> None:
    ref = await running.channel.post_card(Address("slack", "T1/U8"), card_factory())

    (posted,) = running.slack.cards("D8")
    assert ref == f"T1/D8/{posted.ts}"


@pytest.mark.parametrize("why", ["is_archived", "not_in_channel", "channel_not_found"])
async def test_where_the_bot_cannot_be_a_card_is_not_deliverable(
    running: Running, card_factory: Factory, why: str
) -> None:
    if why == "channel_not_found":
        del running.slack.channels["C1"]
    else:
        running.slack.channels["C1"].archived = why == "is_archived"
        running.slack.channels["C1"].bot_is_member = why != "not_in_channel"
    with pytest.raises(NotDeliverable, match=why):
        await running.channel.post_card(THREAD, card_factory())


@pytest.mark.parametrize("key", ["T1", "T1/C1/2/3", "/C1", "T9/C1/1.1"])
async def test_an_address_that_is_none_is_not_deliverable(
    running: Running, card_factory: Factory, key: str
) -> None:
    with pytest.raises(NotDeliverable):
        await running.channel.post_card(Address("slack", key), card_factory())


async def test_a_deleted_copy_is_gone(running: Running, card_factory: Factory) -> None:
    ref = await running.channel.post_card(THREAD, card_factory())
    running.slack.posted[-1].deleted = True
    with pytest.raises(CopyGone):
        await running.channel.redraw_card(THREAD, ref, card_factory())


async def test_a_rate_limit_is_waited_out_as_long_as_slack_says(
    running: Running, card_factory: Factory
) -> None:
    running.slack.fail("chat.postMessage", "ratelimited", status=429, retry_after=0)
    await running.channel.post_card(THREAD, card_factory())

    assert len(running.slack.cards("C1")) == 1
    assert len(running.slack.called("chat.postMessage")) == 2


@pytest.mark.parametrize("status", [500, 503])
async def test_a_server_error_is_tried_again(running: Running, card_factory: Factory, status: int) -> None:
    running.slack.fail("chat.postMessage", "fatal_error", status=status)
    await running.channel.post_card(THREAD, card_factory())

    assert len(running.slack.cards("C1")) == 1


async def test_what_may_work_later_is_a_channel_error_only(running: Running, card_factory: Factory) -> None:
    ref = await running.channel.post_card(THREAD, card_factory())
    running.slack.fail("chat.update", "internal_error")
    with pytest.raises(ChannelError) as caught:
        await running.channel.redraw_card(THREAD, ref, card_factory())
    assert type(caught.value) is ChannelError


async def test_blocks_slack_refuses_after_all_fall_back_to_a_brief_card(
    running: Running, card_factory: Factory
) -> None:
    running.slack.fail("chat.postMessage", "invalid_blocks")
    await running.channel.post_card(THREAD, card_factory())

    (posted,) = running.slack.cards("C1")
    assert "could not show this card in full" in posted.words
    assert "Read all, then approve" in posted.buttons


async def test_a_file_is_uploaded_whole_into_the_thread(running: Running) -> None:
    await running.channel.post_file(THREAD, "export.txt", "zeile 1\nä😀\n")

    (posted,) = running.slack.in_channel("C1")
    assert (posted.thread, posted.text, posted.file) == ("1700.1", "export.txt", "zeile 1\nä😀\n")


async def test_a_file_for_a_person_goes_to_their_dm(running: Running) -> None:
    await running.channel.post_file(Address("slack", "T1/U8"), "export.txt", "x")

    (posted,) = running.slack.in_channel("D8")
    assert posted.file == "x"


async def test_where_the_app_may_not_upload_the_words_name_the_scope(running: Running) -> None:
    running.slack.scopes = running.slack.scopes.replace("files:write,", "")
    with pytest.raises(NotDeliverable, match="lacks a scope"):
        await running.channel.post_file(THREAD, "export.txt", "x")


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_an_upload_that_broke_may_work_later(running: Running, method: str) -> None:
    running.slack.fail(method, "internal_error")
    with pytest.raises(ChannelError) as caught:
        await running.channel.post_file(THREAD, "export.txt", "x")
    assert type(caught.value) is ChannelError
    assert running.slack.in_channel("C1") == []
