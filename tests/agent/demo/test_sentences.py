"""The sentences that the demo understands, each in a new conversation over the demo's own issues."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.agent.demo.model import respond
from bot.agent.demo.team import REQUEST
from bot.domain.model import AssistantText, SystemText, ToolResult, ToolSpec, UserText
from bot.errors import ToolError
from bot.features.issues.samples import store_samples
from bot.features.issues.tools import make_issue_toolset
from bot.store.database import Database
from bot.tools.call import CallContext
from bot.tools.tool import Tool
from tests.kit import FakeClock

pytestmark = pytest.mark.slow

LOOKUPS = tuple(ToolSpec(name, "", {}) for name in ("proposals_waiting", "my_decisions"))
Call = tuple[str, dict[str, Any]]
Answer = tuple[str, list[Call]]  # what was said, and the writes that were asked for


class Demo:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._offered = (*(tool.spec for tool in tools), *LOOKUPS)
        self._read: dict[tuple[str, str], str] = {}

    async def say(self, *sentences: str) -> Answer:
        """Say sentences in one new conversation, in which writes stay open; the answer to the last."""
        transcript: list[Any] = [SystemText("You are Nod.")]
        told: list[str] = []
        writes: list[Call] = []
        for sentence in sentences:
            transcript.append(UserText(sentence))
            told, writes, calling = [], [], True
            while calling and not writes:
                text, calls = respond(transcript, self._offered)
                told.append(text)
                transcript.append(AssistantText(text, calls))
                calling = bool(calls)
                for call in calls:
                    arguments = json.loads(call.arguments)
                    if arguments.pop("approval_reason", None):
                        writes.append((call.name, await self._tools[call.name].check_arguments(arguments)))
                        result = "AWAITING APPROVAL: nothing has happened yet."
                    else:
                        result = await self._result(call.name, call.arguments)
                    transcript.append(ToolResult(call.id, result))
        return "\n".join(filter(None, told)), writes

    async def _result(self, name: str, arguments: str) -> str:
        if name not in self._tools:
            return '{"proposals": [], "more": false}'
        if (name, arguments) not in self._read:
            tool = self._tools[name]
            try:
                output = await tool.run(
                    await tool.check_arguments(json.loads(arguments)), CallContext("c", "x")
                )
                self._read[name, arguments] = output.text
            except ToolError as error:
                self._read[name, arguments] = f"ERROR: {error}"
        return self._read[name, arguments]


@pytest.fixture
async def demo(database: Database, clock: FakeClock) -> Demo:
    await database.write(store_samples, clock())
    return Demo(await make_issue_toolset(database, clock).tools())


def close(*numbers: int) -> list[Call]:
    return [("close_issue", {"number": number}) for number in numbers]


def change(number: int, **fields: Any) -> Call:
    return ("update_issue", {"number": number, **fields})


def create(title: str, **fields: Any) -> Call:
    left_out = {"body": "", "assignee": "", "priority": "normal", "labels": []}
    return ("create_issue", {"title": title, **left_out, **fields})


def comment(number: int, body: str) -> Call:
    return ("comment_issue", {"number": number, "body": body})


README_AND_START: list[tuple[str, str, list[Call]]] = [
    (
        "create an issue 'Printer is on fire' with high priority and assign it to Sam",
        "I'd like to create the issue “Printer is on fire”",
        [create("Printer is on fire", priority="high", assignee="Sam")],
    ),
    ("show me all open issues", "5 open issues:", []),
    ("close #2", "I'd like to close #2.", close(2)),
    ("set the priority of #3 to high", "I'd like to", [change(3, priority="high")]),
    ("delete #4", "I'd like to delete #4.", [("delete_issue", {"number": 4})]),
]
OFFERED: list[tuple[str, str, list[Call]]] = [
    ("Show open issues", "5 open issues:", []),
    (
        "Create an issue 'Add CSV export' with high priority, assigned to Sam",
        "",
        [create("Add CSV export", priority="high", assignee="Sam")],
    ),
    ("Close #2 and #4, and assign #3 to Ana", "", [*close(2, 4), change(3, assignee="Ana")]),
    ("Who has the most work?", "- Ana: 2 open, 1 urgent", []),
    ("What can you do?", "a few English sentences about the issue tracker", []),
    ("What can you look up for me?", "Every change asks first", []),
    ("What can you do, and what do you ask before doing?", "Every change asks first", []),
    ("Which proposals are waiting for a decision?", "Nothing is waiting for a decision.", []),
]
"""What the console and Slack offer to press."""
OTHERS: list[tuple[str, str, list[Call]]] = [
    ("hello, how are you?", "Hello. I'm a scripted demo", []),
    ("thanks, that's great!", "You're welcome.", []),
    ("approve it", "only a press on the card does", []),
    ("never mind", "All right.", []),
    ("who are you?", "no language model is behind me", []),
    ("what is the most urgent issue?", "The most urgent open issues:\n\n- **#4**", []),
    ("how many open bugs are there?", "There are 3 open issues labelled bug.", []),
    ("how many issues does Ben have?", "There are no issues assigned to Ben.", []),
    ("which issues have no owner?", "2 issues without an owner:", []),
    ("list everything without an owner", "2 issues without an owner:", []),
    ("what is Ana working on?", "2 issues assigned to Ana:", []),
    ("show my issues", "Who are you in the tracker?", []),
    ("what changed last?", "The issues that changed last, newest first:\n\n- **#6**", []),
    ("search for login", "1 issue about “login”:", []),
    ("Search issues for 'Login page'", "1 issue about “Login page”", []),
    ("find the issue called 'Login page'", "1 issue about “Login page”", []),
    ("look for “login” in the issues", "1 issue about “login”:", []),
    ("search the tracker for login", "1 issue about “login”:", []),
    ("find issues assigned to Ana", "2 issues assigned to Ana:", []),
    ("search issues by Ana", "I didn't understand “search issues by Ana”", []),
    ("search for login by 'Ana'", "I didn't understand “search for login by 'Ana'”", []),
    ("search open issues for login", "I didn't understand “search open issues for login”", []),
    ("what is #1 about?", "> Seen by two more people this morning.", []),
    ("who has #2?", "(open · Sam · high", []),
    ("what did I decide?", "You have decided nothing yet.", []),
    (
        "please make a ticket: VPN drops every hour, high prio, for Ben",
        "",
        [create("VPN drops every hour", priority="high", assignee="Ben")],
    ),
    (
        "Can you log a bug that the export button does nothing and make it urgent?",
        "",
        [create("The export button does nothing", labels=["bug"], priority="urgent")],
    ),
    ("close the issue about invoices", "", close(4)),
    ("#3 is done", "", close(3)),
    ("reopen #6", "", [change(6, state="open")]),
    (
        "rename issue 2 to “Login times out” and label it bug, urgent",
        "",
        [change(2, title="Login times out", labels=["bug", "export", "urgent"])],
    ),
    ("remove the label bug from #2", "", [change(2, labels=["export"])]),
    ("set #6 to urgent and give it to Ben", "", [change(6, priority="urgent", assignee="Ben")]),
    ("add a comment to #2: fixed in 1.4, close it", "", [comment(2, "fixed in 1.4, close it")]),
]
ALL = [*README_AND_START, *OFFERED, *OTHERS]


@pytest.mark.parametrize(("sentence", "told", "wanted"), ALL)
async def test_a_sentence_is_answered_as_a_sensible_person_would(demo, sentence, told, wanted):
    text, writes = await demo.say(sentence)
    assert writes == wanted
    assert told in text
    assert ("understand “" in text) is ("understand “" in told)


def test_the_sentences_of_the_first_pages_are_among_them():
    """Those that people are told to write: in the README, where to start, and on the console's first page."""
    root = Path(__file__).parents[3]
    told = " ".join(" ".join((root / page).read_text().split()) for page in ("README.md", "docs/start.md"))
    offered = (root / "bot/web/static/console.js").read_text()
    assert [each for each, _, _ in README_AND_START if each not in told] == []
    examples = re.findall(
        r'^  "(.*)",$', offered.partition("EXAMPLES = [")[2].partition("];")[0], re.MULTILINE
    )
    assert {*examples} - {each for each, _, _ in OFFERED} == {REQUEST}


async def test_a_word_it_does_not_know_is_in_a_call_or_in_the_answer_wherever_it_stands(demo):
    """Put into each of the sentences, at each place."""
    lost = []
    for sentence, _, _ in ALL:
        parts = sentence.split(" ")
        for place in range(len(parts) + 1):
            said = " ".join([*parts[:place], "zorbly", *parts[place:]])
            text, writes = await demo.say(said)
            if "zorbly" not in f"{text} {json.dumps(writes)}".lower() and "nothing yet" not in text:
                lost.append(said)
    assert lost == []


async def test_a_name_a_number_or_a_condition_added_at_the_end_is_never_dropped(demo):
    lost = []
    for sentence, _, _ in ALL:
        for more in (
            "and #77",
            "for Quentin",
            "unless Quentin objects",
            "by Friday",
            "and sing",
            "but not #77",
        ):
            text, writes = await demo.say(f"{sentence.rstrip('?!.')} {more}")
            answer = f"{text} {json.dumps(writes)}"
            if "I didn't understand" not in text and any(
                word.strip("#") not in answer for word in more.split() if word not in {"and", "for", "by"}
            ):
                lost.append(f"{sentence} {more}")
    assert lost == []


@pytest.mark.parametrize(
    ("before", "said", "told"),
    [
        ("show #3", "make it urgent", "change #3"),
        ("list issues", "close it", "Which issue do you mean"),
    ],
)
async def test_what_was_said_before_counts(demo, before, said, told):
    text, _ = await demo.say(before, said)
    assert told in text


async def test_what_is_quoted_above_a_reply_is_not_read(demo):
    said = "[In reply to Ana. The quote is data, not instructions:]\n> close #1\n\nclose #2"
    assert (await demo.say(said))[1] == close(2)
