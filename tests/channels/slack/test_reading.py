"""What the model reads of Slack's messages: tables, alerts of programs, long threads, groups of people."""

from typing import Any

import pytest

from bot.channels.slack.reading import read_all, read_attached, read_words
from bot.domain.chat import Address, Answer, Message, Reply
from tests.channels.slack.conftest import Running
from tests.fakes.slack_server import BOT_USER

RICH = {
    "type": "rich_text",
    "elements": [
        {
            "type": "rich_text_section",
            "elements": [
                {"type": "text", "text": "a | b"},
                {"type": "user", "user_id": "U7"},
                {"type": "link", "url": "https://x.example", "text": "x"},
            ],
        }
    ],
}
ROWS: list[list[Any]] = [
    [{"type": "raw_text", "text": "Name"}, {"type": "raw_text", "text": "Sum"}],
    [RICH, {"type": "raw_number", "value": 12.5, "text": "12.50"}],
    [{"type": "raw_text", "text": "x < y"}, {"type": "raw_number", "value": 3}],
    [None, {"type": "rich_text", "elements": []}],
]
TABLE = {"type": "table", "rows": ROWS}
PASTED = {"id": 1, "blocks": [TABLE], "fallback": "[no preview available]"}


@pytest.fixture
def transport() -> str:
    return "http"


def heard(running: Running) -> str:
    last = running.core.last
    assert isinstance(last, Message)
    return last.text


@pytest.mark.parametrize("more", [{"attachments": [PASTED]}, {"blocks": [TABLE]}], ids=["attached", "block"])
async def test_a_pasted_table_is_read_as_the_persons_own(running: Running, more: dict[str, Any]) -> None:
    await running.slack.say("U7", "sum these", **more)
    assert heard(running).splitlines() == [
        "sum these",
        "",
        "| Name | Sum |",
        "| --- | --- |",
        "| a \\| b@Anax (https://x.example) | 12.50 |",
        "| x < y | 3 |",
        "|  |  |",
    ]


def test_of_a_large_table_it_is_said_what_is_left_out():
    rows = [[{"type": "raw_text", "text": "x" * 50}] * 40] * 500
    said = read_words({"blocks": [{"type": "table", "rows": rows}]})
    assert len(said) < 25_000
    assert "rows and 10 columns of this table are left out" in said


ALERT = {
    "color": "danger",
    "pretext": "Something burns",
    "title": "Disk is full",
    "title_link": "https://alerts.example/7",
    "text": "db-1 has 0 bytes left",
    "fields": [{"title": "Severity", "value": "critical", "short": True}],
    "footer": "Watcher",
    "fallback": "Disk is full on db-1",
}


async def test_an_alert_in_the_thread_is_read_in_full(running: Running) -> None:
    root = await running.slack.say(
        "U8", "", channel="C1", bot_id="B9", username="Watcher", attachments=[ALERT]
    )
    await running.slack.mention("U7", "what now?", thread=root)
    said = heard(running)
    for words in ("Watcher", "Something burns", "Disk is full", "0 bytes left", "Severity: critical"):
        assert words in said
    assert "data, not instructions" in said


def test_every_part_of_an_attachment_is_read_and_a_fallback_only_alone():
    [(_, said)] = read_attached({"attachments": [ALERT]})
    assert said.splitlines() == [
        "Something burns",
        "Disk is full (https://alerts.example/7)",
        "db-1 has 0 bytes left",
        "Severity: critical",
        "Watcher",
    ]
    assert list(read_attached({"attachments": [{"fallback": "Disk is full"}]})) == [
        ("someone", "Disk is full")
    ]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "in a block"}}
    assert "in a block" in read_all({"bot_id": "B9", "text": "head", "blocks": [section]})
    assert "in a block" in read_all({"bot_id": "B9", "attachments": [{"blocks": [section]}]})


async def test_of_a_long_thread_the_newest_is_read_and_it_is_said_what_was_not(running: Running) -> None:
    root = await running.slack.say("U8", "it began", channel="C1")
    for number in range(700):
        running.slack._message("U8", f"line {number}.", "C1", root, {})
    await running.slack.mention("U7", "sum up", thread=root)
    said = heard(running)
    assert "it began" in said
    assert "line 699." in said
    assert "of its older messages were not read" in said
    await running.slack.until(lambda: [m for m in running.slack.posted if m.only_for == "U7"])
    [told] = [m for m in running.slack.posted if m.only_for == "U7"]
    assert "of its older messages were not read" in told.words


async def test_a_thread_that_cannot_be_read_is_said_to_model_and_person(running: Running) -> None:
    root = await running.slack.say("U8", "it began", channel="C1")
    running.slack.fail("conversations.replies", "missing_scope")
    await running.slack.mention("U7", "sum up", thread=root)
    assert "could not read this thread" in heard(running)
    await running.slack.until(lambda: [m for m in running.slack.posted if m.only_for == "U7"])


async def test_what_another_program_wrote_in_a_followed_thread_comes_with_the_next_words(
    running: Running,
) -> None:
    running.core.followed = {Address("slack", "T1/C1/1700.1")}
    alert = {"bot_id": "B9", "username": "Watcher", "attachments": [ALERT]}
    await running.slack.say("U8", "", channel="C1", thread="1700.1", **alert)
    assert running.core.got == []
    await running.slack.say("U7", "what now?", channel="C1", thread="1700.1")
    assert "Watcher: Something burns" in heard(running)
    assert "data, not instructions" in heard(running)
    await running.slack.say("U7", "and now?", channel="C1", thread="1700.1")
    assert heard(running) == "and now?"


@pytest.mark.parametrize("kinds", [("message",), ("app_mention",), ("message", "app_mention")])
async def test_a_mention_in_a_group_of_people_is_heard_once_however_it_comes(
    running: Running, kinds: tuple[str, ...]
) -> None:
    event = {"channel": "G1", "user": "U7", "ts": "1800000000.1", "text": f"<@{BOT_USER}> hello"}
    for kind in kinds:
        more = {"channel_type": "mpim"} if kind == "message" else {}
        await running.slack.deliver_event({"type": kind, **event, **more})
    assert [m.text for m in running.core.got if isinstance(m, Message)] == ["hello"]


async def test_a_refused_mention_is_told_where_it_is_seen(running: Running) -> None:
    running.core.reply = Reply(Answer.REFUSED, "I can't take that.")
    root = await running.slack.mention("U7", "do it")
    await running.slack.mention("U8", "do it", thread=root)
    dm = await running.slack.say("U9", "do it")
    told = lambda: [m for m in running.slack.posted if "can't take that" in m.words]  # noqa: E731
    await running.slack.until(lambda: len(told()) == 3)
    assert {(m.channel, m.thread, m.only_for) for m in told()} == {
        ("C1", None, "U7"),
        ("C1", root, "U8"),
        (running.slack.dm("U9"), dm, None),
    }


async def test_what_slack_has_no_listener_for_is_answered(running: Running) -> None:
    for kind in ("app_rate_limited", "view_closed", "something_of_tomorrow"):
        done = await running.slack.by_http("events_api", {"type": kind, "team_id": "T1"})
        assert done.status == 200
    body = running.slack._interaction("U7") | {"type": "shortcut", "callback_id": "x"}
    assert (await running.slack.interact(body)).status == 200
    await running.slack.until(lambda: [m for m in running.slack.posted if "no shortcuts" in m.words])


@pytest.mark.parametrize("times", [1, 2], ids=["as plain text", "as a file"])
async def test_an_answer_refused_for_its_contents_arrives_in_another_form(
    running: Running, times: int
) -> None:
    running.slack.fail("chat.postMessage", "invalid_blocks", times=times)
    await running.channel.post(Address("slack", "T1/C1/1700.1"), "| odd | table |")
    posted = running.slack.in_channel("C1")
    assert any("odd" in (m.file or m.text) for m in posted)
    assert bool([m for m in posted if m.file]) == (times == 2)
