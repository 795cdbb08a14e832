"""The values of rules, as admins type them: a reader for each subject (`VALUE_READERS`)."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bot.approvals.commands.operands import (
    names_in,
    parse_account,
    parse_address,
    parse_hours,
    parse_length,
    parse_number,
    parse_time,
)
from bot.approvals.commands.subcommands import CommandError
from bot.domain.budgets import Budget
from bot.domain.people import Role, is_group
from bot.domain.plans import Approver
from bot.domain.risks import Level
from bot.domain.rule_values import (
    Attention,
    DailyDigest,
    Escalation,
    Mode,
    Opinion,
    OpinionEffect,
    Quorum,
    RuleValue,
    Subject,
)
from bot.domain.steps import MAX_NAME_CHARS, MAX_STEPS, TimedStep

_MAX_GROUPS = 5  # the most user groups in one rule: people wait while a platform is asked for the members
_MAX_CARDS = 1000  # the most cards an hour that a rule may allow: more never reach a person
# a name with a dot in it, perhaps with *. before it, or an IPv6 address
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_MAX_QUORUM = 20  # more approvals than anyone can gather
_STEP_TEXT = "Write the steps as `push after 2m, slack:T1/C2 after 10m`."
_NOTIFIER_NAME = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_NAME_CHARS}}}")


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


def _parse_undo_period(text: str) -> timedelta:
    if text == "off":
        return timedelta()
    return parse_length(text)


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
                steps.append(TimedStep(_parse_target(target), parse_length(length)))
            case _:
                raise CommandError(_STEP_TEXT)
    if len(steps) > MAX_STEPS:
        raise CommandError(f"At most {MAX_STEPS} steps.")
    if len({step.target for step in steps}) < len(steps):
        raise CommandError("Name each target once.")
    return tuple(sorted(steps, key=lambda step: step.delay))


def _parse_target(text: str) -> str:
    """Read the target of a step: the name of a notifier, a place, an account or a group."""
    if _NOTIFIER_NAME.fullmatch(text):
        return text
    if text.startswith("@"):
        raise CommandError(
            f"{text} is not known here. Write a group as slack:T1/S2, an account as slack:T1/U7."
        )
    return parse_address(text)


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


VALUE_READERS: dict[Subject, Callable[[list[str]], RuleValue]] = {
    Subject.POLICY: _make_member_reader(Mode),
    Subject.RISK: _make_member_reader(Level),
    Subject.TTL: _make_word_reader(parse_length),
    Subject.QUORUM: _parse_quorum,
    Subject.DECIDERS: _parse_deciders,
    Subject.ROUTE: _make_word_reader(parse_address),
    Subject.ESCALATE: _make_reader(Escalation, parse_length, parse_address),
    Subject.REMIND: _make_word_reader(parse_length),
    Subject.NOTIFY: _parse_steps,
    Subject.QUIET: _make_reader(parse_hours, str, str),
    Subject.DIGEST: _make_reader(DailyDigest, parse_time, parse_address),
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
