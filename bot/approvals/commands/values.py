"""Parsing of rules as admins type them: a value, and the parts that limit it.

An example is ``/approvals ttl 4h for delete_* in slack:T1/C2``. The rule's subject is ``ttl``, its value is
"4h", and "for delete_*" and "in slack:T1/C2" are its parts. `parse_value` takes the parts from the end
of the text, one by one, and reads what is left by the subject's reader in `_READERS`. Parsing is strict: a
misunderstood rule would allow calls that it should not. A text that can't be read raises CommandError, which
says the correct syntax.

A place is ``here``, an address, ``slack:*`` for a channel, or ``*`` for everywhere.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, NamedTuple

from bot.approvals.commands.subcommands import QUOTES, CommandError, first_word, remove_quotes
from bot.domain.budgets import Budget
from bot.domain.chat import Address, Command
from bot.domain.conditions import Condition
from bot.domain.conditions.parser import ConditionError
from bot.domain.connections import Identity
from bot.domain.people import AGENTS, Actor, Role, is_group
from bot.domain.plans import Approver
from bot.domain.proposal_lists import PageCursor
from bot.domain.risks import Level
from bot.domain.rule_values import (
    BY_RISK,
    FOR_PERSON_OR_PLACE,
    Attention,
    DailyDigest,
    Escalation,
    Hours,
    Mode,
    Opinion,
    OpinionEffect,
    Quorum,
    RuleValue,
    Subject,
)
from bot.domain.rules import ANY_TOOL, EVERYWHERE, MAX_INSTRUCTIONS_CHARS, Limits, Rule
from bot.domain.steps import MAX_NAME_CHARS, MAX_STEPS, TimedStep
from bot.domain.times import add_length, format_weekdays, parse_duration, parse_moment, parse_weekdays
from bot.plugins import list_channel_names

_MAX_GROUPS = 5  # the most user groups in one rule: people wait while a platform is asked for the members
_MAX_CARDS = 1000  # the most cards an hour that a rule may allow: more never reach a person
_NUMBER = re.compile(r"[0-9]{1,9}")
# a name with a dot in it, perhaps with *. before it, or an IPv6 address
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
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
_LIST_MARKS = (",", ";", "|")  # marks between several words of a list
_ONE_EACH = {"for": "one tool, or a pattern such as delete_*", "in": "one place", "by": "one account"}
"""The only things that may follow these words of a part: several need a rule for each."""
_PARTS_WITH_END = frozenset({"length", "until"})  # the two ways to say when a rule ends
_LOOSENING = frozenset({Subject.GRANTS, Subject.FETCH})  # rules that let calls run without asking
_MAX_QUORUM = 20  # more approvals than anyone can gather
_MAX_LIFE = timedelta(days=366)  # the longest time that a rule with an end lasts
LIMITED = (
    "[for TOOLS] [in PLACE] [by ACCOUNT] [as person|place|nod] [for 2h|until friday 18:00] "
    "[between 18:00 and 08:00] [on weekdays] [where …]"
)
"""The parts that may follow the value of a rule about calls. `for` names tools, unless a time follows it."""
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
_STEP_TEXT = "Write the steps as `push after 2m, slack:T1/C2 after 10m`."
_NOTIFIER_NAME = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_NAME_CHARS}}}")
_UNLIMITED = frozenset(
    {Subject.QUIET, Subject.DIGEST, Subject.PLANS, Subject.OUTSIDERS, *FOR_PERSON_OR_PLACE}
)
"""Subjects that are not about calls, so that their rules have no limits."""


def parse_value(subject: Subject, text: str, command: Command, now: datetime) -> Rule:
    """Read ``VALUE`` and its `LIMITED` parts into a rule. Raises CommandError.

    The parts come in any order, but ``where`` is last. The rule's number is 0, since it is not stored yet.
    The word ``here`` stands for the place of the command. ``now`` is in the team's time zone.
    """
    limited_text, condition = _split_condition(text)
    value_text, parts = _take_parts(limited_text)
    words = value_text.split()
    if not words:
        raise CommandError("Something is missing.")
    for word in reversed(words[1:]):
        if word in _ONE_EACH:  # the word was not read as a part, so more than one word follows it
            raise CommandError(f"After `{word}` comes {_ONE_EACH[word]}. Set a rule for each.")
    if subject in _WITH_PLACE:
        words = [_parse_place(word, command) if word == "here" else word for word in words]
    value = _READERS[subject](words)
    takes_second_moment = not _is_loosening(subject, value)
    limits = _parse_limits(parts, condition, now, takes_second_moment=takes_second_moment)
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
        scope = _parse_place(remove_quotes(parts["place"][0]), command)
    if "tools" in parts:
        pattern = _parse_tool_pattern(parts["tools"][0])
    return Rule(
        id=0,
        subject=subject,
        scope=scope,
        pattern=pattern,
        value=value,
        limits=limits if has_limits else None,
    )


def _split_condition(text: str) -> tuple[str, str | None]:
    """Return the text before ``where``, and the condition after it; None without one.

    The text before gets single spaces, and one at its beginning: the patterns of `_PARTS` begin with it.
    """
    before, *after = _WHERE.split(f" {text.strip()}", maxsplit=1)
    condition = after[0].strip() if after else None
    return f" {' '.join(before.split())}", condition


def _take_parts(text: str) -> tuple[str, dict[str, tuple[str, ...]]]:
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


def _parse_limits(
    parts: Mapping[str, Sequence[str]], condition: str | None, now: datetime, *, takes_second_moment: bool
) -> Limits:
    """Read the parts that limit a rule. ``condition``: the text after ``where``, if there is one.

    ``takes_second_moment``: see `_parse_end`.
    """
    return Limits(
        condition=_parse_condition(parts.get("identity", ()), condition),
        who=str(parse_account(remove_quotes(parts["account"][0]))) if "account" in parts else "",
        hours=_parse_hours(*parts["hours"]) if "hours" in parts else None,
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


def _parse_tool_pattern(text: str) -> str:
    """Read the name of one tool, or a pattern of names such as ``delete_*``."""
    name = remove_quotes(text)
    several = _split(name)
    if len(several) > 1 or name.endswith(_LIST_MARKS):
        commands = " and ".join(f"`for {name}`" for name in several)
        raise CommandError(
            f"After `for` comes one tool, or a pattern such as delete_*. Set a rule for each: {commands}."
        )
    return name


def names_in(text: str) -> list[str]:
    """Return the words of a list of people: "ana, ben and cy" -> ["ana", "ben", "cy"]."""
    return [word for word in _split(text) if word != "and"]


def _split(text: str) -> list[str]:
    """Split a text at white space and `_LIST_MARKS`."""
    return [word for word in re.split(r"[,;|\s]+", text) if word]


def _check_one(text: str, what: str) -> None:
    """Raise CommandError if a text names several things. ``what``: the word for the thing."""
    several = _split(text)
    if len(several) > 1 or text.endswith(_LIST_MARKS):
        raise CommandError(f"Name one {what} at a time: {' or '.join(several) or 'none is named'}.")


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


def _parse_hours(begin: str, end: str) -> Hours:
    hours = Hours(_parse_time(begin), _parse_time(end))
    if hours.begin == hours.end:
        raise CommandError("These hours begin when they end. Write two different times.")
    return hours


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
        return add_length(now, _parse_length(parts["length"][0]))
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
        rule = parse_value(subject, rest, command, now)
    elif word in {other.command_words for other in Subject}:
        raise CommandError(f"Only {', '.join(_MAY_BE_TRIED)} can be tried on the past.")
    else:  # a rule about the policy, without the word "policy"
        rule = parse_value(Subject.POLICY, f"{word} {rest}", command, now)
    try:
        last = parse_duration(options.get("last", "30d"))
        before = PageCursor.parse(options["before"]) if "before" in options else None
    except ValueError as error:
        raise CommandError(f"{error}.") from None
    if last > _MAX_TRIED_PERIOD:
        raise CommandError("At most 366d back.")
    return RuleToTry(rule, last, before)


def parse_instructions(text: str, command: Command) -> Rule:
    """Read ``[in PLACE] [WORDS]`` into a rule, whose value is empty without words. Raises CommandError."""
    first, rest = first_word(text)
    place, words = first_word(rest)
    is_place = ":" in place or place in ("here", EVERYWHERE)
    if first != "in" or not is_place:  # else "in" is the first of the instructions' own words
        place = "here"
        words = text.strip()
    if len(words) > MAX_INSTRUCTIONS_CHARS:
        raise CommandError(f"At most {MAX_INSTRUCTIONS_CHARS:,} characters.")
    scope = place if place == EVERYWHERE else _parse_place(place, command)
    return Rule(id=0, subject=Subject.INSTRUCTIONS, scope=scope, pattern=ANY_TOOL, value=words)


def parse_as_and_in(text: str, command: Command) -> tuple[Actor, Address | None]:
    """Read ``[as WHO] [in PLACE]``, and return both. Raises CommandError.

    By default WHO is the author of the command, and PLACE is None.
    """
    who: Actor = command.actor
    where: Address | None = None
    words = text.split()
    while words:
        match words:
            case ["as", name, *words]:
                who = parse_account(name)
            case ["in", name, *words]:
                where = Address.parse(_parse_place(name, command))
            case _:
                raise CommandError("After the arguments, write as WHO, in PLACE, or both.")
    return who, where


def _parse_place(text: str, command: Command) -> str:
    """Read ``here``, an address such as ``slack:T1/C2``, or ``slack:*`` for a channel."""
    if text == "here":
        key = command.address.key
        if key.count("/") > 1:  # a thread: the rule is for its whole chat
            key, _, _ = key.rpartition("/")
        return f"{command.address.channel}:{key}"
    if text.startswith(f"{AGENTS}/"):  # people write a slash in place of the colon
        text = f"{AGENTS}:{text.removeprefix(f'{AGENTS}/')}"
    if text.endswith(":*"):
        _check_channel(text.removesuffix(":*"))
        return text
    return _parse_address(text)


def _parse_address(text: str) -> str:
    _check_one(text, "place")
    _check_channel(text.partition(":")[0])
    try:
        return str(Address.parse(text))
    except ValueError:
        raise CommandError(f"{text!r} is not a place. Use here, or an address such as slack:T1/C2.") from None


def _check_channel(channel: str) -> None:
    """Raise CommandError for a misspelt channel: a rule for ``slak:`` would silently never apply."""
    near = difflib.get_close_matches(channel, list_channel_names(), 1)
    if near and near[0] != channel:
        raise CommandError(f"There is no channel {channel}. Did you mean {near[0]}?")


def parse_account(text: str) -> Actor:
    """Read an account. Raises CommandError."""
    _check_one(text, "account")
    _check_channel(text.partition(":")[0])
    try:
        return Actor.parse(text)
    except ValueError:
        raise CommandError(
            f"{text!r} is not an account. Write it as slack:TEAM/USER, telegram:ID or http:NAME."
        ) from None


def parse_seconds(text: str) -> float:
    """Read a duration such as 15m, in seconds. Raises CommandError."""
    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise CommandError(f"{text!r}: {error}.") from None
    if not timedelta(seconds=10) <= duration <= timedelta(days=90):
        raise CommandError(f"{text!r} is out of range. Use 10s to 90d.")
    return duration.total_seconds()


def parse_number(text: str) -> int | None:
    """Read the number of a rule, grant or quorum; None for anything else."""
    if _NUMBER.fullmatch(text):
        return int(text)
    return None


def _make_member_reader(
    enumeration: type[Mode] | type[Level] | type[Approver],
) -> Callable[[list[str]], RuleValue]:
    """Return a function that reads a member of an enumeration from one word."""

    def read_member(words: list[str]) -> RuleValue:
        known = [str(member) for member in enumeration]
        if len(words) != 1 or words[0] not in known:
            raise CommandError(f"Use one of {', '.join(known)}.")
        return enumeration(words[0])

    return read_member


def _parse_quorum(words: list[str]) -> Quorum:
    """Read ``N [of M]``. Without M, its value is 0."""
    match [parse_number(word) for word in words if word != "of"]:
        case [int(needed)]:
            total = 0
        case [int(needed), int(total)]:
            pass
        case _:
            raise CommandError("Give a number of approvals, such as 2 or 2 of 3.")
    if not 1 <= needed <= _MAX_QUORUM or (total and total < needed):
        raise CommandError(f"Use 1 to {_MAX_QUORUM}, and not more than there are.")
    return Quorum(needed, total)


def _parse_deciders(words: list[str]) -> tuple[str, ...]:
    """Read a list of accounts, groups, roles, "requester" and "member"."""
    known = {"requester", "member", *Role}
    words = names_in(" ".join(words))
    if not words:
        raise CommandError("Who may decide? Name at least one.")
    for word in words:
        if word not in known:
            parse_account(word)
    groups = [word for word in words if is_group(word)]
    if len(groups) > _MAX_GROUPS:
        raise CommandError(f"Name at most {_MAX_GROUPS} groups.")
    return tuple(dict.fromkeys(words))


def _parse_time(text: str) -> time:
    padded = text.zfill(len("08:00"))  # people write 8:00
    try:
        return time.fromisoformat(padded).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        raise CommandError(f"{text!r} is not a time of day. Write HH:MM, in the team's time zone.") from None


def _make_reader(
    make_value: Callable[..., RuleValue], *readers: Callable[[str], Any]
) -> Callable[[list[str]], RuleValue]:
    """Return a function that reads each word by the reader in its position, and makes a value of all."""

    def read_all(words: list[str]) -> RuleValue:
        if len(words) != len(readers):
            raise CommandError(f"This needs {len(readers)} values.")
        values = [reader(word) for reader, word in zip(readers, words, strict=True)]
        return make_value(*values)

    return read_all


def _make_word_reader(reader: Callable[[str], RuleValue]) -> Callable[[list[str]], RuleValue]:
    """Return a function that reads one word by ``reader``."""
    return _make_reader(lambda value: value, reader)


def _parse_length(text: str) -> timedelta:
    return timedelta(seconds=parse_seconds(text))


def _parse_undo_period(text: str) -> timedelta:
    if text == "off":
        return timedelta()
    return _parse_length(text)


def _make_keyword_reader(word: str) -> Callable[[list[str]], RuleValue]:
    """Return a function that accepts only this word, and returns it as the value."""

    def read_keyword(words: list[str]) -> RuleValue:
        if words != [word]:
            raise CommandError(f"Only `{word}` can be allowed here.")
        return word

    return read_keyword


def _parse_opinion(words: list[str]) -> Opinion:
    """Read a model's name and the consequence of its no, with or without the comma between them."""
    model, *rest = words
    written = " ".join(rest).replace(",", "")
    for effect in OpinionEffect:
        if str(effect).replace(",", "") == written:
            return Opinion(model, effect)
    raise CommandError("After the model comes nothing, `raises`, or `raises, or is missing`.")


def _parse_steps(words: list[str]) -> tuple[TimedStep, ...]:
    """Read the steps ``TARGET after LENGTH``, separated by commas."""
    steps = []
    for part in " ".join(words).split(","):
        match part.split():
            case [target, "after", length]:
                steps.append(TimedStep(_parse_target(target), _parse_length(length)))
            case _:
                raise CommandError(_STEP_TEXT)
    if len(steps) > MAX_STEPS:
        raise CommandError(f"At most {MAX_STEPS} steps.")
    if len({step.to for step in steps}) < len(steps):
        raise CommandError("Name each target once.")
    return tuple(sorted(steps, key=lambda step: step.after))


def _parse_target(text: str) -> str:
    """Read the target of a step: the name of a notifier, a place, an account or a group."""
    if _NOTIFIER_NAME.fullmatch(text):
        return text
    if text.startswith("@"):
        raise CommandError(
            f"{text} is not known here. Write a group as slack:T1/S2, an account as slack:T1/U7."
        )
    return _parse_address(text)


def _parse_attention(words: list[str]) -> Attention:
    """Read ``N [an hour]``."""
    first, *rest = words
    cards = parse_number(first)
    if cards is None or not 1 <= cards <= _MAX_CARDS or rest not in ([], ["an", "hour"], ["a", "hour"]):
        raise CommandError(f"Write how many cards an hour, such as 12 an hour: 1 to {_MAX_CARDS}.")
    return Attention(cards)


def _parse_budget(words: list[str]) -> Budget:
    try:
        return Budget.parse(words)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _parse_host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise CommandError(f"{text!r} is not a host. Write it as docs.example.org or *.example.org.")
    return text.lower()


_READERS: dict[Subject, Callable[[list[str]], RuleValue]] = {
    Subject.POLICY: _make_member_reader(Mode),
    Subject.RISK: _make_member_reader(Level),
    Subject.TTL: _make_word_reader(_parse_length),
    Subject.QUORUM: _parse_quorum,
    Subject.DECIDERS: _parse_deciders,
    Subject.ROUTE: _make_word_reader(_parse_address),
    Subject.ESCALATE: _make_reader(Escalation, _parse_length, _parse_address),
    Subject.REMIND: _make_word_reader(_parse_length),
    Subject.NOTIFY: _parse_steps,
    Subject.QUIET: _make_reader(_parse_hours, str, str),
    Subject.DIGEST: _make_reader(DailyDigest, _parse_time, _parse_address),
    Subject.PLANS: _make_member_reader(Approver),
    Subject.GRANTS: _make_keyword_reader("destructive"),
    Subject.FETCH: _make_word_reader(_parse_host),
    Subject.OUTSIDERS: _make_keyword_reader("talk"),
    Subject.BUDGET: _parse_budget,
    Subject.MODEL: _make_word_reader(str),
    Subject.UNDO: _make_word_reader(_parse_undo_period),
    Subject.OPINION: _parse_opinion,
    Subject.ATTENTION: _parse_attention,
    Subject.BATCH: _make_keyword_reader("stop"),
}
"""The reader of each subject's value, which gets the words of the value."""
