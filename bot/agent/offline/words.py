"""What the offline demo model says: calls as phrases, results as they truly are, lists, help. Pure.

The core tells the end of a write with a first word (SUCCEEDED, DECLINED, …); only that word may make the
model say that something was done.
"""

import json
import re
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from bot.agent.offline.wishes import Wish

_PHRASES: Mapping[str, tuple[str, str, str]] = {
    "create_issue": ("create {title}", "creating {title}", "created {title}"),
    "update_issue": ("change {issue}{changes}", "changing {issue}{changes}", "changed {issue}{changes}"),
    "assign": (
        "assign {issue} to {assignee}",
        "assigning {issue} to {assignee}",
        "assigned {issue} to {assignee}",
    ),
    "unassign": ("unassign {issue}", "unassigning {issue}", "unassigned {issue}"),
    "reopen": ("reopen {issue}", "reopening {issue}", "reopened {issue}"),
    "comment_issue": ("comment on {issue}", "the comment on {issue}", "commented on {issue}"),
    "close_issue": ("close {issue}", "closing {issue}", "closed {issue}"),
    "delete_issue": ("delete {issue}", "deleting {issue}", "deleted {issue}"),
}
_OTHER = ("use {tool}", "{tool}", "{tool} has run")

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
# in a description, what is quoted (a title) cannot pass for the end of it
_NOTED = re.compile(rf"(?:- )?(?P<what>(?:“[^”]*”|[^“])*?)\W*\b(?P<end>{_WORDS})\b:?\s*(?P<details>.*)")
_NO = re.compile(r"(?P<who>[^.]{1,80}) (?:said no|asked for something else: (?P<why>.+))", re.DOTALL)
_FOR_THE_MODEL = re.compile(
    r" ?(?:Nothing was changed\.|Move on; do not ask again\.|Change it accordingly and propose again\."
    r"|nothing has happened yet\.|People decide with a card; do not ask again\."
    r"|\([^()]* edited the arguments; [^()]*\))"
)


def _phrase(tool: str, arguments: Mapping[str, Any], form: int) -> str:
    changed = {name: value for name, value in arguments.items() if name in _FIELDS}
    named = {
        "tool": f"`{tool}`",
        "issue": f"#{arguments.get('number', '?')}",
        "changes": f" ({', '.join(_change(*each) for each in changed.items())})" if changed else "",
        "title": f"the issue “{arguments.get('title', '?')}”",
        "assignee": str(changed.get("assignee", "")),
    }
    if tool == "update_issue" and len(changed) == 1:
        tool = {"assignee": "assign" if named["assignee"] else "unassign"}.get(next(iter(changed)), tool)
        tool = "reopen" if changed.get("state") == "open" else tool
    if tool == "create_issue" and len(changed) > 1:
        details = [_change(name, value) for name, value in changed.items() if name not in {"title", "body"}]
        named["title"] += f" ({', '.join(details)})" if details else ""
    return _PHRASES.get(tool, _OTHER)[form].format_map(named)


_FIELDS = ("title", "body", "assignee", "priority", "labels", "state")


def _change(name: str, value: Any) -> str:
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "no one")
    return f"{name}: {shown or 'none'}"


def doing(tool: str, arguments: Mapping[str, Any]) -> str:
    return _phrase(tool, arguments, 1)


def proposing(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Say what is wanted. No card is spoken of: the call is not judged yet, and a grant may let it run."""
    said = []
    for alike, group in groupby(calls, lambda call: _verb(*call)):
        phrases = [_phrase(tool, arguments, 0) for tool, arguments in group]
        said.append(listed([phrases[0], *(each.removeprefix(f"{alike} ") for each in phrases[1:])]))
    return f"I'd like to {listed(said)}."


def _verb(tool: str, arguments: Mapping[str, Any]) -> str:
    """The verb that several numbers can share: *close #2 and #4*."""
    plain = tool in {"close_issue", "delete_issue", "comment_issue"}
    return _phrase(tool, arguments, 0).partition(" #")[0] if plain else _phrase(tool, arguments, 0)


def command(wish: Wish, numbers: Sequence[int]) -> str:
    """The sentence that asks for the wish with these numbers."""
    which, given = listed([f"#{number}" for number in numbers]), wish.arguments
    match wish.tool:
        case "close_issue" | "delete_issue" | "get_issue":
            verb = {"close_issue": "close", "delete_issue": "delete"}.get(wish.tool, "show")
            return f"{verb} {which}"
        case "comment_issue":
            return f"comment on {which}: {given.get('body', '')}"
    if wish.add or wish.drop:
        labels = ", ".join(wish.add or wish.drop)
        return f"label {which} {labels}" if wish.add else f"remove the label {labels} from {which}"
    if "assignee" in given:
        return f"assign {which} to {given['assignee']}" if given["assignee"] else f"unassign {which}"
    if "priority" in given:
        return f"set the priority of {which} to {given['priority']}"
    return f"reopen {which}" if "state" in given else f"rename {which} to '{given.get('title', '')}'"


def only_a_press(said: str, *, here: bool) -> str:
    where = "It is right here ↑." if here else "No card is open in this conversation."
    return f"I can't do “{_short(said)}”: only a press on the card decides. {where}"


def listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def end(tool: str, arguments: Mapping[str, Any], result: str) -> str:
    """Tell how one write ended."""
    doing = _phrase(tool, arguments, 1)
    match = _STATUS.match(result)
    if match is None:
        return f"About {doing} I was told: {_short(result)}"
    details = result[match.end() :].strip()
    new = _number(details) if tool == "create_issue" else ""
    return _told(match[1], details, {"{done}": _phrase(tool, arguments, 2) + new, "{doing}": doing})


_TEAMMATE = re.compile(r"\[Nod\] Teammate (\S+) (is done|failed|was stopped)\.[^\n]*\n(.*)", re.DOTALL)
_QUESTION = re.compile(r"\[Nod\] Question from [^\n]* stays as it is: ([^\n]*)\n(.*?)\n> ", re.DOTALL)
_PLAN = re.compile(r"\[Nod\] Version (\d+) of the plan of teammate (\S+) ")


def note(text: str) -> str:
    """Tell what a note of Nod's own says: how a teammate ended, or in one sentence how each proposal did."""
    if ended := _TEAMMATE.match(text):
        name, how, result = ended.groups()
        shown = "\n".join(line.removeprefix(">").removeprefix(" ") for line in result.splitlines())
        return f"**{name}** {how}:\n\n{shown}"
    if plan := _PLAN.match(text):
        return f"**{plan[2]}** has a plan, version {plan[1]}. Its card waits for a decision."
    if question := _QUESTION.match(text):
        lines = [line.strip() for line in question[2].splitlines()]
        changes = [each for each in lines if not each.startswith(("Tool: ", "Arguments: "))] or lines
        exact = "\n".join(f"- {each[:1].upper()}{each[1:]}" for each in changes)
        return f"{question[1]}. This is all it would do:\n\n{exact}\n\nIt still waits for a decision."
    said = text.removeprefix("[Nod]").strip()
    told = []
    for match in filter(None, (_NOTED.match(each.strip()) for each in said.splitlines())):
        what = match["what"].strip() or "that proposal"
        told.append(_told(match["end"], match["details"], {"{done}": what, "{doing}": f"“{what}”"}))
    return "\n".join(told) or f"Noted: {_short(said)}"


def _told(word: str, details: str, named: Mapping[str, str]) -> str:
    """Fill an end's sentence; what people or tools wrote is put in last and never read as a placeholder."""
    why = _short(_FOR_THE_MODEL.sub("", details)).strip(" .")
    if word == "DECLINED" and (no := _NO.fullmatch(why)):
        quoted = f" (“{no['why']}”)" if no["why"] else ""
        text = f"{no['who']} declined {named['{doing}']}{quoted}, so I've left it alone."
        return text[:1].upper() + text[1:]
    named = {**named, "{details}": f" ({why})" if why else ""}
    text = re.sub(r"\{\w+\}", lambda m: named[m[0]], _ENDS[word])
    return text[:1].upper() + text[1:]


def _short(text: str, limit: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _json(text: str) -> Any:
    """Decode a result; what follows its JSON (a note on edits) is left out."""
    try:
        return json.JSONDecoder().raw_decode(text.strip())[0]
    except ValueError:
        return None


def _number(details: str) -> str:
    found = issues_in(details.partition("Result:")[2] or details)
    return f" as #{found[0]['number']}" if found else ""


def issues_in(result: str) -> list[dict[str, Any]]:
    """Find the issues in a result: one, a list of them, or a list inside an object."""
    data = _json(result)
    if isinstance(data, dict):
        if "number" in data:
            return [data]
        data = next((v for v in data.values() if isinstance(v, (list, dict))), [])
        if isinstance(data, dict):
            data = [data]
    if not isinstance(data, list):
        return []
    return [item for item in data if isinstance(item, dict) and "number" in item]


def failed(result: str) -> str:
    return f"I couldn't look that up: {_short(result.removeprefix('ERROR').strip(' :'))}"


def read(
    tool: str, arguments: Mapping[str, Any], result: str, view: str = "", ending: Container[int | None] = ()
) -> str:
    """Tell what a read found. ``ending`` are the issues that are about to be closed."""
    data = _json(result)
    if result.startswith("ERROR"):
        return failed(result)
    if data is None:
        return _short(result)
    if tool == "workload":
        return _workload(data)
    if tool in {"proposals_waiting", "my_decisions"}:
        return _proposals(tool, data)
    found = issues_in(result)
    if tool == "get_issue" and found:
        return _fact(found[0], view) or _card(found[0])
    if tool == "search_issues":
        query = arguments.get("query")
        head = (
            f"{counted(len(found), {})} about “{query}”:" if found else f"I found no issue about “{query}”."
        )
        return "\n".join([head, "", *map(line, found)]) if found else head
    return _list(found, data, arguments, view, ending)


def _list(
    found: list[dict[str, Any]],
    data: Any,
    filters: Mapping[str, Any],
    view: str,
    ending: Container[int | None],
) -> str:
    known = len(found)
    total = data.get("total", known) if isinstance(data, dict) else len(found)
    if view == "left":
        found = [issue for issue in found if issue["number"] not in ending]
        head = f"{counted(len(found), filters)} {'is' if len(found) == 1 else 'are'} left:"
    elif view == "count":
        return _count(found, total, filters)
    elif view == "top":
        order = [[i for i in found if i.get("priority") == p] for p in ("urgent", "high", "normal", "low")]
        found = next(filter(None, order), found)
        head = "The most urgent open issue:" if len(found) == 1 else "The most urgent open issues:"
    elif view == "recent":
        found = sorted(found, key=lambda i: str(i.get("updated_at")), reverse=True)[:5]
        head = "The issues that changed last, newest first:"
    else:
        head = f"{counted(total, filters)}:"
    if not found:
        return f"There are no {_plural(filters)}{' left' if view == 'left' else ''}."
    more = ["", f"({total - known} more are not shown.)"] if total > known else []
    dated = [f"{line(i)}, {_day(i)}" if view == "recent" else line(i) for i in found]
    return "\n".join([head, "", *dated, *more])


def _count(found: list[dict[str, Any]], total: int, filters: Mapping[str, Any]) -> str:
    are = "There is" if total == 1 else "There are"
    said = f"{are} {counted(total, filters)}" if total else f"There are no {_plural(filters)}"
    if "state" in filters or not total or total > len(found):
        return f"{said}."
    still = sum(issue.get("state") == "open" for issue in found)
    return f"{said}: {still} open, {total - still} closed."


def counted(number: int, filters: Mapping[str, Any]) -> str:
    named = _plural(filters)
    return f"{number} {named.replace('issues', 'issue', 1) if number == 1 else named}"


def _plural(filters: Mapping[str, Any]) -> str:
    """The issues that filters leave, in words."""
    before = [str(filters[name]) for name in ("state", "priority") if filters.get(name)]
    before = [each if each in {"open", "closed", "urgent"} else f"{each}-priority" for each in before]
    after = [f"labelled {filters['label']}"] if filters.get("label") else []
    if "assignee" in filters:
        after.append(f"assigned to {filters['assignee']}" if filters["assignee"] else "without an owner")
    return " ".join([*before, "issues", *after])


def _day(issue: Mapping[str, Any]) -> str:
    try:
        at = datetime.fromisoformat(str(issue.get("updated_at")))
    except ValueError:
        return "at an unknown time"
    return f"{at.day} {at:%b}"


_DATE = len("2026-01-31")


def _fact(issue: Mapping[str, Any], view: str) -> str:
    """One thing about an issue, where only that was asked."""
    called = f"#{issue['number']} “{issue.get('title', '')}”"
    match view:
        case "owner":
            return f"{issue['assignee']} has {called}." if issue.get("assignee") else f"No one has {called}."
        case "author":
            return f"{str(issue.get('author')).rpartition(':')[2]} created {called}."
        case "age" if len(made := str(issue.get("created_at", ""))) > _DATE:
            return f"{called} was created on {made[:_DATE]}."
        case "state":
            return f"{called} is {issue.get('state')}."
        case "comments":
            said = _comments(issue)
            return "\n\n".join([f"On {called}:", *said]) if said else f"No one has commented on {called}."
    return ""


def _proposals(tool: str, data: Any) -> str:
    rows = data.get("proposals", []) if isinstance(data, dict) else []
    if tool == "proposals_waiting":
        said = [
            f"- {row.get('what')} (requested by {row.get('asked_by')}"
            + (", you may decide)" if row.get("you_may_decide") else ", others decide)")
            for row in rows
        ]
        return (
            "\n".join(["Waiting for a decision:", "", *said])
            if said
            else "Nothing is waiting for a decision."
        )
    said = [f"- {row.get('what')}: {_END_WORDS.get(str(row.get('state')), row.get('state'))}"
            + (f" ({row['decided_by']})" if row.get("decided_by") else "") for row in rows]  # fmt: skip
    return "\n".join(["Decided last, newest first:", "", *said]) if said else "You have decided nothing yet."


_END_WORDS = {"succeeded": "approved and done", "executing": "running", "cancelled": "withdrawn"}


def line(issue: Mapping[str, Any]) -> str:
    facts = [issue.get("state"), issue.get("assignee") or "no owner", issue.get("priority")]
    labels = issue.get("labels")
    facts += [", ".join(map(str, labels))] if isinstance(labels, list) and labels else []
    shown = " · ".join(str(fact) for fact in facts if fact)
    return f"- **#{issue['number']}** {issue.get('title', '')} ({shown})"


def _card(issue: Mapping[str, Any]) -> str:
    parts = [line(issue).removeprefix("- ")]
    if body := issue.get("body"):
        parts.append(str(body))
    return "\n\n".join([*parts, *_comments(issue)])


def _comments(issue: Mapping[str, Any]) -> list[str]:
    said = issue.get("comments")
    texts = (
        [each.get("body") if isinstance(each, dict) else each for each in said]
        if isinstance(said, list)
        else []
    )
    return [f"> {_short(str(text))}" for text in texts]


def _workload(data: Any) -> str:
    """Tell who has how many open issues, most first."""
    rows = data.get("workload") if isinstance(data, dict) else data
    loads = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    loads.sort(key=lambda row: -int(row.get("open") or 0))
    said = [
        f"- {row.get('assignee') or 'no one'}: {row.get('open')} open"
        + (f", {row['urgent']} urgent" if row.get("urgent") else "")
        for row in loads
    ]
    return "\n".join(["Open issues by person, most first:", "", *said]) if said else ""
