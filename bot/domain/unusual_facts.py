"""Unusual facts about a call, compared with earlier calls of its tool, in words for its card. Pure.

For example "the address ben@evil.example is new" or "amount is the largest of 90 days (before: 20)". Only
what is rare is said, never what is usual: that a tool is always approved is for *Insights*. Nothing here
comes from a model. ``bot/store/past_proposals.py`` reads the earlier calls.
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

from bot.domain.outbound_addresses import find_addresses
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.text import host_of, one_line, shorten
from bot.domain.value_text import label_of

MAX_FACTS = 2
MAX_CALLS = 40
"""The number of earlier calls that are compared, the newest ones."""
MIN_KNOWN_PROPOSALS = 10
"""The first call of a tool in a chat is unusual only if the chat has at least this number of proposals."""
_COMPARED_PERIOD = timedelta(days=90)
_FLOOD_MINUTES = 5
_MIN_FLOOD_ANSWERS = 5  # the agent's answers with calls of the tool in the period, this one included
_MIN_COMPARED_CALLS = 5  # the earlier calls with a value that can be compared
_LARGEST_FACTOR = 1.25  # a value is unusual from this multiple of the largest earlier value
_MAX_NUMBERS = 20  # the numbers of one call that are compared
_MAX_ADDRESSES = 20
_MAX_ADDRESS_CHARS = 60
_MAIL = re.compile(r"[^\s@<>\"',;]{1,64}@[^\s@<>\"',;]{1,190}\.[^\s@<>\"',;.]{2,24}")
# the end of the name of a field whose number is no amount, but names a thing: "user_id", "port", "created_at"
_NAMES_A_THING = re.compile(
    r"(^|_)(ids?|no|number|num|issue|pr|ticket|port|page|line|row|year|month|day|hour|minute|index|offset"
    r"|key|code|version|position|timestamp|time|date|at|since|until|seed|lat|lon|latitude|longitude|zip)$",
    re.IGNORECASE,
)
_CAMEL_CASE_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TIMES_TEXTS = {1: "before", 2: "twice"}


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """An earlier proposal of the same tool."""

    created_at: datetime
    message_id: int  # the id of the agent's answer with the call
    arguments: str  # JSON, which is parsed only where it is needed
    declined_by: tuple[str, ...] = ()  # the people who declined exactly this call

    def read(self) -> Mapping[str, Any]:
        """Return the arguments."""
        arguments: Mapping[str, Any] = json.loads(self.arguments)
        return arguments


@dataclass(frozen=True, slots=True)
class PastCalls:
    """The earlier calls of a tool, newest first. Everyone who may decide the new call may see them."""

    calls: Sequence[EarlierCall] = ()
    is_first: bool = False  # the chat has no earlier call of the tool, whether deciders may see it or not
    # the number of proposals of any tool in the chat, counted up to `MIN_KNOWN_PROPOSALS`
    proposal_count: int = 0
    is_cut: bool = False  # there are further calls, earlier than ``calls``


def find_unusual(proposal: Proposal, past: PastCalls, now: datetime) -> list[str]:
    """Return the unusual facts about a call, the most important first, at most `MAX_FACTS`.

    Each kind of fact is said once. After `MAX_FACTS` facts, further kinds are not checked.
    """
    since = now - _COMPARED_PERIOD
    recent = [call for call in past.calls if since <= call.created_at <= now]
    compared_with = f"{_COMPARED_PERIOD.days} days"
    if past.is_cut and len(recent) == len(past.calls):
        compared_with = f"the last {len(recent)} calls"
    searches: tuple[Iterator[str], ...] = (
        _find_declines(past.calls),
        _find_new_addresses(proposal, recent),
        _find_largest(proposal, recent, compared_with),
        _find_flood(recent, now),
        _find_first(past),
    )
    facts: list[str] = []
    for search in searches:
        facts += islice(search, 1)
        if len(facts) == MAX_FACTS:
            break
    return facts


def _find_declines(calls: Sequence[EarlierCall]) -> Iterator[str]:
    declines: Counter[str] = Counter()
    for call in calls:
        declines.update(call.declined_by)
    if not declines:
        return
    name, count = declines.most_common(1)[0]
    other_count = len(declines) - 1
    if other_count:
        noun = "other" if other_count == 1 else "others"
        yield f"{one_line(name)} and {other_count} {noun} have declined this before"
    else:
        yield f"{one_line(name)} has declined this {_TIMES_TEXTS.get(count, f'{count} times')}"


def _find_new_addresses(proposal: Proposal, recent: Sequence[EarlierCall]) -> Iterator[str]:
    addresses = _read_addresses(proposal.arguments)
    if not addresses or len(recent) < _MIN_COMPARED_CALLS:
        return
    with_addresses = (call for call in recent if _read_addresses(call.read()))
    compared = list(islice(with_addresses, _MIN_COMPARED_CALLS))
    if len(compared) < _MIN_COMPARED_CALLS:
        return
    for address in addresses:
        if not any(_names_address(call, address) for call in recent):
            yield f"the address {redact_text(shorten(address, _MAX_ADDRESS_CHARS))} is new"


def _names_address(earlier: EarlierCall, address: str) -> bool:
    """Tell if an earlier call names an address. Most don't even have its text, and are not parsed."""
    return address in earlier.arguments.lower() and address in _read_addresses(earlier.read())


def _read_addresses(arguments: Mapping[str, Any]) -> list[str]:
    """Return the e-mail addresses and hosts in a call, in lower case, at most `_MAX_ADDRESSES` of each."""
    mails = islice(_find_mails(arguments), _MAX_ADDRESSES)
    urls = islice(find_addresses(arguments), _MAX_ADDRESSES)
    addresses = filter(None, [*mails, *map(host_of, urls)])
    return list(dict.fromkeys(address.lower() for address in addresses))


def _find_mails(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if _MAIL.fullmatch(value.strip()):
            yield value.strip()
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _find_mails(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _find_mails(inner)


def _find_largest(proposal: Proposal, recent: Sequence[EarlierCall], compared_with: str) -> Iterator[str]:
    amounts = dict(islice(_find_amounts(proposal.arguments), _MAX_NUMBERS))
    if not amounts or len(recent) < _MIN_COMPARED_CALLS:
        return
    earlier = [call.read() for call in recent]
    for name, value in amounts.items():
        earlier_values = [arguments[name] for arguments in earlier if _is_number(arguments.get(name))]
        if len(earlier_values) < _MIN_COMPARED_CALLS:
            continue
        if value <= max(0, *earlier_values) * _LARGEST_FACTOR:
            continue
        label = label_of(name).lower()
        yield f"{label} is the largest of {compared_with} (before: {_format_number(max(earlier_values))})"


def _find_amounts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the name and value of each argument that is an amount, and not the number of some thing."""
    for name, value in arguments.items():
        if _is_number(value) and not _NAMES_A_THING.search(_CAMEL_CASE_BORDER.sub("_", name)):
            yield name, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _format_number(number: float) -> str:
    if float(number).is_integer():
        return f"{int(number):,}"
    return f"{number:,.2f}"


def _find_flood(recent: Sequence[EarlierCall], now: datetime) -> Iterator[str]:
    period = timedelta(minutes=_FLOOD_MINUTES)
    answers = {call.message_id for call in recent if now - call.created_at <= period}
    count = len(answers) + 1  # this answer counts, too
    if count >= _MIN_FLOOD_ANSWERS:
        yield f"asked {count} times in {_FLOOD_MINUTES} minutes"


def _find_first(past: PastCalls) -> Iterator[str]:
    if past.is_first and past.proposal_count >= MIN_KNOWN_PROPOSALS:
        yield "first call of this tool in this chat"
