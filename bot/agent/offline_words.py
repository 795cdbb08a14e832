"""What the offline demo model says: calls as phrases, results as they truly are, lists, help. Pure.

The core tells the end of a write with a first word (SUCCEEDED, DECLINED, …); only that word may make the
model say that something was done.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HELP = """\
I'm a small offline demo: I understand plain sentences about the issue tracker. For example:

- `list open issues`, `show #3`, `search for login`, `who has the most work?`
- `create an issue 'Login fails' and assign it to Sam with high priority`
- `close #2 and #4, and assign #3 to Ana`
- `make #3 urgent`, `rename #3 to 'Better title'`, `label #3 bug`
- `comment on #2: fixed in 1.4`, `reopen #2`, `delete #5`

Whatever changes something, I ask first, with a card."""

GREETING = "Hello! Tell me what to do with your issues, and I'll ask before I change anything.\n\n" + HELP

_PHRASES: Mapping[str, tuple[str, str, str]] = {
    "create_issue": ("create {title}", "creating {title}", "created {title}"),
    "update_issue": ("change {issue}{changes}", "changing {issue}{changes}", "changed {issue}{changes}"),
    "comment_issue": ("comment on {issue}", "the comment on {issue}", "commented on {issue}"),
    "close_issue": ("close {issue}", "closing {issue}", "closed {issue}"),
    "delete_issue": ("delete {issue}", "deleting {issue}", "deleted {issue}"),
}
_OTHER = ("use {tool}", "{tool}", "{tool} has run")

_ENDS: Mapping[str, str] = {
    "SUCCEEDED": "Done: {done}.",
    "DECLINED": "{doing} was declined{details}, so I leave it as it is.",
    "EXPIRED": "Nobody decided about {doing} in time, so nothing was changed.",
    "CANCELLED": "{doing} was cancelled{details}; nothing was changed.",
    "FAILED": "{doing} failed{details}.",
    "OUTCOME UNKNOWN": "It is not known whether {doing} took effect. Please check before it is tried again.",
    "UNDELIVERABLE": "The card for {doing} could not be shown to anybody, so nothing was changed.",
    "REFUSED": "{doing} is not allowed{details}; nothing was changed.",
    "AWAITING APPROVAL": "{doing} still waits{details}.",
    "ERROR": "I could not propose {doing}{details}; nothing was changed.",
}
_WORDS = "|".join(_ENDS)
_STATUS = re.compile(rf"({_WORDS})\b:?\s*")
# in a description, what is quoted (a title) cannot pass for the end of it
_NOTED = re.compile(rf"(?:- )?(?P<what>(?:“[^”]*”|[^“])*?)\W*\b(?P<end>{_WORDS})\b:?\s*(?P<details>.*)")
_FOR_THE_MODEL = re.compile(
    r" ?(?:Nothing was changed\.|Move on; do not ask again\.|Reason: none given\.|nothing has happened yet\."
    r"|People decide with a card; do not ask again\.|\([^()]* edited the arguments; [^()]*\))"
)


def infinitive(tool: str, arguments: Mapping[str, Any]) -> str:
    return _phrase(tool, arguments, 0)


def _phrase(tool: str, arguments: Mapping[str, Any], form: int) -> str:
    changes = _changes(arguments)
    named = {
        "tool": f"`{tool}`",
        "issue": f"#{arguments.get('number', '?')}",
        "changes": f" ({changes})" if changes else "",
        "title": f"the issue “{arguments.get('title', '?')}”",
    }
    return _PHRASES.get(tool, _OTHER)[form].format_map(named)


def _changes(arguments: Mapping[str, Any]) -> str:
    said = []
    for name in ("title", "body", "assignee", "priority", "labels", "state"):
        if name not in arguments:
            continue
        value = arguments[name]
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "nobody")
        said.append(f"{name}: {shown or 'none'}")
    return ", ".join(said)


def proposing(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Announce writes without claiming them."""
    wanted = [infinitive(tool, arguments) for tool, arguments in calls]
    card = "card" if len(wanted) == 1 else "cards"
    return f"I'd like to {listed(wanted)}; please look at the {card}."


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


def note(text: str) -> str:
    """Tell in one sentence for each proposal what a note of Nod's own says."""
    said = text.removeprefix("[Nod]").strip()
    told = []
    for match in filter(None, (_NOTED.match(each.strip()) for each in said.splitlines())):
        what = match["what"].strip() or "that proposal"
        told.append(_told(match["end"], match["details"], {"{done}": what, "{doing}": f"“{what}”"}))
    return "\n".join(told) or f"Noted: {_short(said)}"


def _told(word: str, details: str, named: Mapping[str, str]) -> str:
    """Fill an end's sentence; what people or tools wrote is put in last and never read as a placeholder."""
    why = _short(_FOR_THE_MODEL.sub("", details)).strip(" .")
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


def read(tool: str, arguments: Mapping[str, Any], result: str) -> str:
    """Tell what a read found."""
    if result.startswith("ERROR"):
        return f"That did not work: {_short(result.removeprefix('ERROR').strip(' :'))}"
    if tool == "workload":
        return _workload(_json(result)) or _short(result)
    found = issues_in(result)
    if tool == "get_issue" and found:
        return _card(found[0])
    if found:
        return "\n".join(
            ["Here is what I found:" if tool == "search_issues" else "Here they are:", "", *map(line, found)]
        )
    if _json(result) is None:
        return _short(result)
    query = arguments.get("query")
    return f"I found no issue about “{query}”." if query else "There are no such issues."


def _more(data: Any, shown: int) -> list[str]:
    total = data.get("total") if isinstance(data, dict) else None
    return ["", f"({total - shown} more are not shown.)"] if isinstance(total, int) and total > shown else []


def line(issue: Mapping[str, Any]) -> str:
    facts = [issue.get("state"), issue.get("assignee") or "nobody assigned", issue.get("priority")]
    labels = issue.get("labels")
    facts += [", ".join(map(str, labels))] if isinstance(labels, list) and labels else []
    shown = " · ".join(str(fact) for fact in facts if fact)
    return f"- **#{issue['number']}** {issue.get('title', '')} ({shown})"


def _card(issue: Mapping[str, Any]) -> str:
    parts = [line(issue).removeprefix("- ")]
    if body := issue.get("body"):
        parts.append(str(body))
    comments = issue.get("comments")
    for comment in comments if isinstance(comments, list) else ():
        said = comment.get("body") or comment.get("text") if isinstance(comment, dict) else comment
        parts.append(f"> {_short(str(said))}")
    return "\n\n".join(parts)


def _workload(data: Any) -> str:
    """Tell who has how many open issues, most first."""
    rows = data.get("workload") if isinstance(data, dict) else data
    loads = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    loads.sort(key=lambda row: -int(row.get("open") or 0))
    said = [
        f"- {row.get('assignee') or 'nobody'}: {row.get('open')} open"
        + (f", {row['urgent']} urgent" if row.get("urgent") else "")
        for row in loads
    ]
    return "\n".join(["Open issues by person, most first:", "", *said]) if said else ""
