"""The offline model with a team: what the lead and the teammates say next, from the transcript alone."""

import json
from typing import Any

import pytest

from bot.agent.demo.model import respond
from bot.agent.demo.sentences import HELP
from bot.agent.demo.team import REQUEST
from bot.domain.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, ToolSpec, UserText

LEAD = tuple(ToolSpec(n, "", {}) for n in ("list_issues", "workload", "update_issue", "spawn_teammate"))
LOCKED = tuple(ToolSpec(n, "", {}) for n in ("list_issues", "workload", "plan_submit"))
ISSUES = json.dumps({
    "issues": [
        {"number": 4, "title": "Invoices twice", "state": "open", "priority": "urgent", "assignee": None},
        {"number": 3, "title": "Dark mode", "state": "open", "priority": "low", "assignee": None},
        {"number": 1, "title": "Login", "state": "open", "priority": "urgent", "assignee": "Ana"},
    ]
})  # fmt: skip
LOAD = json.dumps({"workload": [{"assignee": "Ana", "open": 2, "urgent": 1}, {"assignee": "Sam", "open": 1}]})


def wanted(calls: tuple[ToolCall, ...]) -> list[tuple[str, dict[str, Any]]]:
    return [(c.name, json.loads(c.arguments)) for c in calls]


def after(calls: tuple[ToolCall, ...], *results: str) -> list[Entry]:
    return [AssistantText("", calls), *(ToolResult(c.id, r) for c, r in zip(calls, results, strict=True))]


def organiser() -> list[Entry]:
    """One that has looked around."""
    head = [SystemText("Your name: o\nYour role: r\nYour task: Reorganise the open issues\n")]
    history: list[Entry] = [*head, UserText("[Nod] Your task:\nReorganise the open issues")]
    _, calls = respond(history, LOCKED)
    return [*history, *after(calls, ISSUES, LOAD)]


def test_the_demos_request_becomes_a_surveyor_and_an_organiser_that_plans_first():
    _, calls = respond([SystemText(""), UserText(REQUEST)], LEAD)
    (one, survey), (other, organise) = wanted(calls)
    assert (one, other) == ("spawn_teammate", "spawn_teammate")
    assert (survey["task"], survey["require_plan_approval"]) == ("Survey the open issues", False)
    assert "update_issue" not in survey["tools"]
    assert (organise["task"], organise["require_plan_approval"]) == ("Reorganise the open issues", True)
    assert "update_issue" in organise["tools"]


@pytest.mark.parametrize(
    "said",
    [
        "Let a teammate list the open issues",
        "have one teammate survey the issues and another one reorganise them",
        "ask a teammate to look at the bugs, another to reorganise them, with a plan first",
    ],
)
def test_a_team_is_asked_for_phrased_differently(said: str):
    _, calls = respond([SystemText(""), UserText(said)], LEAD)
    assert {name for name, _ in wanted(calls)} == {"spawn_teammate"}


@pytest.mark.parametrize(
    ("said", "tasks"),
    [
        (
            "Have one teammate survey the open issues and a second teammate reorganise them",
            ["Survey the open issues", "Reorganise the open issues"],
        ),
        (
            "have a teammate survey the issues, and the second one reorganise them",
            ["Survey the issues", "Reorganise the open issues"],
        ),
        (
            "Have two teammates: one to survey the issues, the other to reorganise them",
            ["Survey the issues", "Reorganise the open issues"],
        ),
        ("have one teammate check a bug", ["Check a bug"]),
        ("have a new teammate look at one of the bugs", ["Look at one of the bugs"]),
        ("have a sub-agent find another bug and one issue of Ana", ["Find another bug and one issue of Ana"]),
    ],
)
def test_a_teammate_is_started_for_each_that_the_message_names_and_for_nothing_within_a_task(said, tasks):
    _, calls = respond([SystemText(""), UserText(said)], LEAD)
    assert [arguments["task"] for _, arguments in wanted(calls)] == tasks


def test_an_empty_transcript_is_answered_with_help():
    text, calls = respond([], LEAD)
    assert text.startswith(HELP.text)
    assert calls == ()


def test_where_no_teammates_are_offered_it_answers_as_ever():
    text, calls = respond([SystemText(""), UserText(REQUEST)], LEAD[:3])
    assert "spawn_teammate" not in {c.name for c in calls}
    assert text


def test_the_lead_tells_what_a_teammate_found():
    note = "[Nod] Teammate issue-surveyor is done. Its result:\n> 3 issues are open.\n> \n> - #4"
    text, calls = respond([SystemText(""), UserText("go"), AssistantText("Started."), UserText(note)], LEAD)
    assert text == "**issue-surveyor** is done:\n\n3 issues are open.\n\n- #4"
    assert calls == ()


def test_the_lead_tells_of_a_plan_in_a_sentence_also_where_a_teammate_ended_at_the_same_time():
    plan = (
        "[Nod] Version 2 of the plan of teammate issue-organiser was submitted. People approve it; you may "
        "reject it or ask for changes. Review it with plan_review:\n> Summary: Give a teammate 2 issues."
    )
    done = "[Nod] Teammate issue-surveyor is done. Its result:\n> 3 issues are open."
    told = "**issue-organiser** has a plan, version 2. Its card waits for a decision."
    before = [SystemText(""), UserText("go"), AssistantText("Started.")]
    assert respond([*before, UserText(plan)], LEAD) == (told, ())
    both = respond([*before, UserText(plan), UserText(done)], LEAD)
    assert both == (f"{told}\n\n**issue-surveyor** is done:\n\n3 issues are open.", ())


def test_a_locked_organiser_looks_around_then_submits_a_plan():
    _, calls = respond(organiser(), LOCKED)
    [(name, plan)] = wanted(calls)
    assert name == "plan_submit"
    assert [step["description"] for step in plan["steps"][1:]] == [
        "Give #4 (Invoices twice) to Sam",
        "Give #3 (Dark mode) to Ana",
    ]
    assert respond(organiser(), LOCKED)[1] == calls  # the same transcript gives the same answer


def test_an_approved_plan_is_carried_out_as_it_was_planned():
    history = organiser()
    _, calls = respond(history, LOCKED)
    history += after(calls, "SUCCEEDED: approved by Ana. Result: The tools are unlocked")
    _, calls = respond(history, LEAD)
    assert [(n, a["number"], a["assignee"]) for n, a in wanted(calls)] == [
        ("update_issue", 4, "Sam"),
        ("update_issue", 3, "Ana"),
    ]


@pytest.mark.parametrize(
    ("feedback", "left"),
    [("without #4", ["#3"]), ("only #4, please", ["#4"]), ("less at once", ["#4"])],
)
def test_a_plan_sent_back_comes_again_with_less(feedback: str, left: list[str]):
    history = organiser()
    _, calls = respond(history, LOCKED)
    sent_back = (
        f"CHANGES ASKED FOR: Ana sent the plan back. What should change: {feedback}. You are still locked."
    )
    history += after(calls, sent_back)
    [(name, plan)] = wanted(respond(history, LOCKED)[1])
    assert name == "plan_submit"
    assert [step["description"].split()[1] for step in plan["steps"][1:]] == left


def test_a_rejected_plan_ends_it_with_the_reason():
    history = organiser()
    _, calls = respond(history, LOCKED)
    history += after(calls, "DECLINED: Ana rejected the plan. Reason: not now. You are still locked. Go.")
    text, calls = respond(history, LOCKED)
    assert text.endswith("DECLINED: Ana rejected the plan. Reason: not now.")
    assert calls == ()
