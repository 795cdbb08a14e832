"""What the model says in one call, as it comes, and how it says nothing. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.agent.prompt import SILENT
from bot.agent.textual_tool_calls import is_written_call
from bot.agent.transcript import NOTE
from bot.domain.model import AssistantText, Entry, Finished, Stop, ToolCall, ToolSpec, UserText

_WRITTEN = (
    "You wrote a tool call as text. Nothing runs that way. Call the tool through the tools you were given, "
    "or answer in words."
)


@dataclass(slots=True)
class Saying:
    """``may_be_silent``: people there also talk with each other, so saying nothing is an answer."""

    may_be_silent: bool
    pieces: list[str] = field(default_factory=list)
    finished: Finished | None = None
    _held: str = ""  # not shown yet: it may become `SILENT`
    _speaks: bool = False

    def add(self, text: str) -> str:
        """More of the answer; returns what of it can be shown now."""
        self._held += text
        self._speaks = self._speaks or not (self.may_be_silent and SILENT.startswith(_bare(self._held)))
        return self._show() if self._speaks else ""

    def rest(self) -> str:
        """What was held back when the answer ended; nothing of one that is silent."""
        silent = not self._speaks and _bare(self._held) in ("", SILENT)
        return "" if silent else self._show()

    def restart(self) -> bool:
        """Begin again; returns whether something was shown."""
        shown = bool(self.pieces)
        self.pieces, self._held, self._speaks = [], "", False
        return shown

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_empty(self) -> bool:
        """Whether the model fell silent of itself without a word or a call, where it should not."""
        silent = self.finished is not None and self.finished.stop is Stop.FINISHED
        return silent and not self.may_be_silent and not self._calls and not self.text.strip()

    def correction(self, specs: Sequence[ToolSpec]) -> tuple[Entry, ...]:
        """What to tell a model that wrote a call into its text, where nothing runs; nothing if it did not."""
        if self._calls or not is_written_call(self.text, {spec.name for spec in specs}):
            return ()
        return (AssistantText(self.text), UserText(f"{NOTE} {_WRITTEN}"))

    def _show(self) -> str:
        shown, self._held = self._held, ""
        if shown:
            self.pieces.append(shown)
        return shown

    @property
    def _calls(self) -> Sequence[ToolCall]:
        return self.finished.calls if self.finished else ()


def _bare(text: str) -> str:
    return text.strip().strip("`*").casefold()
