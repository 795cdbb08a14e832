"""The texts of the demo model: about calls that it proposes, about their ends, and about what it read. Pure.

The result of a call that writes begins with a word for the call's end (SUCCEEDED, DECLINED, …), which Nod's
core puts there. Only that word may make the demo model say that something was done. After the word come
details and, once the call has run, the tool's own result as JSON behind "Result:". Notes of Nod use the same
words.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bot.domain.outcomes import OUTSIDE_WARNING

_FIELDS = ("title", "body", "assignee", "priority", "labels", "state")  # the fields of an issue

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
"""The sentence for the end of a call, by the word for it. ``doing`` and ``done`` are phrases for the call."""
_END_WORDS = "|".join(_ENDS)
_END = re.compile(rf"({_END_WORDS})\b:?\s*")  # the beginning of a result, such as "SUCCEEDED: "

# a line of a note, such as "- Close #2: DECLINED: Ana said no". Quoted titles in the description are skipped,
# since they may contain such a word.
_END_IN_NOTE = re.compile(
    rf"(?:- )?(?P<description>(?:“[^”]*”|[^“])*?)\W*\b(?P<end>{_END_WORDS})\b:?\s*(?P<details>.*)"
)

# the details of DECLINED: "Ana said no", "Ana asked for something else: a shorter title"
_REFUSAL = re.compile(r"(?P<who>[^.]{1,80}) (?:said no|asked for something else: (?P<why>.+))", re.DOTALL)

# sentences in details that only a model needs
_FOR_THE_MODEL = re.compile(
    r" ?(?:Nothing was changed\.|Move on; do not ask again\.|Change it accordingly and propose again\."
    r"|nothing has happened yet\.(?: .+? can decide with a card; do not ask again\.)?)"
)

# notes of Nod itself: on the end of a teammate, a question about a proposal, a run of a schedule, a plan
_TEAMMATE_NOTE = re.compile(r"\[Nod\] Teammate (\S+) (is done|failed|was stopped)\.[^\n]*\n(.*)", re.DOTALL)
_QUESTION_NOTE = re.compile(r"\[Nod\] Question from [^\n]* stays as it is: ([^\n]*)\n(.*?)\n> ", re.DOTALL)
_SCHEDULE_NOTE = re.compile(r"\[Nod\] Schedule \w+ is due, for [^\n]* came of it: ([^\n]*)")
_PLAN_NOTE = re.compile(r"\[Nod\] Version (\d+) of the plan of teammate (\S+) ")

_MAX_RECENT = 5  # the most issues in the answer to what changed last
_STATE_NAMES = {"succeeded": "approved and done", "executing": "running", "cancelled": "withdrawn"}
"""The states of proposals that people know by another word."""


class _Phrases(NamedTuple):
    """The three phrases for a call of one tool."""

    wanted: str  # for the proposed call, as in "I'd like to close #2"
    doing: str  # for the call as a thing, as in "closing #2 was declined"
    done: str  # for the call that has run, as in "Done: closed #2"


_PHRASES: Mapping[str, _Phrases] = {
    "create_issue": _Phrases("create {title}", "creating {title}", "created {title}"),
    "update_issue": _Phrases(
        "change {issue}{changes}", "changing {issue}{changes}", "changed {issue}{changes}"
    ),
    "assign": _Phrases("assign {assignment}", "assigning {assignment}", "assigned {assignment}"),
    "comment_issue": _Phrases("comment on {issue}", "the comment on {issue}", "commented on {issue}"),
    "close_issue": _Phrases("close {issue}", "closing {issue}", "closed {issue}"),
    "delete_issue": _Phrases("delete {issue}", "deleting {issue}", "deleted {issue}"),
    "remember": _Phrases("remember “{fact}”", "“{fact}”", "remembered “{fact}”"),
    "schedule_task": _Phrases("schedule “{task}”", "the schedule for “{task}”", "scheduled “{task}”"),
}
"""The phrases by tool. ``assign`` is no tool: it stands for an update that only sets the assignee."""
_OTHER_PHRASES = _Phrases("use {tool}", "{tool}", "{tool} has run")  # for any other tool


def _make_phrases(tool: str, arguments: Mapping[str, Any]) -> _Phrases:
    """Return the phrases for a call."""
    fields = {name: value for name, value in arguments.items() if name in _FIELDS}
    if tool == "update_issue" and fields.keys() == {"assignee"}:
        tool = "assign"
    listed = [_format_field(name, value) for name, value in fields.items()]
    if tool == "create_issue" and "title" in fields:  # the phrase has the title already
        listed.remove(_format_field("title", fields["title"]))
    changes = f" ({', '.join(listed)})" if listed else ""
    values = {
        "tool": f"`{tool}`",
        "issue": f"#{arguments.get('number', '?')}",
        "task": arguments.get("task", "?"),
        "fact": arguments.get("fact", "?"),
        "changes": changes,
        "title": f"the issue “{arguments.get('title', '?')}”{changes}",
        "assignment": f"#{arguments.get('number', '?')} to {fields.get('assignee')}",
    }
    return _Phrases(*(phrase.format_map(values) for phrase in _PHRASES.get(tool, _OTHER_PHRASES)))


def _format_field(name: str, value: Any) -> str:
    if isinstance(value, list):
        text = ", ".join(map(str, value))
    else:
        text = str(value or "no one")
    return f"{name}: {text or 'none'}"


def announce_calls(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the announcement of calls. It names no card, since the calls may run without one."""
    phrases = [_make_phrases(tool, arguments).wanted for tool, arguments in calls]
    return f"I'd like to {join_words(phrases)}."


def join_words(parts: Sequence[str]) -> str:
    """Join texts as in "a, b and c"; empty for no texts."""
    if parts:
        return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return ""


def short(text: str, max_chars: int = 300) -> str:
    """Return the text on one line, cut if it is too long."""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    return f"{line[: max_chars - 1]}…"


def describe_end(tool: str, arguments: Mapping[str, Any], result: str) -> str:
    """Return a sentence on the end of a call that writes.

    If people edited the call before, a second sentence says so.
    """
    doing = _make_phrases(tool, arguments).doing
    match = _END.match(result)
    if match is None:
        return f"About {doing} I was told: {short(result)}"
    details = result[match.end() :].strip()
    output = details.replace(OUTSIDE_WARNING, "").partition("Result:")[2]  # the tool's own result
    data, edit_text = _decode_result(output)
    if edit_text:  # the call did not run with all of these arguments, so only its issue is named
        arguments = {name: value for name, value in arguments.items() if name in {"number", "title"}}
    done = _make_phrases(tool, arguments).done
    if tool == "create_issue" and isinstance(data, dict) and "number" in data:
        done += f" as #{data['number']}"
    text = _fill_sentence(match[1], details, done, doing)
    if edit_text:
        return f"{text} It was edited first: {short(edit_text)}"
    return text


def find_scheduled_task(text: str) -> str:
    """Return the task in a note about a schedule that is due; empty for any other note."""
    match = _SCHEDULE_NOTE.match(text)
    if match:
        return match[1]
    return ""


def describe_note(text: str) -> str:
    """Return what a note of Nod itself tells people. For the ends of proposals, a sentence each."""
    ended = _TEAMMATE_NOTE.match(text)
    if ended:
        name, how, result = ended.groups()
        unquoted = "\n".join(line.removeprefix(">").removeprefix(" ") for line in result.splitlines())
        return f"**{name}** {how}:\n\n{unquoted}"
    plan = _PLAN_NOTE.match(text)
    if plan:
        return f"**{plan[2]}** has a plan, version {plan[1]}. Its card waits for a decision."
    question = _QUESTION_NOTE.match(text)
    if question:
        lines = [line.strip() for line in question[2].splitlines()]
        changes = [line for line in lines if not line.startswith(("Tool: ", "Arguments: "))] or lines
        listed = "\n".join(f"- {change[:1].upper()}{change[1:]}" for change in changes)
        return f"{question[1]}. This is all it would do:\n\n{listed}\n\nIt still waits for a decision."
    body = text.removeprefix("[Nod]").strip()
    sentences = []
    for line in body.splitlines():
        match = _END_IN_NOTE.match(line.strip())
        if match:
            # a note only has a description of the call, which stands for both phrases
            description = match["description"].strip() or "that proposal"
            sentence = _fill_sentence(match["end"], match["details"], description, f"“{description}”")
            sentences.append(sentence)
    return "\n".join(sentences) or f"Noted: {short(body)}"


def _fill_sentence(end_word: str, details: str, done: str, doing: str) -> str:
    """Return the sentence for an end.

    ``details``: the text after the word for the end. ``done`` and ``doing``: phrases for the call. Braces in
    these texts are kept.
    """
    why = short(_FOR_THE_MODEL.sub("", details)).strip(" .")
    refusal = _REFUSAL.fullmatch(why) if end_word == "DECLINED" else None
    if refusal:
        quoted = f" (“{refusal['why']}”)" if refusal["why"] else ""
        text = f"{refusal['who']} declined {doing}{quoted}, so I've left it alone."
    else:
        values = {"{done}": done, "{doing}": doing, "{details}": f" ({why})" if why else ""}
        text = re.sub(r"\{\w+\}", lambda match: values[match[0]], _ENDS[end_word])
    return text[:1].upper() + text[1:]


def _decode_result(text: str) -> tuple[Any, str]:
    """Return the JSON at the beginning of a result, and the text after it, which is about edits.

    Without JSON, returns None and an empty text.
    """
    text = text.strip()
    try:
        data, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None, ""
    return data, text[end:].strip()


def read_issues(result: str) -> list[dict[str, Any]]:
    """Return the issues in the JSON of a result: one issue, a list, or an object with ``issues``."""
    data, _ = _decode_result(result)
    if isinstance(data, dict):
        data = [data] if "number" in data else data.get("issues", [])
    if isinstance(data, list):
        return [issue for issue in data if isinstance(issue, dict) and "number" in issue]
    return []


def describe_failure(result: str) -> str:
    return f"I couldn't look that up: {short(result.removeprefix('ERROR').strip(' :'))}"


def describe_read(tool: str, arguments: Mapping[str, Any], result: str, view: str = "") -> str:
    """Return a text about the result of a read.

    ``view``: the part of a list of issues to tell: "count", "top" (the most urgent), "recent", or empty for
    the full list.
    """
    data, _ = _decode_result(result)
    issues = read_issues(result)
    if result.startswith("ERROR"):
        return describe_failure(result)
    if not isinstance(data, dict):
        return short(result)
    if tool == "workload":
        return _describe_workload(data.get("workload", []))
    if tool == "proposals_waiting":
        return _describe_waiting(data.get("proposals", []))
    if tool == "my_decisions":
        return _describe_decisions(data.get("proposals", []))
    if tool == "get_issue" and issues:
        return _format_in_full(issues[0])
    if tool == "search_issues":
        about = f"about “{arguments.get('query')}”"
        if not issues:
            return f"I found no issue {about}."
        noun = "issue" if len(issues) == 1 else "issues"
        return "\n".join([f"{len(issues)} {noun} {about}:", "", *map(format_issue, issues)])
    return _describe_list(issues, int(data.get("total", len(issues))), arguments, view)


def _describe_list(issues: list[dict[str, Any]], total: int, filters: Mapping[str, Any], view: str) -> str:
    """Return a list of issues below its heading. ``total``: their number, with those that are not listed."""
    listed = issues
    head = f"{_count_issues(total, filters)}:"
    if view == "top":
        listed = _list_most_urgent(issues)
        if len(listed) == 1:
            head = "The most urgent open issue:"
        else:
            head = "The most urgent open issues:"
    elif view == "recent":
        newest_first = sorted(issues, key=lambda issue: str(issue.get("updated_at")), reverse=True)
        listed = newest_first[:_MAX_RECENT]
        head = "The issues that changed last, newest first:"
    elif view == "count" and total:
        verb = "is" if total == 1 else "are"
        return f"There {verb} {_count_issues(total, filters)}."
    if not issues:
        return f"There are no {_plural(filters)}."
    if total > len(issues) and not view:
        more = ["", f"({total - len(issues)} more are not shown.)"]
    else:
        more = []
    return "\n".join([head, "", *map(format_issue, listed), *more])


def _list_most_urgent(issues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the issues with the highest priority that any of them has."""
    for priority in ("urgent", "high", "normal"):
        most_urgent = [issue for issue in issues if issue.get("priority") == priority]
        if most_urgent:
            return most_urgent
    return issues


def _count_issues(number: int, filters: Mapping[str, Any]) -> str:
    """Return for example "2 open issues", or "1 open issue"."""
    name = _plural(filters)
    if number == 1:
        name = name.replace("issues", "issue", 1)
    return f"{number} {name}"


def _plural(filters: Mapping[str, Any]) -> str:
    """Return the name of the issues that filters leave: "open high-priority issues assigned to Ana"."""
    before = [str(filters[name]) for name in ("state", "priority") if filters.get(name)]
    before = [word if word in {"open", "closed", "urgent"} else f"{word}-priority" for word in before]
    after = [f"labelled {filters['label']}"] if filters.get("label") else []
    if "assignee" in filters:
        after.append(f"assigned to {filters['assignee']}" if filters["assignee"] else "without an owner")
    return " ".join([*before, "issues", *after])


def format_issue(issue: Mapping[str, Any]) -> str:
    """Return an issue as an item of a list."""
    facts = [issue.get("state"), issue.get("assignee") or "no owner", issue.get("priority")]
    facts.append(", ".join(map(str, issue.get("labels") or [])))
    joined_facts = " · ".join(str(fact) for fact in facts if fact)
    return f"- **#{issue['number']}** {issue.get('title', '')} ({joined_facts})"


def _format_in_full(issue: Mapping[str, Any]) -> str:
    """Return an issue with its body and its comments, a paragraph each."""
    head = format_issue(issue).removeprefix("- ")
    comments = [f"> {short(str(comment.get('body')))}" for comment in issue.get("comments") or []]
    return "\n\n".join(filter(None, [head, str(issue.get("body") or ""), *comments]))


def _describe_waiting(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe the result of ``proposals_waiting``."""
    if not rows:
        return "Nothing is waiting for a decision."
    lines = ["Waiting for a decision:", ""]
    for row in rows:
        who = "you may decide" if row.get("you_may_decide") else "others decide"
        lines.append(f"- {row.get('what')} (requested by {row.get('asked_by')}, {who})")
    return "\n".join(lines)


def _describe_decisions(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe the result of ``my_decisions``."""
    if not rows:
        return "You have decided nothing yet."
    lines = ["Decided last, newest first:", ""]
    for row in rows:
        state = str(row.get("state"))
        lines.append(f"- {row.get('what')} ({_STATE_NAMES.get(state, state)})")
    return "\n".join(lines)


def _describe_workload(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe the number of open issues of each person, the largest first."""
    lines = ["Open issues by person, most first:", ""]
    for row in sorted(rows, key=lambda row: -int(row.get("open") or 0)):
        line = f"- {row.get('assignee') or 'no one'}: {row.get('open')} open"
        if row.get("urgent"):
            line += f", {row['urgent']} urgent"
        lines.append(line)
    return "\n".join(lines)
