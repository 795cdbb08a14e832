"""Trials of commands: before people decide on a command, it runs in a copy of the workspace, in a cage.

A cage is a closed environment without a network. People see which files the command changed in the copy. An
approval applies these changes to the workspace; the command itself does not run again.

A trial copies the workspace (``copies.py``), runs the command (``cage.py``) and compares the copy
(``changes.py``). The changes are stored as a `TriedCommand`. With the approval they are applied
(``applying.py``). `CommandTrials.make_undo_tool` makes the tool that undoes them. The rest of Nod uses the
functions that `CommandTrials.trying` returns; `TrialFunctions` (``bot/tools/trial.py``) says what each does.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from bot.domain.preview import PreviewField, old_values
from bot.domain.text import name_some
from bot.domain.trials import TriedFile
from bot.errors import ToolError
from bot.tools.builtin.shell.process import ProcessEnd
from bot.tools.builtin.trials import applying
from bot.tools.builtin.trials.cage import Cage, choose_account
from bot.tools.builtin.trials.changes import (
    FileChange,
    FileState,
    Inapplicable,
    changes_to_json,
    compare_copy,
    describe_changes,
    invert_changes,
    show_state,
)
from bot.tools.builtin.trials.copies import (
    CopyLimits,
    CopySize,
    copy_workspace,
    create_copy_folder,
    remove_abandoned_copies,
    remove_folder,
)
from bot.tools.call import Arguments, CallContext, InverseCall, Ran, ToolOutput
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from bot.tools.trial import TrialFunctions, TrialOutput

_MAX_OUTPUT_CHARS = 2000  # the part of the command's output that people see
_MAX_NAMED_PATHS = 3  # the paths that a title names
_NOTE_TEXT = "It ran in a closed copy before it was approved; its changes of files were then applied."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """The outcome of a command's trial. Its JSON is the `TrialOutput.token`, which an approval applies."""

    exit: int | None
    """The exit code; None if the command was ended."""
    stdout: str
    stderr: str
    changes: Sequence[FileChange]

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> "TriedCommand":
        """Return the outcome from the JSON that `as_json` made."""
        return cls(stored["exit"], stored["stdout"], stored["stderr"], _parse_changes(stored))

    def as_json(self) -> dict[str, Any]:
        """Return the JSON to store. Old contents are left out if they are too large (`changes_to_json`)."""
        result = {"exit": self.exit, "stdout": self.stdout, "stderr": self.stderr}
        return result | {"changes": changes_to_json(self.changes)}


@dataclass(eq=False)
class CommandTrials:
    """The trials of one workspace's commands. ``seconds``: the limit of a command that names none.

    The ``token`` of its methods is a `TriedCommand` as JSON, and ``key`` the idempotency key of the call.
    """

    workspace: Path
    cage: Cage
    seconds: float = 60.0
    limits: CopyLimits = field(default_factory=CopyLimits)

    def __post_init__(self) -> None:
        # in a thread, so that the start does not wait while copies that a crash left behind are removed
        threading.Thread(target=remove_abandoned_copies, args=(self.workspace,), daemon=True).start()

    @property
    def trying(self) -> TrialFunctions:
        """The functions by which the gate tries commands and applies their trials."""
        return TrialFunctions(
            trial=self.trial,
            apply=self.apply,
            unchanged=self.unchanged,
            settle=self.settle,
            current=self.current,
            undo=self.undo,
            touches="workspace",  # as the file tools: their calls and an apply take turns
        )

    async def trial(self, arguments: Arguments) -> TrialOutput:
        """Run the command in a copy. Raises ToolError if it can't be tried."""
        trouble = await self.cage.find_trouble()
        if trouble:
            raise ToolError(f"There are no trials here: {trouble}")
        seconds = arguments.get("seconds") or self.seconds
        folder, lock = await asyncio.to_thread(create_copy_folder, self.workspace, choose_account())
        try:
            return await self._run_in_copy(folder, arguments["argv"], seconds)
        finally:
            os.close(lock)
            await _run_to_end(remove_folder, folder)

    async def _run_in_copy(self, folder: Path, argv: Sequence[str], seconds: float) -> TrialOutput:
        """Copy the workspace into a folder, run the command there, and return what it did."""
        copy = folder / "w"
        await asyncio.to_thread(_make_copy_folder, copy)
        copied_paths = await _run_to_end(copy_workspace, self.workspace, copy, self.limits, choose_account())
        ended = await self.cage.run(argv, copy, seconds, CopySize.of(copied_paths))
        if ended.reason:
            refusal = f"{ended.reason[:1].upper()}{ended.reason[1:]}."
            return await asyncio.to_thread(self._describe_trial, ended, [], refusal)

        changes: list[FileChange] = []
        refusal = ""
        owner = choose_account() or os.geteuid()
        try:
            changes = await _run_to_end(compare_copy, self.workspace, copy, copied_paths, owner)
        except Inapplicable as error:
            refusal = str(error)
        except OSError as error:
            refusal = f"What it did can't be read ({error.strerror})."
        return await asyncio.to_thread(self._describe_trial, ended, changes, refusal)

    def _describe_trial(self, ended: ProcessEnd, changes: Sequence[FileChange], refusal: str) -> TrialOutput:
        """Return the trial as people see it. ``refusal``: why it can't be applied; empty if it can."""
        fields, files = describe_changes(changes)
        output = "\n".join(text.strip("\n") for text in (ended.stdout, ended.stderr) if text.strip())
        token = TriedCommand(ended.exit_code, ended.stdout, ended.stderr, changes).as_json()
        # by the token, which lacks old contents that are too large: then there is no undo
        why_no_undo = _find_undo_fault(_parse_changes(token))
        return TrialOutput(
            fields,
            token,
            output[-_MAX_OUTPUT_CHARS:],
            ended.exit_code,
            files,
            cage=f"{self.cage.name}, no network",
            refused=refusal,
            final=why_no_undo,
        )

    async def unchanged(self, _: Arguments, token: Any) -> bool:
        """Return whether the files that a trial changed are still as they were before it."""
        return not await asyncio.to_thread(applying.describe_conflict, self.workspace, _parse_changes(token))

    async def apply(self, _: Arguments, token: Any, context: CallContext) -> ToolOutput:
        """Make all changes of a trial. Raises ToolError if none was made."""
        tried = TriedCommand.parse(token)
        await _run_to_end(applying.apply, self.workspace, tried.changes, context.idempotency_key)
        return _report_applied(tried, "Applied")

    async def settle(self, _: Arguments, token: Any, key: str) -> ToolOutput | None:
        """Finish an apply that was interrupted, and return its output; None if its state is unclear.

        Raises ToolError if no change was made.
        """
        tried = TriedCommand.parse(token)
        are_all_made = await asyncio.to_thread(applying.settle_apply, self.workspace, tried.changes, key)
        if are_all_made:
            return _report_applied(tried, "Nod stopped in the middle, and finished it now")
        return None

    async def undo(self, ran: Ran) -> InverseCall | str:
        """Return the call that restores the state before the changes, or the reason why it can't be done."""
        if isinstance(ran.kept, str):
            return ran.kept
        return InverseCall("shell_undo", ran.kept)

    def make_undo_tool(self) -> Tool:
        """Return the tool `shell_undo`, which undoes the applied changes of a command."""

        def summarise(arguments: Arguments) -> str:
            paths = sorted(_list_paths(_parse_changes(arguments)))
            return f"Put back {name_some(paths, _MAX_NAMED_PATHS)}"

        @tool(
            group="runtime",
            summary=summarise,
            preview=self._preview_undo,
            current=self._read_current_values,
            touches="workspace",
            timeout=60.0,
        )
        async def shell_undo(changes: list[dict[str, Any]], context: CallContext) -> ToolOutput:
            """Put files back as they were before a command.

            Args:
                changes: each file, and what it becomes

            """
            undo = _parse_changes({"changes": changes})
            current, fields = await self._preview_changes(undo)
            if old_values(fields) != old_values(context.preview):
                raise ToolError("It changed after it was shown. Nothing was changed.")
            remaining = _list_remaining(undo, current)
            await _run_to_end(applying.apply, self.workspace, remaining, context.idempotency_key)
            return _report_restored(remaining)

        return replace(shell_undo, offered=False, only_for_undo=True, settle=self._settle_undo)

    async def _settle_undo(self, arguments: Arguments, key: str) -> ToolOutput | None:
        """Finish an undo that was interrupted, as `settle` finishes an apply."""
        changes = _parse_changes(arguments)
        if await asyncio.to_thread(applying.settle_apply, self.workspace, changes, key):
            return _report_restored(changes)
        return None

    async def _read_current_values(self, arguments: Arguments) -> Mapping[str, str | None]:
        _, fields = await self._preview_changes(_parse_changes(arguments))
        return {preview_field.field: preview_field.old_value for preview_field in fields}

    async def _preview_undo(self, arguments: Arguments) -> Sequence[PreviewField]:
        _, fields = await self._preview_changes(_parse_changes(arguments))
        if all(preview_field.old_value == preview_field.new_value for preview_field in fields):
            raise ToolError("This would change nothing: all of it is as it was.")
        return fields

    async def _preview_changes(
        self, changes: Sequence[FileChange]
    ) -> tuple[list[FileState | None], list[PreviewField]]:
        """Return the current state of each change's path, and a card's field for each path.

        The states are in the order of the changes. They are also the old values of the fields.
        """
        current = await asyncio.to_thread(applying.read_states, self.workspace, changes)
        fields = {}  # by path; of two changes of a path, the last says what the path becomes
        for change, state in zip(changes, current, strict=True):
            name = f"content of {change.path}"
            fields[change.path] = PreviewField(name, show_state(state), show_state(change.new))
        return current, list(fields.values())

    async def current(self, files: Sequence[TriedFile]) -> Mapping[str, str | None]:
        """Return what is at the paths of a card's files now (as `show_state`), by the card's field."""
        # `read_states` reads the paths alone, not the states before and after
        changes = {file.field: FileChange(file.path, None, None) for file in files if file.field}
        states = await asyncio.to_thread(applying.read_states, self.workspace, list(changes.values()))
        return {name: show_state(state) for name, state in zip(changes, states, strict=True)}


def _list_remaining(undo: Sequence[FileChange], current: Sequence[FileState | None]) -> list[FileChange]:
    """Return the changes of an undo that are still to be made, each from the current state of its path.

    A path that becomes a folder, or was one, has two changes: it is removed, then added. The second starts
    from no file, not from the current state.
    """
    removed = {change.path for change in undo if change.new is None}
    remaining = []
    for change, state in zip(undo, current, strict=True):
        if state == change.new:
            continue
        if change.old is None and change.path in removed:
            remaining.append(change)
        else:
            remaining.append(replace(change, old=state))
    return remaining


def _make_copy_folder(copy: Path) -> None:
    copy.mkdir(mode=0o755)
    owner = choose_account()
    if owner is not None:
        os.chown(copy, owner, owner)


async def _run_to_end(work: Callable[..., T], *arguments: Any) -> T:
    """Run ``work`` in a thread, and return its result. A cancelled caller waits for its end, too."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    finally:
        await asyncio.wait({task})


def _parse_changes(stored: Mapping[str, Any]) -> list[FileChange]:
    return [FileChange.parse(change) for change in stored["changes"]]


def _list_paths(changes: Sequence[FileChange]) -> list[str]:
    return list(dict.fromkeys(change.path for change in changes))


def _format_file_count(count: int) -> str:
    noun = "files" if count > 1 else "file"
    return f"{count or 'no'} {noun}"


def _find_undo_fault(changes: Sequence[FileChange]) -> str:
    """Return why these changes can't be undone, in words; empty if they can."""
    undo = invert_changes(changes)
    if undo is None:
        return "What was there before is more than 1 MB."
    if not undo:
        return "It changes no file."
    return ""


def _make_undo_arguments(changes: Sequence[FileChange]) -> dict[str, Any]:
    """Return the arguments of `shell_undo` for changes that can be undone."""
    return {"changes": [asdict(change) for change in invert_changes(changes) or ()]}


def _report_restored(changes: Sequence[FileChange]) -> ToolOutput:
    return ToolOutput({"restored": _list_paths(changes)}, told="What it changed is as it was")


def _report_applied(tried: TriedCommand, done: str) -> ToolOutput:
    """Return the output of an applied trial, with its changes and their undo.

    ``done``: the beginning of the text for people, such as "Applied".
    """
    paths = _list_paths(tried.changes)
    data = {
        "exit_code": tried.exit,
        "stdout": tried.stdout,
        "stderr": tried.stderr,
        "applied": paths,
        "note": _NOTE_TEXT,
    }
    return ToolOutput(
        data,
        told=f"{done} the result of its trial: {_format_file_count(len(paths))} changed",
        ended_badly=f"Ended with code {tried.exit}" if tried.exit else None,
        # `CommandTrials.undo` reads it: the reason why there is no undo, or the arguments of the undo
        kept=_find_undo_fault(tried.changes) or _make_undo_arguments(tried.changes),
    )
