"""The trial of a call: a run without lasting effect before people decide. Its changes may be applied."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.domain.preview import PreviewField
from bot.domain.trials import TriedFile
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.looks import Undo, bind_looks

_TRIAL_LOOKS = ("trial", "unchanged", "current", "undo", "settle")
"""The names of the looks of a `TrialFunctions`."""


@dataclass(frozen=True, slots=True)
class TrialOutput:
    """The result of a trial."""

    changes: Sequence[PreviewField]
    """The changes that the call would make."""
    token: Any = None
    """JSON data from which ``apply`` makes exactly the changes of the trial."""
    output: str = ""
    """The output of a command that was tried."""
    exit: int | None = None
    """The exit code of a command that was tried; None if it was ended, or nothing was run."""
    files: tuple[TriedFile, ...] = ()
    """The files that it changed."""
    cage: str = ""
    """The name of the closed environment in which a command was tried."""
    refused: str = ""
    """The reason why the changes can't be applied. The call can then only be run for real."""
    final: str = ""
    """The reason why the changes can't be undone."""


@dataclass(frozen=True, slots=True)
class TrialFunctions:
    """The functions by which a tool's calls are tried before people decide, and their trials applied."""

    trial: Callable[..., Awaitable[TrialOutput]]
    """Tries a call and changes nothing. Raises ToolError if it can't be tried; the card says why."""
    apply: Callable[[Arguments, Any, CallContext], Awaitable[ToolOutput]]
    """Makes the changes of a trial, or raises ToolError before it changes anything.

    It takes the call's arguments, the trial's token and a `CallContext`.
    """
    unchanged: Callable[..., Awaitable[bool]] | None = None
    """Tells if the state from which a trial's token was made is unchanged; takes the arguments and the token.

    Without this function the call is tried again before its trial is applied.
    """
    settle: Callable[..., Awaitable[ToolOutput | None]] | None = None
    """Tells how an interrupted ``apply`` ended; takes the arguments, the token and the idempotency key.

    It returns the output that ``apply`` would have returned. It raises ToolError if nothing was changed, and
    returns None if that is unclear.
    """
    current: Callable[..., Awaitable[Mapping[str, str | None]]] | None = None
    """Returns the present values of the card's fields, by field; takes the files (`TriedFile`) of a trial."""
    undo: Undo | None = None
    """Returns the call that undoes the changes."""
    touches: str = ""
    """The name of the resource that ``apply`` changes. Calls with the same name run one after the other."""

    def __post_init__(self) -> None:
        for name, look in bind_looks(self, _TRIAL_LOOKS).items():
            object.__setattr__(self, name, look)

    def in_context(self, context: CallContext) -> "TrialFunctions":
        """Return the functions with this context for their looks."""
        changes: dict[str, Any] = dict(bind_looks(self, _TRIAL_LOOKS, context))
        if changes:
            return replace(self, **changes)
        return self


Apply = Callable[[Arguments, Any, CallContext], Awaitable[Any]]
"""Makes the changes of a trial; the second argument is the trial's token."""
