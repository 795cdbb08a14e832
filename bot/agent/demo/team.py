"""The team of the demo model: the lead agent starts teammates, a surveyor looks, an organiser plans. Pure.

`respond` returns None for a conversation without a team: then the demo model answers as usual.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.agent.demo import words
from bot.agent.demo.conversation import TRACKER_READS, FinishedCall, list_finished_calls, make_calls
from bot.agent.demo.sentences import LONGEST
from bot.agent.transcript import NOTE
from bot.domain.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, ToolSpec, UserText

REQUEST = "Have one teammate survey the open issues and another reorganise them; plan first"
"""What ``nod demo --team`` asks for."""

Answer = tuple[str, tuple[ToolCall, ...]]

_TEAM = re.compile(r"\b(?:a|an|one|two|the) (?:\w+ )?(?:teammate|sub-?agent)s?\b", re.IGNORECASE)
_SPLIT = re.compile(
    r"\b(?:and |, )*(?:one|a|another|the other|a second)(?: (?:teammate|sub-?agent|one))?\s+(?=to\b|\w)",
    re.IGNORECASE,
)
_PLAN = re.compile(
    r"[\s,;.]{0,5}(?:\b(?:and|with a|it must|must|who|that|should)\b\s{0,5}){0,5}\bplans?\b.*$", re.IGNORECASE
)
_LOOKS = re.compile(r"(?:survey|look|list|count|review|read|check|report|find|summari[sz]e)", re.IGNORECASE)
_NUMBER = re.compile(r"#(\d+)")
_MOST = 3  # the most issues that the organiser assigns
_OPEN: tuple[str, dict[str, Any]] = ("list_issues", {"state": "open"})
_LOAD: tuple[str, dict[str, Any]] = ("workload", {})


def respond(transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> Answer | None:
    """Return the next answer of a lead agent that leads a team, or of a teammate.

    None: no team is spoken of.
    """
    first = transcript[0] if transcript else None
    offered = {spec.name for spec in tools}
    if isinstance(first, SystemText) and (task := re.search(r"^Your task: (.*)$", first.text, re.MULTILINE)):
        return _teammate(transcript, task[1], offered)
    return _lead(transcript, offered)


def _lead(transcript: Sequence[Entry], offered: set[str]) -> Answer | None:
    answers = [place for place, entry in enumerate(transcript) if isinstance(entry, AssistantText)]
    last = answers[-1] if answers else 0
    if isinstance(transcript[-1], ToolResult):
        made = list_finished_calls(transcript[last:])
    else:
        made = []
    if made and all(each.tool == "spawn_teammate" for each in made):
        faults = [each.result for each in made if not each.result.startswith("Started")]
        if faults:
            return f"That failed: {faults[0]}", ()
        names = words.join_words([each.result.removeprefix("Started ").partition(".")[0] for each in made])
        return f"I started {names}. I'll tell you what they find. Any changes need your approval.", ()
    said = [entry.text for entry in transcript[last:] if isinstance(entry, UserText)]
    asked = next((text for text in reversed(said) if not text.startswith(NOTE)), "")[:LONGEST]
    if made or "spawn_teammate" not in offered or not _TEAM.search(asked):
        return None
    plans = re.search(r"\bplan", asked, re.IGNORECASE) is not None
    tasks = [task for part in _SPLIT.split(_PLAN.sub("", asked))[1:] if (task := _task(part))]
    if not tasks:
        return f"What should the teammate do? For example:\n\n- → {REQUEST}", ()
    wanted = [("spawn_teammate", _make_start_arguments(task, plans=plans)) for task in tasks]
    count = "one teammate" if len(wanted) == 1 else f"{len(wanted)} teammates"
    return f"I give this to {count}.", make_calls(len(transcript), wanted)


def _task(part: str) -> str:
    task = re.sub(r"^(?:to|that|who)\s+", "", part.strip(" ,;.")).strip()
    task = re.sub(r"\bthem\b", "the open issues", task)
    return task[:1].upper() + task[1:]


def _make_start_arguments(task: str, *, plans: bool) -> dict[str, Any]:
    """Return the arguments with which a teammate is started."""
    looks = _LOOKS.match(task) is not None
    tools = sorted(TRACKER_READS) if looks else [*sorted(TRACKER_READS), "update_issue"]
    return {
        "role": "issue surveyor" if looks else "issue organiser",
        "task": task,
        "tools": tools,
        "require_plan_approval": plans and not looks,
    }


def _teammate(transcript: Sequence[Entry], task: str, offered: set[str]) -> Answer:
    made = list_finished_calls(transcript)
    known = {each.tool: each.result for each in made if each.tool in TRACKER_READS}
    missing = [read for read in (_OPEN, _LOAD) if read[0] not in known]
    if missing:
        return "Let me look.", make_calls(len(transcript), missing)
    if _LOOKS.match(task):
        return _survey(known), ()
    changes = _changes(known)
    plans = [each for each in made if each.tool == "plan_submit"]
    writes = [each for each in made if each.tool == "update_issue"]
    if writes:
        return "\n".join(words.end(each.tool, each.arguments, each.result) for each in writes), ()
    if not changes:
        return "Every open issue has an owner, so there is nothing to reorganise.", ()
    if plans:
        return _after_plan(transcript, plans, changes)
    if "plan_submit" in offered:
        return _plan(transcript, changes, "This is my plan.")
    return _propose(transcript, changes)


def _after_plan(
    transcript: Sequence[Entry], plans: Sequence[FinishedCall], changes: list[dict[str, Any]]
) -> Answer:
    last = plans[-1].result
    planned = {int(number) for step in plans[-1].arguments["steps"] for number in _NUMBER.findall(str(step))}
    kept = [change for change in changes if change["number"] in planned]
    if last.startswith("SUCCEEDED"):
        return _propose(transcript, kept)
    if not last.startswith("CHANGES ASKED FOR"):
        why = last.partition(" You are still locked")[0]
        return f"Nothing was changed. What became of my plan: {why}", ()
    feedback = last.partition("What should change: ")[2]
    named = {int(number) for number in _NUMBER.findall(feedback.partition(" You are still locked")[0])}
    only = re.search(r"\bonly\b", feedback, re.IGNORECASE) is not None
    fewer = [c for c in kept if not named or (c["number"] in named) == only] or kept[:1]
    return _plan(transcript, fewer if named else kept[:1], "I've revised the plan.")


def _plan(transcript: Sequence[Entry], changes: list[dict[str, Any]], said: str) -> Answer:
    if len(changes) == 1:
        count = "one open issue"
    else:
        count = f"{len(changes)} open issues"
    steps: list[dict[str, Any]] = [
        {
            "description": "Look at the open issues and at who has how much to do",
            "tools": sorted(TRACKER_READS),
        },
        *(
            {
                "description": f"Give #{each['number']} ({each['title']}) to {each['assignee']}",
                "tools": ["update_issue"],
                "estimated_tokens": 400,
            }
            for each in changes
        ),
    ]
    plan = {
        "summary": f"Give {count} without an owner to the person with the least to do.",
        "steps": steps,
        "risks": "They may know nothing about it yet.",
        "alternatives": "Ask in the team who wants it; that takes longer.",
        "approval_reason": "You asked to reorganise the open issues; these have no owner.",
    }
    return said, make_calls(len(transcript), [("plan_submit", plan)])


def _propose(transcript: Sequence[Entry], changes: list[dict[str, Any]]) -> Answer:
    why = {"approval_reason": "It has no owner, and they have the least to do."}
    wanted = [
        ("update_issue", {"number": each["number"], "assignee": each["assignee"], **why}) for each in changes
    ]
    return words.proposing(wanted), make_calls(len(transcript), wanted)


def _survey(known: Mapping[str, str]) -> str:
    found = words.issues_in(known["list_issues"])
    nobody = sum(not issue.get("assignee") for issue in found)
    urgent = sum(issue.get("priority") == "urgent" for issue in found)
    head = f"{len(found)} issues are open: {urgent} urgent, {nobody} without an owner."
    return "\n".join([head, "", *map(words.line, found)])


def _changes(known: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the assignments: the most pressing unowned issues, each to the person with the least to do."""
    try:
        loads = json.loads(known["workload"])["workload"]
        load = {each["assignee"]: int(each["open"]) for each in loads if each["assignee"]}
    except (ValueError, KeyError, TypeError):
        return []
    free = [i for i in words.issues_in(known["list_issues"]) if not i.get("assignee")]
    order = ("urgent", "high", "normal", "low")
    free.sort(key=lambda i: (order.index(i["priority"]) if i.get("priority") in order else 9, i["number"]))
    given = []
    for issue in free[:_MOST] if load else []:
        who = min(load, key=lambda name: (load[name], name))
        load[who] += 1
        given.append({"number": issue["number"], "title": issue.get("title", ""), "assignee": who})
    return given
