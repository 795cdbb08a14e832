"""The texts of the demo model: phrases for calls, results as they are, lists. Pure.

The core tells the end of a write with a first word (SUCCEEDED, DECLINED, …); only that word may make the
model say that something was done.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.outcomes import OUTSIDE

_PHRASES: Mapping[str, tuple[str, str, str]] = {
    "create_issue": ("create {title}", "creating {title}", "created {title}"),
    "update_issue": ("change {issue}{changes}", "changing {issue}{changes}", "changed {issue}{changes}"),
    "assign": ("assign {given}", "assigning {given}", "assigned {given}"),
    "comment_issue": ("comment on {issue}", "the comment on {issue}", "commented on {issue}"),
    "close_issue": ("close {issue}", "closing {issue}", "closed {issue}"),
    "delete_issue": ("delete {issue}", "deleting {issue}", "deleted {issue}"),
    "remember": ("remember “{fact}”", "“{fact}”", "remembered “{fact}”"),
    "schedule_task": ("schedule “{task}”", "the schedule for “{task}”", "scheduled “{task}”"),
}
"""The phrases for a call: before it, in progress, and done."""
_OTHER = ("use {tool}", "{tool}", "{tool} has run")
_WANTED, _DOING, _DONE = range(3)
_FIELDS = ("title", "body", "assignee", "priority", "labels", "state")

_ENDS: Mapping[str, str] = {
    "SUCCEEDED": "Done: {done}.",
    "ENDED BADLY": "{doing} ran, but did not end well{details}.",
    "DECLINED": "{doing} was declined{details}, so I've left it alone.",
    "EXPIRED": "No one decided about {doing} in time, so nothing was changed.",
    "CANCELLED": "{doing} was cancelled{details}. Nothing was changed.",
    "FAILED": "{doing} failed{details}.",
    "OUTCOME UNKNOWN": "It is not known whether {doing} took effect. Please check before it is tried again.",
    "UNDELIVERABLE": "The card for {doing} could not be shown to anyone, so nothing was changed.",
    "REFUSED": "{doing} is not allowed{details}. Nothing was changed.",
    "AWAITING APPROVAL": "{doing} still waits{details}.",
    "ERROR": "I could not propose {doing}{details}. Nothing was changed.",
}
_WORDS = "|".join(_ENDS)
_STATUS = re.compile(rf"({_WORDS})\b:?\s*")
# a quoted part of a description, such as a title, cannot pass for the end of the call
_NOTED = re.compile(rf"(?:- )?(?P<what>(?:“[^”]*”|[^“])*?)\W*\b(?P<end>{_WORDS})\b:?\s*(?P<details>.*)")
_NO = re.compile(r"(?P<who>[^.]{1,80}) (?:said no|asked for something else: (?P<why>.+))", re.DOTALL)
_FOR_THE_MODEL = re.compile(
    r" ?(?:Nothing was changed\.|Move on; do not ask again\.|Change it accordingly and propose again\."
    r"|nothing has happened yet\.(?: .+? can decide with a card; do not ask again\.)?)"
)
_TEAMMATE = re.compile(r"\[Nod\] Teammate (\S+) (is done|failed|was stopped)\.[^\n]*\n(.*)", re.DOTALL)
_QUESTION = re.compile(r"\[Nod\] Question from [^\n]* stays as it is: ([^\n]*)\n(.*?)\n> ", re.DOTALL)
_RUN = re.compile(r"\[Nod\] Schedule \w+ is due, for [^\n]* came of it: ([^\n]*)")
_PLAN = re.compile(r"\[Nod\] Version (\d+) of the plan of teammate (\S+) ")


_STATES = {"succeeded": "approved and done", "executing": "running", "cancelled": "withdrawn"}


def _phrase(tool: str, arguments: Mapping[str, Any], form: int) -> str:
    changed = {name: value for name, value in arguments.items() if name in _FIELDS}
    if tool == "update_issue" and changed.keys() == {"assignee"}:
        tool = "assign"
    told = ", ".join(
        _change(*each) for each in changed.items() if (tool, each[0]) != ("create_issue", "title")
    )
    changes = f" ({told})" if told else ""
    return _PHRASES.get(tool, _OTHER)[form].format_map({
        "tool": f"`{tool}`",
        "issue": f"#{arguments.get('number', '?')}",
        "task": arguments.get("task", "?"),
        "fact": arguments.get("fact", "?"),
        "changes": changes,
        "title": f"the issue “{arguments.get('title', '?')}”{changes}",
        "given": f"#{arguments.get('number', '?')} to {changed.get('assignee')}",
    })  # fmt: skip


def _change(name: str, value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(str, value))
    else:
        shown = str(value or "no one")
    return f"{name}: {shown or 'none'}"


def proposing(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Announce the calls, without naming a card: they are not judged yet, and a grant may let them run."""
    return f"I'd like to {join_words([_phrase(*call, _WANTED) for call in calls])}."


def join_words(parts: Sequence[str]) -> str:
    if parts:
        return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return ""


def short(text: str, most: int = 300) -> str:
    """Return the text on one line, cut if it is too long."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    return f"{line[: most - 1]}…"


# --- how calls ended


def end(tool: str, arguments: Mapping[str, Any], result: str) -> str:
    """Describe the end of one write, after the changes that people made to it."""
    doing = _phrase(tool, arguments, _DOING)
    match = _STATUS.match(result)
    if match is None:
        return f"About {doing} I was told: {short(result)}"
    details = result[match.end() :].strip()
    data, edit = _decode_result(details.replace(OUTSIDE, "").partition("Result:")[2])
    if edit:
        arguments = {name: value for name, value in arguments.items() if name in {"number", "title"}}
    new = (
        f" as #{data['number']}"
        if tool == "create_issue" and isinstance(data, dict) and "number" in data
        else ""
    )
    told = _fill_sentence(match[1], details, _phrase(tool, arguments, _DONE) + new, doing)
    if edit:
        return f"{told} It was edited first: {short(edit)}"
    return told


def find_scheduled_task(text: str) -> str:
    """Return the task of a run of a schedule that a note tells of; empty for any other note."""
    found = _RUN.match(text)
    if found:
        return found[1]
    return ""


def describe_note(text: str) -> str:
    """Describe a note of Nod's own: the end of a teammate, or in one sentence each the ends of proposals."""
    ended = _TEAMMATE.match(text)
    if ended:
        name, how, result = ended.groups()
        shown = "\n".join(line.removeprefix(">").removeprefix(" ") for line in result.splitlines())
        return f"**{name}** {how}:\n\n{shown}"
    plan = _PLAN.match(text)
    if plan:
        return f"**{plan[2]}** has a plan, version {plan[1]}. Its card waits for a decision."
    question = _QUESTION.match(text)
    if question:
        lines = [line.strip() for line in question[2].splitlines()]
        changes = [each for each in lines if not each.startswith(("Tool: ", "Arguments: "))] or lines
        exact = "\n".join(f"- {each[:1].upper()}{each[1:]}" for each in changes)
        return f"{question[1]}. This is all it would do:\n\n{exact}\n\nIt still waits for a decision."
    said = text.removeprefix("[Nod]").strip()
    told = []
    for match in filter(None, (_NOTED.match(each.strip()) for each in said.splitlines())):
        what = match["what"].strip() or "that proposal"
        told.append(_fill_sentence(match["end"], match["details"], what, f"“{what}”"))
    return "\n".join(told) or f"Noted: {short(said)}"


def _fill_sentence(word: str, details: str, done: str, doing: str) -> str:
    """Fill an end's sentence. Texts of people and tools come last, and are never read as placeholders."""
    why = short(_FOR_THE_MODEL.sub("", details)).strip(" .")
    if word == "DECLINED" and (no := _NO.fullmatch(why)):
        quoted = f" (“{no['why']}”)" if no["why"] else ""
        text = f"{no['who']} declined {doing}{quoted}, so I've left it alone."
    else:
        named = {"{done}": done, "{doing}": doing, "{details}": f" ({why})" if why else ""}
        text = re.sub(r"\{\w+\}", lambda m: named[m[0]], _ENDS[word])
    return text[:1].upper() + text[1:]


# --- what was read


def _decode_result(text: str) -> tuple[Any, str]:
    """Return a result's JSON, or None, and the text after it, which is about edits."""
    text = text.strip()
    try:
        data, ends = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None, ""
    return data, text[ends:].strip()


def issues_in(result: str) -> list[dict[str, Any]]:
    """Return the issues in a result, which holds one issue or a list."""
    data, _ = _decode_result(result)
    if isinstance(data, dict):
        data = [data] if "number" in data else data.get("issues", [])
    if isinstance(data, list):
        return [each for each in data if isinstance(each, dict) and "number" in each]
    return []


def describe_failure(result: str) -> str:
    return f"I couldn't look that up: {short(result.removeprefix('ERROR').strip(' :'))}"


def describe_read(tool: str, arguments: Mapping[str, Any], result: str, view: str = "") -> str:
    """Describe a read's result. ``view`` is the requested part of a list: "count", "top", "recent" or all."""
    data, _ = _decode_result(result)
    found = issues_in(result)
    if result.startswith("ERROR"):
        return describe_failure(result)
    if not isinstance(data, dict):
        return short(result)
    if tool == "workload":
        return _workload(data.get("workload", []))
    if tool in {"proposals_waiting", "my_decisions"}:
        return _proposals(data.get("proposals", []), waiting=tool == "proposals_waiting")
    if tool == "get_issue" and found:
        return _in_full(found[0])
    if tool == "search_issues":
        count = f"{len(found) or 'no'} issue{'' if len(found) < 2 else 's'} about “{arguments.get('query')}”"  # noqa: PLR2004
        if found:
            return "\n".join([f"{count}:", "", *map(line, found)])
        return f"I found {count}."
    return _list(found, int(data.get("total", len(found))), arguments, view)


def _list(found: list[dict[str, Any]], total: int, filters: Mapping[str, Any], view: str) -> str:
    shown, head = found, f"{_count_issues(total, filters)}:"
    if view == "top":
        ranks = [
            [each for each in found if each.get("priority") == rank] for rank in ("urgent", "high", "normal")
        ]
        shown = next(filter(None, ranks), found)
        if len(shown) == 1:
            head = "The most urgent open issue:"
        else:
            head = "The most urgent open issues:"
    elif view == "recent":
        shown = sorted(found, key=lambda each: str(each.get("updated_at")), reverse=True)[:5]
        head = "The issues that changed last, newest first:"
    elif view == "count" and total:
        return f"There {'is' if total == 1 else 'are'} {_count_issues(total, filters)}."
    if not found:
        return f"There are no {_plural(filters)}."
    if total > len(found) and not view:
        more = ["", f"({total - len(found)} more are not shown.)"]
    else:
        more = []
    return "\n".join([head, "", *map(line, shown), *more])


def _count_issues(number: int, filters: Mapping[str, Any]) -> str:
    named = _plural(filters)
    return f"{number} {named.replace('issues', 'issue', 1) if number == 1 else named}"


def _plural(filters: Mapping[str, Any]) -> str:
    """Format the issues that filters leave."""
    before = [str(filters[name]) for name in ("state", "priority") if filters.get(name)]
    before = [each if each in {"open", "closed", "urgent"} else f"{each}-priority" for each in before]
    after = [f"labelled {filters['label']}"] if filters.get("label") else []
    if "assignee" in filters:
        after.append(f"assigned to {filters['assignee']}" if filters["assignee"] else "without an owner")
    return " ".join([*before, "issues", *after])


def line(issue: Mapping[str, Any]) -> str:
    """Return an issue as an item of a list."""
    facts = [issue.get("state"), issue.get("assignee") or "no owner", issue.get("priority")]
    facts.append(", ".join(map(str, issue.get("labels") or [])))
    return f"- **#{issue['number']}** {issue.get('title', '')} ({' · '.join(str(f) for f in facts if f)})"


def _in_full(issue: Mapping[str, Any]) -> str:
    comments = [f"> {short(str(each.get('body')))}" for each in issue.get("comments") or []]
    return "\n\n".join(
        filter(None, [line(issue).removeprefix("- "), str(issue.get("body") or ""), *comments])
    )


def _proposals(rows: Sequence[Mapping[str, Any]], *, waiting: bool) -> str:
    if not rows:
        if waiting:
            return "Nothing is waiting for a decision."
        return "You have decided nothing yet."
    if waiting:
        who = {True: "you may decide", False: "others decide"}
        said = [f"requested by {row.get('asked_by')}, {who[bool(row.get('you_may_decide'))]}" for row in rows]
    else:
        said = [_STATES.get(str(row.get("state")), str(row.get("state"))) for row in rows]
    head = "Waiting for a decision:" if waiting else "Decided last, newest first:"
    lines = [f"- {row.get('what')} ({each})" for row, each in zip(rows, said, strict=True)]
    return "\n".join([head, "", *lines])


def _workload(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of open issues of each person, the largest first."""
    said = [
        f"- {row.get('assignee') or 'no one'}: {row.get('open')} open"
        + (f", {row['urgent']} urgent" if row.get("urgent") else "")
        for row in sorted(rows, key=lambda row: -int(row.get("open") or 0))
    ]
    return "\n".join(["Open issues by person, most first:", "", *said])
