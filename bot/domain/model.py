"""The language model as the agent's loop sees it: a transcript goes in, a stream of parts comes out.

A `Model` takes entries (what people, the agent, tools and Nod said) and the tools on offer. It yields the
answer in parts: text and thoughts as they come, and last `Finished` with the calls that the model asks for.
``bot/agent/openai/model.py`` speaks to any OpenAI-compatible server, ``bot/agent/demo/model.py`` plays the
demo, and ``bot/agent/text_calls.py`` serves models that can only write calls into their text.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class SystemText:
    """The instructions of Nod to the model."""

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
    """A message of a person, or a note of Nod's own."""

    text: str
    name: str = ""  # the speaker's name, as people know them; empty for Nod
    when: str = ""  # the day and hour, if the message follows a long pause
    pictures: tuple[Picture, ...] = ()

    @property
    def text_with_speaker(self) -> str:
        """The text for the model with its speaker in front, ``Ana: hello``; above it ``when``, if known.

        The name is put on one line, so that it can't pass for what someone else said. The servers' own fields
        for names are not used, since they take only some letters.
        """
        speaker = " ".join(self.name.split())
        words = f"{speaker}: {self.text}" if speaker else self.text
        if self.when:
            return f"[{self.when}]\n{words}"
        return words


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for."""

    id: str
    name: str
    arguments: str  # raw JSON, unchecked
    # fields of the answer and the call that the model's server wants back in later requests
    server_fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    refusal: str = ""  # the reason why the call can't be read; empty if it can


@dataclass(frozen=True, slots=True)
class AssistantText:
    """An answer of the model, with the calls that it asked for."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call, as the model reads it."""

    call_id: str
    text: str
    is_from_tool: bool = False  # True: a tool wrote the text; False: Nod wrote it, on how the call ended


Entry = SystemText | UserText | AssistantText | ToolResult
"""An entry of the transcript that a model is given."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the model."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # a JSON schema
    strict: bool = True  # the schema fits OpenAI's strict mode
    size: int = field(init=False, compare=False)  # the characters that it takes in a request

    def __post_init__(self) -> None:
        offered = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": self.strict,
        }
        object.__setattr__(self, "size", len(json.dumps(offered, default=dict)))


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
    """All text of the answer so far was a thought after all: the answer begins with the next part."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The server is not ready, and Nod asks it again in a while."""

    reason: str  # for people


@dataclass(frozen=True, slots=True)
class ReducedRequest:
    """The server refused a part of the request, and Nod asks again without that part.

    ``left_out_tools``: the names of the tools that are left out from now on, each with the server's reason.
    """

    left_out_tools: Mapping[str, str] = field(default_factory=dict, hash=False)


class StopReason(StrEnum):
    """The reason why the model stopped."""

    FINISHED = "finished"
    LENGTH = "length"  # the answer reached its length limit; its calls may be cut and must not be used
    FILTERED = "filtered"  # the provider withheld the rest


@dataclass(frozen=True, slots=True)
class Finished:
    """The last part of an answer. Numbers of tokens are 0 if the server does not give them."""

    stop: StopReason  # the reason why the answer ended
    calls: tuple[ToolCall, ...] = ()  # complete, in the order asked for
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # the tokens of the prompt that the server had in its cache


Part = Text | Thought | Retracted | Busy | ReducedRequest | Finished
"""A part of a streamed answer."""


class Model(Protocol):
    """Anything that can continue a transcript."""

    name: str

    def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield the parts of an answer as they come, and exactly one `Finished` last.

        Raises ModelError with words for people when the server can't answer; its subclass ModelCut when the
        stream was cut off in the middle, so that the loop may ask again; ModelTooLong when the transcript
        must be shorter.
        """

    async def close(self) -> None:
        """Close the connections to the server."""
