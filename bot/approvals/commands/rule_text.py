"""Parsing of rules as admins type them: a value, and the parts that limit it.

An example is ``/approvals ttl 4h for delete_* in slack:T1/C2``. The rule's subject is ``ttl``, its value is
"4h", and "for delete_*" and "in slack:T1/C2" are its parts. `parse_rule` takes the parts from the end of the
text (``limits.py``), and reads what is left by the subject's reader (``values.py``). Parsing is strict: a
misunderstood rule would allow calls that it should not. A text that can't be read raises CommandError, which
says the correct syntax.
"""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from bot.approvals.commands.limits import ONE_EACH, parse_limits, split_condition, take_parts
from bot.approvals.commands.operands import parse_place, parse_tool_pattern
from bot.approvals.commands.subcommands import QUOTES, CommandError, first_word, remove_quotes
from bot.approvals.commands.values import VALUE_READERS
from bot.domain.chat import Command
from bot.domain.proposal_lists import PageCursor
from bot.domain.risks import Level
from bot.domain.rule_values import BY_RISK, FOR_PERSON_OR_PLACE, Mode, RuleValue, Subject
from bot.domain.rules import ANY_TOOL, EVERYWHERE, Limits, Rule
from bot.domain.times import parse_duration

_LOOSENING = frozenset({Subject.GRANTS, Subject.FETCH})  # rules that let calls run without asking
_MAX_TRIED_PERIOD = timedelta(days=366)  # the longest past on which a rule is tried
_MAY_BE_TRIED = {
    "policy": Subject.POLICY,
    **{subject.command_words: subject for subject in (Subject.RISK, Subject.DECIDERS, Subject.QUORUM)},
}
"""The subjects of rules that can be tried on the past, by their word."""
# an option at the end, such as " last 30d" or " --before 3f2a"; phones write two dashes as one
_TRY_OPTION = re.compile(r"\s+(?:--|\u2014|\u2013)?(last|before)\s+(\S+)$")
_WITH_PLACE = frozenset({Subject.ROUTE, Subject.ESCALATE, Subject.NOTIFY, Subject.DIGEST})
"""Subjects whose value names a place."""
_UNLIMITED = frozenset(
    {Subject.QUIET, Subject.DIGEST, Subject.PLANS, Subject.OUTSIDERS, *FOR_PERSON_OR_PLACE}
)
"""Subjects that are not about calls, so that their rules have no limits."""


def parse_rule(subject: Subject, text: str, command: Command, now: datetime) -> Rule:
    """Read ``VALUE`` and its `LIMITED` parts into a rule. Raises CommandError.

    The parts come in any order, but ``where`` is last. The rule's number is 0, since it is not stored yet.
    The word ``here`` stands for the place of the command. ``now`` is in the team's time zone.
    """
    limited_text, condition = split_condition(text)
    value_text, parts = take_parts(limited_text)
    words = value_text.split()
    if not words:
        raise CommandError("Something is missing.")
    for word in reversed(words[1:]):
        if word in ONE_EACH:  # the word was not read as a part, so more than one word follows it
            raise CommandError(f"After `{word}` comes {ONE_EACH[word]}. Set a rule for each.")
    if subject in _WITH_PLACE:
        words = [parse_place(word, command) if word == "here" else word for word in words]
    value = VALUE_READERS[subject](words)
    takes_second_moment = not _is_loosening(subject, value)
    limits = parse_limits(parts, condition, now, takes_second_moment=takes_second_moment)
    if subject in FOR_PERSON_OR_PLACE and "tools" in parts:  # the part after ``for`` names no tools
        if "place" in parts:
            raise CommandError("Name one person or place, after `for`.")
        parts["place"] = parts.pop("tools")
    if limits.condition and limits.condition.looks_at_risk and subject not in BY_RISK:  # it has "risk is"
        known = ", ".join(other for other in Subject if other in BY_RISK)
        raise CommandError(f"`risk is` can't stand here. It is for rules about {known}.")
    has_limits = limits != Limits()
    if has_limits and subject in _UNLIMITED:
        raise CommandError(f"A rule about {subject.command_words} has no by, until, between, on or where.")
    scope, pattern = EVERYWHERE, ANY_TOOL
    if "place" in parts:
        scope = parse_place(remove_quotes(parts["place"][0]), command)
    if "tools" in parts:
        pattern = parse_tool_pattern(parts["tools"][0])
    return Rule(
        id=0,
        subject=subject,
        scope=scope,
        pattern=pattern,
        value=value,
        limits=limits if has_limits else None,
    )


def _is_loosening(subject: Subject, value: RuleValue) -> bool:
    """Tell if a rule may let more calls run without asking."""
    # with these modes, and as reads, calls that change data run without asking
    return subject in _LOOSENING or value in (Mode.NEVER, Mode.DESTRUCTIVE, Level.READ)


class RuleToTry(NamedTuple):
    """A rule to try on past proposals."""

    rule: Rule
    last: timedelta  # the length of the past to judge
    before: PageCursor | None  # only older proposals are judged; None: the newest are judged first


def parse_rule_to_try(text: str, command: Command, now: datetime) -> RuleToTry:
    """Read ``RULE [last 30d] [before MARK]``. Raises CommandError.

    The rule is as after ``/approvals``, or as after ``/approvals policy``. ``now`` is in the team's time
    zone.
    """
    text = f" {text.strip()}"
    options: dict[str, str] = {}
    while match := _TRY_OPTION.search(text):
        options.setdefault(match[1], remove_quotes(match[2]))
        text = text[: match.start()]
    text = text.strip()
    if text and text[0] in QUOTES:  # quotes around the full text; other quotes belong to a condition
        text = text[1:-1] if text[-1] in QUOTES else text[1:]
    word, rest = first_word(text)
    subject = _MAY_BE_TRIED.get(word)
    if subject is not None:
        rule = parse_rule(subject, rest, command, now)
    elif word in {other.command_words for other in Subject}:
        raise CommandError(f"Only {', '.join(_MAY_BE_TRIED)} can be tried on the past.")
    else:  # a rule about the policy, without the word "policy"
        rule = parse_rule(Subject.POLICY, f"{word} {rest}", command, now)
    try:
        last = parse_duration(options.get("last", "30d"))
        before = PageCursor.parse(options["before"]) if "before" in options else None
    except ValueError as error:
        raise CommandError(f"{error}.") from None
    if last > _MAX_TRIED_PERIOD:
        raise CommandError("At most 366d back.")
    return RuleToTry(rule, last, before)
