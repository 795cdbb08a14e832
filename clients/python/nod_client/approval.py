"""``@needs_approval``: a decorator for functions of your own that run only once people approved the call.

A call of the function asks for permission (`Nod.permit`) with its arguments as the input. It then runs with
the arguments that people approved, edits included.
"""

import functools
import inspect
import json
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, ExitStack
from typing import Any, TypeVar, cast, overload

from nod_client.client import AsyncNod, Nod, Permission
from nod_client.errors import EditDoesNotFit, approved
from nod_client.request import Json, Request

F = TypeVar("F", bound=Callable[..., Any])


class _GuardedFunction:
    """The signature of a function that needs approval, and what people see of a call."""

    def __init__(
        self, function: Callable[..., Any], hide: Collection[str], words: Mapping[str, str | None]
    ) -> None:
        self._signature = inspect.signature(function)
        self.name = function.__name__
        names = list(self._signature.parameters)
        unknown = set(hide) - set(names)
        if unknown:
            raise TypeError(
                f"{self.name} has no argument {', '.join(sorted(unknown))}, so it can't be hidden."
            )
        self._hidden = set(hide)
        if names and names[0] in ("self", "cls"):
            self._hidden.add(names[0])
        self._words = words
        """Format strings over the arguments, by the option of `Permission` that they give."""

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound

    def show(self, bound: inspect.BoundArguments) -> Json:
        """Return the arguments that people see, as JSON. Raises TypeError for one that JSON can't hold."""
        shown: Json = {}
        for name, value in bound.arguments.items():
            if name in self._hidden:
                continue
            try:
                shown[name] = json.loads(json.dumps(value, allow_nan=False))
            except (TypeError, ValueError):
                raise TypeError(
                    f"{self.name}: people can't be shown the argument {name}, a {type(value).__name__}. "
                    f"Pass text or numbers, or hide it: @needs_approval(hide=({name!r},))."
                ) from None
        return shown

    def make_options(self, shown: Json, ttl: int | None) -> Permission:
        """Return the options of the question about a call."""
        options: Json = {"summary": self.name.replace("_", " ").capitalize()}
        for name, template in self._words.items():
            if template:
                options[name] = template.format_map(shown)
        if ttl:
            options["ttl"] = ttl
        return cast("Permission", options)

    def apply_edit(
        self, bound: inspect.BoundArguments, shown: Json, request: Request
    ) -> inspect.BoundArguments:
        """Return the arguments to call the function with: ``bound`` with the values that people changed.

        A changed value must be of the same JSON type as before, or the parameter's default; any value may
        replace null. Raises the `NotApproved` of the request, and EditDoesNotFit.
        """
        approved_input = approved(request).input
        if approved_input == shown:
            return bound
        if approved_input.keys() != shown.keys():
            odd = ", ".join(sorted(approved_input.keys() ^ shown.keys()))
            raise EditDoesNotFit(f"{self.name} did not run: {request.edited_by} removed or added {odd}.")
        for name, value in approved_input.items():
            old = shown[name]
            if value == old:
                continue
            default = self._signature.parameters[name].default
            fits = _name_type(value) == _name_type(old) or old is None or value == default
            if not fits:
                raise EditDoesNotFit(
                    f"{self.name} did not run: {request.edited_by} made {name} {value!r}, "
                    f"and it must be {_name_type(old)}."
                )
            bound.arguments[name] = value
        return bound


def _name_type(value: Any) -> str:
    """Return the JSON type of a value, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"


@overload
def needs_approval(function: F) -> F: ...


@overload
def needs_approval(
    *,
    summary: str | None = None,
    hide: Collection[str] = (),
    wait: float | None = None,
    ttl: int | None = None,
    key: str | None = None,
    nod: Nod | AsyncNod | None = None,
) -> Callable[[F], F]: ...


def needs_approval(
    function: Any = None,
    *,
    summary: str | None = None,
    hide: Collection[str] = (),
    wait: float | None = None,
    ttl: int | None = None,
    key: str | None = None,
    nod: Nod | AsyncNod | None = None,
) -> Any:
    """Let a function run only once people approved its call, with the arguments that they approved.

    It is used bare, or with options: ``@needs_approval(summary="Deploy {version}", key="deploy-{run}")``.

    - ``summary`` and ``key``: format strings over the arguments. One key is one approval, so it should name
      one run.
    - ``hide``: names of arguments that are neither shown nor sent.
    - ``wait`` and ``ttl``: as in `Nod.ask`.
    - ``nod``: the client to use; by default a new one, of the Nod that NOD_URL names.

    A call that does not run raises the `NotApproved` of its end, `CouldNotAsk`, `EditDoesNotFit`, or
    TypeError for an argument that JSON can't hold.
    """

    def decorate(inner: F) -> F:
        guarded = _GuardedFunction(inner, hide, {"summary": summary, "key": key})

        if inspect.iscoroutinefunction(inner):

            @functools.wraps(inner)
            async def ask_and_await(*args: Any, **kwargs: Any) -> Any:
                bound = guarded.bind(args, kwargs)
                shown = guarded.show(bound)
                options = guarded.make_options(shown, ttl)
                async with AsyncExitStack() as stack:
                    client = nod if isinstance(nod, AsyncNod) else await stack.enter_async_context(AsyncNod())
                    request = await client.permit(guarded.name, shown, wait=wait, **options)
                edited = guarded.apply_edit(bound, shown, request)
                return await inner(*edited.args, **edited.kwargs)

            return cast("F", ask_and_await)

        @functools.wraps(inner)
        def ask_and_call(*args: Any, **kwargs: Any) -> Any:
            bound = guarded.bind(args, kwargs)
            shown = guarded.show(bound)
            options = guarded.make_options(shown, ttl)
            with ExitStack() as stack:
                client = nod if isinstance(nod, Nod) else stack.enter_context(Nod())
                request = client.permit(guarded.name, shown, wait=wait, **options)
            edited = guarded.apply_edit(bound, shown, request)
            return inner(*edited.args, **edited.kwargs)

        return cast("F", ask_and_call)

    return decorate if function is None else decorate(function)
