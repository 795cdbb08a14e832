"""The answers of models: asked for as often as needed, with less history or of another model if necessary."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.agent.attachments import AttachmentReader
from bot.agent.history import make_history
from bot.agent.history_parts import size_of
from bot.agent.model_output import ModelOutput
from bot.agent.models import MIN_CHARS_PER_TOKEN, Models
from bot.agent.prompt import Briefing, system_prompt, write_surroundings
from bot.agent.reasoning_filter import ReasoningFilter
from bot.agent.running_turn import PARAGRAPH_BREAK, FollowUpJobs, RunningTurn, add_usage
from bot.agent.summary import write_summary
from bot.agent.transactions import post_notice_once, store_notice_for_admins, store_summary
from bot.approvals.gate import Gate
from bot.approvals.tool_visibility import FILES
from bot.domain.chat import Clock
from bot.domain.conversations import Line, LineRole, Transcript
from bot.domain.events import TextDelta, TextRestarted, ThoughtDelta, TurnDelayed, TurnEvent
from bot.domain.hooks import Hooks
from bot.domain.model import Busy, Entry, Finished, Model, ReducedRequest, Retracted, Text, Thought, ToolSpec
from bot.domain.prices import Prices
from bot.domain.rule_values import Subject
from bot.errors import ModelCut, ModelEmpty, ModelError, ModelTooLong
from bot.store.database import Database
from bot.telemetry.logs import logger
from bot.tools.registry import AvailableTools

log = logger(__name__)

# requests that are repeated
_MAX_RETRIES = 2  # for a request whose answer was cut off, empty, or a call written as text
_SHARE_KEPT_AFTER_TOO_LONG = 2 / 3  # of a history that the model called too long
_SHARE_KEPT_AFTER_CUT = 1 / 2  # of a history that failed without the model calling it too long
_MIN_CHARS_TO_HALVE = 10_000  # a shorter history is not halved

# texts for people
_STAND_IN_TEXT = "{} gives no answers now, so {} at {} answers in its place: what is said here goes there."
_TOOL_REFUSED_TEXT = "The server of the model {} refuses the tool {}. I work without it there. It says: “{}”"
_SUMMARY_TEXT = "I'm summing up what was said long ago."


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to the model, which may be repeated. A refused request may be followed by a shorter one."""

    model: Model
    max_chars: int  # the most characters of history
    history: Sequence[Entry]
    to_summarise: Sequence[Line]  # the oldest lines, if a summary of them should be written first
    is_shortened: bool = False  # it is shorter than a request that the server refused
    is_halved: bool = False  # it was shortened although the server did not call it too long
    attempt: int = 0  # how often the request was repeated


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """Gets the answers of models to a conversation."""

    models: Models
    gate: Gate
    database: Database
    clock: Clock
    briefing: Briefing
    attachments: AttachmentReader
    prices: Prices
    hooks: Hooks

    async def get_answer_after(
        self, quotation: str, run: RunningTurn, available: AvailableTools, answer: ModelOutput
    ) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Get the model's answer, and yield its events. The quotation, if there is one, stands before it."""
        has_earlier_text = any(text.strip() for text in run.texts)
        if quotation:
            yield TextDelta(quotation)
        async for event in self._get_answer(run, available, answer, has_earlier_text=has_earlier_text):
            yield event
            if quotation and isinstance(event, TextRestarted):
                yield TextDelta(quotation)

    async def _get_answer(
        self, run: RunningTurn, available: AvailableTools, answer: ModelOutput, *, has_earlier_text: bool
    ) -> AsyncIterator[TextDelta | ThoughtDelta | TextRestarted | TurnDelayed | FollowUpJobs]:
        """Get the model's answer, repeating the request as often as needed.

        A request that is too long is repeated with less history, and later ones stay that short. An answer
        that was cut, is empty, or holds a call written as text is asked for again, a few times. If the model
        can't answer, its stand-in does.

        ``has_earlier_text``: the turn has said something before, so this answer begins a new paragraph.
        """
        transcript = run.turn.transcript
        offered = await self.gate.list_tools_for_model(available, transcript)
        specs = tuple(tool.spec for tool in offered)
        specs_chars = sum(spec.size for spec in specs)
        zone = await self.gate.time_zone(transcript)
        briefing = self.briefing.adapt_to_asker(zone, private=transcript.conversation.private)
        prompt = await self._write_prompt(transcript, offered, briefing)
        chosen = await self.choose_model(transcript)
        with_pictures = await self._load_pictures(transcript)

        def make_request(model: Model, max_chars: int) -> _Request:
            current = run.turn.transcript  # it has a summary by now, if one was written
            takes_images = self.models.settings_of(model).images
            sent = replace(with_pictures, summary=current.summary) if takes_images else current
            history = make_history(sent, prompt, max_chars, briefing.zone)
            return _Request(model, max_chars, history.entries, history.to_summarise)

        # choose the model, and give it a history that fits
        model = self.models.choose_reachable(chosen)
        if model is not chosen:
            yield await self._tell_stand_in(transcript, chosen, model)
        request = make_request(model, self.models.max_history_chars(model, specs_chars))
        if request.to_summarise and not run.tried_summary:
            yield TurnDelayed(_SUMMARY_TEXT)
            await self._summarise(run, request)
            request = make_request(model, request.max_chars)

        steps = self._ask_until_answered(
            request, chosen, make_request, transcript, specs, answer, has_earlier_text=has_earlier_text
        )
        async for event in steps:
            yield event

    async def _ask_until_answered(
        self,
        request: _Request,
        chosen: Model,
        make_request: Callable[[Model, int], _Request],
        transcript: Transcript,
        specs: Sequence[ToolSpec],
        answer: ModelOutput,
        *,
        has_earlier_text: bool,
    ) -> AsyncIterator[TextDelta | ThoughtDelta | TextRestarted | TurnDelayed | FollowUpJobs]:
        """Send a request, and others in its place, until there is an answer. Raises ModelError without one.

        ``chosen``: the model by the rules. ``make_request``: it makes a request to a model, with at most this
        many characters of history.
        """
        specs_chars = sum(spec.size for spec in specs)
        while True:
            try:
                async for event in self._stream_answer(
                    request, specs, answer, has_earlier_text=has_earlier_text
                ):
                    yield event
                self.models.note_answer(request.model)
                if request.is_shortened:
                    self.models.note_accepted(request.model, request.max_chars + specs_chars)
                # a call written as text is asked for as a real call, but only in the first attempt
                correction = answer.make_correction(specs) if request.attempt == 0 else ()
                if not correction:
                    return
                with_correction = [*request.history, *correction]
                request = replace(request, history=with_correction, attempt=request.attempt + 1)
            except ModelError as error:
                shorter = _shorten_request(request, error, answer, specs_chars, make_request)
                may_retry = isinstance(error, ModelCut | ModelEmpty) and request.attempt < _MAX_RETRIES
                if shorter:
                    request = shorter
                elif may_retry:
                    request = replace(request, attempt=request.attempt + 1)
                else:  # another model answers instead, once
                    stand_in = self._find_stand_in(request.model, error)
                    was_stand_in = request.model is not chosen
                    if stand_in is None or was_stand_in:
                        raise
                    max_chars = self.models.max_history_chars(stand_in, specs_chars)
                    request = make_request(stand_in, max_chars)
                    yield await self._tell_stand_in(transcript, chosen, stand_in)
            if answer.restart():
                yield TextRestarted()

    async def _load_pictures(self, transcript: Transcript) -> Transcript:
        """Return the transcript with its pictures, if any model takes pictures."""
        if transcript.files and self.models.any_takes_pictures:
            return await self.attachments.with_pictures(transcript)
        return transcript

    def _find_stand_in(self, model: Model, error: ModelError) -> Model | None:
        """Note the failure of a model, and return its stand-in; None if no other model may answer."""
        if not isinstance(error, ModelEmpty | ModelTooLong):  # these are no failures of the model
            self.models.note_fault(model, error)
        if error.other_model_may_answer:  # the model can't be reached, or its account is used up
            return self.models.stand_in(model)
        return None

    async def _summarise(self, run: RunningTurn, request: _Request) -> None:
        """Have the model summarise the oldest lines. If it writes nothing, they stay cut or left out."""
        turn = run.turn
        last_id = request.to_summarise[-1].id
        now = self.clock()
        run.tried_summary = True
        try:
            text, finished = await write_summary(
                request.model, turn.transcript, request.to_summarise, request.max_chars
            )
        except ModelError as error:
            log.warning("no summary was written", model=request.model.name, why=error.message)
            return
        with_summary = add_usage(self.prices, turn.usage, request.model.name, finished)
        usage = replace(with_summary, model_calls=turn.usage.model_calls)  # a summary is no answer
        await self.database.write(store_summary, turn, text, last_id, usage, now)
        summary = Line(
            id=0,  # only the stored line has an id
            role=LineRole.SUMMARY,
            text=text,
            after=last_id,
            actor=None,
            calls=(),
            results={},
            created_at=now,
        )
        run.turn = replace(turn, transcript=replace(turn.transcript, summary=summary), usage=usage)

    async def choose_model(self, transcript: Transcript) -> Model:
        """Return the model that the rules name for this conversation, by default the first."""
        rulebook = self.gate.policies.latest_policy.rulebook
        if rulebook.list_about(Subject.MODEL):
            return await self.database.read(self.models.choose, rulebook, transcript)
        return self.models.default

    async def _tell_stand_in(self, transcript: Transcript, model: Model, stand_in: Model) -> FollowUpJobs:
        """Announce, once a day, that another model will receive the conversation."""
        notice = _STAND_IN_TEXT.format(model.name, stand_in.name, self.models.settings_of(stand_in).host)
        return FollowUpJobs(await self.database.write(post_notice_once, transcript, notice, self.clock()))

    async def _tell_refused(self, model: Model, reasons: Mapping[str, str]) -> None:
        """Tell the admins which tools the model's server refuses. ``reasons``: its words by a tool's name."""
        if not reasons:
            return
        notices = [_TOOL_REFUSED_TEXT.format(model.name, name, why) for name, why in reasons.items()]
        text = "\n".join(notices)
        await self.database.write(store_notice_for_admins, self.gate.policies, text, self.clock())

    async def _write_prompt(self, transcript: Transcript, offered: AvailableTools, briefing: Briefing) -> str:
        """Return the system prompt: the fixed rules first, then the facts of this conversation."""
        now = self.clock()
        rulebook = self.gate.policies.latest_policy.rulebook
        workspace = ""
        if self.briefing.read_workspace and any(tool.group == FILES for tool in offered):
            workspace = await asyncio.to_thread(self.briefing.read_workspace)
        instructions: Sequence[str] = ()
        if rulebook.list_about(Subject.INSTRUCTIONS):
            instructions = rulebook.instructions(str(transcript.conversation.origin))
        sections = [await add_section(transcript, now) for add_section in self.hooks.add_to_prompt]
        surroundings = write_surroundings(transcript, now, briefing, instructions, sections)
        return system_prompt(offered, transcript.teammate, briefing, workspace, surroundings)

    async def _stream_answer(  # noqa: C901 - one case for each part of an answer
        self, request: _Request, specs: Sequence[ToolSpec], answer: ModelOutput, *, has_earlier_text: bool
    ) -> AsyncIterator[TextDelta | TextRestarted | ThoughtDelta | TurnDelayed | FollowUpJobs]:
        """Stream the answer to a request into ``answer``, yielding what to display of it.

        Raises ModelEmpty if the answer is empty.
        """
        thoughts = ReasoningFilter()
        answer.model = request.model.name
        async for part in request.model.stream(request.history, specs):
            thought = thoughts.add(part.text) if isinstance(part, Thought) else thoughts.rest()
            if thought:
                yield ThoughtDelta(thought)
            match part:
                case Busy(notice):
                    yield TurnDelayed(notice)
                case Text(text):
                    shown = _add_text(answer, text, has_earlier_text=has_earlier_text)
                    if shown:
                        yield TextDelta(shown)
                case Retracted():
                    if answer.restart():
                        yield TextRestarted()
                case ReducedRequest(tools):
                    self.models.note_refused(request.model, tools, specs)
                    await self._tell_refused(request.model, tools)
                case Finished():
                    answer.finished = part
                case Thought():
                    pass
        remainder = answer.flush()
        if remainder:
            yield TextDelta(remainder)
        if self._take_written_calls(request, specs, answer):
            yield TextRestarted()
            before = PARAGRAPH_BREAK if has_earlier_text else ""
            yield TextDelta(before + answer.text)
        if answer.is_empty:
            raise ModelEmpty

    def _take_written_calls(self, request: _Request, specs: Sequence[ToolSpec], answer: ModelOutput) -> bool:
        """Take the calls that an answer contains as text. Return True if there were any.

        A model that writes calls even after it was asked not to is noted in ``Models.text_callers``.
        """
        was_corrected = request.attempt > 0 or request.model.name in self.models.text_callers
        has_calls = answer.take_written_calls(specs, request.history, was_corrected=was_corrected)
        if has_calls and request.attempt:
            self.models.text_callers.add(request.model.name)
        return has_calls


def _may_be_too_long(error: ModelError, answer: ModelOutput, attempt: int) -> bool:
    """Tell if the request may be too long for the model.

    Some servers just end the stream of a request that is too long. So the second cut before the first word
    counts as too long.
    """
    if isinstance(error, ModelTooLong):
        return True
    was_cut = isinstance(error, ModelCut) and not error.has_reason
    return was_cut and attempt > 0 and not answer.pieces


def _shorten_request(
    request: _Request,
    error: ModelError,
    answer: ModelOutput,
    specs_chars: int,
    make_request: Callable[[Model, int], _Request],
) -> _Request | None:
    """Return a request with less history if this one may have failed because it was too long, else None.

    Shortening does not count as an attempt.
    """
    sent_chars = size_of(request.history)
    may_halve = error.may_be_too_long and not request.is_halved and sent_chars >= _MIN_CHARS_TO_HALVE
    if not may_halve and not _may_be_too_long(error, answer, request.attempt):
        return None
    shorter = make_request(request.model, _next_history_chars(sent_chars, specs_chars, error))
    if size_of(shorter.history) >= sent_chars:
        return None
    is_halved = request.is_halved or may_halve
    return replace(shorter, is_shortened=True, is_halved=is_halved, attempt=request.attempt)


def _next_history_chars(sent_chars: int, specs_chars: int, error: ModelError) -> int:
    """Return the number of characters to try next after a history of ``sent_chars`` was refused.

    ``specs_chars``: the size of the tools' specifications, which share the model's window.
    """
    if error.window:
        window_chars = error.window * MIN_CHARS_PER_TOKEN - specs_chars
        if window_chars < sent_chars:
            return window_chars
    share = _SHARE_KEPT_AFTER_TOO_LONG if isinstance(error, ModelTooLong) else _SHARE_KEPT_AFTER_CUT
    return int(sent_chars * share)


def _add_text(answer: ModelOutput, text: str, *, has_earlier_text: bool) -> str:
    """Add ``text`` to the answer and return what to display of it.

    ``has_earlier_text``: an earlier answer was displayed, so this one begins a new paragraph.
    """
    begins_paragraph = has_earlier_text and not answer.pieces
    shown = answer.add(text)
    if shown and begins_paragraph:
        return PARAGRAPH_BREAK + shown
    return shown
