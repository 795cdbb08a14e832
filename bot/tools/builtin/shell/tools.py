"""A shell for the agent (group ``runtime``): the tool `shell_run`, which runs a command in the workspace.

A command is an *argv*: the program and its arguments, one by one. The risk of a call is judged by what it
would run (``risk.py``). A command that only reads runs immediately; all others wait for a person, unless a
rule lets them run. ``process.py`` limits what a command may use, and ``prefix.py`` says which commands are
similar. If trials are on, a command that waits for a person is tried before in a copy of the workspace
(``bot/tools/builtin/trials``).
"""

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bot.domain.preview import PreviewField
from bot.domain.risks import Level
from bot.domain.rule_values import Mode
from bot.domain.similarity import Beginning
from bot.errors import SettingsError
from bot.tools.builtin.shell.prefix import read_prefix
from bot.tools.builtin.shell.process import CHANGING, PATH, READING, ProcessEnd, run_process
from bot.tools.builtin.shell.risk import make_classifier
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.decorator import tool
from bot.tools.signature import Storable
from bot.tools.toolset import FixedToolset

_PASSED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")  # commands get them from Nod's own environment
_MAX_SECONDS = 600  # the longest time limit of a command, after which it is ended
_MARGIN_SECONDS = 15.0  # the tool's run may take that much longer, so that the command is ended first
_MAX_PATH_CHARS = 4096  # Linux PATH_MAX
_UNASKED_VARIABLES = {
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "RIPGREP_CONFIG_PATH": "",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.bareRepository",
    "GIT_CONFIG_VALUE_1": "explicit",
    "GIT_CONFIG_KEY_2": "log.showSignature",
    "GIT_CONFIG_VALUE_2": "false",
    "GIT_CONFIG_KEY_3": "core.hooksPath",
    "GIT_CONFIG_VALUE_3": "/dev/null",
}
"""The environment of commands that may run without a person, in addition to the usual one.

With it programs read no settings from a home. git finds no bare repository inside the workspace, takes no
optional lock, and starts no watcher and no hook. Programs that a repository's own configuration names may
still run: the file tools never touch ``.git``, so only people have changed it.
"""


Argument = Annotated[Storable, Field(max_length=20_000)]
Argv = Annotated[list[Argument], Field(min_length=1, max_length=200)]
Seconds = Annotated[int, Field(ge=1, le=_MAX_SECONDS)]


def shell_tools(
    workspace: Path,
    *,
    environment: Mapping[str, str],
    seconds: float = 60.0,
    max_output: int = 64_000,
    trials: bool = False,
) -> FixedToolset:
    """Return the tool `shell_run` over ``workspace``. It is off by default.

    ``environment`` is Nod's own, of which a command gets the language and the time zone, never a token.
    ``seconds``: the time limit of a command that names none. ``max_output``: the bytes kept of each of its
    two streams. ``trials``: a command that waits for a person is tried first, in a closed copy. Raises
    SettingsError if the workspace is not a folder.
    """
    if not workspace.is_dir():
        raise SettingsError(f"NOD_WORKSPACE: {workspace} is not a folder. Create it, or name another one.")
    folder = workspace.resolve()
    judge = make_classifier(folder)  # returns the risk of a command
    base_variables = scrub_environment(environment)
    # git looks for no repository above the workspace
    unasked_variables = {**_UNASKED_VARIABLES, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    default_seconds = seconds

    async def preview(arguments: Arguments) -> Sequence[PreviewField]:
        fields = [
            PreviewField("command", None, _quote_all(arguments["argv"])),
            PreviewField("folder", None, str(folder)),
        ]
        limit = arguments.get("seconds")
        if limit is not None:
            fields.append(PreviewField("time limit", None, f"{limit} s"))
        return fields

    async def begins(arguments: Arguments) -> Beginning:
        return await asyncio.to_thread(read_prefix, arguments["argv"], folder)

    @tool(
        group="runtime",
        summary=lambda arguments: f"Run “{_quote_all(arguments['argv'])}”",
        classify=lambda arguments: judge(arguments["argv"]),
        preview=preview,
        begins=begins,
        touches="",  # its preview shows no state of the workspace that could change
        timeout=_MAX_SECONDS + _MARGIN_SECONDS,
    )
    async def shell_run(argv: Argv, context: CallContext, seconds: Seconds | None = None) -> ToolOutput:
        """Run a program in the workspace. There is no shell: give the program and each argument by itself.

        Commands that only read run immediately, others wait for a person. For pipes give ["sh", "-c", "…"],
        with plain words only: variables, loops and substitutions are never taken for harmless.

        Args:
            argv: the program and its arguments, for example ["git", "status"]
            seconds: how long it may run, at most 600; 60 where it is not given

        """
        risk = judge(argv)
        limits = READING if risk.level is Level.READ else CHANGING
        with tempfile.TemporaryDirectory(prefix="nod-home-", ignore_cleanup_errors=True) as home:
            variables = {**base_variables, "HOME": home}
            # the mildest rule lets all commands but destructive ones run unasked
            may_run_unasked = not Mode.DESTRUCTIVE.asks(risk)
            if may_run_unasked:
                variables |= unasked_variables
            ended = await run_process(
                argv,
                folder,
                variables,
                seconds=seconds or default_seconds,
                max_output_bytes=max_output,
                limits=limits,
                on_output=context.printed,
            )
        return _make_output(ended)

    # rules also judge the call with each link replaced by its target
    shell_run = replace(shell_run, resolve_links=partial(_follow_links, folder))
    if trials:
        from bot.tools.builtin.trials.cage import Cage
        from bot.tools.builtin.trials.command import CommandTrials

        command_trials = CommandTrials(folder, Cage(folder, max_output), seconds)
        shell_run = replace(shell_run, trial_functions=command_trials.trying)
        return FixedToolset("runtime", (shell_run, command_trials.make_undo_tool()))
    return FixedToolset("runtime", (shell_run,))


def _make_output(ended: ProcessEnd) -> ToolOutput:
    output = {"exit_code": ended.exit_code, "stdout": ended.stdout, "stderr": ended.stderr}
    if ended.reason:
        failure = f"{ended.reason[:1].upper()}{ended.reason[1:]}"
        return ToolOutput({**output, "ended": ended.reason}, ended_badly=failure)
    if ended.exit_code:
        return ToolOutput(output, ended_badly=f"Ended with code {ended.exit_code}")
    return ToolOutput(output)


def _follow_links(folder: Path, arguments: Arguments) -> Arguments:
    """Return the arguments with each linked path replaced by its target; empty if no path is linked."""
    argv = [_follow_link(folder, word) for word in arguments["argv"]]
    if argv == arguments["argv"]:
        return {}
    return {"argv": argv}


def _follow_link(folder: Path, word: str) -> str:
    """Return the target of a path with a link on it, relative to the workspace; any other word unchanged."""
    if len(word) > _MAX_PATH_CHARS or not os.path.lexists(folder / word):
        return word
    path = os.path.normpath(folder / word)
    target = os.path.realpath(folder / word)
    if target != path:
        return os.path.relpath(target, folder)
    return word


def scrub_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: the programs' path, the language, the time zone, no terminal."""
    return {
        "PATH": PATH,
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "false",
        "NO_COLOR": "1",
        **{name: environment[name] for name in _PASSED_VARIABLES if name in environment},
    }


def _quote_all(argv: Sequence[str]) -> str:
    return " ".join(map(_quote, argv))


def _quote(word: str) -> str:
    """Return a word as one would type it in a shell; invisible characters become visible."""
    if not all(char.isprintable() or char in "\n\t" for char in word):
        return "$'" + "".join(map(_escape_char, word)) + "'"
    if word and all(char.isalnum() or char in "@%_-+=:,./" for char in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _escape_char(char: str) -> str:
    """Escape a character for ``$'…'``; an invisible one becomes its number."""
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    return f"\\U{ord(char):08x}"
