"""The record of calls like one: what is unusual about a call, in words for its card. Pure.

It says what is rare and never what is usual: that a tool is always approved is for *Insights*. Nothing here
comes from a model.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from bot.domain.outward import find_addresses
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.text import host_of, one_line, shorten
from bot.domain.value_text import label_of

MAX_FACTS = 2
MAX_CALLS = 40
"""Earlier calls that are looked at, the newest of them."""
KNOWN_LEAST = 10
"""Proposals that a chat has seen before the first call of a tool there means anything."""
_LOOKED_BACK = timedelta(days=90)
_FLOOD = timedelta(minutes=5)
_FLOOD_LEAST = 5  # answers that asked, with this one
_VALUES_LEAST = 5  # earlier calls with such a value
_LARGER = 1.25  # times the largest one before
_MAX_NUMBERS = 20  # arguments of one call
_MAX_ADDRESSES = 20
_MAX_ADDRESS_CHARS = 60
_MAIL = re.compile(r"[^\s@<>\"',;]{1,64}@[^\s@<>\"',;]{1,190}\.[^\s@<>\"',;.]{2,24}")
_NAMES_A_THING = re.compile(
    r"(^|_)(ids?|no|number|num|issue|pr|ticket|port|page|line|row|year|month|day|hour|minute|index|offset"
    r"|key|code|version|position|timestamp|time|date|at|since|until|seed|lat|lon|latitude|longitude|zip)$",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TIMES = {1: "before", 2: "twice"}


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """An earlier proposal of the same tool. ``arguments``: as JSON text, which few of the looks need."""

    created_at: datetime
    message_id: int
    arguments: str
    declined_by: tuple[str, ...] = ()  # who declined exactly this call

    def read(self) -> Mapping[str, Any]:
        """Return its arguments."""
        found: Mapping[str, Any] = json.loads(self.arguments)
        return found


@dataclass(frozen=True, slots=True)
class PastCalls:
    """The earlier calls of a tool that everyone who may decide the new one may see, newest first.

    ``is_first``: no call of the tool was made in the chat, seen or unseen. ``known``: proposals of any tool
    there, counted no further than `KNOWN_LEAST`. ``is_cut``: there were more than were looked at.
    """

    calls: Sequence[EarlierCall] = ()
    is_first: bool = False
    known: int = 0
    is_cut: bool = False


def find_unusual(proposal: Proposal, past: PastCalls, now: datetime) -> list[str]:
    """Return what is unusual about a call, the most telling first, at most `MAX_FACTS` of it."""
    since = now - _LOOKED_BACK
    recent = [each for each in past.calls if since <= each.created_at <= now]
    among = "90 days"
    if past.is_cut and len(recent) == len(past.calls):
        among = f"the last {len(recent)} calls"
    looks: tuple[Iterator[str], ...] = (
        _find_declines(past.calls),
        _find_new_addresses(proposal, recent),
        _find_largest(proposal, recent, among),
        _find_flood(recent, now),
        _find_first(past),
    )
    facts = (fact for look in looks for fact in islice(look, 1))
    return list(islice(facts, MAX_FACTS))


def _find_declines(calls: Sequence[EarlierCall]) -> Iterator[str]:
    counted = Counter(name for each in calls for name in each.declined_by)
    if not counted:
        return
    [(name, many)] = counted.most_common(1)
    times = _TIMES.get(many, f"{many} times")
    others = len(counted) - 1
    who = one_line(name)
    if others:
        who += f" and {others} {'other' if others == 1 else 'others'}"
        yield f"{who} have declined this before"
    else:
        yield f"{who} has declined this {times}"


def _find_new_addresses(proposal: Proposal, recent: Sequence[EarlierCall]) -> Iterator[str]:
    asked = _read_addresses(proposal.arguments)
    if not asked or len(recent) < _VALUES_LEAST:
        return
    have_some = (True for each in recent if _read_addresses(each.read()))
    if len(list(islice(have_some, _VALUES_LEAST))) < _VALUES_LEAST:
        return
    for address in asked:
        if not any(_names_address(each, address) for each in recent):
            yield f"the address {redact_text(shorten(address, _MAX_ADDRESS_CHARS))} is new"


def _names_address(earlier: EarlierCall, address: str) -> bool:
    """Return whether an earlier call names an address. Few have its text and need a closer look."""
    return address in earlier.arguments.lower() and address in _read_addresses(earlier.read())


def _read_addresses(arguments: Mapping[str, Any]) -> list[str]:
    """Return the hosts and e-mail addresses that a call names, in lower case, at most so many."""
    hosts = (host_of(each) for each in islice(find_addresses(arguments), _MAX_ADDRESSES))
    mails = islice(_find_mails(arguments), _MAX_ADDRESSES)
    return list(dict.fromkeys(each.lower() for each in (*mails, *hosts) if each))


def _find_mails(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if _MAIL.fullmatch(value.strip()):
            yield value.strip()
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _find_mails(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _find_mails(each)


def _find_largest(proposal: Proposal, recent: Sequence[EarlierCall], among: str) -> Iterator[str]:
    numbers = dict(islice(_find_amounts(proposal.arguments), _MAX_NUMBERS))
    if not numbers or len(recent) < _VALUES_LEAST:
        return
    earlier = [each.read() for each in recent]
    for name, value in numbers.items():
        before = [each[name] for each in earlier if _is_number(each.get(name))]
        if len(before) >= _VALUES_LEAST and value > max(0, *before) * _LARGER:
            yield f"{label_of(name).lower()} is the largest of {among} (before: {_format(max(before))})"


def _find_amounts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the arguments that say how much, not those that name something by its number."""
    for name, value in arguments.items():
        if _is_number(value) and not _NAMES_A_THING.search(_HUMP.sub("_", name)):
            yield name, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _format(number: float) -> str:
    if float(number).is_integer():
        return f"{int(number):,}"
    return f"{number:,.2f}"


def _find_flood(recent: Sequence[EarlierCall], now: datetime) -> Iterator[str]:
    asked = {each.message_id for each in recent if now - each.created_at <= _FLOOD}
    many = len(asked) + 1
    if many >= _FLOOD_LEAST:
        yield f"asked {many} times in 5 minutes"


def _find_first(past: PastCalls) -> Iterator[str]:
    if past.is_first and past.known >= KNOWN_LEAST:
        yield "first call of this tool in this chat"
