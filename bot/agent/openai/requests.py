"""The writing of requests to a model's server, without the parts that this server has refused.

A request is a history and the tools that the model may call. A `RequestWriter` belongs to one model. `write`
makes a request in a form that as many servers as possible accept. If the model's server still refuses it,
`learn` remembers the refused part, and the next `write` leaves it out. What is learned is kept in memory for
all conversations, until a restart. ``model.py`` sends the requests.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import openai

from bot.agent.history_parts import NOTE_PREFIX
from bot.agent.openai.answers.refusals import RefusalCause
from bot.agent.openai.arrangement import arrange, without_server_fields, without_system_role
from bot.agent.openai.errors import find_refusal
from bot.agent.openai.offers import MAX_TOOLS, ToolOffer, ToolOffers, offer_tool
from bot.agent.openai.refused_parts import (
    REFUSAL_STATUSES,
    blames_tool,
    find_error_text,
    find_tools,
    rejects_reasoning,
    wants_reasoning_back,
    wants_signature,
)
from bot.domain.model import AssistantText, Entry, ReducedRequest, SystemText, ToolCall, ToolSpec, UserText
from bot.domain.named_models import NamedModel
from bot.domain.text import name_some
from bot.telemetry.logs import logger

log = logger(__name__)

Json = dict[str, Any]
BodyWriter = Callable[..., Json]
"""A function that writes the fields of a request to one interface: `chat_body` or `responses_body`."""

_DIGEST_CHARS = 32  # the first characters of a digest, which are enough to tell reasoning apart
_MAX_REMEMBERED = 10_000  # the most entries of `_rejected_reasoning`, and of `_logged`

# names of models with a need of their own
_WITH_SIGNATURES = re.compile(r"gemini-(?:[3-9]|[1-9]\d)")  # each answer needs a signature, as below
_WITH_PLAIN_SCHEMAS = re.compile(r"gemini")  # each tool is sent in the plainest form: see `offer_tool`

# the choice of tools if there are too many: by the words that the conversation and a tool share
_RECENT_ENTRIES = 12  # the newest entries of the conversation, whose words count
_MAX_MATCHED_CHARS = 400  # the first characters of a tool's description, whose words count
_NAME_WEIGHT = 4  # a shared word in a tool's name counts as much as that many in its description
_WORD = re.compile(r"[^\W_]{3,}")

# notes for the model on the tools that it is not given
_MAX_LISTED_CHARS = 4_000  # the most characters of these tools' names
_MORE_TEXT = (
    f"{NOTE_PREFIX} There are more tools than this model takes at the same time. "
    "You don't have these now: {}. To get one, write its full name; then you have it in your next answer."
)
_REFUSED_TEXT = (
    f"{NOTE_PREFIX} The server of this model refuses these tools, so they can't be used now: {{}}."
)


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A request to a model's server."""

    body: Json  # the request's fields, without those that the settings add
    offers: ToolOffers
    reasoning: frozenset[str] = frozenset()  # digests of the earlier reasoning that is sent back


@dataclass(slots=True)
class RequestWriter:
    """The writer of the requests to one model, with what it has learned about the model's server."""

    settings: NamedModel  # the settings of the model
    write_body: BodyWriter
    takes_system: bool = True  # its server has not refused the system role
    _offers: dict[str, ToolOffer] = field(default_factory=dict)  # tools in their sent form, by own name
    # tools that were refused in their usual form, so that they are sent in the plainest form, by name
    _plain_specs: dict[str, ToolSpec] = field(default_factory=dict)
    _refused_specs: dict[str, ToolSpec] = field(default_factory=dict)  # tools refused in every form, by name
    _rejected_reasoning: set[str] = field(default_factory=set)  # digests of reasoning that was refused
    # earlier answers must be sent back with their signature, or their reasoning: see `chat_body`
    _needs_signatures: bool = False
    _needs_reasoning: bool = False
    _logged: set[tuple[str, ...]] = field(default_factory=set)  # keys of what was logged: see `_log_once`

    def __post_init__(self) -> None:
        self._needs_signatures = bool(_WITH_SIGNATURES.search(self.settings.model.lower()))

    def write(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> WrittenRequest:
        """Return a request with this history and these tools, as far as the server takes them."""
        # the tools; one that has changed since it was refused is sent again
        refused = [spec.name for spec in tools if self._refused_specs.get(spec.name) == spec]
        not_refused = [spec for spec in tools if spec.name not in refused]
        chosen = choose_tools(not_refused, transcript)
        offers = ToolOffers([self._make_offer(spec) for spec in chosen])
        self._log_cuts(offers.all)

        # notes on the missing tools
        notes = []
        if refused:
            notes.append(_REFUSED_TEXT.format(_list_names(refused)))
        postponed = [spec.name for spec in not_refused if spec not in chosen]
        if postponed:
            notes.append(_MORE_TEXT.format(_list_names(postponed)))
            event = "a model is given only some of the tools"
            self._log_once(("more", *postponed), event, kept=len(chosen), more=len(postponed))

        # the history
        sent_digests: set[str] = set()  # of earlier reasoning; `_keep_accepted_reasoning` adds them
        entries = [self._prepare_entry(entry, offers, sent_digests) for entry in transcript]
        entries = _add_notes(entries, notes)
        if not self.takes_system:
            entries = without_system_role(entries)
        history = arrange(entries, one_by_one=not self.settings.parallel_tool_calls)
        body = self.write_body(
            self.settings,
            history,
            offers.all,
            needs_signatures=self._needs_signatures,
            needs_reasoning=self._needs_reasoning,
        )
        return WrittenRequest(body, offers, frozenset(sent_digests))

    def learn(self, error: openai.OpenAIError, request: WrittenRequest) -> ReducedRequest | None:
        """Remember what a refusal says about the next request: a part to leave out, or a part to add.

        Returns None if the error names no part. Otherwise a repeat may succeed, and the tools that are no
        longer sent are returned; there may be none. Each call remembers one more part, so a request is not
        repeated endlessly.
        """
        if not _may_refuse_part(error):
            return None
        error_text = find_error_text(error)
        if wants_reasoning_back(error_text) and not self._needs_reasoning:
            log.info("a model wants each answer back with what was thought", model=self.settings.name)
            self._needs_reasoning = True
            return ReducedRequest()
        if request.reasoning and rejects_reasoning(error_text):
            self._reject_reasoning(request.reasoning)
            log.warning("a model's server can not verify what was reasoned before", model=self.settings.name)
            return ReducedRequest()
        if wants_signature(error_text) and not self._needs_signatures:
            self._needs_signatures = True
            return ReducedRequest()
        names = find_tools(error_text, [offer.name for offer in request.offers.all])
        if names:
            return self.leave_out(names, request, error)
        return None

    def blames_unnamed_tool(self, error: openai.OpenAIError, request: WrittenRequest) -> bool:
        """Tell if the words of a refusal are about a tool, but don't say which."""
        return _may_refuse_part(error) and len(request.offers.all) > 0 and blames_tool(find_error_text(error))

    def leave_out(
        self, names: Iterable[str], request: WrittenRequest, error: openai.OpenAIError
    ) -> ReducedRequest:
        """Send these tools in their plainest form from now on.

        A tool that was already sent in that form is left out. ``names`` are the names that were sent. Returns
        the tools that are left out, with the reason.
        """
        why = find_refusal(error, self.settings.secret).message or "no reason given"
        spec_of = {offer.name: offer.spec for offer in request.offers.all}
        reasons: dict[str, str] = {}
        for name in names:
            spec = spec_of[name]
            if not self._is_plain(spec) and self._has_plainer_form(spec):
                self._plain_specs[spec.name] = spec
                continue
            self._refused_specs[spec.name] = spec
            reasons[spec.name] = why
            log.error("a model's server refuses a tool", model=self.settings.name, tool=spec.name, why=why)
        return ReducedRequest(reasons)

    def _make_offer(self, spec: ToolSpec) -> ToolOffer:
        """Return a tool in the form in which it is sent. It is kept until the tool or its form changes."""
        plain = self._is_plain(spec)
        offer = self._offers.get(spec.name)
        if offer is None or offer.spec != spec or offer.plain is not plain:
            offer = offer_tool(spec, strict=self.settings.strict, plain=plain)
            self._offers[spec.name] = offer
        return offer

    def _is_plain(self, spec: ToolSpec) -> bool:
        name_and_host = f"{self.settings.model} {self.settings.host}".lower()
        return (
            self._plain_specs.get(spec.name) == spec or _WITH_PLAIN_SCHEMAS.search(name_and_host) is not None
        )

    def _has_plainer_form(self, spec: ToolSpec) -> bool:
        usual = offer_tool(spec, strict=self.settings.strict, plain=False)
        plain = offer_tool(spec, strict=self.settings.strict, plain=True)
        return usual.parameters != plain.parameters or usual.strict

    def _prepare_entry(self, entry: Entry, offers: ToolOffers, sent_digests: set[str]) -> Entry:
        if not isinstance(entry, AssistantText) or not entry.calls:
            return entry
        calls = [
            self._keep_accepted_reasoning(offers.rename_call(call), sent_digests) for call in entry.calls
        ]
        return replace(entry, calls=tuple(calls))

    def _keep_accepted_reasoning(self, call: ToolCall, sent_digests: set[str]) -> ToolCall:
        """Return a call with its reasoning, or without it if the server would not accept it.

        The reasoning is in ``call.server_fields``, with the name of the model that wrote it. It is sent only
        to this model, and only if its server has not rejected it. Then its digest is added to
        ``sent_digests``.
        """
        if not call.server_fields or call.server_fields.get("model") != self.settings.name:
            return without_server_fields(call)
        written = json.dumps(call.server_fields, sort_keys=True, default=str)
        digest = hashlib.sha256(written.encode()).hexdigest()[:_DIGEST_CHARS]
        if digest in self._rejected_reasoning:
            return without_server_fields(call)
        sent_digests.add(digest)
        return call

    def _reject_reasoning(self, digests: frozenset[str]) -> None:
        if len(self._rejected_reasoning) > _MAX_REMEMBERED:
            self._rejected_reasoning.clear()
        self._rejected_reasoning |= digests

    def _log_cuts(self, offers: Sequence[ToolOffer]) -> None:
        cut = [f"{offer.spec.name} ({', '.join(offer.omissions)})" for offer in offers if offer.omissions]
        if cut:
            self._log_once(("cut", *cut), "models are told of some tools only in part", tools="; ".join(cut))

    def _log_once(self, key: tuple[str, ...], event: str, **fields: Any) -> None:
        if key in self._logged:
            return
        if len(self._logged) > _MAX_REMEMBERED:
            self._logged.clear()
        self._logged.add(key)
        log.info(event, model=self.settings.name, **fields)


def choose_tools(
    tools: Sequence[ToolSpec], transcript: Sequence[Entry], max_tools: int = MAX_TOOLS
) -> list[ToolSpec]:
    """Return the tools for a request in their order: all, or those that fit this conversation best.

    The best are tools whose names were written lately, then tools that were called. After these come tools
    whose names and descriptions share words with recent messages, then the first tools.
    """
    if len(tools) <= max_tools:
        return list(tools)
    called: set[str] = set()
    for entry in transcript:
        if isinstance(entry, AssistantText):
            called.update(call.name for call in entry.calls)
    recent = [entry for entry in transcript if not isinstance(entry, SystemText)][-_RECENT_ENTRIES:]
    text = "\n".join(entry.text for entry in recent if isinstance(entry, UserText | AssistantText))
    written = set(re.findall(r"[A-Za-z0-9_-]{3,64}", text))
    words = _list_words(text)

    def rate(spec: ToolSpec) -> tuple[bool, bool, int]:
        return (spec.name in written, spec.name in called, _count_shared_words(spec, words))

    best = sorted(tools, key=rate, reverse=True)[:max_tools]
    names = {spec.name for spec in best}
    return [spec for spec in tools if spec.name in names]


def _count_shared_words(spec: ToolSpec, words: set[str]) -> int:
    """Count the ``words`` that a tool's description has, and those of its name `_NAME_WEIGHT` times."""
    name_words = _list_words(spec.name.replace("-", "_").replace("_", " "))
    description_words = _list_words(spec.description[:_MAX_MATCHED_CHARS])
    return _NAME_WEIGHT * len(name_words & words) + len(description_words & words)


def _list_words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _add_notes(transcript: list[Entry], notes: Sequence[str]) -> list[Entry]:
    """Add notes behind the first entry, which is the system prompt."""
    if notes:
        return [*transcript[:1], *map(SystemText, notes), *transcript[1:]]
    return transcript


def _list_names(names: Sequence[str]) -> str:
    """Return the names up to `_MAX_LISTED_CHARS`, and the number of the others, as one text."""
    chars = count = 0
    for name in names:
        chars += len(name) + len(", ")
        if chars > _MAX_LISTED_CHARS:
            break
        count += 1
    return name_some(names, count)


def _may_refuse_part(error: openai.OpenAIError) -> TypeGuard[openai.APIStatusError]:
    """Tell if an error may refuse a part of the request, and not a call that the model wrote."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in REFUSAL_STATUSES:
        return False
    return find_refusal(error).cause is not RefusalCause.BAD_CALL
