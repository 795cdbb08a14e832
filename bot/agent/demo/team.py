"""The demo model's answers in a team of agents. Pure.

The agent of a conversation is its lead agent, which may start teammates: agents for a part of the work. Here
it starts one teammate for each "have a teammate do this" in a person's message. A teammate whose task is to
look at issues (the surveyor) reports them. Any other teammate (the organiser) gives issues without an owner
to people, after a plan if one is asked for. `respond` decides which of these answers; for a conversation
without a team it returns None, and the demo model answers as usual.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.agent.demo import texts
from bot.agent.demo.conversation import (
    SUGGESTION_MARK,
    TRACKER_READS,
    FinishedCall,
    list_finished_calls,
    make_calls,
)
from bot.agent.demo.sentences import MAX_MESSAGE_CHARS
from bot.agent.history_parts import NOTE_PREFIX
from bot.domain.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, ToolSpec, UserText

REQUEST = "Have one teammate survey the open issues and another reorganise them; plan first"
"""What ``nod demo --team`` asks for."""

Answer = tuple[str, tuple[ToolCall, ...]]
"""A text and calls."""

_TEAMMATE = r"(?:\w+ )?(?:teammate|sub-?agent)"  # as in "teammate" and "second sub-agent"

# a message that asks for teammates, such as "have one teammate survey the issues"
_ASKS_FOR_TEAM = re.compile(rf"\b(?:an?|one|two|the) {_TEAMMATE}s?\b", re.IGNORECASE)

# the words before each task, in two forms: "one teammate …" anywhere, and "and another …" only where a clause
# begins, since "another bug" is part of a task
_BEFORE_TASK = re.compile(
    rf"\b(?:and |, )*(?:an?|one|another|the(?= (?:other|second) )) {_TEAMMATE}\s+(?=\w)"
    r"|(?:\band\b|[,.:;]| -) ?(?:and )?(?:one|another|(?:a|the) second|the other)(?: one)?"
    r"\s+(?!(?:of|issue|ticket|bug|task)\b)(?=\w)",
    re.IGNORECASE,
)

# the demand for a plan, to the end of its line: "; plan first", " and it must plan before that"
_DEMAND_FOR_PLAN = re.compile(
    r"[\s,;.]{0,5}(?:\b(?:and|with a|it must|must|who|that|should)\b\s{0,5}){0,5}\bplans?\b.*$", re.IGNORECASE
)
_READING_VERBS = re.compile(
    r"(?:survey|look|list|count|review|read|check|report|find|summari[sz]e)", re.IGNORECASE
)
"""The first word of a task that changes nothing."""
_ISSUE_NUMBER = re.compile(r"#(\d+)")
_MAX_ASSIGNED = 3  # the most issues that the organiser assigns
_PRIORITIES = ("urgent", "high", "normal", "low")  # the most pressing first
_OPEN_ISSUES: tuple[str, dict[str, Any]] = ("list_issues", {"state": "open"})
_WORKLOAD: tuple[str, dict[str, Any]] = ("workload", {})
_LOCKED_TEXT = " You are still locked"
"""The last sentence in the result of a plan that was not approved: the teammate may not write yet."""


def respond(transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Answer | None:
    """Return the next answer of a lead agent or a teammate; None if the conversation has no team."""
    first = transcript[0] if transcript else None
    offered = {spec.name for spec in tools}
    if isinstance(first, SystemText):
        task = re.search(r"^Your task: (.*)$", first.text, re.MULTILINE)
        if task:
            return _answer_as_teammate(transcript, task[1], offered)
    return _answer_as_lead(transcript, offered)


def _answer_as_lead(transcript: Sequence[Entry], offered: set[str]) -> Answer | None:
    """Start the teammates that the last message asks for, or say that they were started.

    Returns None for any other message.
    """
    answers = [index for index, entry in enumerate(transcript) if isinstance(entry, AssistantText)]
    from_last_answer = transcript[answers[-1] :] if answers else transcript
    ends_with_result = bool(transcript) and isinstance(transcript[-1], ToolResult)
    finished = list_finished_calls(from_last_answer) if ends_with_result else []
    if finished:
        if all(call.tool == "spawn_teammate" for call in finished):
            return _tell_started(finished), ()
        return None
    messages = [entry.text for entry in from_last_answer if isinstance(entry, UserText)]
    requests = [text for text in messages if not text.startswith(NOTE_PREFIX)]
    request = requests[-1][:MAX_MESSAGE_CHARS] if requests else ""
    if "spawn_teammate" not in offered or not _ASKS_FOR_TEAM.search(request):
        return None
    needs_plan = re.search(r"\bplan", request, re.IGNORECASE) is not None
    parts = _BEFORE_TASK.split(_DEMAND_FOR_PLAN.sub("", request))
    tasks = list(filter(None, map(_clean_task, parts[1:])))  # no task comes before the first teammate
    if not tasks:
        return f"What should the teammate do? For example:\n\n{SUGGESTION_MARK}{REQUEST}", ()
    planned = [("spawn_teammate", _make_start_arguments(task, needs_plan=needs_plan)) for task in tasks]
    count = "one teammate" if len(planned) == 1 else f"{len(planned)} teammates"
    return f"I give this to {count}.", make_calls(len(transcript), planned)


def _tell_started(starts: Sequence[FinishedCall]) -> str:
    """Return a text that names the started teammates, or the first reason why one was not started.

    The result of a start is a sentence, "Started Ada.", and perhaps more.
    """
    faults = [start.result for start in starts if not start.result.startswith("Started")]
    if faults:
        return f"That failed: {faults[0]}"
    names = [start.result.removeprefix("Started ").partition(".")[0] for start in starts]
    joined = texts.join_words(names)
    return f"I started {joined}. I'll tell you what they find. Any changes need your approval."


def _clean_task(part: str) -> str:
    """Return a task as a sentence of its own: "to survey them" -> "Survey the open issues"."""
    task = re.sub(r"^(?:to|that|who)\s+", "", part.strip(" ,;.")).strip()
    task = re.sub(r"\bthem\b", "the open issues", task)
    return task[:1].upper() + task[1:]


def _make_start_arguments(task: str, *, needs_plan: bool) -> dict[str, Any]:
    """Return the arguments with which a teammate is started."""
    only_reads = _READING_VERBS.match(task) is not None
    tools = sorted(TRACKER_READS) if only_reads else [*sorted(TRACKER_READS), "update_issue"]
    return {
        "role": "issue surveyor" if only_reads else "issue organiser",
        "task": task,
        "tools": tools,
        "require_plan_approval": needs_plan and not only_reads,
    }


def _answer_as_teammate(transcript: Sequence[Entry], task: str, offered: set[str]) -> Answer:
    """Read the open issues, then report them or assign those without an owner."""
    finished = list_finished_calls(transcript)
    results = {call.tool: call.result for call in finished if call.tool in TRACKER_READS}
    missing = [(tool, arguments) for tool, arguments in (_OPEN_ISSUES, _WORKLOAD) if tool not in results]
    if missing:
        return "Let me look.", make_calls(len(transcript), missing)
    if _READING_VERBS.match(task):
        return _report_issues(results), ()
    assignments = _choose_assignments(results)
    plans = [call for call in finished if call.tool == "plan_submit"]
    writes = [call for call in finished if call.tool == "update_issue"]
    if writes:
        sentences = [texts.describe_end(write.tool, write.arguments, write.result) for write in writes]
        return "\n".join(sentences), ()
    if not assignments:
        return "Every open issue has an owner, so there is nothing to reorganise.", ()
    if plans:
        return _answer_after_plan(transcript, plans[-1], assignments)
    if "plan_submit" in offered:
        return _submit_plan(transcript, assignments, "This is my plan.")
    return _propose(transcript, assignments)


def _answer_after_plan(
    transcript: Sequence[Entry], plan: FinishedCall, assignments: list[dict[str, Any]]
) -> Answer:
    """Carry out an approved plan, revise a plan for which changes are asked, or report its end."""
    planned_numbers = _find_numbers(str(plan.arguments["steps"]))  # the steps' descriptions have the numbers
    planned = [assignment for assignment in assignments if assignment["number"] in planned_numbers]
    if plan.result.startswith("SUCCEEDED"):
        return _propose(transcript, planned)
    if not plan.result.startswith("CHANGES ASKED FOR"):
        why = plan.result.partition(_LOCKED_TEXT)[0]
        return f"Nothing was changed. What became of my plan: {why}", ()
    feedback = plan.result.partition("What should change: ")[2]
    revised = _apply_feedback(planned, feedback)
    return _submit_plan(transcript, revised, "I've revised the plan.")


def _apply_feedback(planned: list[dict[str, Any]], feedback: str) -> list[dict[str, Any]]:
    """Return fewer assignments, at least one.

    "Only #3" keeps what is named, "not #3" leaves out what is named. If nothing is named, the first is kept.
    """
    named = _find_numbers(feedback.partition(_LOCKED_TEXT)[0])
    if not named:
        return planned[:1]
    keeps_named = re.search(r"\bonly\b", feedback, re.IGNORECASE) is not None
    kept = [assignment for assignment in planned if (assignment["number"] in named) == keeps_named]
    return kept or planned[:1]


def _find_numbers(text: str) -> set[int]:
    return set(map(int, _ISSUE_NUMBER.findall(text)))


def _submit_plan(transcript: Sequence[Entry], assignments: list[dict[str, Any]], text: str) -> Answer:
    if len(assignments) == 1:
        count = "one open issue"
    else:
        count = f"{len(assignments)} open issues"
    steps: list[dict[str, Any]] = [
        {
            "description": "Look at the open issues and at who has how much to do",
            "tools": sorted(TRACKER_READS),
        }
    ]
    for issue in assignments:
        step = {
            "description": f"Give #{issue['number']} ({issue['title']}) to {issue['assignee']}",
            "tools": ["update_issue"],
            "estimated_tokens": 400,
        }
        steps.append(step)
    plan = {
        "summary": f"Give {count} without an owner to the person with the least to do.",
        "steps": steps,
        "risks": "They may know nothing about it yet.",
        "alternatives": "Ask in the team who wants it; that takes longer.",
        "approval_reason": "You asked to reorganise the open issues; these have no owner.",
    }
    return text, make_calls(len(transcript), [("plan_submit", plan)])


def _propose(transcript: Sequence[Entry], assignments: list[dict[str, Any]]) -> Answer:
    """Return the calls that assign the issues."""
    reason = "It has no owner, and they have the least to do."
    planned = []
    for issue in assignments:
        arguments = {"number": issue["number"], "assignee": issue["assignee"], "approval_reason": reason}
        planned.append(("update_issue", arguments))
    return texts.announce_calls(planned), make_calls(len(transcript), planned)


def _report_issues(results: Mapping[str, str]) -> str:
    issues = texts.read_issues(results["list_issues"])
    unowned = sum(not issue.get("assignee") for issue in issues)
    urgent = sum(issue.get("priority") == "urgent" for issue in issues)
    head = f"{len(issues)} issues are open: {urgent} urgent, {unowned} without an owner."
    return "\n".join([head, "", *map(texts.format_issue, issues)])


def _choose_assignments(results: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the most pressing unowned issues, each with the person who then has the least to do.

    Each has a number, a title and an assignee. ``results``: those of the two reads, by their tools.
    """
    try:
        rows = json.loads(results["workload"])["workload"]
        open_count = {row["assignee"]: int(row["open"]) for row in rows if row["assignee"]}
    except (ValueError, KeyError, TypeError):
        return []
    if not open_count:
        return []
    unowned = [issue for issue in texts.read_issues(results["list_issues"]) if not issue.get("assignee")]
    unowned.sort(key=_rank)
    assignments = []
    for issue in unowned[:_MAX_ASSIGNED]:
        assignee = min(open_count, key=lambda name: (open_count[name], name))
        open_count[assignee] += 1
        title = issue.get("title", "")
        assignments.append({"number": issue["number"], "title": title, "assignee": assignee})
    return assignments


def _rank(issue: Mapping[str, Any]) -> tuple[int, int]:
    """Return the sort key of an issue: the most pressing first, then the lowest number."""
    priority = issue.get("priority")
    position = _PRIORITIES.index(priority) if priority in _PRIORITIES else len(_PRIORITIES)
    return position, issue["number"]
