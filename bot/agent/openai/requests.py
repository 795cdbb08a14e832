"""Requests to a model's server in a form that all makers accept, reduced where one still refuses.

`RequestWriter` belongs to one model. What a server refused is remembered while the process runs, so that no
conversation meets the same refusal again; a restart costs one more.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, TypeGuard

import openai

from bot.agent.openai.answers.refusals import RefusalCause
from bot.agent.openai.arrangement import arrange, without_reasoning, without_system_role
from bot.agent.openai.errors import find_refusal
from bot.agent.openai.offers import MAX_TOOLS, ToolOffer, ToolOffers, offer_tool
from bot.agent.openai.refused_parts import (
    STATUSES,
    blames_tool,
    find_tools,
    rejects_reasoning,
    wants_reasoning_back,
    wants_signature,
    words_of,
)
from bot.agent.transcript import NOTE
from bot.domain.model import AssistantText, Entry, LeftOut, SystemText, ToolCall, ToolSpec, UserText
from bot.domain.named_models import NamedModel
from bot.domain.text import name_some
from bot.telemetry.logs import logger

log = logger(__name__)

Json = dict[str, Any]
BodyOf = Callable[..., Json]
"""Makes the fields of one interface: of a model, a history and offers; its options are in ``chat.py``."""

_MAX_REMEMBERED = 10_000  # refused pieces of reasoning
_MAX_LISTED_CHARS = 4_000  # of the names of tools that a model is not given
_RECENT = 12  # entries of a history whose words say which tools are wanted
_WORD = re.compile(r"[^\W_]{3,}")
_SIGNED = re.compile(r"gemini-(?:[3-9]|[1-9]\d)")
_PLAIN = re.compile(r"gemini")
_MORE = (
    f"{NOTE} There are more tools than this model takes at the same time. You don't have these now: {{}}. "
    "To get one, write its full name; then you have it in your next answer."
)
_REFUSED = f"{NOTE} The server of this model refuses these tools, so they can't be used now: {{}}."


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A request as sent, with the tools that it offers.

    ``body`` lacks what the settings add. ``kept``: digests of the reasoning that was sent back with it.
    """

    body: Json
    offers: ToolOffers
    kept: frozenset[str] = frozenset()


@dataclass(slots=True)
class RequestWriter:
    """Writes the requests to one model."""

    named: NamedModel
    body_of: BodyOf
    takes_system: bool = True  # as far as its server has not refused the role
    _offers: dict[str, ToolOffer] = field(default_factory=dict)
    _plain: dict[str, ToolSpec] = field(default_factory=dict)  # sent in the plainest form
    _refused: dict[str, ToolSpec] = field(default_factory=dict)  # not sent at all
    _forgotten: set[str] = field(default_factory=set)  # digests of reasoning that is not sent again
    _signed: bool = False
    _reasoned: bool = False
    _told: set[tuple[str, ...]] = field(default_factory=set)  # what the log has

    def __post_init__(self) -> None:
        self._signed = bool(_SIGNED.search(self.named.model.lower()))

    def write(
        self, transcript: Sequence[Entry], tools: Sequence[ToolSpec], without: Iterable[str] = ()
    ) -> WrittenRequest:
        """Make a request; ``without`` these tools."""
        left = frozenset(without)
        refused = [spec.name for spec in tools if self._refused.get(spec.name) == spec]
        there = [spec for spec in tools if spec.name not in refused and spec.name not in left]
        chosen = choose_tools(there, transcript)
        offers = ToolOffers([self._offer(spec) for spec in chosen])
        self._tell_cuts(offers.all)
        over = [spec.name for spec in there if spec not in chosen]
        notes = [_REFUSED.format(_list_names(refused))] if refused else []
        notes += [_MORE.format(_list_names(over))] if over else []
        if over:
            self._tell_once(
                ("more", *over), "a model is given only some of the tools", kept=len(chosen), more=len(over)
            )
        kept: set[str] = set()
        told = [self._entry(entry, offers, kept) for entry in transcript]
        told = _add_notes(told, notes)
        told = told if self.takes_system else without_system_role(told)
        history = arrange(told, one_by_one=not self.named.parallel_tool_calls)
        body = self.body_of(self.named, history, offers.all, signed=self._signed, reasoned=self._reasoned)
        return WrittenRequest(body, offers, frozenset(kept))

    def learn(self, error: openai.OpenAIError, request: WrittenRequest) -> LeftOut | None:
        """Leave out what a server refused; None where its words name nothing that can be left out.

        Each step takes something away, so that there is an end to it.
        """
        if not _is_of_request(error):
            return None
        words = words_of(error)
        if wants_reasoning_back(words) and not self._reasoned:
            log.info("a model wants each answer back with what was thought", model=self.named.name)
            self._reasoned = True
            return LeftOut()
        if request.kept and rejects_reasoning(words):
            self._forget(request.kept)
            log.warning("a model's server can not verify what was reasoned before", model=self.named.name)
            return LeftOut()
        if wants_signature(words) and not self._signed:
            self._signed = True
            return LeftOut()
        names = find_tools(words, [each.name for each in request.offers.all])
        if names:
            return self.leave_out(names, request, error)
        return None

    def is_unclear(self, error: openai.OpenAIError, request: WrittenRequest) -> bool:
        """Return whether some tool is refused, and the words don't say which."""
        return _is_of_request(error) and len(request.offers.all) > 0 and blames_tool(words_of(error))

    def leave_out(self, names: Iterable[str], request: WrittenRequest, error: openai.OpenAIError) -> LeftOut:
        """Send these tools in the plainest form from now on, or no more where that was refused as well."""
        gone: dict[str, str] = {}
        why = find_refusal(error, self.named.secret).message or "no reason given"
        by_name = {each.name: each.spec for each in request.offers.all}
        for spec in (by_name[name] for name in names):
            if not self._is_plain(spec) and self._differs(spec):
                self._plain[spec.name] = spec
                continue
            self._refused[spec.name] = spec
            gone[spec.name] = why
            log.error(
                "a model's server refuses a tool", model=self.named.name, tool=spec.name, why=gone[spec.name]
            )
        return LeftOut(gone)

    def _offer(self, spec: ToolSpec) -> ToolOffer:
        known, plain = self._offers.get(spec.name), self._is_plain(spec)
        if known is None or known.spec != spec or known.plain is not plain:
            known = offer_tool(spec, strict=self.named.strict, plain=plain)
            self._offers[spec.name] = known
        return known

    def _is_plain(self, spec: ToolSpec) -> bool:
        host_or_name = f"{self.named.model} {self.named.host}".lower()
        return self._plain.get(spec.name) == spec or _PLAIN.search(host_or_name) is not None

    def _differs(self, spec: ToolSpec) -> bool:
        usual, plain = (offer_tool(spec, strict=self.named.strict, plain=each) for each in (False, True))
        return usual.parameters != plain.parameters or usual.strict

    def _entry(self, entry: Entry, offers: ToolOffers, kept: set[str]) -> Entry:
        if not isinstance(entry, AssistantText) or not entry.calls:
            return entry
        return replace(entry, calls=tuple(self._call(offers.rename_call(call), kept) for call in entry.calls))

    def _call(self, call: ToolCall, kept: set[str]) -> ToolCall:
        if not call.extra or call.extra.get("model") != self.named.name:
            return without_reasoning(call)
        digest = hashlib.sha256(json.dumps(call.extra, sort_keys=True, default=str).encode()).hexdigest()[:32]
        if digest in self._forgotten:
            return without_reasoning(call)
        kept.add(digest)
        return call

    def _forget(self, digests: frozenset[str]) -> None:
        if len(self._forgotten) > _MAX_REMEMBERED:
            self._forgotten.clear()
        self._forgotten |= digests

    def _tell_cuts(self, offers: Sequence[ToolOffer]) -> None:
        cut = [f"{each.spec.name} ({', '.join(each.left_out)})" for each in offers if each.left_out]
        if cut:
            self._tell_once(("cut", *cut), "models are told of some tools only in part", tools="; ".join(cut))

    def _tell_once(self, about: tuple[str, ...], words: str, **fields: Any) -> None:
        if about not in self._told:
            if len(self._told) > _MAX_REMEMBERED:
                self._told.clear()
            self._told.add(about)
            log.info(words, model=self.named.name, **fields)


def _is_of_request(error: openai.OpenAIError) -> TypeGuard[openai.APIStatusError]:
    """Return whether a server may have refused a part of the request; not what its model made of it."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in STATUSES:
        return False
    return find_refusal(error).cause is not RefusalCause.BAD_CALL


def choose_tools(
    tools: Sequence[ToolSpec], transcript: Sequence[Entry], most: int = MAX_TOOLS
) -> list[ToolSpec]:
    """Return the tools of a request, in their order: all, or those that this conversation is most about.

    First what it has called, or what is written in it by name, the newest first; then those whose names and
    descriptions share words with what was said last; then those that come first.
    """
    if len(tools) <= most:
        return list(tools)
    called = {call.name for each in transcript if isinstance(each, AssistantText) for call in each.calls}
    recent = [each for each in transcript if not isinstance(each, SystemText)][-_RECENT:]
    said = "\n".join(each.text for each in recent if isinstance(each, UserText | AssistantText))
    written = set(re.findall(r"[A-Za-z0-9_-]{3,64}", said))
    words = {word.casefold() for word in _WORD.findall(said)}
    score: Mapping[str, tuple[bool, bool, int]] = {
        spec.name: (spec.name in written, spec.name in called, _score_shared_words(spec, words))
        for spec in tools
    }
    best = sorted(tools, key=lambda spec: score[spec.name], reverse=True)[:most]
    names = {spec.name for spec in best}
    return [spec for spec in tools if spec.name in names]


def _score_shared_words(spec: ToolSpec, words: set[str]) -> int:
    name = {word.casefold() for word in _WORD.findall(spec.name.replace("-", "_").replace("_", " "))}
    told = {word.casefold() for word in _WORD.findall(spec.description[:400])}
    return 4 * len(name & words) + len(told & words)


def _add_notes(transcript: list[Entry], notes: Sequence[str]) -> list[Entry]:
    if notes:
        return [*transcript[:1], *map(SystemText, notes), *transcript[1:]]
    return transcript


def _list_names(names: Sequence[str]) -> str:
    """List names up to the limit, and the number of the others."""
    sizes = accumulate(len(name) + 2 for name in names)
    return name_some(names, sum(size <= _MAX_LISTED_CHARS for size in sizes))
