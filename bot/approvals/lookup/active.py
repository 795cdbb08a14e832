"""The list of all that is switched on, for admins.

First comes what features have switched on. Then come the rules that notify, escalate and remind while a
proposal waits for its decision. The other rules come last.

An admin reads there what is active beyond the defaults, and who set it. The list has parts, such as one for
each feature, and a part has lines, mostly one for each rule. A feature adds its lines by the hook
``list_active``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from sqlmodel import Session

from bot.domain.active import ActiveLine, ActivePart
from bot.domain.redaction import redact_text
from bot.domain.rule_values import Subject
from bot.domain.times import format_in_zone
from bot.store import people, rules
from bot.store.hooks import hooks_of
from bot.store.rules import RuleRecord

MOST_LINES = 50
"""The most lines of one part; further lines are only counted."""
_STEPS_PART = "Steps"  # the part of the rules about what happens while a proposal waits
_OTHER_RULES_PART = "Other rules"
_NOTHING_TEXT = "Nothing is on but what the settings say. `/approvals help` lists what there is to set."


def list_active(session: Session, zone: tzinfo, now: datetime) -> list[ActivePart]:
    """Return the list, part by part, with people and places by name."""
    lines: list[ActiveLine] = []
    for list_active_of_feature in hooks_of(session).list_active:
        lines += list_active_of_feature(session, now)
    lines += make_rule_lines(session, _STEPS_PART, zone, Subject.NOTIFY, Subject.ESCALATE, Subject.REMIND)
    listed_rules = {line.rule for line in lines if line.rule is not None}
    other_rules = [stored for stored in rules.list_rules(session, zone) if stored.rule.id not in listed_rules]
    lines += _make_lines_by_subject(other_rules)
    parts = []
    for name in dict.fromkeys(line.part for line in lines):
        lines_of_part = [line for line in lines if line.part == name]
        shown = tuple(_put_names_in(session, line) for line in lines_of_part[:MOST_LINES])
        parts.append(ActivePart(name, shown, len(lines_of_part) - len(shown)))
    return parts


def make_rule_lines(session: Session, part: str, zone: tzinfo, *subjects: Subject) -> list[ActiveLine]:
    """Return a line for each rule about one of these subjects, in the order of the stored rules.

    ``part``: the name of the part to which the lines belong.
    """
    return [
        # ``command_text`` names people and places by their addresses
        ActiveLine(
            part,
            text=stored.rule.command_text,
            set_by=stored.set_by,
            set_at=stored.set_at,
            rule=stored.rule.id,
        )
        for stored in rules.list_rules(session, zone)
        if stored.rule.subject in subjects
    ]


def format_active(parts: Sequence[ActivePart], zone: tzinfo) -> str:
    """Return the list as text for a chat."""
    return "\n\n".join(_format_part(part, zone) for part in parts) or _NOTHING_TEXT


def _make_lines_by_subject(stored_rules: Sequence[RuleRecord]) -> list[ActiveLine]:
    """Return a line for each subject of these rules: how many there are, and who set the newest."""
    counts = Counter(stored.rule.subject for stored in stored_rules)
    # a later rule replaces an earlier one of the same subject
    newest = {
        stored.rule.subject: stored for stored in sorted(stored_rules, key=lambda stored: stored.set_at)
    }
    return [
        ActiveLine(
            _OTHER_RULES_PART, _format_count(subject, count), newest[subject].set_by, newest[subject].set_at
        )
        for subject, count in counts.items()
    ]


def _format_count(subject: Subject, count: int) -> str:
    """Return the words of a line about rules; `_format_line` adds who set the newest, and when."""
    if count == 1:
        return f"{subject.command_words}: 1 rule"
    return f"{subject.command_words}: {count} rules, the newest"


def _put_names_in(session: Session, line: ActiveLine) -> ActiveLine:
    words = people.put_names_in(session, redact_text(line.text))
    return replace(line, text=words, set_by=people.put_names_in(session, line.set_by))


def _format_part(part: ActivePart, zone: tzinfo) -> str:
    lines = [f"**{part.name}**", *(_format_line(line, zone) for line in part.lines)]
    if part.left_out:  # the number of further lines
        lines.append(f"- {part.left_out:,} more. The console lists where they are.")
    return "\n".join(lines)


def _format_line(line: ActiveLine, zone: tzinfo) -> str:
    number = f"rule {line.rule}: " if line.rule is not None else ""
    when = f", {format_in_zone(line.set_at, zone)}" if line.set_at else ""
    return f"- {number}{line.text} (set by {line.set_by}{when})"
