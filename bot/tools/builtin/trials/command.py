"""A command tried in a closed copy of the workspace, and what it did applied to the workspace."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from bot.domain.proposals import PreviewField
from bot.domain.trials import TriedFile
from bot.errors import ToolError
from bot.tools.builtin.files.workspace import as_text
from bot.tools.builtin.shell.process import Ended
from bot.tools.builtin.trials import applying
from bot.tools.builtin.trials.cage import Cage, account
from bot.tools.builtin.trials.changes import (
    FileChange,
    FoundChanges,
    Inapplicable,
    as_words,
    compared,
    described,
    kept,
    unpacked,
)
from bot.tools.builtin.trials.copies import CopyLimits, Nodes, copied, folder_for, remove, sweep
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

T = TypeVar("T")


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
        if trouble := await self.cage.trouble():
            raise ToolError(f"There are no trials here: {trouble}")
        made, lock = await asyncio.to_thread(folder_for, self.workspace, account())
        try:
            return await self._over(made, arguments["argv"], arguments.get("seconds") or self.seconds)
        finally:
            os.close(lock)
            await _whole(remove, made)

    async def _over(self, made: Path, argv: Sequence[str], seconds: float) -> TrialOutput:
        copy = made / "w"
        await asyncio.to_thread(_prepare, copy)
        nodes = await _whole(copied, self.workspace, copy, self.limits, account())
        held = len(nodes), sum(each.size for each in nodes.values())
        ended = await self.cage.run(argv, copy, seconds, held)
        if ended.why:
            return self._output(ended, refused=f"{ended.why[:1].upper()}{ended.why[1:]}.")
        return await _whole(self._found, copy, nodes, ended)

    def _found(self, copy: Path, nodes: Nodes, ended: Ended) -> TrialOutput:
        try:
            found = compared(self.workspace, copy, nodes, account() or os.geteuid())
        except Inapplicable as refused:
            return self._output(ended, refused=str(refused))
        except OSError as error:
            return self._output(ended, refused=f"What it did can't be read ({error.strerror}).")
        return self._output(ended, found)

    def _output(self, ended: Ended, found: FoundChanges | None = None, refused: str = "") -> TrialOutput:
        fields, files = described(found) if found else ([], ())
        said = "\n".join(each.strip("\n") for each in (ended.stdout, ended.stderr) if each.strip())
        token = {
            "exit": ended.exit_code,
            "stdout": ended.stdout,
            "stderr": ended.stderr,
            "changes": kept(found.changes) if found else [],
        }
        return TrialOutput(
            fields,
            token,
            said[-_END:],
            ended.exit_code,
            files,
            f"{self.cage.name}, no network",
            refused,
        )

    async def unchanged(self, _: Arguments, token: Any) -> bool:
        return not await asyncio.to_thread(applying.unchanged, self.workspace, _changes(token))

    async def apply(self, _: Arguments, token: Any, context: CallContext) -> ToolOutput:
        """Make the changes of a trial. Raises ToolError where none were made."""
        changes = _changes(token)
        back = await _whole(applying.apply, self.workspace, changes, context.idempotency_key)
        undoing = "What was there before is more than 1 MB." if back is None else {"changes": kept(back)}
        return replace(_applied(token, changes, "Applied"), kept=undoing)

    async def undo(self, ran: Ran) -> InverseCall | str:
        """What puts back what was there before it was applied."""
        back = ran.kept or "What it changed is not known."
        return back if isinstance(back, str) else InverseCall("shell_undo", back)

    def undoing(self) -> Tool:
        """The tool that puts back what a command changed when it was applied."""

        @tool(
            group="runtime",
            summary=lambda arguments: f"Undo a command: {_files(len(_paths(arguments)))}",
            preview=self._now_and_then,
            touches="workspace",
            timeout=60.0,
        )
        async def shell_undo(changes: list[dict[str, Any]], context: CallContext) -> ToolOutput:
            """Put files back as they were before a command.

            Args:
                changes: each file, and what it becomes

            """
            shown = {each.field: each.old_value for each in context.preview}
            back = _changes({"changes": changes})
            for each in await self._now_and_then({"changes": changes}):
                if shown.get(each.field, "") != each.old_value:
                    raise ToolError("It changed after it was shown. Nothing was changed.")
            there = await asyncio.to_thread(applying.now, self.workspace, back)
            gone = {each.path for each in back if each.new is None}
            back = [
                each if each.old is None and each.path in gone else replace(each, old=old)
                for each, old in zip(back, there, strict=True)
                if old != each.new
            ]
            await _whole(applying.apply, self.workspace, back, context.idempotency_key)
            return ToolOutput({"restored": _paths({"changes": changes})}, told="What it changed is as it was")

        return replace(shell_undo, offered=False, undoes=True)

    async def _now_and_then(self, arguments: Arguments) -> Sequence[PreviewField]:
        return await asyncio.to_thread(self._read_now_and_then, _changes(arguments))

    def _read_now_and_then(self, changes: Sequence[FileChange]) -> list[PreviewField]:
        paths = {each.path: each.path for each in changes}
        contents = applying.contents(self.workspace, paths)
        there = applying.now(self.workspace, changes)
        fields = [
            PreviewField(
                f"content of {each.path}",
                as_words(old, contents[each.path]),
                as_words(each.new, unpacked(each.content) if each.content else b""),
            )
            for each, old in zip(changes, there, strict=True)
        ]
        fields = list({each.field: each for each in fields}.values())
        if all(each.old_value == each.new_value for each in fields):
            raise ToolError("This would change nothing: all of it is as it was.")
        return fields

    async def current(self, files: Sequence[TriedFile]) -> Mapping[str, str | None]:
        """What the files that a card showed are now."""
        paths = {each.field: each.path for each in files if each.field}
        found = await asyncio.to_thread(applying.contents, self.workspace, paths)
        return {name: None if each is None else as_text(each).text for name, each in found.items()}

    async def settle(self, _: Arguments, token: Any, key: str) -> ToolOutput | None:
        """As `Trying` says."""
        changes = _changes(token)
        done = await asyncio.to_thread(applying.settled, self.workspace, changes, key)
        return _applied(token, changes, "Nod stopped in the middle, and finished it now") if done else None


def _prepare(copy: Path) -> None:
    copy.mkdir(mode=0o755)
    if (owner := account()) is not None:
        os.chown(copy, owner, owner)


async def _whole(work: Callable[..., T], *given: Any) -> T:
    """Do it in a thread, to its end: who is cancelled waits until nothing is touched any longer."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(doing)
    finally:
        await asyncio.wait({doing})


def _changes(token: Mapping[str, Any]) -> list[FileChange]:
    return [FileChange.read(each) for each in token["changes"]]


def _paths(arguments: Arguments) -> list[str]:
    return list(dict.fromkeys(each["path"] for each in arguments["changes"]))


def _files(count: int) -> str:
    return f"{count} {'file' if count == 1 else 'files'}"


def _applied(token: Mapping[str, Any], changes: Sequence[FileChange], done: str) -> ToolOutput:
    """What the command gave when it was tried, and what of it was applied."""
    paths = list(dict.fromkeys(each.path for each in changes))
    count = _files(len(paths)) if paths else "no file"
    data = {
        "exit_code": token["exit"],
        "stdout": token["stdout"],
        "stderr": token["stderr"],
        "applied": paths,
        "note": "It ran in a closed copy before it was approved; its changes of files were then applied.",
    }
    badly = f"Ended with code {token['exit']}" if token["exit"] else None
    return ToolOutput(data, told=f"{done} what it did when tried: {count} changed", ended_badly=badly)
