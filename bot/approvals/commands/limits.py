"""The parts that limit a rule, as admins type them after its value, such as ``between 18:00 and 08:00``.

`take_parts` takes them from the end of the text, one by one; `parse_limits` reads them.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from bot.approvals.commands.operands import parse_account, parse_hours, parse_length
from bot.approvals.commands.subcommands import CommandError, remove_quotes
from bot.domain.conditions import Condition, ConditionError
from bot.domain.connections import Identity
from bot.domain.rules import Limits
from bot.domain.times import add_length, format_weekdays, parse_moment, parse_weekdays

_PARTS = {
    name: re.compile(rf" {words}$")
    for name, words in {
        "until": r"until ((?:in )?\S+( [0-9]{1,2}:[0-9]{2}([+-][0-9]{2}:[0-9]{2})?)?)",
        "length": r"for ([0-9]+[smhdw])",
        "tools": r"for (\S+)",
        "place": r"in (\S+)",
        "account": r"by (\S+)",
        "identity": r"as (\S+)",
        "hours": r"between (\S+) and (\S+)",
        "days": r"on (\S+(?:(?:,| and) \S+)*)",
    }.items()
}
"""The parts of a rule by name, each as it stands at the end of the text, such as " until friday 18:00".

They are tried in this order: `for` with a length ("for 2h") before `for` with a tool ("for delete_*").
"""
_WHERE = re.compile(r"\s+where\b", re.IGNORECASE)  # before a condition, which is the last part
ONE_EACH = {"for": "one tool, or a pattern such as delete_*", "in": "one place", "by": "one account"}
"""The only things that may follow these words of a part: several need a rule for each."""
_PARTS_WITH_END = frozenset({"length", "until"})  # the two ways to say when a rule ends
_MAX_LIFE = timedelta(days=366)  # the longest time that a rule with an end lasts
LIMITED = (
    "[for TOOLS] [in PLACE] [by ACCOUNT] [as person|place|nod] [for 2h|until friday 18:00] "
    "[between 18:00 and 08:00] [on weekdays] [where …]"
)
"""The parts that may follow the value of a rule about calls. `for` names tools, unless a time follows it."""


def split_condition(text: str) -> tuple[str, str | None]:
    """Return the text before ``where``, and the condition after it; None without one.

    The text before gets single spaces, and one at its beginning: the patterns of `_PARTS` begin with it.
    """
    before, *after = _WHERE.split(f" {text.strip()}", maxsplit=1)
    condition = after[0].strip() if after else None
    return f" {' '.join(before.split())}", condition


def take_parts(text: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Take the parts of a rule from the end of a text. Return the text before them, and the parts by name.

    Each part is the texts of the groups of its pattern in `_PARTS`: "between 18:00 and 08:00" ->
    ``{"hours": ("18:00", "08:00")}``.
    """
    parts: dict[str, tuple[str, ...]] = {}
    while last_part := _find_last_part(text):
        name, match = last_part
        has_another_end = name in _PARTS_WITH_END and not _PARTS_WITH_END.isdisjoint(parts)
        if name in parts or has_another_end:
            raise CommandError(f"`{match[0].strip()}` is one too many. Write each part once.")
        parts[name] = match.groups()
        text = text[: match.start()]
    return text, parts


def parse_limits(
    parts: Mapping[str, Sequence[str]], condition: str | None, now: datetime, *, takes_second_moment: bool
) -> Limits:
    """Read the parts that limit a rule. ``condition``: the text after ``where``, if there is one.

    ``takes_second_moment``: see `_parse_end`.
    """
    return Limits(
        condition=_parse_condition(parts.get("identity", ()), condition),
        who=str(parse_account(remove_quotes(parts["account"][0]))) if "account" in parts else "",
        hours=parse_hours(*parts["hours"]) if "hours" in parts else None,
        until=_parse_end(parts, now, takes_second_moment=takes_second_moment),
        days=_parse_days(parts["days"][0]) if "days" in parts else "",
    )


def _find_last_part(text: str) -> tuple[str, re.Match[str]] | None:
    """Return the name of the part with which a text ends, and its match; None if it ends with no part."""
    for name, expression in _PARTS.items():
        match = expression.search(text)
        if match:
            return name, match
    return None


def _parse_condition(identity: Sequence[str], condition: str | None) -> Condition | None:
    """Read the word after ``as`` and the text after ``where``, if there are any, into one condition."""
    if identity and identity[0] not in set(Identity):
        raise CommandError(f"After `as` comes {', '.join(Identity)}: under whose account a call is made.")
    texts = [f"connection is {word}" for word in identity]
    if condition is not None:
        texts.append(condition)
    if not texts:
        return None
    text = texts[0] if len(texts) == 1 else f"{texts[0]} and ({texts[1]})"
    try:
        return Condition.parse(text)
    except ConditionError as error:
        raise CommandError(str(error)) from None


def _parse_days(text: str) -> str:
    """Read weekdays, and return them in the usual form."""
    days = parse_weekdays(text)
    if not days:
        raise CommandError(f"`on {text}` names no day. Write weekdays, weekends, or monday and thursday.")
    return format_weekdays(days)


def _parse_end(
    parts: Mapping[str, Sequence[str]], now: datetime, *, takes_second_moment: bool
) -> datetime | None:
    """Read the end of a rule; None if it has no end.

    ``takes_second_moment``: of the two moments of a time that the clocks repeat in autumn, take the second.
    For a rule that loosens something the first is taken, so that it never lasts longer than meant.
    """
    if "length" in parts:
        return add_length(now, parse_length(parts["length"][0]))
    if "until" not in parts:
        return None
    text = parts["until"][0]
    try:
        until = parse_moment(text, now, last=takes_second_moment)
    except ValueError as error:
        raise CommandError(f"{text!r}: {error}.") from None
    if until.astimezone(UTC) > now.astimezone(UTC) + _MAX_LIFE:
        raise CommandError("That is too far away. A rule ends within a year, or stays until it is dropped.")
    return until
