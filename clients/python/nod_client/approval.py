"""``@needs_approval``: a function that asks people and then runs with what they approved."""

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


class _Asking:
    """One function under approval: what it shows people of a call, and what it is called with after that."""

    def __init__(
        self, function: Callable[..., Any], hide: Collection[str], words: Mapping[str, str | None]
    ) -> None:
        self._signature = inspect.signature(function)
        self.name = function.__name__
        names = list(self._signature.parameters)
        if unknown := set(hide) - set(names):
            raise TypeError(
                f"{self.name} has no argument {', '.join(sorted(unknown))}, so it can't be hidden."
            )
        self._hidden = {*hide, *({"self", "cls"} & set(names[:1]))}
        self._words = words

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound

    def shown(self, bound: inspect.BoundArguments) -> Json:
        """The arguments as JSON. Raises TypeError for one that JSON can't hold."""
        given: Json = {}
        for name, value in bound.arguments.items():
            if name in self._hidden:
                continue
            try:
                given[name] = json.loads(json.dumps(value, allow_nan=False))
            except (TypeError, ValueError):
                raise TypeError(
                    f"{self.name}: people can't be shown the argument {name}, a {type(value).__name__}. "
                    f"Pass text or numbers, or hide it: @needs_approval(hide=({name!r},))."
                ) from None
        return given

    def said(self, shown: Json, ttl: int | None) -> Permission:
        words = {name: text.format_map(shown) for name, text in self._words.items() if text}
        more: Json = words | ({"ttl": ttl} if ttl else {})
        return cast("Permission", {"summary": self.name.replace("_", " ").capitalize()} | more)

    def settle(self, bound: inspect.BoundArguments, shown: Json, request: Request) -> inspect.BoundArguments:
        """What to call it with. Only what people changed is taken from them. Raises EditDoesNotFit."""
        let_through = approved(request).input
        if let_through == shown:
            return bound
        if let_through.keys() != shown.keys():
            odd = ", ".join(sorted(let_through.keys() ^ shown.keys()))
            raise EditDoesNotFit(f"{self.name} did not run: {request.edited_by} removed or added {odd}.")
        for name, value in let_through.items():
            if value == shown[name]:
                continue
            default = self._signature.parameters[name].default
            if not (_kind(value) == _kind(shown[name]) or shown[name] is None or value == default):
                raise EditDoesNotFit(
                    f"{self.name} did not run: {request.edited_by} made {name} {value!r}, "
                    f"and it must be {_kind(shown[name])}."
                )
            bound.arguments[name] = value
        return bound


def _kind(value: Any) -> str:
    """What JSON calls it."""
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

    Bare, or with words: ``@needs_approval(summary="Deploy {version}", key="deploy-{run}")``. ``summary``
    and ``key`` are format strings over the arguments. What is in ``hide`` is not shown or sent. ``wait``,
    ``ttl`` and ``key`` are those of `Nod.ask`: one key is one approval, so it should name one run. ``nod`` is
    used instead of the Nod that NOD_URL names. A call raises the `NotApproved` of its end, `CouldNotAsk`,
    `EditDoesNotFit`, or TypeError for an argument that JSON can't hold; the function did not run then.
    """

    def decorate(inner: F) -> F:
        asking = _Asking(inner, hide, {"summary": summary, "key": key})

        if inspect.iscoroutinefunction(inner):

            @functools.wraps(inner)
            async def later(*args: Any, **kwargs: Any) -> Any:
                bound = asking.bind(args, kwargs)
                shown = asking.shown(bound)
                async with AsyncExitStack() as stack:
                    given = nod if isinstance(nod, AsyncNod) else await stack.enter_async_context(AsyncNod())
                    request = await given.permit(asking.name, shown, wait=wait, **asking.said(shown, ttl))
                settled = asking.settle(bound, shown, request)
                return await inner(*settled.args, **settled.kwargs)

            return cast("F", later)

        @functools.wraps(inner)
        def now(*args: Any, **kwargs: Any) -> Any:
            bound = asking.bind(args, kwargs)
            shown = asking.shown(bound)
            with ExitStack() as stack:
                given = nod if isinstance(nod, Nod) else stack.enter_context(Nod())
                request = given.permit(asking.name, shown, wait=wait, **asking.said(shown, ttl))
            settled = asking.settle(bound, shown, request)
            return inner(*settled.args, **settled.kwargs)

        return cast("F", now)

    return decorate if function is None else decorate(function)
