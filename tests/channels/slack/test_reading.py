"""What the model reads of Slack's messages: tables, alerts of programs, long threads, groups of people."""

from typing import Any

import pytest

from bot.channels.slack.reading import read_attachments, read_full_text, read_message_text
from bot.domain.chat import Address, Answer, Message, Reply
from tests.channels.slack.conftest import Running
from tests.fakes.slack_server import BOT_ID, BOT_USER

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


def last(running: Running) -> Message:
    message = running.core.last
    assert isinstance(message, Message)
    return message


def heard(running: Running) -> str:
    return last(running).text


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


def test_of_a_programs_table_the_caption_and_the_words_for_a_button_are_read():
    button = {"type": "action_cell", "fallback": {"type": "raw_text", "text": "Open"}, "elements": []}
    table = {"type": "data_table", "caption": "Costs <by> team", "rows": [*ROWS[:1], [ROWS[2][0], button]]}
    assert read_full_text({"bot_id": "B9", "blocks": [table]}).splitlines() == [
        "Costs &lt;by&gt; team",
        "| Name | Sum |",
        "| --- | --- |",
        "| x &lt; y | Open |",
    ]


def test_what_slack_writes_in_place_of_blocks_is_not_read_as_words():
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "*TypeError* in checkout"}}
    message = {"bot_id": "B9", "text": "This content can't be displayed.", "blocks": [section]}
    assert read_full_text(message) == "*TypeError* in checkout"


def test_of_a_large_table_it_is_said_what_is_left_out():
    rows = [[{"type": "raw_text", "text": "x" * 50}] * 40] * 500
    said = read_message_text({"blocks": [{"type": "table", "rows": rows}]})
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
    [(_, said)] = read_attachments({"attachments": [ALERT]})
    assert said.splitlines() == [
        "Something burns",
        "Disk is full (https://alerts.example/7)",
        "db-1 has 0 bytes left",
        "Severity: critical",
        "Watcher",
    ]
    assert list(read_attachments({"attachments": [{"fallback": "Disk is full"}]})) == [
        ("someone", "Disk is full")
    ]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "in a block"}}
    assert "in a block" in read_full_text({"bot_id": "B9", "text": "head", "blocks": [section]})
    assert "in a block" in read_full_text({"bot_id": "B9", "attachments": [{"blocks": [section]}]})


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


async def test_files_of_a_thread_are_read_with_the_mention_the_first_and_the_newest_of_many(
    running: Running,
) -> None:
    slack = running.slack
    root = await slack.say("U8", "the bills", channel="C1", files=[slack.attach("0.pdf", b"x")])
    gone = slack.attach("gone.pdf", b"x") | {"mode": "tombstone"}
    for number in range(1, 7):
        more = [slack.attach(f"{number}.pdf", b"x"), gone]
        await slack.say("U9", "", channel="C1", thread=root, files=more)
    own = slack.attach("own.pdf", b"x")
    await slack.mention("U7", "sum up", thread=root, files=[own])
    assert [(each.name, each.earlier) for each in last(running).files] == [
        ("own.pdf", False),
        *((f"{number}.pdf", True) for number in (0, 3, 4, 5, 6)),
    ]
    assert "> Ben: the bills\n> (attached: 0.pdf)\n" in heard(running)
    assert "> Cleo: (attached, not read: 2.pdf)\n" in heard(running)
    assert "> Cleo: (attached: 6.pdf)\n" in heard(running)
    note = "I read 5 of the files in this thread. Attach what else matters."
    assert heard(running).startswith(f"[{note}]")
    await slack.until(lambda: [m for m in slack.posted if m.only_for == "U7" and note in m.words])


async def test_files_that_nod_was_given_before_and_its_own_are_not_read_again(running: Running) -> None:
    slack = running.slack
    root = await slack.say("U8", "the bills", channel="C1", files=[slack.attach("old.pdf", b"x")])
    answer = {"bot_id": BOT_ID, "files": [slack.attach("own.txt", b"x")]}
    slack._message(BOT_USER, "Read.", "C1", root, answer)
    await slack.say("U9", "one more", channel="C1", thread=root, files=[slack.attach("new.pdf", b"x")])
    await slack.mention("U7", "and now?", thread=root)
    assert [each.name for each in last(running).files] == ["new.pdf"]


async def test_files_of_another_program_in_a_followed_thread_are_read_with_the_next_words(
    running: Running,
) -> None:
    running.core.followed = {Address("slack", "T1/C1/1700.1")}
    program = {"bot_id": "B9", "username": "CI", "files": [running.slack.attach("build.log", b"x")]}
    await running.slack.say("U8", "Build failed", channel="C1", thread="1700.1", **program)
    await running.slack.say("U7", "why?", channel="C1", thread="1700.1")
    assert "> CI: Build failed\n> (attached: build.log)" in heard(running)
    assert [(each.name, each.earlier) for each in last(running).files] == [("build.log", True)]
    await running.slack.say("U7", "thanks", channel="C1", thread="1700.1")
    assert last(running).files == ()


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
