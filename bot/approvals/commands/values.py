"""Parsing of the values in rules, as admins type them. Strict."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, NamedTuple

from bot.approvals.commands.words import QUOTES, CommandError, first_word, remove_quotes
from bot.domain.budgets import Budget
from bot.domain.chat import Address, Command
from bot.domain.conditions import Condition, ConditionError
from bot.domain.connections import Identity
from bot.domain.people import AGENTS, Actor, Role, is_group
from bot.domain.plans import Approver
from bot.domain.proposals import Level, Mark
from bot.domain.rules import (
    BY_RISK,
    EVERYWHERE,
    FOR_WHOM,
    LONGEST_INSTRUCTIONS,
    Attention,
    DailyDigest,
    Escalation,
    Hours,
    Limits,
    Mode,
    Opinion,
    Quorum,
    Raising,
    Rule,
    RuleValue,
    Subject,
)
from bot.domain.steps import MAX_NAME_CHARS, MAX_STEPS, TimedStep
from bot.domain.times import add_length, format_weekdays, parse_duration, parse_moment, parse_weekdays
from bot.plugins import channel_names

_MOST_GROUPS = 5  # in one rule: each is asked for while people wait
_MAX_CARDS = 1000  # an hour: more never reach a person
_NUMBER = re.compile(r"[0-9]{1,9}")
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
_WHERE = re.compile(r"\s+where\b", re.IGNORECASE)
_MARKS = (",", ";", "|")
_ONE_EACH = {"for": "one tool, or a pattern such as delete_*", "in": "one place", "by": "one account"}
_ENDS = frozenset({"length", "until"})
_LOOSENING = frozenset({Subject.GRANTS, Subject.FETCH})
_FURTHEST = timedelta(days=366)
LIMITED = (
    "[for TOOLS] [in PLACE] [by ACCOUNT] [as person|place|nod] [for 2h|until friday 18:00] "
    "[between 18:00 and 08:00] [on weekdays] [where …]"
)
"""What may follow the value of a rule about calls. `for` names tools, unless a length of time follows it."""
_LONGEST_LOOK = timedelta(days=366)
_TRIED = {
    "policy": Subject.POLICY,
    **{each.typed: each for each in (Subject.RISK, Subject.DECIDERS, Subject.QUORUM)},
}
_LOOK = re.compile(r"\s+(?:--|\u2014|\u2013)?(last|before)\s+(\S+)$")  # phones write two dashes as one
_PLACED = frozenset({Subject.ROUTE, Subject.ESCALATE, Subject.NOTIFY, Subject.DIGEST})
"""Subjects whose value names a place."""
_STEP_TEXT = "Write the steps as `push after 2m, slack:T1/C2 after 10m`."
_NAME = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_NAME_CHARS}}}")
_UNLIMITED = frozenset({Subject.QUIET, Subject.DIGEST, Subject.PLANS, Subject.OUTSIDERS, *FOR_WHOM})
"""Subjects that are not about a call."""


def parse_value(subject: Subject, text: str, command: Command, now: datetime) -> Rule:
    """Read ``VALUE`` and its `LIMITED` parts, in any order but ``where`` last; raises CommandError.

    The rule has no number yet. ``here`` is the place of the command. ``now`` is in the team's time zone.
    """
    text, *conditions = _WHERE.split(f" {text.strip()}", maxsplit=1)
    said, given = f" {' '.join(text.split())}", dict[str, tuple[str, ...]]()
    while found := next(((n, m) for n, part in _PARTS.items() if (m := part.search(said))), None):
        name, match = found
        if name in given or (name in _ENDS and given.keys() & _ENDS):
            raise CommandError(f"`{match[0].strip()}` is one too many. Write each part once.")
        given[name], said = match.groups(), said[: match.start()]
    words = said.split()
    if not words:
        raise CommandError("Something is missing.")
    left = next((word for word in reversed(words[1:]) if word in _ONE_EACH), None)
    if left:
        raise CommandError(f"After `{left}` comes {_ONE_EACH[left]}. Set a rule for each.")
    if subject in _PLACED:
        words = [_place(word, command) if word == "here" else word for word in words]
    value = _VALUES[subject](words)
    limits = Limits(
        _condition(given.get("identity", ()), conditions),
        str(account(remove_quotes(given["account"][0]))) if "account" in given else "",
        _hours(*given["hours"]) if "hours" in given else None,
        _end(given, now, last=not _is_loosening(subject, value)),
        _days(given["days"][0]) if "days" in given else "",
    )
    if subject in FOR_WHOM and "tools" in given:
        if "place" in given:
            raise CommandError("Name one person or place, after `for`.")
        given["place"] = given.pop("tools")
    if limits.condition and limits.condition.looks_at_risk and subject not in BY_RISK:
        known = ", ".join(each for each in Subject if each in BY_RISK)
        raise CommandError(f"`risk is` can't stand here. It is for rules about {known}.")
    if limits != Limits() and subject in _UNLIMITED:
        raise CommandError(f"A rule about {subject.typed} has no by, until, between, on or where.")
    return Rule(
        0,
        subject,
        _place(remove_quotes(given["place"][0]), command) if "place" in given else EVERYWHERE,
        _tools(given["tools"][0]) if "tools" in given else EVERYWHERE,
        value,
        None if limits == Limits() else limits,
    )


def _tools(text: str) -> str:
    """Read the name of a tool, or a pattern; raises CommandError for several."""
    named = remove_quotes(text)
    several = _split(named)
    if len(several) > 1 or named.endswith(_MARKS):
        each = " and ".join(f"`for {name}`" for name in several)
        raise CommandError(
            f"After `for` comes one tool, or a pattern such as delete_*. Set a rule for each: {each}."
        )
    return named


def names_in(text: str) -> list[str]:
    """Return the words of a list of people as one writes it, with commas, semicolons, spaces or "and"."""
    return [each for each in _split(text) if each != "and"]


def _split(text: str) -> list[str]:
    return [each for each in re.split(r"[,;|\s]+", text) if each]


def _check_one(text: str, what: str) -> None:
    several = _split(text)
    if len(several) > 1 or text.endswith(_MARKS):
        raise CommandError(f"Name one {what} at a time: {' or '.join(several) or 'none is named'}.")


def _condition(identity: Sequence[str], conditions: Sequence[str]) -> Condition | None:
    """Read what stands after ``as`` and after ``where``, which hold together; None for neither."""
    if identity and identity[0] not in set(Identity):
        raise CommandError(f"After `as` comes {', '.join(Identity)}: under whose account a call is made.")
    texts = [f"connection is {each}" for each in identity] + [each.strip() for each in conditions]
    if not texts:
        return None
    text = texts[0] if len(texts) == 1 else f"{texts[0]} and ({texts[1]})"
    try:
        return Condition.parse(text)
    except ConditionError as error:
        raise CommandError(str(error)) from None


def _hours(begin: str, end: str) -> Hours:
    hours = Hours(_clock(begin), _clock(end))
    if hours.begin == hours.end:
        raise CommandError("These hours begin when they end. Write two different times.")
    return hours


def _days(said: str) -> str:
    days = parse_weekdays(said)
    if not days:
        raise CommandError(f"`on {said}` names no day. Write weekdays, weekends, or monday and thursday.")
    return format_weekdays(days)


def _end(given: Mapping[str, Sequence[str]], now: datetime, *, last: bool) -> datetime | None:
    """Read when a rule ends by itself; ``last``: of a time that the clocks repeat, the last one."""
    if "length" in given:
        return add_length(now, _length(given["length"][0]))
    if "until" not in given:
        return None
    said = given["until"][0]
    try:
        until = parse_moment(said, now, last=last)
    except ValueError as error:
        raise CommandError(f"{said!r}: {error}.") from None
    if until.astimezone(UTC) > now.astimezone(UTC) + _FURTHEST:
        raise CommandError("That is too far away. A rule ends within a year, or stays until it is dropped.")
    return until


def _is_loosening(subject: Subject, value: RuleValue) -> bool:
    return subject in _LOOSENING or value in (Mode.NEVER, Mode.DESTRUCTIVE, Level.READ)


class RuleToTry(NamedTuple):
    """A rule to try on the past: how far back, and below which place in it."""

    rule: Rule
    last: timedelta
    before: Mark | None


def rule_to_try(text: str, command: Command, now: datetime) -> RuleToTry:
    """Read ``RULE [last 30d] [before MARK]``, the rule as after ``/approvals`` or after ``policy``.

    ``now`` is in the team's time zone. Raises CommandError.
    """
    text, options = f" {text.strip()}", dict[str, str]()
    while found := _LOOK.search(text):
        options.setdefault(found[1], remove_quotes(found[2]))
        text = text[: found.start()]
    text = text.strip()
    if text[:1] and text[0] in QUOTES:  # around all of it; others belong to a condition
        text = text[1:-1] if text[-1] in QUOTES else text[1:]
    word, rest = first_word(text)
    subject = _TRIED.get(word)
    if subject is None and word in {each.typed for each in Subject}:
        raise CommandError(f"Only {', '.join(_TRIED)} can be tried on the past.")
    said = f"{word} {rest}" if subject is None else rest
    given = parse_value(subject or Subject.POLICY, said, command, now)
    try:
        last = parse_duration(options.get("last", "30d"))
        before = Mark.parse(options["before"]) if "before" in options else None
    except ValueError as error:
        raise CommandError(f"{error}.") from None
    if last > _LONGEST_LOOK:
        raise CommandError("At most 366d back.")
    return RuleToTry(given, last, before)


def instructions(text: str, command: Command) -> Rule:
    """Read ``[in PLACE] WORDS``; without words there is no value yet. Raises CommandError."""
    word, rest = first_word(text)
    where, said = first_word(rest)
    if word != "in" or not (":" in where or where in ("here", EVERYWHERE)):
        where, said = "here", text.strip()
    if len(said) > LONGEST_INSTRUCTIONS:
        raise CommandError(f"At most {LONGEST_INSTRUCTIONS:,} characters.")
    scope = where if where == EVERYWHERE else _place(where, command)
    return Rule(0, Subject.INSTRUCTIONS, scope, EVERYWHERE, said)


def as_and_in(text: str, command: Command) -> tuple[Actor, Address | None]:
    """Read ``[as WHO] [in PLACE]``: for whom and where, if not here; raises CommandError."""
    words, who, where = text.split(), command.actor, None
    for word, named in zip(words[::2], words[1::2], strict=False):
        if word == "as":
            who = account(named)
        elif word == "in":
            where = Address.parse(_place(named, command))
    if len(words) % 2 or set(words[::2]) - {"as", "in"}:
        raise CommandError("After the arguments, write as WHO, in PLACE, or both.")
    return who, where


def _place(text: str, command: Command) -> str:
    if text == "here":
        key = command.address.key
        return f"{command.address.channel}:{key.rsplit('/', 1)[0] if key.count('/') > 1 else key}"
    if text.startswith(f"{AGENTS}/"):  # as people say it
        text = f"{AGENTS}:{text.removeprefix(f'{AGENTS}/')}"
    if text.endswith(":*"):
        _check_channel(text.removesuffix(":*"))
        return text
    return _address(text)


def _address(text: str) -> str:
    _check_one(text, "place")
    _check_channel(text.partition(":")[0])
    try:
        return str(Address.parse(text))
    except ValueError:
        raise CommandError(f"{text!r} is not a place. Use here, or an address such as slack:T1/C2.") from None


def _check_channel(channel: str) -> None:
    """Raise CommandError for a misspelt channel: a rule for ``slak:`` would silently never apply."""
    near = difflib.get_close_matches(channel, channel_names(), 1)
    if near and near[0] != channel:
        raise CommandError(f"There is no channel {channel}. Did you mean {near[0]}?")


def account(text: str) -> Actor:
    """Read an account; raises CommandError."""
    _check_one(text, "account")
    _check_channel(text.partition(":")[0])
    try:
        return Actor.parse(text)
    except ValueError:
        raise CommandError(
            f"{text!r} is not an account. Write it as slack:TEAM/USER, telegram:ID or http:NAME."
        ) from None


def seconds(text: str) -> float:
    """Read a duration such as 15m; raises CommandError."""
    try:
        read = parse_duration(text)
    except ValueError as error:
        raise CommandError(f"{text!r}: {error}.") from None
    if not timedelta(seconds=10) <= read <= timedelta(days=90):
        raise CommandError(f"{text!r} is out of range. Use 10s to 90d.")
    return read.total_seconds()


def number(text: str) -> int | None:
    """Read a number as rules, grants and quorums have it; None for anything else."""
    if _NUMBER.fullmatch(text):
        return int(text)
    return None


def _one_of(kind: type[Mode] | type[Level] | type[Approver]) -> Callable[[list[str]], RuleValue]:
    def read(words: list[str]) -> RuleValue:
        known = [str(member) for member in kind]
        if len(words) != 1 or words[0] not in known:
            raise CommandError(f"Use one of {', '.join(known)}.")
        return kind(words[0])

    return read


def _quorum(words: list[str]) -> Quorum:
    numbers = [number(w) for w in words if w != "of"]
    match numbers:
        case [int(needed)]:
            of = 0
        case [int(needed), int(of)]:
            pass
        case _:
            raise CommandError("Give a number of approvals, such as 2 or 2 of 3.")
    if not 1 <= needed <= 20 or (of and of < needed):  # noqa: PLR2004 - more than anybody can gather
        raise CommandError("Use 1 to 20, and not more than there are.")
    return Quorum(needed, of)


def _deciders(words: list[str]) -> tuple[str, ...]:
    known = {"requester", "member", *Role}
    words = names_in(" ".join(words))
    if not words:
        raise CommandError("Who may decide? Name at least one.")
    for word in words:
        if word not in known:
            account(word)
    if sum(map(is_group, words)) > _MOST_GROUPS:
        raise CommandError(f"Name at most {_MOST_GROUPS} groups.")
    return tuple(dict.fromkeys(words))


def _clock(text: str) -> time:
    try:
        return time.fromisoformat(text.zfill(len("08:00"))).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        raise CommandError(f"{text!r} is not a time of day. Write HH:MM, in the team's time zone.") from None


def _each(make: Callable[..., RuleValue], *readers: Callable[[str], Any]) -> Callable[[list[str]], RuleValue]:
    def read(words: list[str]) -> RuleValue:
        if len(words) != len(readers):
            raise CommandError(f"This needs {len(readers)} values.")
        return make(*(reader(word) for reader, word in zip(readers, words, strict=True)))

    return read


def _length(text: str) -> timedelta:
    return timedelta(seconds=seconds(text))


def _undo_for(text: str) -> timedelta:
    if text == "off":
        return timedelta()
    return _length(text)


def _one(reader: Callable[[str], RuleValue]) -> Callable[[list[str]], RuleValue]:
    return _each(lambda value: value, reader)


def _only(word: str) -> Callable[[list[str]], RuleValue]:
    def read(words: list[str]) -> RuleValue:
        if words != [word]:
            raise CommandError(f"Only `{word}` can be allowed here.")
        return word

    return read


def _opinion(words: list[str]) -> Opinion:
    model, *rest = words
    said = " ".join(rest)
    known = {str(each).replace(",", ""): each for each in Raising}
    if said.replace(",", "") not in known:
        raise CommandError("After the model comes nothing, `raises`, or `raises, or is missing`.")
    return Opinion(model, known[said.replace(",", "")])


def _steps(words: list[str]) -> tuple[TimedStep, ...]:
    """Read ``TARGET after LENGTH``, several with commas between them."""
    said = [part.split() for part in " ".join(words).split(",")]
    read = []
    for part in said:
        match part:
            case [target, "after", length]:
                read.append(TimedStep(_target(target), _length(length)))
            case _:
                raise CommandError(_STEP_TEXT)
    if len(read) > MAX_STEPS:
        raise CommandError(f"At most {MAX_STEPS} steps.")
    if len({step.to for step in read}) < len(read):
        raise CommandError("Name each target once.")
    return tuple(sorted(read, key=lambda step: step.after))


def _target(text: str) -> str:
    if _NAME.fullmatch(text):
        return text
    if text.startswith("@"):
        raise CommandError(
            f"{text} is not known here. Write a group as slack:T1/S2, an account as slack:T1/U7."
        )
    return _address(text)


def _attention(words: list[str]) -> Attention:
    first, *rest = words
    cards = number(first)
    if cards is None or not 1 <= cards <= _MAX_CARDS or rest not in ([], ["an", "hour"], ["a", "hour"]):
        raise CommandError(f"Write how many cards an hour, such as 12 an hour: 1 to {_MAX_CARDS}.")
    return Attention(cards)


def _budget(words: list[str]) -> Budget:
    try:
        return Budget.parse(words)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise CommandError(f"{text!r} is not a host. Write it as docs.example.org or *.example.org.")
    return text.lower()


_VALUES: dict[Subject, Callable[[list[str]], RuleValue]] = {
    Subject.POLICY: _one_of(Mode),
    Subject.RISK: _one_of(Level),
    Subject.TTL: _one(_length),
    Subject.QUORUM: _quorum,
    Subject.DECIDERS: _deciders,
    Subject.ROUTE: _one(_address),
    Subject.ESCALATE: _each(Escalation, _length, _address),
    Subject.REMIND: _one(_length),
    Subject.NOTIFY: _steps,
    Subject.QUIET: _each(_hours, str, str),
    Subject.DIGEST: _each(DailyDigest, _clock, _address),
    Subject.PLANS: _one_of(Approver),
    Subject.GRANTS: _only("destructive"),
    Subject.FETCH: _one(_host),
    Subject.OUTSIDERS: _only("talk"),
    Subject.BUDGET: _budget,
    Subject.MODEL: _one(str),
    Subject.UNDO: _one(_undo_for),
    Subject.OPINION: _opinion,
    Subject.ATTENTION: _attention,
    Subject.BATCH: _only("stop"),
}
