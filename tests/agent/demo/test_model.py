"""The offline demo model: what it understands, proposes and tells, with the tracker's real tools."""

import json

import pytest

from bot.agent.demo.model import DemoModel, respond
from bot.agent.demo.sentences import EXAMPLES, MAX_MESSAGE_CHARS, Wish, read_message
from bot.domain.model import (
    AssistantText,
    Finished,
    StopReason,
    SystemText,
    Text,
    ToolResult,
    ToolSpec,
    UserText,
)
from bot.errors import ToolError
from bot.features.issues.tools import make_issue_toolset
from bot.tools.call import CallContext

SYSTEM = SystemText("You are Nod.")


class Talk:
    """A conversation in which reads run for real and writes end as the test says."""

    def __init__(self, tools) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.offered = tuple(tool.spec for tool in tools)
        self.transcript = [SYSTEM]
        self.model = DemoModel(pace=0)
        self.looked_up = []

    def without(self, *names: str) -> "Talk":
        self.offered = tuple(spec for spec in self.offered if spec.name not in names)
        return self

    async def say(self, text: str, name: str = "Zoe"):
        """Give the model a message; its text and proposed writes (without reasons) come back."""
        self.transcript.append(UserText(text, name))
        return await self.go_on()

    async def end(self, *results: str) -> str:
        """End the proposals, in order; gives what the model says about it."""
        calls = self.transcript[-1].calls
        self.transcript += [ToolResult(c.id, text) for c, text in zip(calls, results, strict=True)]
        return (await self.go_on())[0]

    async def go_on(self):
        said = []
        while True:
            *texts, finished = [part async for part in self.model.stream(self.transcript, self.offered)]
            assert all(isinstance(part, Text) for part in texts)
            assert isinstance(finished, Finished)
            assert finished.stop is StopReason.FINISHED
            text = "".join(part.text for part in texts)
            said.append(text)
            self.transcript.append(AssistantText(text, finished.calls))
            assert {call.name for call in finished.calls} <= {spec.name for spec in self.offered}
            reads = [call for call in finished.calls if self.tools[call.name].reads]
            if not reads:
                return "\n".join(filter(None, said)), [self._proposed(call) for call in finished.calls]
            self.looked_up += [call.name for call in reads]
            for call in reads:
                self.transcript.append(ToolResult(call.id, await self._read(call)))

    def _proposed(self, call):
        arguments = json.loads(call.arguments)
        reason = arguments.pop("approval_reason")
        assert reason.startswith("Requested by Zoe: “")
        return call.name, self.tools[call.name].validate(arguments)

    async def _read(self, call) -> str:
        tool = self.tools[call.name]
        try:
            output = await tool.run(tool.validate(json.loads(call.arguments)), CallContext("c", "x"))
        except ToolError as error:
            return f"ERROR: {error}"
        return output.text


@pytest.fixture
async def talk(database, clock):
    """Four issues: #1 Login page is slow (Ana), #2 Login fails (Sam, web), #3 Docs, #4 Old (closed)."""
    tools = await make_issue_toolset(database, clock).tools()
    by_name = {tool.name: tool for tool in tools}
    seed = [
        ("create_issue", {"title": "Login page is slow", "assignee": "Ana"}),
        (
            "create_issue",
            {"title": "Login fails", "assignee": "Sam", "labels": ["web"], "priority": "urgent"},
        ),
        ("create_issue", {"title": "Docs are thin"}),
        ("create_issue", {"title": "Old printer"}),
        ("close_issue", {"number": 4}),
    ]
    for name, arguments in seed:
        await by_name[name].run(by_name[name].validate(arguments), CallContext("seed", "seed"))
    return Talk(tools)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (
            "close #2 and #4, and assign #3 to Ana",
            [
                ("close_issue", {"number": 2}),
                ("close_issue", {"number": 4}),
                ("update_issue", {"number": 3, "assignee": "Ana"}),
            ],
        ),
        (
            "create an issue 'Login fails' and assign it to Sam with high priority",
            [("create_issue", {"title": "Login fails", "assignee": "Sam", "priority": "high"})],
        ),
        (
            "create an issue titled “Login fails” with high priority",
            [("create_issue", {"title": "Login fails", "priority": "high"})],
        ),
        (
            'Could you please file an urgent bug "Can\'t log in" labelled auth, web and assigned to Ana?',
            [
                (
                    "create_issue",
                    {
                        "title": "Can't log in",
                        "assignee": "Ana",
                        "priority": "urgent",
                        "labels": ["auth", "bug", "web"],
                    },
                )
            ],
        ),
        (
            "create an issue 'close #2 and delete #3'",
            [("create_issue", {"title": "close #2 and delete #3"})],
        ),
        ("make #3 urgent", [("update_issue", {"number": 3, "priority": "urgent"})]),
        ("set the priority of #3 to high", [("update_issue", {"number": 3, "priority": "high"})]),
        ("reassign #3 to me", [("update_issue", {"number": 3, "assignee": "Zoe"})]),
        (
            "assign 3 to Ana and make it urgent",
            [("update_issue", {"number": 3, "assignee": "Ana", "priority": "urgent"})],
        ),
        ("rename #3 to 'Better docs'", [("update_issue", {"number": 3, "title": "Better docs"})]),
        (
            "comment on #3: looks good, close it and tell Bob",
            [("comment_issue", {"number": 3, "body": "looks good, close it and tell Bob"})],
        ),
        ("reopen #4", [("update_issue", {"number": 4, "state": "open"})]),
        ("delete #1, #2 and #3", [("delete_issue", {"number": n}) for n in (1, 2, 3)]),
    ],
)
async def test_a_sentence_becomes_proposals_the_tools_accept(talk, said, wanted):
    text, proposed = await talk.say(said)
    defaults = {"create_issue": {"body": "", "assignee": "", "priority": "normal", "labels": []}}
    assert proposed == [(name, defaults.get(name, {}) | arguments) for name, arguments in wanted]
    assert text.startswith("I'd like to ")
    assert "card" not in text  # whether there is one is judged after this


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("list issues", {}),
        ("show all issues", {}),
        ("show open issues", {"state": "open"}),
        ("list closed issues labelled bug", {"state": "closed", "label": "bug"}),
        ("what is Ana working on?", {"assignee": "Ana"}),
        ("what are my open issues?", {"state": "open", "assignee": "Zoe"}),
    ],
)
def test_lists_are_narrowed_as_said(said, wanted):
    (wish,) = read_message(said, speaker="Zoe")
    assert (wish.tool, wish.arguments) == ("list_issues", wanted)


async def test_a_list_is_shown_as_a_list(talk):
    text, proposed = await talk.say("list open issues")
    assert proposed == []
    assert "- **#2** Login fails (open · Sam · urgent · web)" in text
    assert "Old printer" not in text


async def test_a_search_that_finds_nothing_says_so(talk):
    assert "no issue about “spaceship”" in (await talk.say("search for spaceship"))[0]


async def test_one_issue_is_shown_in_full(talk):
    assert "**#1** Login page is slow" in (await talk.say("show #1"))[0]


async def test_an_issue_that_does_not_exist_is_told(talk):
    assert "There is no issue #99" in (await talk.say("show #99"))[0]


async def test_workload_says_who_has_most(talk):
    text, _ = await talk.say("Who has the most work?")
    assert "- Sam: 1 open, 1 urgent" in text


async def test_an_issue_described_in_words_is_looked_up_first(talk):
    text, proposed = await talk.say("close the docs issue")
    assert talk.looked_up == ["search_issues"]
    assert proposed == [("close_issue", {"number": 3})]
    assert "I'd like to close #3" in text


async def test_a_description_that_fits_several_issues_is_asked_back(talk):
    text, proposed = await talk.say("close the login issue")
    assert proposed == []
    assert "Several issues fit “close the login issue”" in text
    assert "- → show #1" in text
    assert "**#1**" in text
    assert "**#2**" in text


async def test_an_exact_title_wins_over_others_that_fit(talk):
    assert (await talk.say("delete 'Login fails'"))[1] == [("delete_issue", {"number": 2})]


async def test_a_description_that_fits_nothing_changes_nothing(talk):
    text, proposed = await talk.say("close the printer issue")  # it is closed already
    assert proposed == []
    assert "no such issue" in text


async def test_only_closed_issues_are_reopened_by_description(talk):
    assert (await talk.say("reopen the printer issue"))[1] == [
        ("update_issue", {"number": 4, "state": "open"})
    ]


async def test_adding_a_label_keeps_those_there_are(talk):
    _, proposed = await talk.say("label #2 bug")
    assert talk.looked_up == ["get_issue"]
    assert proposed == [("update_issue", {"number": 2, "labels": ["bug", "web"]})]


async def test_removing_a_label_keeps_the_others(talk):
    assert (await talk.say("remove the label web from 'Login fails'"))[1] == [
        ("update_issue", {"number": 2, "labels": []})
    ]


async def test_labels_of_an_issue_that_cannot_be_read_are_not_touched(talk):
    text, proposed = await talk.say("label #99 bug")
    assert proposed == []
    assert "There is no issue #99" in text


async def test_reads_and_writes_in_one_message_are_both_done(talk):
    text, proposed = await talk.say("list issues of Ana and close #3")
    assert "**#1** Login page is slow" in text
    assert proposed == [("close_issue", {"number": 3})]


async def test_it_means_the_issue_spoken_of_last(talk):
    await talk.say("show #2")
    assert (await talk.say("close it"))[1] == [("close_issue", {"number": 2})]


async def test_without_an_issue_it_is_asked_back(talk):
    text, proposed = await talk.say("close it")
    assert proposed == []
    assert "Which issue" in text


@pytest.mark.parametrize(
    "said", ["close all issues", "create an issue", "assign #1 to me", "close #2 unless #3 is open"]
)
async def test_what_is_unclear_is_asked_in_its_own_words_and_nothing_is_proposed(talk, said):
    talk.transcript.append(UserText(said))
    text, proposed = await talk.go_on()
    assert proposed == []
    assert f"“{said}”" in text


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ("close #2 and sing a song", "sing a song"),
        ("close #2. If Ana agrees, close #3", "If Ana agrees"),
        ("close #2, but not #3", "but not #3"),
    ],
)
async def test_where_a_part_is_not_understood_nothing_is_done_and_what_comes_before_it_is_offered(
    talk, said, lost
):
    text, proposed = await talk.say(said)
    assert proposed == []
    assert text.startswith(f"I didn't understand “{lost}”, so I've done nothing yet.")
    assert "\n- → close #2\n" in text


@pytest.mark.parametrize(
    "said",
    [
        "close #2 unless Sam objects",
        "assign #2 to Ana if she has time",
        "close #1 or #2",
        "close issues 2 to 900",
        "list issues that are not urgent",
        "create an issue 'A' for Ana assigned to Sam",
    ],
)
async def test_a_sentence_that_is_understood_in_part_is_not_followed_in_part(talk, said):
    text, proposed = await talk.say(said)
    assert proposed == []
    assert text.startswith(f"I didn't understand “{said}”. ")


async def test_a_part_that_was_not_understood_is_said_even_where_others_follow_it(talk):
    text, proposed = await talk.say("sing a song, then close #2")
    assert proposed == []
    assert text.startswith("I didn't understand “sing a song”, so I've done nothing yet. ")


@pytest.mark.parametrize("said", ["what's the weather", "🙂", "SUCCEEDED: all done"])
async def test_anything_else_is_quoted_with_three_sentences_to_press(talk, said):
    text, proposed = await talk.say(said)
    assert proposed == []
    assert text.startswith(f"I didn't understand “{said}”. I'm a scripted demo")
    assert text.count("\n- → ") == 3


async def test_sentences_to_press_are_the_nearest(talk):
    text, _ = await talk.say("who has lots of wrk")
    assert "- → who has the most work?" in text


async def test_a_message_that_is_too_long_is_not_read_in_part(talk):
    text, proposed = await talk.say("close #2 " + "x" * MAX_MESSAGE_CHARS)
    assert proposed == []
    assert text == "That is too long for me: I read at most 2,000 characters. Please split it."


@pytest.mark.parametrize(
    "piece",
    [
        "close #2 and ",
        "1, ",
        "and ",
        "the ",
        "'",
        '"x" ',
        "label #1 a, b, ",
        "make a bug ",
        "x" * 40 + " ",
        "of xof ",
    ],
)
async def test_a_hostile_message_is_answered(talk, piece):
    """Each repetition is bounded, and so is the message."""
    assert (await talk.say((piece * MAX_MESSAGE_CHARS)[:MAX_MESSAGE_CHARS]))[0]


async def test_each_example_that_it_offers_is_understood(talk):
    said = [
        each
        for each in EXAMPLES
        if not read_message(each, "Zoe") or "understand" in str(read_message(each, "Zoe"))
    ]
    assert said == []


def test_a_fact_to_remember_is_taken_word_for_word():
    said = "please remember that releases are on Thursdays"
    text, [call] = respond([SYSTEM, UserText(said)], (ToolSpec("remember", "", {}),))
    assert text == "I'd like to remember “releases are on Thursdays”."
    wanted = json.loads(call.arguments)
    assert (call.name, wanted["fact"], wanted["about"]) == ("remember", "releases are on Thursdays", "team")


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ("4", "16:00"),
        ("7:30", "19:30"),
        ("8", "08:00"),
        ("07:00", "07:00"),
        ("04", "04:00"),
        ("00:30", "00:30"),
        ("19", "19:00"),
        ("23:59", "23:59"),
    ],
)
def test_an_hour_is_of_the_afternoon_unless_it_is_written_with_two_digits(said, at):
    [reminder] = read_message(f"remind me tomorrow at {said} to call Sam")
    assert reminder == Wish("schedule_task", {"at": f"tomorrow {at}", "task": "remind me to call Sam"})


@pytest.mark.parametrize("said", ["24", "25", "29:30", "123"])
def test_an_hour_that_no_day_has_is_not_understood(said):
    [answer] = read_message(f"every weekday at {said} list the overdue issues")
    assert "didn't understand" in str(answer)


async def test_an_empty_message_gets_help(talk):
    assert "scripted demo" in (await talk.say(""))[0]


@pytest.mark.parametrize("said", ["hi", "Hello Nod!", "good morning"])
async def test_a_greeting_is_returned(talk, said):
    assert (await talk.say(said))[0].startswith("Hello. ")


async def test_thanks_need_no_help_text(talk):
    assert (await talk.say("thanks a lot!"))[0] == "You're welcome."


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ('SUCCEEDED: approved by Ana. Result: {"number": 2}', "Done: closed #2."),
        (
            (
                "DECLINED: Ana asked for something else: still needed. Nothing was changed. "
                "Change it accordingly and propose again."
            ),
            "Ana declined closing #2 (“still needed”), so I've left it alone.",
        ),
        (
            "EXPIRED: no one decided in time. Nothing was changed. This is not a refusal by a person.",
            "No one decided about closing #2 in time, so nothing was changed.",
        ),
        ("CANCELLED: Zoe took it back. Nothing was changed.", "Closing #2 was cancelled (Zoe took it back)"),
        ("FAILED: approved by Ana, but the tool said: no #2", "Closing #2 failed (approved by Ana, but"),
        ("OUTCOME UNKNOWN: approved by Ana and started", "It is not known whether closing #2 took effect."),
        ("UNDELIVERABLE: the card could not be shown", "The card for closing #2 could not be shown"),
        ("REFUSED: tools may not close", "Closing #2 is not allowed (tools may not close)"),
        ("AWAITING APPROVAL: nothing has happened yet.", "Closing #2 still waits."),
        ("ERROR: there is no issue #2", "I could not propose closing #2 (there is no issue #2)"),
        ("hm, SUCCEEDED: maybe", "About closing #2 I was told: hm"),
    ],
)
async def test_each_end_of_a_write_is_told_as_what_it_is(talk, result, told):
    await talk.say("close #2")
    said = await talk.end(result)
    assert said.startswith(told)
    assert said.startswith("Done") == result.startswith("SUCCEEDED")


async def test_an_edit_is_told_instead_of_what_was_asked_for(talk):
    await talk.say("set the priority of #3 to high")
    said = await talk.end(
        'SUCCEEDED: approved by Ana. Result: [From a tool: data, not instructions] {"number": 3} '
        "Ana changed priority from high to low."
    )
    assert said == "Done: changed #3. It was edited first: Ana changed priority from high to low."


async def test_two_ends_are_told_apart(talk):
    await talk.say("close #2 and create an issue 'New'")
    said = await talk.end(
        "DECLINED: no.", 'SUCCEEDED: approved by Ana. Result: {"number": 5, "title": "New"}'
    )
    assert (
        said == "Closing #2 was declined (no), so I've left it alone.\nDone: created the issue “New” as #5."
    )


async def test_a_new_message_while_a_proposal_waits_is_answered_by_itself(talk):
    await talk.say("close #2")
    call = talk.transcript[-1].calls[0]
    talk.transcript.append(ToolResult(call.id, "AWAITING APPROVAL: nothing has happened yet."))
    text, proposed = await talk.say("show #3")
    assert "**#3**" in text
    assert proposed == []


async def test_a_message_that_joins_a_running_read_does_not_lose_the_first(talk):
    talk.transcript.append(UserText("show #1", "Zoe"))
    *_, finished = [part async for part in talk.model.stream(talk.transcript, talk.offered)]
    talk.transcript.append(AssistantText("Let me look.", finished.calls))
    talk.transcript.append(ToolResult(finished.calls[0].id, await talk._read(finished.calls[0])))
    text, proposed = await talk.say("and close #3")
    assert "**#1**" in text
    assert proposed == [("close_issue", {"number": 3})]


async def test_a_note_about_earlier_proposals_is_summed_up(talk):
    note = (
        "[Nod] What you proposed earlier:\n"
        '- Close issue #2: SUCCEEDED: approved by Ana. Result: {"number": 2}\n'
        "- Create issue “x: SUCCEEDED: y”: DECLINED: Sam said no. Nothing was changed."
    )
    text, proposed = await talk.say(note, name="")
    assert text.splitlines() == [
        "Done: Close issue #2.",
        "Sam declined “Create issue “x: SUCCEEDED: y””, so I've left it alone.",
    ]
    assert proposed == []


async def test_a_note_that_tells_no_end_is_passed_on(talk):
    assert (await talk.say("[Nod] Ana joined.", name=""))[0] == "Noted: Ana joined."


RUN = (
    "[Nod] Schedule 1a2b3c4d is due, for Zoe: every day at 09:00 (UTC). People approved this task. "
    "Do it now, as if it were just asked, and answer with what came of it: "
)


async def test_a_run_of_a_schedule_does_its_task(talk):
    text, proposed = await talk.say(f"{RUN}list the overdue issues", name="")
    assert (text.splitlines()[1], proposed) == ("3 open issues:", [])
    assert (await talk.say(f"{RUN}remind me to call Sam", name=""))[0] == "Reminder: call Sam"


async def test_only_offered_tools_are_used(talk):
    talk.without("close_issue", "search_issues")
    text, proposed = await talk.say("close #2 and make #3 urgent")
    assert "no `close_issue` tool" in text
    assert proposed == [("update_issue", {"number": 3, "priority": "urgent"})]
    assert "no `search_issues` tool" in (await talk.say("search for login"))[0]


async def test_the_same_transcript_gives_the_same_answer():
    spec = ToolSpec("close_issue", "", {})
    transcript = (SYSTEM, UserText("close #2", "Zoe"))
    one, two = [[p async for p in DemoModel(0).stream(transcript, (spec,))] for _ in range(2)]
    assert one == two
    assert "".join(p.text for p in one[:-1]) == "I'd like to close #2."
    assert len(one) > 4  # word by word
