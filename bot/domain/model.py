"""The language model as the loop sees it: a transcript in, a stream of parts out.

``openai/model.py`` speaks to any OpenAI-compatible server; ``demo/model.py`` answers for the demo;
``text_calls.py`` is for models that have no calls of their own.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class SystemText:
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for the model: its media type, and its bytes in base64."""

    kind: str
    data: str

    @property
    def address(self) -> str:
        """The picture as a data URL."""
        return f"data:{self.kind};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class UserText:
    """A message of a person, or a note of Nod's own. ``name`` is the speaker as people know them.

    ``when`` is the day and hour of a message that follows a long gap.
    """

    text: str
    name: str = ""
    when: str = ""
    pictures: tuple[Picture, ...] = ()

    @property
    def spoken(self) -> str:
        """The text for the model, with its speaker and time.

        The name is on one line, so that it can't pass for what someone else said; servers' own fields for
        names take only some letters.
        """
        speaker = " ".join(self.name.split())
        said = f"{speaker}: {self.text}" if speaker else self.text
        if self.when:
            return f"[{self.when}]\n{said}"
        return said


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for. ``arguments`` is the raw JSON text, unchecked.

    ``extra`` is what its server sent with it and wants back: of the ``answer`` and the
    ``call``, for the same ``model``. ``refused`` says what is wrong with one that can't be read.
    """

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    refused: str = ""


@dataclass(frozen=True, slots=True)
class AssistantText:
    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call. ``outside``: the text is a tool's own, not Nod's word on how the call ended."""

    call_id: str
    text: str
    outside: bool = False


Entry = SystemText | UserText | AssistantText | ToolResult


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the model. ``strict`` says the schema fits OpenAI's strict mode."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = True
    size: int = field(init=False, compare=False)  # characters of it in a request

    def __post_init__(self) -> None:
        told = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": self.strict,
        }
        object.__setattr__(self, "size", len(json.dumps(told, default=dict)))


@dataclass(frozen=True, slots=True)
class Text:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """More of what the model thinks before it answers: shown while it comes, never kept or sent back."""

    text: str


@dataclass(frozen=True, slots=True)
class Retracted:
    """All text so far was a thought: the answer begins here."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The server is not ready, and is asked again in a while; ``words`` are for people."""

    words: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The server refused a part of the request, which is asked again without it.

    ``tools`` are those that are left out from now on, by name, each with the server's reason.
    """

    tools: Mapping[str, str] = field(default_factory=dict, hash=False)


class Stop(StrEnum):
    """The reason why the model stopped."""

    FINISHED = "finished"
    LENGTH = "length"  # it ran into its output limit; calls in this answer may be cut and must not be used
    FILTERED = "filtered"  # the provider withheld the rest


@dataclass(frozen=True, slots=True)
class Finished:
    """The last part: complete calls in the order asked for, and what it cost in tokens (0 = not told)."""

    stop: Stop
    calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # of the prompt: what the server had already


Part = Text | Thought | Retracted | Busy | LeftOut | Finished


class Model(Protocol):
    """Anything that can continue a transcript."""

    name: str

    def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield `Text`, `Thought`, `Busy` and `LeftOut` as they come and exactly one `Finished` last.

        Raises ModelError with words for people when the server cannot answer; `ModelCut` when the stream
        was cut off in the middle, so that the loop may ask again; `ModelTooLong` when it must be shorter.
        """

    async def close(self) -> None: ...
