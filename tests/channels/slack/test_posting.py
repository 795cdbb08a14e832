"""Posts, cards and their copies: what arrives, what never will, what is tried again."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.channels.slack.channel import SlackChannel
from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store.database import Database
from tests.channels.slack.conftest import Running, Silent, settings_for
from tests.kit import FakeClock

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


async def test_a_long_text_is_continued_after_the_post_that_slack_refused(running: Running) -> None:
    slack, words = running.slack, " ".join(f"word{n}" for n in range(4000))
    slack.fail("chat.postMessage", status=503, after=1)
    with pytest.raises(ChannelError) as refused:
        await running.channel.post(THREAD, words)
    await running.channel.post(THREAD, words, refused.value.arrived)

    assert " ".join(p.markdown for p in slack.in_channel("C1")) == words


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
    assert list(posted.buttons) == ["Details"]
    assert "Done. Approved by Ana." in posted.words


async def test_a_reminder_stands_below_the_card_links_to_it_and_mentions_those_who_decide(
    running: Running, card_factory: Factory
) -> None:
    ref = await running.channel.post_card(THREAD, card_factory())
    (card,) = running.slack.cards("C1")
    people = (Actor("slack", "T1/U7", "Ana"), Actor("slack", "T2/U9", "Eve"), Actor("telegram", "5", "Ben"))
    await running.channel.remind(THREAD, ref, r"Expires in 5 min if no one decides: \<Paint\>", people)

    reminder = running.slack.in_channel("C1")[-1]
    link = f"https://team.slack.com/archives/C1/p{card.ts.replace('.', '')}"
    assert reminder.thread == "1700.1"
    assert reminder.text.startswith("<@U7> Expires in 5 min if no one decides:")
    assert [each["text"] for each in reminder.blocks] == [
        r"Expires in 5 min if no one decides: \<Paint\>",
        {"type": "mrkdwn", "text": f"<@U7> <{link}|Show the card>"},
    ]


async def test_a_models_answer_below_the_card_keeps_its_markup_and_notifies_no_one(
    running: Running, card_factory: Factory
) -> None:
    ref = await running.channel.post_card(THREAD, card_factory())
    said = "**No.** <!channel> see [https://good.example](https://evil.example)"
    await running.channel.remind(THREAD, ref, said, ())

    shown = running.slack.in_channel("C1")[-1].blocks[0]
    assert shown["type"] == "markdown"
    assert shown["text"].startswith(
        "**No.** <\u200b!channel> see https://good.example (https://evil.example)"
    )


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
async def test_an_address_that_is_not_one_is_not_deliverable(
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


async def test_what_slack_told_another_process_to_wait_is_waited_here_too(
    running: Running, card_factory: Factory
) -> None:
    slack: Any = running.channel
    slack._workspaces.waits.note_wait("T1 chat.postMessage C1", 0.3)
    began = time.monotonic()
    await running.channel.post_card(THREAD, card_factory())
    assert time.monotonic() - began >= 0.3


async def test_what_slack_would_let_wait_for_an_hour_is_refused_and_nothing_else_waits(
    running: Running, card_factory: Factory
) -> None:
    running.slack.fail("chat.postMessage", "ratelimited", status=429, retry_after=3600)
    for _ in range(2):
        with pytest.raises(ChannelError, match="slow down"):
            await running.channel.post_card(THREAD, card_factory())
    await running.channel.post_card(Address("slack", "T1/C2/1.1"), card_factory())

    assert [m["channel"] for m in running.slack.called("chat.postMessage")] == ["C1", "C2"]
    assert not running.slack.called("conversations.replies")  # what was refused was not posted


@pytest.mark.parametrize("status", [500, 503])
async def test_a_redraw_that_met_a_server_error_is_tried_again(
    running: Running, card_factory: Factory, status: int
) -> None:
    ref = await running.channel.post_card(THREAD, card_factory())
    running.slack.fail("chat.update", "fatal_error", status=status)
    await running.channel.redraw_card(THREAD, ref, card_factory(state=State.SUCCEEDED, decided_by="Ana"))

    assert "Done. Approved by Ana." in running.slack.cards("C1")[0].words


@pytest.mark.parametrize("key", ["T1/C1/1700.1", "T1/C2", "T1/U8", "T1/D8/1700.1"])
@pytest.mark.parametrize("how", [{"cut_off": True}, {"status": 503}, {"error": "internal_error"}])
async def test_a_card_that_slack_posted_without_saying_so_is_found_and_not_posted_again(
    running: Running, card_factory: Factory, key: str, how: dict[str, Any]
) -> None:
    there = Address("slack", key)
    running.slack.fail("chat.postMessage", acts=True, **how)
    with pytest.raises(ChannelError):
        await running.channel.post_card(there, card_factory())
    ref = await running.channel.post_card(there, card_factory(round=2, reason="Ben asked, too"))

    (posted,) = [m for m in running.slack.posted if m.blocks]
    assert ref == f"T1/{posted.channel}/{posted.ts}"
    assert "Ben asked, too" in posted.words


@pytest.mark.parametrize("key", ["T1/C1/1700.1", "T1/C2", "T1/U8"])
@pytest.mark.parametrize("how", [{"cut_off": True}, {"status": 503}, {"error": "internal_error"}])
async def test_a_text_that_slack_posted_without_saying_so_is_found_and_not_posted_again(
    running: Running, key: str, how: dict[str, Any]
) -> None:
    there, words = Address("slack", key), " ".join(f"word{n}" for n in range(4000))
    await running.channel.post(there, "Said before.")
    running.slack.fail("chat.postMessage", acts=True, after=1, **how)
    with pytest.raises(ChannelError) as refused:
        await running.channel.post(there, words)
    await running.channel.post(there, words, refused.value.arrived)
    await running.channel.post(there, "Said before.")

    said = [each.markdown for each in running.slack.posted]
    assert " ".join(said) == f"Said before. {words} Said before."


async def test_a_card_posted_right_before_a_crash_is_found_after_it(
    running: Running, card_factory: Factory, clock: FakeClock, database: Database
) -> None:
    ref = await running.channel.post_card(THREAD, card_factory())
    clock.forward(timedelta(minutes=1))
    after = SlackChannel(settings_for(running.slack), database, clock)
    await after.start(running.core.inbox, running.core)

    assert await after.post_card(THREAD, card_factory()) == ref
    assert await after.post_card(THREAD, card_factory(id="p2")) != ref
    await after.stop()


@pytest.mark.parametrize("refusal", ["missing_scope", "ratelimited"])
async def test_where_nod_may_not_look_a_card_is_posted_again_rather_than_never(
    running: Running, card_factory: Factory, refusal: str
) -> None:
    running.slack.fail("chat.postMessage", cut_off=True, acts=True)
    with pytest.raises(ChannelError):
        await running.channel.post_card(THREAD, card_factory())
    running.slack.fail("conversations.replies", refusal)
    await running.channel.post_card(THREAD, card_factory())

    assert len(running.slack.cards("C1")) == 2


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
    assert "View all, then approve" in posted.buttons


async def test_a_file_is_uploaded_whole_into_the_thread(running: Running) -> None:
    await running.channel.post_file(THREAD, "export.txt", "zeile 1\nä😀\n")

    (posted,) = running.slack.in_channel("C1")
    assert (posted.thread, posted.text, posted.file) == ("1700.1", "export.txt", "zeile 1\nä😀\n")


async def test_a_file_for_a_person_goes_to_their_dm(running: Running) -> None:
    await running.channel.post_file(Address("slack", "T1/U8"), "export.txt", b"x")

    (posted,) = running.slack.in_channel("D8")
    assert posted.file == "x"


async def test_where_the_app_may_not_upload_the_words_name_the_scope(running: Running) -> None:
    running.slack.scopes = running.slack.scopes.replace("files:write,", "")
    with pytest.raises(NotDeliverable, match="lacks a scope"):
        await running.channel.post_file(THREAD, "export.txt", "x")


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_an_upload_that_failed_may_work_later(running: Running, method: str) -> None:
    running.slack.fail(method, "internal_error")
    with pytest.raises(ChannelError) as caught:
        await running.channel.post_file(THREAD, "export.txt", "x")
    assert type(caught.value) is ChannelError
    assert running.slack.in_channel("C1") == []


async def test_a_card_that_a_process_posted_which_is_gone_is_not_posted_again_by_one_that_lived_on(
    running: Running, card_factory: Factory, database: Database, clock: FakeClock
) -> None:
    survivor = SlackChannel(settings_for(running.slack), database, clock)
    await survivor.start(running.core.inbox, running.core, others=Silent())
    clock.forward(timedelta(minutes=1))
    card = card_factory(created_at=clock())
    ref = await running.channel.post_card(THREAD, card)
    clock.forward(timedelta(seconds=8))
    assert await survivor.post_card(THREAD, card) == ref
    assert len(running.slack.cards("C1")) == 1
    await survivor.stop()


@pytest.mark.parametrize(
    "code",
    [
        "access_denied",
        "enterprise_is_restricted",
        "invalid_arguments",
        "message_limit_exceeded",
        "org_login_required",
        "restricted_action_read_only_channel",
        "storage_limit_reached",
        "what_slack_adds_next_year",
    ],
)
async def test_a_refusal_is_final_unless_it_is_known_to_pass(
    running: Running, card_factory: Factory, code: str
) -> None:
    running.slack.fail("chat.postMessage", code)
    with pytest.raises(NotDeliverable):
        await running.channel.post_card(THREAD, card_factory())
    ref = await running.channel.post_card(THREAD, card_factory())
    running.slack.fail("chat.update", code)
    with pytest.raises(NotDeliverable):
        await running.channel.redraw_card(THREAD, ref, card_factory(state=State.SUCCEEDED))


@pytest.mark.parametrize("code", ["internal_error", "fatal_error", "service_unavailable", "invalid_auth"])
async def test_a_refusal_that_may_pass_is_no_final_one(
    running: Running, card_factory: Factory, code: str
) -> None:
    running.slack.fail("chat.postMessage", code)
    with pytest.raises(ChannelError) as refused:
        await running.channel.post_card(THREAD, card_factory())
    assert not isinstance(refused.value, NotDeliverable)
    await running.channel.post_card(THREAD, card_factory())


@pytest.mark.parametrize("code", ["cannot_reply_to_message", "thread_not_found"])
async def test_where_a_thread_takes_no_reply_the_channel_gets_it(
    running: Running, card_factory: Factory, code: str
) -> None:
    running.slack.fail("chat.postMessage", code)
    await running.channel.post_card(THREAD, card_factory())
    running.slack.fail("chat.postMessage", code)
    await running.channel.post(THREAD, "Hello.")
    assert [posted.thread for posted in running.slack.in_channel("C1")] == [None, None]
