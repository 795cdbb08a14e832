"""A command tried in a closed copy of the workspace, and what it did applied to the workspace."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from bot.domain.proposals import PreviewField, old_values
from bot.domain.text import name_some
from bot.domain.trials import TriedFile
from bot.errors import ToolError
from bot.tools.builtin.shell.process import Ended
from bot.tools.builtin.trials import applying
from bot.tools.builtin.trials.cage import Cage, account
from bot.tools.builtin.trials.changes import (
    FileChange,
    FileState,
    Inapplicable,
    as_words,
    changes_to_json,
    compare_copy,
    describe_changes,
    undoing,
)
from bot.tools.builtin.trials.copies import CopyLimits, copy_workspace, folder_for, remove_folder, sweep
from bot.tools.tool import (
    Arguments,
    CallContext,
    InverseCall,
    Ran,
    Tool,
    ToolOutput,
    TrialOutput,
    Trying,
    tool,
)

_END = 2000  # characters of what it printed, for people
_FEW = 3  # paths that a title names
_NOTE = "It ran in a closed copy before it was approved; its changes of files were then applied."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommandToken:
    """What an approval applies: how the command ended when it was tried, and the changes that it made."""

    exit: int | None
    stdout: str
    stderr: str
    changes: Sequence[FileChange]

    @classmethod
    def parse(cls, kept: Mapping[str, Any]) -> "CommandToken":
        """Return what `as_json` gave."""
        return cls(kept["exit"], kept["stdout"], kept["stderr"], _changes(kept))

    def as_json(self) -> dict[str, Any]:
        """Return it as it is kept, without large old contents."""
        ended = {"exit": self.exit, "stdout": self.stdout, "stderr": self.stderr}
        return ended | {"changes": changes_to_json(self.changes)}


@dataclass(eq=False)
class CommandTrials:
    """Tries the commands of one workspace; ``seconds``: how long one may run that asks for no limit."""

    workspace: Path
    cage: Cage
    seconds: float = 60.0
    limits: CopyLimits = field(default_factory=CopyLimits)

    def __post_init__(self) -> None:
        # what a crash left behind is no reason to wait
        threading.Thread(target=sweep, args=(self.workspace,), daemon=True).start()

    @property
    def trying(self) -> Trying:
        return Trying(
            self.trial, self.apply, self.unchanged, self.settle, self.current, self.undo, touches="workspace"
        )

    async def trial(self, arguments: Arguments) -> TrialOutput:
        """Run the command over a copy. Raises ToolError where it is not tried."""
        trouble = await self.cage.trouble()
        if trouble:
            raise ToolError(f"There are no trials here: {trouble}")
        made, lock = await asyncio.to_thread(folder_for, self.workspace, account())
        try:
            return await self._over(made, arguments["argv"], arguments.get("seconds") or self.seconds)
        finally:
            os.close(lock)
            await _to_its_end(remove_folder, made)

    async def _over(self, made: Path, argv: Sequence[str], seconds: float) -> TrialOutput:
        copy = made / "w"
        await asyncio.to_thread(_prepare, copy)
        nodes = await _to_its_end(copy_workspace, self.workspace, copy, self.limits, account())
        held = len(nodes), sum(each.size for each in nodes.values())
        ended = await self.cage.run(argv, copy, seconds, held)
        changes: list[FileChange] = []
        refused = f"{ended.why[:1].upper()}{ended.why[1:]}." if ended.why else ""
        try:
            if not refused:
                owner = account() or os.geteuid()
                changes = await _to_its_end(compare_copy, self.workspace, copy, nodes, owner)
        except Inapplicable as error:
            refused = str(error)
        except OSError as error:
            refused = f"What it did can't be read ({error.strerror})."
        return await asyncio.to_thread(self._output, ended, changes, refused)

    def _output(self, ended: Ended, changes: Sequence[FileChange], refused: str) -> TrialOutput:
        fields, files = describe_changes(changes)
        said = "\n".join(each.strip("\n") for each in (ended.stdout, ended.stderr) if each.strip())
        token = CommandToken(ended.exit_code, ended.stdout, ended.stderr, changes).as_json()
        inverse = _inverse(_changes(token))
        return TrialOutput(
            fields,
            token,
            said[-_END:],
            ended.exit_code,
            files,
            f"{self.cage.name}, no network",
            refused,
            final=inverse if isinstance(inverse, str) else "",
        )

    async def unchanged(self, _: Arguments, token: Any) -> bool:
        return not await asyncio.to_thread(applying.find_changed, self.workspace, _changes(token))

    async def apply(self, _: Arguments, token: Any, context: CallContext) -> ToolOutput:
        """Make the changes of a trial. Raises ToolError where none were made."""
        tried = CommandToken.parse(token)
        await _to_its_end(applying.apply, self.workspace, tried.changes, context.idempotency_key)
        return _report_applied(tried, "Applied")

    async def settle(self, _: Arguments, token: Any, key: str) -> ToolOutput | None:
        """Finish an apply that was cut off, or return None; see `Trying`."""
        tried = CommandToken.parse(token)
        done = await asyncio.to_thread(applying.settle_apply, self.workspace, tried.changes, key)
        if done:
            return _report_applied(tried, "Nod stopped in the middle, and finished it now")
        return None

    async def undo(self, ran: Ran) -> InverseCall | str:
        """Return the call that restores the state before the apply, or the reason for having none."""
        if isinstance(ran.kept, str):
            return ran.kept
        return InverseCall("shell_undo", ran.kept)

    def undoing(self) -> Tool:
        """Return the tool that puts back what a command changed when it was applied."""

        @tool(
            group="runtime",
            summary=lambda arguments: f"Put back {name_some(sorted(_paths(_changes(arguments))), _FEW)}",
            preview=self._now_and_then,
            current=self._as_it_is,
            touches="workspace",
            timeout=60.0,
        )
        async def shell_undo(changes: list[dict[str, Any]], context: CallContext) -> ToolOutput:
            """Put files back as they were before a command.

            Args:
                changes: each file, and what it becomes

            """
            back = _changes({"changes": changes})
            there, fields = await self._now(back)
            if old_values(fields) != old_values(context.preview):
                raise ToolError("It changed after it was shown. Nothing was changed.")
            gone = {each.path for each in back if each.new is None}
            back = [
                each if each.old is None and each.path in gone else replace(each, old=old)
                for each, old in zip(back, there, strict=True)
                if old != each.new
            ]
            await _to_its_end(applying.apply, self.workspace, back, context.idempotency_key)
            return _report_restored(back)

        return replace(shell_undo, offered=False, undoes=True, settle=self._settle_undoing)

    async def _settle_undoing(self, arguments: Arguments, key: str) -> ToolOutput | None:
        done = await asyncio.to_thread(applying.settle_apply, self.workspace, _changes(arguments), key)
        if done:
            return _report_restored(_changes(arguments))
        return None

    async def _as_it_is(self, arguments: Arguments) -> Mapping[str, str | None]:
        _, fields = await self._now(_changes(arguments))
        return {each.field: each.old_value for each in fields}

    async def _now_and_then(self, arguments: Arguments) -> Sequence[PreviewField]:
        _, fields = await self._now(_changes(arguments))
        if all(each.old_value == each.new_value for each in fields):
            raise ToolError("This would change nothing: all of it is as it was.")
        return fields

    async def _now(self, changes: Sequence[FileChange]) -> tuple[list[FileState | None], list[PreviewField]]:
        """Return the present state of each path, and the preview of its change."""
        there = await asyncio.to_thread(applying.now, self.workspace, changes)
        each = {
            change.path: PreviewField(f"content of {change.path}", as_words(old), as_words(change.new))
            for change, old in zip(changes, there, strict=True)
        }
        return there, [*each.values()]

    async def current(self, files: Sequence[TriedFile]) -> Mapping[str, str | None]:
        """Return the present content of the files on a card."""
        fields = {each.field: FileChange(each.path, None, None) for each in files if each.field}
        there = await asyncio.to_thread(applying.now, self.workspace, [*fields.values()])
        return {name: as_words(now) for name, now in zip(fields, there, strict=True)}


def _prepare(copy: Path) -> None:
    copy.mkdir(mode=0o755)
    owner = account()
    if owner is not None:
        os.chown(copy, owner, owner)


async def _to_its_end(work: Callable[..., T], *given: Any) -> T:
    """Do it in a thread, to its end: who is cancelled waits until nothing is touched any longer."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(doing)
    finally:
        await asyncio.wait({doing})


def _changes(kept: Mapping[str, Any]) -> list[FileChange]:
    return [FileChange.read(each) for each in kept["changes"]]


def _paths(changes: Sequence[FileChange]) -> list[str]:
    return list(dict.fromkeys(each.path for each in changes))


def _files(count: int) -> str:
    return f"{count or 'no'} {'files' if count > 1 else 'file'}"


def _inverse(changes: Sequence[FileChange]) -> dict[str, Any] | str:
    back = undoing(changes)
    if back is None:
        return "What was there before is more than 1 MB."
    if back:
        return {"changes": [asdict(each) for each in back]}
    return "It changes no file."


def _report_restored(changes: Sequence[FileChange]) -> ToolOutput:
    return ToolOutput({"restored": _paths(changes)}, told="What it changed is as it was")


def _report_applied(tried: CommandToken, done: str) -> ToolOutput:
    """Return the output of the trial, with the applied changes and their undo."""
    paths = _paths(tried.changes)
    data = {
        "exit_code": tried.exit,
        "stdout": tried.stdout,
        "stderr": tried.stderr,
        "applied": paths,
        "note": _NOTE,
    }
    return ToolOutput(
        data,
        told=f"{done} the result of its trial: {_files(len(paths))} changed",
        ended_badly=f"Ended with code {tried.exit}" if tried.exit else None,
        kept=_inverse(tried.changes),
    )
