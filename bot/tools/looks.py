"""The looks of a tool: functions that read what people are shown of a call, and change nothing.

A look takes the canonical arguments of a call. If it has a parameter annotated `CallContext`, it gets the
context of the call, too: `bind_looks` binds it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.domain.preview import PreviewField
from bot.domain.similarity import Beginning
from bot.tools.call import CallContext, InverseCall, ToolOutput
from bot.tools.signature import find_parameter

_NO_CONTEXT = CallContext("", "")

# in the following types, "..." is the canonical arguments and, if the function takes it, a `CallContext`

Preview = Callable[..., Awaitable[Sequence[PreviewField]]]
"""Returns the fields of the card: what the call changes, with old and new values."""

Title = Callable[..., Awaitable[str]]
"""Returns the heading of the card. Unlike ``summary`` it may look up the name of the call's object."""

Key = Callable[..., Awaitable[Mapping[str, Any]]]
"""Returns the arguments by which two calls are similar, resolved if necessary (to a real folder)."""

Current = Callable[..., Awaitable[Mapping[str, str | None]]]
"""Returns the present values of a preview's fields as texts, by field; None if there is nothing."""

Undo = Callable[..., Awaitable[InverseCall | str]]
"""Returns the inverse of a call, or the reason why it has none, in words for people."""

Settle = Callable[..., Awaitable[ToolOutput | None]]
"""Tells how an interrupted run ended, by its idempotency key. As `TrialFunctions.settle`, without a token."""

Begins = Callable[..., Awaitable[Beginning]]
"""Returns the first words of a call, by which a grant may cover all calls that begin alike."""


@dataclass(frozen=True, slots=True)
class _BoundFunction:
    """A function of a tool with the `CallContext` that it gets as its ``parameter``."""

    function: Callable[..., Any]
    parameter: str
    context: CallContext = _NO_CONTEXT

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments, **{self.parameter: self.context})


def bind_looks(
    owner: Any, names: Sequence[str], context: CallContext | None = None
) -> dict[str, Callable[..., Any]]:
    """Return by name the looks that take a `CallContext`, bound to ``context``.

    ``owner``: the tool, or its `TrialFunctions`. ``names``: of its looks. Without a ``context`` a look keeps
    the context to which it is bound, or gets an empty one.
    """
    looks: dict[str, Callable[..., Any]] = {}
    for name in names:
        look = getattr(owner, name)
        if isinstance(look, _BoundFunction):
            looks[name] = replace(look, context=context or look.context)
        elif callable(look):
            parameter = find_parameter(look, CallContext)
            if parameter:
                looks[name] = _BoundFunction(look, parameter, context or _NO_CONTEXT)
    return looks
