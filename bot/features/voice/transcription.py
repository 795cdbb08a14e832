"""The transcription of recordings by one model.

It implements the hook by which the core has files read that it can't read itself. A recording is transcribed
if it is not too long, and the budget for models is not used up. Otherwise the file gets the reason instead of
a text. The model's answer is limited in size and time, and its cost is stored. The text is data for the
agent, never an instruction.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import openai
from openai import AsyncOpenAI
from sqlmodel import Session

from bot.approvals.budgets import is_used_up
from bot.domain.attachments import Attachment, FileContent, Origin
from bot.domain.chat import Clock
from bot.domain.conversations import Transcript, Usage
from bot.domain.named_models import NamedModel
from bot.domain.outcomes import MAX_RESULT
from bot.domain.prices import Prices
from bot.domain.text import find_cut, make_visible
from bot.features.voice.lengths import measure_seconds
from bot.store import turns
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

MAX_SECONDS = 600
"""The longest recording that is transcribed."""
MAX_ANSWER_BYTES = 1_000_000
"""The most bytes of an answer; a longer answer is no transcription of ten minutes."""
_AT_A_TIME = 4  # recordings that are transcribed at the same time
_CONNECT_SECONDS = 5.0
_CHUNK_BYTES = 16_384
_SPOKEN_VIDEO_KINDS = frozenset({"video/mp4", "video/webm"})
"""The formats of video in which browsers and phones record speech. An attached video is not transcribed."""
_FILE_ENDINGS = {
    "audio/ogg": "ogg", "audio/mpeg": "mp3", "audio/flac": "flac", "audio/amr": "amr", "audio/wav": "wav",
    "audio/mp4": "m4a", "audio/webm": "webm",
}  # fmt: skip
_TOO_LONG_TEXT = f"it is longer than {MAX_SECONDS // 60} minutes"
_SILENT_TEXT = "no words are heard in it"
_NO_ANSWER_TEXT = "the model that transcribes recordings ({}) gives no answer now"
_NO_TEXT_TEXT = "the model that transcribes recordings ({}) answered with something else than text"
_CUT_TEXT = "… (The rest of the recording is left out.)"
_BUDGET_TEXT = "the budget for models is used up"
_EARLIER_TEXT = "it is a recording that was not sent to me"


@dataclass(frozen=True, slots=True)
class Transcription:
    """The text of a recording, or the reason for its absence."""

    text: str = ""
    fault: str = ""  # the reason, in words; empty if there is a text
    usage: Usage | None = None  # the cost


@dataclass(frozen=True, slots=True)
class RecordingReader:
    """The implementation of `ReadFile` for recordings, with the model that transcribes."""

    database: Database
    policies: Policies
    clock: Clock
    model: NamedModel
    prices: Prices
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_A_TIME))

    async def read_file(
        self, transcript: Transcript, file: Attachment, content: FileContent
    ) -> FileContent | None:
        """Return the content of a recording with its text, or with the reason why it has none.

        Returns None for any file that is no recording.
        """
        data, kind = content.data, content.kind
        # SPOKEN: the writer recorded the file for this message, so it is speech also if it is a video
        is_spoken = file.origin is Origin.SPOKEN and kind in _SPOKEN_VIDEO_KINDS
        if data is None or not (kind.startswith("audio/") or is_spoken):
            return None
        audio_kind = kind.replace("video/", "audio/")
        fault = self._find_fault(file, kind, data)
        if not fault and await self.database.read(self._is_budget_used, transcript, self.clock()):
            fault = _BUDGET_TEXT
        if fault:
            return FileContent(audio_kind, fault=fault, data=data)
        async with self._slots:
            transcription = await self._transcribe(audio_kind, data)
        if transcription.usage is not None:
            await self.database.write(_store_cost, transcript, transcription.usage, self.clock())
        return FileContent(audio_kind, transcription.text, transcription.fault, data)

    def _find_fault(self, file: Attachment, kind: str, data: bytes) -> str:
        """Return why a recording is not sent to the model; empty if it may be."""
        if file.origin is Origin.EARLIER:  # it belongs to an earlier message, perhaps of someone else
            return _EARLIER_TEXT
        seconds = measure_seconds(kind, data)
        if seconds is not None and seconds > MAX_SECONDS:
            return _TOO_LONG_TEXT
        return ""

    def _is_budget_used(self, session: Session, transcript: Transcript, now: datetime) -> bool:
        rulebook = self.policies.load(session).rulebook
        place = str(transcript.conversation.origin)
        return is_used_up(session, rulebook, place, transcript.asker, transcript.request_line_id, now)

    async def _transcribe(self, kind: str, data: bytes) -> Transcription:
        """Ask the model once: a second try would be paid for as well. ``kind``: the format of ``data``."""
        name = self.model.name
        seconds = measure_seconds(kind, data)
        try:
            async with asyncio.timeout(self.model.timeout), self._open_client() as client:
                # its name at the server, if that differs from its name here
                answer = await _read_answer(client, self.model.model or name, kind, data)
        except (openai.OpenAIError, TimeoutError) as error:
            log.warning("a recording was not heard", model=name, why=str(error)[:200] or "it took too long")
            return Transcription(fault=_NO_ANSWER_TEXT.format(name), usage=Usage(model_calls=1, model=name))
        text = _read_text(answer)
        if text is None:
            log.warning("a recording was not heard", model=name, why="the answer is no transcription")
            return Transcription(fault=_NO_TEXT_TEXT.format(name), usage=self._compute_usage(None, seconds))
        usage = self._compute_usage(answer, seconds)
        if not text:
            return Transcription(fault=_SILENT_TEXT, usage=usage)
        return Transcription(_shorten(text), usage=usage)

    def _open_client(self) -> AsyncOpenAI:
        return AsyncOpenAI(
            api_key=self.model.secret or "none",
            base_url=self.model.base_url,
            max_retries=0,
            timeout=self.model.timeout,
            # without compression, the limit on bytes also limits the text
            default_headers={"Accept-Encoding": "identity"},
        )

    def _compute_usage(self, answer: Any, seconds: float | None) -> Usage:
        """Return the usage for a transcription.

        The cost is computed from the tokens in the answer, or else from the minutes. ``seconds``: the length
        that was measured; None if it is not known.
        """
        name = self.model.name
        usage = answer.get("usage") if isinstance(answer, dict) else None
        counts: dict[str, Any] = usage if isinstance(usage, dict) else {}
        prompt = _read_count(counts, "input_tokens")
        completion = _read_count(counts, "output_tokens")
        cost = self.prices.cost(name, prompt, completion) if prompt else None
        if cost is None and self.model.minute_price:
            cost = _read_seconds(counts, seconds) / 60 * self.model.minute_price
        return Usage(model_calls=1, prompt_tokens=prompt, completion_tokens=completion, cost=cost, model=name)


async def _read_answer(client: AsyncOpenAI, model: str, kind: str, data: bytes) -> Any:
    """Return the model's parsed answer to a recording; None if it is too long or no JSON."""
    body = bytearray()
    opened = client.audio.transcriptions.with_streaming_response.create(
        file=(f"recording.{_FILE_ENDINGS.get(kind, 'bin')}", data, kind), model=model, response_format="json"
    )
    async with opened as response:
        async for chunk in response.iter_bytes(_CHUNK_BYTES):
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                return None
    with suppress(ValueError, RecursionError):
        return json.loads(body)
    return None


def _read_text(answer: Any) -> str | None:
    """Return the text of a transcription, without invisible characters; None without a text."""
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        return None
    return make_visible(text, lambda _: "").strip()  # puts nothing in the place of invisible characters


def _shorten(text: str) -> str:
    """Return a text of at most `MAX_RESULT` characters, with a remark if it was cut."""
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[: find_cut(text, MAX_RESULT - len(_CUT_TEXT))]}{_CUT_TEXT}"


def _read_count(counts: dict[str, Any], name: str) -> int:
    """Return a number of tokens in an answer; 0 if it is missing or can't be right."""
    value = counts.get(name)
    if type(value) is int and 0 <= value < 10**9:
        return value
    return 0


def _read_seconds(counts: dict[str, Any], measured: float | None) -> float:
    """Return the seconds in an answer if they can be right, else those that were measured."""
    value = counts.get("seconds")
    if isinstance(value, int | float) and 0 <= value <= MAX_SECONDS * 2:
        return float(value)
    return measured or 0.0


def _store_cost(session: Session, transcript: Transcript, usage: Usage, now: datetime) -> None:
    conversation_id = transcript.conversation.id
    request_line_id = transcript.request_line_id or None
    turns.add_cost(session, conversation_id, str(transcript.asker), request_line_id, usage, now)
