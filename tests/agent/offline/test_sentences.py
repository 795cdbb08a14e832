"""Natural sentences typed to the demo, each in a new conversation over the demo's own issues.

The first thirty-five are what newcomers typed before the model could read them. Three people wrote twenty
each, before they saw its code.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from bot.agent.gate import offer
from bot.agent.model import AssistantText, SystemText, ToolResult, ToolSpec, UserText
from bot.agent.offline.model import respond
from bot.agent.offline.sentence import FILLERS, LONGEST
from bot.errors import ToolError
from bot.store.database import Database
from bot.tools.builtin.issues.seed import seed
from bot.tools.builtin.issues.tools import issue_tools
from bot.tools.tool import CallContext, Tool
from tests.kit import FakeClock

pytestmark = pytest.mark.slow

LOOKUPS = tuple(ToolSpec(name, "", {}) for name in ("proposals_waiting", "my_decisions"))
Call = tuple[str, dict[str, Any]]
Answer = tuple[str, list[Call]]  # what was said, and the writes that were asked for


class Demo:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._offered = (*map(offer, tools), *LOOKUPS)
        self._read: dict[tuple[str, str], str] = {}
        self.looked_up = ""  # the arguments of the reads of the last conversation

    async def say(self, *sentences: str) -> Answer:
        """Say sentences in one new conversation, in which writes stay open; the answer to the last."""
        transcript: list[Any] = [SystemText("You are Nod.")]
        self.looked_up = ""
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
                        writes.append((call.name, await self._tools[call.name].checked(arguments)))
                        result = "AWAITING APPROVAL: nothing has happened yet."
                    else:
                        self.looked_up += call.arguments
                        result = await self._result(call.name, call.arguments)
                    transcript.append(ToolResult(call.id, result))
        return "\n".join(filter(None, told)), writes

    async def _result(self, name: str, arguments: str) -> str:
        if name not in self._tools:
            return '{"proposals": [], "more": false}'
        if (name, arguments) not in self._read:
            tool = self._tools[name]
            try:
                output = await tool.run(await tool.checked(json.loads(arguments)), CallContext("c", "x"))
                self._read[name, arguments] = output.text
            except ToolError as error:
                self._read[name, arguments] = f"ERROR: {error}"
        return self._read[name, arguments]


@pytest.fixture
async def demo(database: Database, clock: FakeClock) -> Demo:
    await database.write(seed, clock())
    return Demo(await issue_tools(database, clock).tools())


def close(*numbers: int) -> list[Call]:
    return [("close_issue", {"number": number}) for number in numbers]


def change(number: int, **fields: Any) -> Call:
    return ("update_issue", {"number": number, **fields})


def create(title: str, **fields: Any) -> Call:
    return ("create_issue", {"title": title, **fields})


def comment(number: int, body: str) -> Call:
    return ("comment_issue", {"number": number, "body": body})


NEWCOMERS: list[tuple[str, str, list[Call]]] = [
    ("hi", "Hello. I'm a scripted demo", []),
    ("hey there! how's it going?", "Hello. I'm a scripted demo", []),
    ("What can you do?", "I'm a scripted demo with no language model", []),
    ("what do you ask about before you do it?", "Every change asks first", []),
    ("who are you", "I'm Nod, in a scripted demo", []),
    ("show me everything that's open", "5 open issues:", []),
    ("what's the most urgent thing right now?", "The most urgent open issues:\n\n- **#4**", []),
    ("how many bugs do we have?", "There are 3 issues labelled bug: 3 open, 0 closed.", []),
    ("anything assigned to me?", "Who are you in the tracker?", []),
    ("who's got the most on their plate", "- Ana: 2 open, 1 urgent", []),
    ("what changed this week?", "The issues that changed last, newest first:", []),
    (
        "crate an isue about the login page being slow",
        "I read “crate” as “create”.",
        [create("The login page being slow")],
    ),
    (
        "The coffee machine in the kitchen is broken, can somebody look at it?",
        '- → create an issue "The coffee machine in the kitchen is broken"',
        [],
    ),
    (
        "please make a ticket: VPN drops every hour, high prio, for Ben",
        "",
        [create("VPN drops every hour", priority="high", assignee="Ben")],
    ),
    ("close 3", "I'd like to close #3.", close(3)),
    ("close #2 and #4 and tell me what's left", "3 open issues are left:", close(2, 4)),
    ("close everything that's stale", "I can't tell which issues “close everything that's stale” means.", []),
    ("assign it to Ana", "Which issue do you mean by “assign it to Ana”?", []),
    (
        "bump the login one to high and ping Ana about it",
        "I can't do “ping Ana about it”",
        [change(1, priority="high")],
    ),
    ("delete all closed issues", "- → delete #6", []),
    (
        "Can you move the priority of 1 down to low and add a comment saying 'after the release'?",
        "",
        [change(1, priority="low"), comment(1, "after the release")],
    ),
    ("summarize issue 1 for me", "The new password is accepted", []),
    ("remind me tomorrow to check #2", "- → comment on #2: remind me tomorrow", []),
    ("undo that", "There is nothing to undo in this conversation.", []),
    ("what's waiting for my approval?", "Nothing is waiting for a decision.", []),
    ("which proposals are waiting for a decision?", "Nothing is waiting for a decision.", []),
    ("approve it", "only a press on the card decides", []),
    ("thanks, that's great!", "You're welcome.", []),
    ("Erstelle ein Ticket: Drucker kaputt", "lese nur Englisch", []),
    ("write a poem about bugs", "I didn't understand “write a poem about bugs”. I'm a scripted demo", []),
    (
        "close the printer ticket, then open a new one for replacing toner and give it to Sam",
        "I found no such issue about “printer”",
        [create("Replacing toner", assignee="Sam")],
    ),
    ("what's the weather in Paris?", "only know the issue tracker", []),
    ("don't close #2", "All right, I won't close #2.", []),
    (
        'rename issue 2 to "Login times out after 5 minutes" and label it bug, urgent',
        "",
        [change(2, title="Login times out after 5 minutes", labels=["bug", "export", "urgent"])],
    ),
    ("list issues labelled bug assigned to Ana that are open", "1 open issue labelled bug assigned to", []),
    ("how many open issues?", "There are 5 open issues.", []),
    ("is #2 open?", "is open.", []),
    ("What's on Ana's plate?", "2 issues assigned to Ana:", []),
    ("assign #4 to Ana and #5 to Bob", "", [change(4, assignee="Ana"), change(5, assignee="Bob")]),
    (
        "move #1 to Ana and #2 to Bob and close #3",
        "",
        [change(1, assignee="Ana"), change(2, assignee="Bob"), *close(3)],
    ),
    ("list urgent issues", "2 urgent issues:", []),
    ("list high priority issues", "1 high-priority issue:", []),
    ("list unassigned issues", "2 issues without an owner:", []),
    ("which issues has nobody?", "2 issues without an owner:", []),
]  # fmt: skip

ONE_PERSON: list[tuple[str, str, list[Call]]] = [
    (
        "Open a ticket saying the projector in room 4 flickers, low priority",
        "",
        [create("The projector in room 4 flickers", priority="low")],
    ),
    ("Can Sam take over everything Ana has?", "- → assign #1 and #5 to Sam", []),
    ("what did I decide today?", "You have decided nothing yet.", []),
    ("reopen number 2, it's still broken", "I left out “it's still broken”.", [change(2, state="open")]),
    ("close the duplicate ones", "I can't tell which issues “close the duplicate ones” means.", []),
    ("How many issues does Ben have?", "There are no issues assigned to Ben.", []),
    ("make #3 urgent and tell me who has it", "No one has #3", [change(3, priority="urgent")]),
    ("who created issue 1?", "demo created #1", []),
    ("unassign #4", "", [change(4, assignee="")]),
    ("remove the label ux from #3", "#3 has no label “ux”.", []),
    ("Give the oldest unassigned issue to Mia", "", [change(3, assignee="Mia")]),
    ("nevermind", "All right.", []),
    ("good morning", "Hello.", []),
    ("list closed issues", "1 closed issue:", []),
    ("show me #2 and #4", "**#4** Invoices", []),
    ("change the title of #1 to 'Roof leaks' and close #5", "", [change(1, title="Roof leaks"), *close(5)]),
    ("do we have anything about invoices?", "1 issue about “invoices”:", []),
    ("delete issue 3 and issue 4", "", [("delete_issue", {"number": n}) for n in (3, 4)]),
    ("is anyone working on the login problem?", "Login fails after a password reset (open · Ana", []),
    (
        "please assign 2 to Ana, 3 to Ben and 4 to Sam",
        "",
        [change(2, assignee="Ana"), change(3, assignee="Ben"), change(4, assignee="Sam")],
    ),
]

ANOTHER: list[tuple[str, str, list[Call]]] = [
    ("hello, is anybody there?", "Hello.", []),
    (
        "can you log a bug that the export button does nothing in Firefox",
        "",
        [create("The export button does nothing in Firefox", labels=["bug"])],
    ),
    (
        'new issue "Renew the TLS certificate" for Ana, urgent, label ops',
        "",
        [create("Renew the TLS certificate", assignee="Ana", priority="urgent", labels=["ops"])],
    ),
    ("what is #1 about?", "The new password is accepted", []),
    ("which issues is Ana working on?", "2 issues assigned to Ana:", []),
    (
        "give #2 to Ana and #3 to Ben, and close 4",
        "",
        [change(2, assignee="Ana"), change(3, assignee="Ben"), *close(4)],
    ),
    ("what should I work on next?", "The most urgent open issues:", []),
    (
        'add "seen again this morning" as a comment to issue 2',
        "",
        [comment(2, "seen again this morning")],
    ),
    ("set the prio of #3 and #4 to high", "", [change(3, priority="high"), change(4, priority="high")]),
    ("who is working on #2?", "Sam has #2", []),
    ("take Ana off number 1", "", [change(1, assignee="")]),
    ("are there any urgent ones left?", "2 open urgent issues are left:", []),
    ("mark #1 as done", "", close(1)),
    ("send an email to Ben about #2", "I can't do “send an email to Ben about #2”", []),
    ("what have people said about #1?", "> Seen by two more people this morning.", []),
    ("close it", "Which issue do you mean by “close it”?", []),
    ("list everything without an owner", "2 issues without an owner:", []),
    ("tell me a joke", "I didn't understand “tell me a joke”.", []),
    ("rename #3", "“rename #3”: what should the new title be?", []),
    ("clsoe #2 pleas", "I read “clsoe” as “close”.", close(2)),
]
A_THIRD: list[tuple[str, str, list[Call]]] = [
    ("Could you bring up the ticket about the printer?", "I found no issue about “printer”", []),
    ("#3 is done, please mark it as such and let me know who opened it", "demo created #3", close(3)),
    ("swap the assignees of #1 and #2", "I didn't understand “swap the assignees of #1 and #2”", []),
    ("Which of Ana's issues are still open?", "2 open issues assigned to Ana:", []),
    ('add the label "hardware" to 1, 4 and 6 but not to 5', "I can't follow “but not to 5”", []),
    (
        "Reopen #2, it came back this morning",
        "I left out “it came back this morning”.",
        [change(2, state="open")],
    ),
    (
        'I need an issue titled "Renew the TLS certificate", due in two weeks, assigned to Bob, prio high',
        "I left out “due in two weeks”.",
        [create("Renew the TLS certificate", assignee="Bob", priority="high")],
    ),
    ("take Ana off #1", "", [change(1, assignee="")]),
    ("close issues 2 through 5", "", close(2, 3, 4, 5)),
    ("Is there anything nobody has picked up yet?", "2 issues without an owner:", []),
    (
        "comment on #4: tried a new cable, same result. Then set it to low.",
        "",
        [comment(4, "tried a new cable, same result."), change(4, priority="low")],
    ),
    ("Make #1 urgent unless Ana already closed it", "I can't follow “unless Ana already closed it”", []),
    ("show closed bugs", "There are no closed issues labelled bug.", []),
    ("delete the oldest issue", "", [("delete_issue", {"number": 1})]),
    ("what did I ask you to do earlier?", "I didn't understand “what did I ask you to do earlier”", []),
    ("Everything Bob has should go to Ana", "I found no such issue", []),
    ("How old is #3 and how many comments does it have?", "No one has commented on #3", []),
    (
        'Please remove label bug from #2, and rename it to "Slow login"',
        "",
        [change(2, title="Slow login", labels=["export"])],
    ),
    (
        "give me the first two high-priority issues without an assignee",
        "There are no high-priority issues without an owner.",
        [],
    ),
    (
        'file a bug "Export drops umlauts", then assign it to me and close #6',
        "Who are you in the tracker?",
        [create("Export drops umlauts", labels=["bug"]), *close(6)],
    ),
]
TRAPS: list[tuple[str, str, list[Call]]] = [
    ("remove Ana from #1", "The card shows whether Ana has it.", [change(1, assignee="")]),
    ("delete the comment from #1", "I did nothing about", []),
    ("list everything that isn't closed", "5 open issues:", []),
    ("tell Ana that #1 is fixed", "I can't do “tell Ana that #1 is fixed”", []),
    ("give Sam's issues to Ana", "- → assign #2 to Ana", []),
    ("set #1, #2 and #3 to low, normal and high", "I can't follow “normal and high”", []),
    ("close #1 or #x", "I did nothing about", []),
    ("lower the priority of everything assigned to Ana", "what should change?", []),
    (
        "make #3 high priority and #4 low priority",
        "",
        [change(3, priority="high"), change(4, priority="low")],
    ),
    ("show me high-priority issues", "1 high-priority issue:", []),
    (
        "rename the dark mode issue to Night mode, low priority",
        "",
        [change(3, title="Night mode", priority="low")],
    ),
    (
        "set #2 to urgent, assign Ana, and label it regression",
        "",
        [change(2, priority="urgent", assignee="Ana", labels=["bug", "export", "regression"])],
    ),
    ("Who closed #6?", "I didn't understand “Who closed #6”", []),
    ("what is the priority of #1?", "urgent", []),
    ("unassign everyone from #1 and #5", "I'd like to", [change(1, assignee=""), change(5, assignee="")]),
    ("#3 should be closed", "", close(3)),
    (
        "make an urgent issue for Ana about the printer, label hardware",
        "",
        [create("The printer", assignee="Ana", priority="urgent", labels=["hardware"])],
    ),
    ('create a follow-up ticket "Check zones" for Sam', "", [create("Check zones", assignee="Sam")]),
    ("issue 4 needs to go to Mia", "", [change(4, assignee="Mia")]),
]
"""Sentences that were read as something else once."""
ALL = [*NEWCOMERS, *ONE_PERSON, *ANOTHER, *A_THIRD, *TRAPS]


@pytest.mark.parametrize(("sentence", "told", "wanted"), ALL)
async def test_a_sentence_is_answered_as_a_sensible_person_would(demo, sentence, told, wanted):
    text, writes = await demo.say(sentence)
    assert writes == wanted
    assert told in text


async def test_a_word_it_does_not_know_is_in_a_call_or_in_the_answer_wherever_it_stands(demo):
    """Put into each of the sentences, at each place."""
    lost = []
    for sentence, _, _ in ALL:
        parts = sentence.split(" ")
        for place in range(len(parts) + 1):
            said = " ".join([*parts[:place], "zorbly", *parts[place:]])
            text, writes = await demo.say(said)
            if "zorbly" not in f"{text} {json.dumps(writes)}".lower():
                lost.append(said)
    assert lost == []


async def test_a_name_a_number_or_a_priority_added_at_the_end_is_never_dropped(demo):
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
            bare = sentence.rstrip("?!.")
            text, writes = await demo.say(f"{bare} {more}")
            answer = f"{text} {json.dumps(writes)}"
            if any(word.strip("#") not in answer for word in more.split() if word not in FILLERS):
                lost.append(f"{bare} {more}")
    assert lost == []


async def test_of_two_sentences_in_one_message_no_number_and_no_name_is_dropped(demo):
    """Each is followed by some others; every such word is in a call or in the answer."""
    lost = []
    for place, (first, _, _) in enumerate(ALL):
        for step in (1, 7, 31):
            then = ALL[(place + step) % len(ALL)][0]
            said = f"{first.rstrip('?!.')}, then {then[0].lower()}{then[1:]}"
            text, writes = await demo.say(said)
            answer = f"{text} {json.dumps(writes, ensure_ascii=False)}"
            kept = re.findall(r"\d+|(?<= )(?!Then )[A-Z][a-z]+", said)
            if missing := [word for word in kept if word not in answer and word not in demo.looked_up]:
                lost.append(f"{missing} of {said}")
    assert "\n".join(lost) == ""


@pytest.mark.parametrize(
    "said",
    ["close issues 3 to 900", "delete #2 up to #x4"],
)
async def test_a_change_is_not_made_to_a_part_of_the_numbers(demo, said):
    text, writes = await demo.say(said)
    assert writes == []
    assert "“" in text


@pytest.mark.parametrize(
    "said",
    ["close issues 2-4", "close #2-#4", "close 2 through 4", "close issues 2 to 4", "close #2 – #4"],  # noqa: RUF001
)
async def test_a_range_of_numbers_means_each_of_them(demo, said):
    assert await demo.say(said) == ("I'd like to close #2, #3 and #4.", close(2, 3, 4))


@pytest.mark.parametrize(
    "said",
    ["close #2 unless Sam objects", "assign #2 to Ana if she has time", "list issues that are not urgent"],
)
async def test_a_condition_is_never_acted_on(demo, said):
    text, writes = await demo.say(said)
    assert writes == []
    assert f"I did nothing about “{said}”" in text


@pytest.mark.parametrize(
    ("before", "said", "told"),
    [
        ("close #2", "approve it", "It is right here ↑."),
        ("show #3", "make it urgent", "change #3"),
        ("list issues", "who's got it?", "Which issue do you mean"),
    ],
)
async def test_what_was_said_before_counts(demo, before, said, told):
    text, _ = await demo.say(before, said)
    assert told in text


@pytest.mark.parametrize(
    "piece",
    [
        "close #2 and ",
        "1, ",
        "and ",
        "the ",
        "'",
        '"x" ',
        "label a, b, ",
        "priority high ",
        "to ",
        "crate isue ",
        "x" * 40 + " ",
        "about ",
    ],
)
def test_the_time_it_takes_is_bounded_for_any_message(piece):
    respond([SystemText(""), UserText((piece * LONGEST)[:LONGEST])], LOOKUPS)
