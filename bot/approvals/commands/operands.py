"""The operands of commands: places, accounts, tools, numbers, lengths and times, as people type them.

A place is ``here``, an address, ``slack:*`` for a channel, or ``*`` for everywhere. A text that can't be read
raises CommandError, which says the correct syntax.
"""

import difflib
import re
from datetime import time, timedelta

from bot.approvals.commands.subcommands import CommandError, remove_quotes
from bot.domain.chat import Address, Command
from bot.domain.people import AGENTS, Actor
from bot.domain.rule_values import Hours
from bot.domain.times import parse_duration
from bot.plugins import list_channel_names

_NUMBER = re.compile(r"[0-9]{1,9}")
_LIST_MARKS = (",", ";", "|")  # marks between several words of a list


def names_in(text: str) -> list[str]:
    """Return the words of a list of people: "ana, ben and cy" -> ["ana", "ben", "cy"]."""
    return [word for word in _split_list(text) if word != "and"]


def parse_place(text: str, command: Command) -> str:
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
    return parse_address(text)


def parse_address(text: str) -> str:
    _check_one(text, "place")
    _check_channel(text.partition(":")[0])
    try:
        return str(Address.parse(text))
    except ValueError:
        raise CommandError(f"{text!r} is not a place. Use here, or an address such as slack:T1/C2.") from None


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


def parse_time(text: str) -> time:
    padded = text.zfill(len("08:00"))  # people write 8:00
    try:
        return time.fromisoformat(padded).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        raise CommandError(f"{text!r} is not a time of day. Write HH:MM, in the team's time zone.") from None


def parse_length(text: str) -> timedelta:
    return timedelta(seconds=parse_seconds(text))


def parse_tool_pattern(text: str) -> str:
    """Read the name of one tool, or a pattern of names such as ``delete_*``."""
    name = remove_quotes(text)
    several = _split_list(name)
    if len(several) > 1 or name.endswith(_LIST_MARKS):
        commands = " and ".join(f"`for {name}`" for name in several)
        raise CommandError(
            f"After `for` comes one tool, or a pattern such as delete_*. Set a rule for each: {commands}."
        )
    return name


def parse_hours(begin: str, end: str) -> Hours:
    hours = Hours(parse_time(begin), parse_time(end))
    if hours.begin == hours.end:
        raise CommandError("These hours begin when they end. Write two different times.")
    return hours


def _split_list(text: str) -> list[str]:
    """Split a text at white space and `_LIST_MARKS`."""
    return [word for word in re.split(r"[,;|\s]+", text) if word]


def _check_one(text: str, what: str) -> None:
    """Raise CommandError if a text names several things. ``what``: the word for the thing."""
    several = _split_list(text)
    if len(several) > 1 or text.endswith(_LIST_MARKS):
        raise CommandError(f"Name one {what} at a time: {' or '.join(several) or 'none is named'}.")


def _check_channel(channel: str) -> None:
    """Raise CommandError for a misspelt channel: a rule for ``slak:`` would silently never apply."""
    near = difflib.get_close_matches(channel, list_channel_names(), 1)
    if near and near[0] != channel:
        raise CommandError(f"There is no channel {channel}. Did you mean {near[0]}?")
