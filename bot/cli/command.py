"""How a command of ``nod`` is typed: options that all have, plain help in sections, import when used."""

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

_TYPES = {"int": "N", "int range": "N", "str": "TEXT", "list[str]": "TEXT"}
F = TypeVar("F", bound=Callable[..., Any])


def _keep(context: typer.Context, parameter: typer.CallbackParam, value: object) -> None:
    if value:  # a group and its command share what is kept
        context.meta[f"nod.{parameter.name}"] = value


def _everywhere(
    database: Annotated[
        str | None,
        typer.Option(
            "-d",
            "--database",
            metavar="FILE",
            help="use this database instead of NOD_DATABASE_URL",
            callback=_keep,
            expose_value=False,
        ),
    ] = None,
    *,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="use the demo's database and roles", callback=_keep, expose_value=False),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="log errors only", callback=_keep, expose_value=False)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="log more", callback=_keep, expose_value=False)
    ] = False,
) -> None:
    """Take what every command takes."""


_options = typer.Typer(add_completion=False)
_options.command()(_everywhere)
_EVERYWHERE = typer.main.get_command(_options).params


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the options of all commands say in this call."""

    database: str | None = None
    demo: bool = False
    quiet: bool = False
    verbose: bool = False

    @classmethod
    def of(cls, context: Any) -> "Chosen":
        return cls(**{each.name: context.meta.get(f"nod.{each.name}", each.default) for each in fields(cls)})

    def log_level(self, usual: str) -> str:
        """How much to log where ``usual`` is what the command logs by itself; ``-q`` beats ``-v``."""
        if self.quiet:
            return usual if usual == "critical" else "error"
        more = "debug" if usual.lower() in {"debug", "info"} else "info"
        return more if self.verbose else usual


_CHOSEN: ContextVar[Chosen] = ContextVar("chosen")


def chosen() -> Chosen:
    """What this call says; nothing outside a call."""
    return _CHOSEN.get(Chosen())


@contextlib.contextmanager
def chosen_in(context: Any) -> Iterator[None]:
    """What this call says, for as long as the block runs."""
    token = _CHOSEN.set(Chosen.of(context))
    try:
        yield
    finally:
        _CHOSEN.reset(token)


class ShellCommand(TyperCommand):
    """A command with the options of all; what to type in place of a name is in capitals."""

    def __init__(self, name: str | None, **given: Any) -> None:
        super().__init__(name, **given)
        self.params = _capital([*self.params, *_EVERYWHERE])

    def invoke(self, ctx: Any) -> Any:
        with chosen_in(ctx):
            return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _format_options(self, ctx, formatter)


class ShellGroup(TyperGroup):
    """Commands under one name. Those with a ``rich_help_panel`` are listed in a section of that name."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.params = _capital([*self.params, *_EVERYWHERE])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer hands it
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            section = getattr(command, "rich_help_panel", None) or "Commands"
            words = (command.help or "").partition("\n")[0]
            sections.setdefault(section, []).append((name, words))
        wide = max(len(name) for name in self.commands)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(wide), words) for name, words in rows])

    def invoke(self, ctx: Any) -> Any:
        with chosen_in(ctx):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.opened() if isinstance(command, Door) else command, rest


class Door(ShellCommand):
    """A command by its name and line of help; its module in `bot.cli` is imported when it is used.

    The module has it in ``commands``, or ``commands`` is a group of that name.
    """

    def __init__(self, name: str, module: str, words: str, section: str) -> None:
        super().__init__(name, help=words, rich_help_panel=section)
        self._module = module

    def opened(self) -> Any:
        gc.disable()  # of what is imported nothing is garbage, and looking takes a tenth of the time
        try:
            module = import_module(f"bot.cli.{self._module}")
        finally:
            gc.freeze()  # and back among what is old: new, it would be looked through after all
            gc.unfreeze()
            gc.enable()
        group = typer.main.get_group(module.commands)
        return group.commands.get(str(self.name), group)


def doors(sections: Mapping[str, Sequence[tuple[str, str, str]]]) -> dict[str, Door]:
    """A door for each name, module and line of help, by its section."""
    return {row[0]: Door(*row, section) for section, rows in sections.items() for row in rows}


class ShellCommands(typer.Typer):
    """The commands of one module; ``given`` as for `typer.Typer`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(
            **{"cls": ShellGroup, "rich_markup_mode": None, "pretty_exceptions_enable": False} | given
        )

    def command(self, name: str | None = None, **given: Any) -> Callable[[F], F]:
        return super().command(name, **{"cls": ShellCommand} | given)


def _capital(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if parameter.param_type_name == "argument" and parameter.metavar is None:
            parameter.metavar = parameter.name.strip("_").upper()
    return parameters


def _format_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Arguments and options, with what to type in capitals instead of a type in angle brackets."""
    rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for parameter in command.get_params(ctx):
        if record := parameter.get_help_record(ctx):
            name, words = record
            rows[parameter.param_type_name].append((_named(parameter, name), words[:1].upper() + words[1:]))
    for kind, found in rows.items():
        if found:
            with formatter.section(f"{kind.title()}s"):
                formatter.write_dl(found)


def _named(parameter: Any, name: str) -> str:
    bare, _, kind = name.rstrip(">.").partition("<")
    if not kind:
        return name
    if parameter.param_type_name == "argument":
        return bare.rstrip()
    return bare + (kind if "|" in kind else _TYPES.get(kind, kind.upper()))
