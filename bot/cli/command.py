"""The base of all ``nod`` commands: the options that they share, known faults in one line, and lazy imports.

A shared option (``-d``, ``--demo``, ``-q``, ``-v``) may stand before or after a command's name. `command`
registers a function with these options, and `get_shared_options` returns their values anywhere in the call.
`LazyGroup` lists commands without importing their modules, so that ``nod --help`` is fast.
"""

import contextlib
import functools
import gc
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Annotated, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from bot.domain.text import escape_point, make_visible
from bot.errors import NodError

_GC_THRESHOLD = 50_000
"""The number of new objects after which the garbage collector runs.

A command keeps all the objects that its imports make. Collecting among them took a fifth of the time of a
start.
"""


@dataclass(frozen=True, slots=True)
class SharedOptions:
    """The values of the options that all commands share."""

    database: str | None = None
    demo: bool = False
    quiet: bool = False
    verbose: bool = False

    def log_level(self, default_level: str) -> str:
        """Return the log level. ``default_level`` is that without ``-q`` and ``-v``; ``-q`` wins."""
        if self.quiet:
            return default_level if default_level == "critical" else "error"
        if self.verbose:
            return "debug" if default_level.lower() in {"debug", "info"} else "info"
        return default_level


_SHARED_OPTIONS: ContextVar[SharedOptions] = ContextVar("shared_options")


def get_shared_options() -> SharedOptions:
    """Return the shared options of this call; the defaults outside a call."""
    return _SHARED_OPTIONS.get(SharedOptions())


def _note_option(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> None:
    """Note the value of a shared option, for `get_shared_options`; typer calls this for each of them.

    At the ``nod`` group every option is set, also to its default. At a command only an option that is given
    is set, so that the others keep the group's values.
    """
    is_nod_group = context.parent is None
    if value or is_nod_group:
        _SHARED_OPTIONS.set(replace(get_shared_options(), **{str(parameter.name): value}))


def shared_options(
    *,
    database: Annotated[
        str | None,
        typer.Option(
            "-d",
            "--database",
            metavar="FILE",
            help="Use this database instead of NOD_DATABASE_URL.",
            callback=_note_option,
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Use the demo's database and roles.", callback=_note_option)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Log errors only.", callback=_note_option)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Log more.", callback=_note_option)
    ] = False,
) -> None:
    """Do nothing. The signature is what counts.

    `with_shared_options` adds it to commands; groups without a callback of their own have this function.
    """


@contextlib.contextmanager
def report_faults() -> Iterator[None]:
    """Print a known fault as one line on stderr and exit with code 1; never a stack trace."""
    try:
        yield
    except NodError as error:
        words = error.message
    except Exception as error:
        from sqlalchemy.exc import DBAPIError  # here, so that printing help does not load it

        from bot.store.refusals import explain_refusal

        if not isinstance(error, DBAPIError):
            raise
        words = explain_refusal(error.orig)
    else:
        return
    print(f"nod: {make_visible(words, escape_point)}", file=sys.stderr)
    raise typer.Exit(1) from None


def with_shared_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the shared options added, and with known faults printed in one line."""
    own = inspect.signature(function).parameters
    shared = inspect.signature(shared_options).parameters

    @functools.wraps(function)
    def run(**options: Any) -> None:
        if sys.stdout is None:  # it was closed: nod pending >&-
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - till the process ends
        if isinstance(sys.stdout, io.TextIOWrapper):  # not every terminal knows all letters
            sys.stdout.reconfigure(errors="backslashreplace")
        with report_faults():
            function(**{name: value for name, value in options.items() if name in own})

    # typer reads the options from the signature
    run.__signature__ = inspect.Signature([*own.values(), *shared.values()])  # type: ignore[attr-defined]
    return run


def command(
    app: typer.Typer, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers a command of ``app`` with the shared options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name)(with_shared_options(function))
        return function

    return register


class LazyCommand(NamedTuple):
    """A command or group that is listed before it is imported."""

    name: str
    module: str  # the name of the module whose ``app`` has the command
    section: str  # the section of the help of ``nod``
    summary: str  # the command's line in that help


class LazyGroup(TyperGroup):
    """A group of commands whose modules are imported when a command is called, not for the group's help.

    https://click.palletsprojects.com/en/stable/complex/#lazily-loading-subcommands
    """

    lazy: ClassVar[Sequence[LazyCommand]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._modules = {listed.name: listed.module for listed in self.lazy}
        for listed in self.lazy:
            self.add_command(TyperCommand(listed.name, help=listed.summary, rich_help_panel=listed.section))

    def resolve_command(
        self, ctx: Any, args: list[str]
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        """Return the imported command in place of its entry in the list, with its name and its arguments."""
        name, entry, arguments = super().resolve_command(ctx, args)
        loaded = self.load_command(name) if name and entry else None  # the entry itself has no code to run
        return name, loaded, arguments

    def load_command(self, name: str) -> TyperCommand | TyperGroup:
        """Import a command, or a group with its commands."""
        gc.set_threshold(_GC_THRESHOLD)
        group = typer.main.get_group(import_module(self._modules[name]).app)
        command = group.commands.get(name)
        if isinstance(command, TyperCommand):
            return command
        return group


def open_standard_files() -> None:
    """Open the null device for each standard file that is closed.

    Otherwise the database file could get the number of a closed one, such as stdout, and what is printed
    would be written into the database.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def announce(text: str) -> None:
    """Print a line. The process keeps running if no one can read it: the pipe is closed, the disk full."""
    try:
        print(text, flush=True)
    except OSError:
        # without this, Python would fail to flush stdout when the process ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
