"""The files of one workspace as tools (group ``fs``): list, read, search; write, edit, move, delete.

``workspace.py`` decides where a path may lead. Each change shows the old and the new content on its card, and
fails if the old content is no longer there when it runs. A move is undone by the move back. The undo of any
other change is a call of `file_restore`, a tool that no model is offered. The arguments of that call hold the
old content, so they are made before the change (`_describe_former`).

A path is handled as the tuple of its ``names`` (`Names`): ``a/b`` is ``("a", "b")``.

The functions that look at files (`_preview_write` and so on) block; `_in_thread` runs them in a thread.
"""

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field

from bot.domain.attachments import PICTURES
from bot.domain.diffs import diff
from bot.domain.preview import PreviewField
from bot.domain.similarity import Beginning
from bot.domain.spellings.terms import Referent
from bot.errors import ToolError
from bot.tools.builtin.files.descriptors import FolderEntry
from bot.tools.builtin.files.paths import (
    Names,
    format_path,
    may_be_in_path,
    parse_changeable_path,
    parse_file_path,
    parse_path,
)
from bot.tools.builtin.files.search import Search
from bot.tools.builtin.files.workspace import ConfinedFolder, ExpectedContent, ShownContent, decode_text
from bot.tools.call import Arguments, CallContext, InverseCall, Ran, ToolOutput
from bot.tools.decorator import tool
from bot.tools.documents import Documents
from bot.tools.looks import Begins, Key, Undo
from bot.tools.signature import Storable
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

_MAX_LISTED_ENTRIES = 500  # the entries in one answer
_DEFAULT_LINES = 400  # the lines in one answer, unless the call says otherwise
_SEARCH_SECONDS = 60.0
_WORKSPACE = "workspace"  # the resource of every change: two paths may be one file, so changes take turns
_REFERENTS: Mapping[str, Referent] = {"path": Referent.PATH}  # the argument of a tool that is a path

PathText = Annotated[Storable, Field(min_length=1, max_length=2000)]
Content = Annotated[Storable, Field(max_length=1_000_000)]
RestoredContent = Annotated[Storable, Field(max_length=1_400_000)]  # base64 is a third longer
Encoding = Literal["text", "base64"]
Piece = Annotated[Storable, Field(min_length=1, max_length=1_000_000)]
Line = Annotated[int, Field(ge=1, le=10_000_000)]
RestoreArguments = dict[str, Any]
"""The arguments of `file_restore` besides the path; empty if nothing was there."""
T = TypeVar("T")


def file_tools(workspace: Path, *, max_read: int = 1_000_000, max_write: int = 256_000) -> FixedToolset:
    """Return all file tools over ``workspace``; the limits are in bytes per file.

    Raises SettingsError if it is not a folder.
    """
    confined = ConfinedFolder(workspace, max_read=max_read, max_write=max_write)
    return FixedToolset("fs", (*_make_reading_tools(confined), *_make_changing_tools(confined)))


def make_folder_key(confined: ConfinedFolder) -> Key:
    """Return the function that finds a call's key for “approve similar”: the folder of its path.

    The folder is canonical and relative to the workspace. Links and ``..`` are refused, so equal texts are
    the same folder. A move has two folders. Raises ToolError as the call itself would.
    """

    async def key(arguments: Arguments) -> dict[str, str]:
        paths = {"folder": arguments["path"]}
        if "to" in arguments:
            paths["to_folder"] = arguments["to"]
        return {name: await asyncio.to_thread(_find_folder, confined, path) for name, path in paths.items()}

    return key


def make_folder_prefix(confined: ConfinedFolder) -> Begins:
    """Return the function that finds a call's prefix for “approve similar”: the names on its folder's path.

    So a grant covers all folders below that folder. For a move it is the deepest folder that both paths are
    in.
    """

    async def begins(arguments: Arguments) -> Beginning:
        paths = [arguments[name] for name in ("path", "to") if name in arguments]
        folders = [await asyncio.to_thread(_find_folder, confined, path) for path in paths]
        shared = os.path.commonpath(folders)
        words = tuple(shared.split("/")) if shared else ()
        fixed_count = len(words)  # a similar call begins with all of these folders
        return Beginning(words, fixed_count, f"anywhere below the folder {shared}")

    return begins


def _find_folder(confined: ConfinedFolder, path: str) -> str:
    """Return the folder of a path. Raises ToolError for a link on the way to it."""
    names = parse_changeable_path(path)
    confined.find_entry(names)
    return format_path(names[:-1])


def _make_reading_tools(confined: ConfinedFolder) -> tuple[Tool, ...]:
    documents = Documents()

    @tool(writes=False, group="fs", summary="List the folder {path}", names=_REFERENTS)
    async def file_list(path: PathText = ".") -> dict[str, Any]:
        """List a folder of the workspace. Links are named but never followed.

        Args:
            path: the folder, relative to the workspace; the workspace itself when not given

        """
        names = parse_path(path)
        entries = await asyncio.to_thread(confined.list_entries, names)
        listed = [_describe_entry(entry) for entry in entries[:_MAX_LISTED_ENTRIES]]
        return {"path": format_path(names), "entries": listed, "total": len(entries)}

    @tool(writes=False, group="fs", summary="Read {path}", names=_REFERENTS)
    async def file_read(
        path: PathText, context: CallContext, from_line: Line = 1, lines: Line = _DEFAULT_LINES
    ) -> dict[str, Any]:
        """Read a text file or a document of the workspace. Any other file is only described.

        Args:
            path: the file, relative to the workspace
            from_line: the first line to read, from 1
            lines: how many lines to read, 400 when not given

        """
        names = parse_file_path(path)
        content = await asyncio.to_thread(confined.read, names)
        text, is_text = decode_text(content)  # for a binary file the text is a line with its size and hash
        note = ""
        if not is_text:
            document = await documents.read(content)
            if document.fault or document.kind in PICTURES:
                reason = document.fault or "it is a picture"
                return {"path": format_path(names), "binary": text, "note": reason}
            text = document.text
            note = document.note
            if note:
                await context.progress(note)
        all_lines = text.split("\n")
        total = len(all_lines)
        if not all_lines[-1]:  # the text is empty, or ends with a newline, after which there is no line
            total -= 1
        skipped_count = from_line - 1
        answer = {
            "path": format_path(names),
            "from_line": from_line,
            "to_line": min(skipped_count + lines, total),
            "total_lines": total,
            "text": "\n".join(all_lines[skipped_count : skipped_count + lines]),
        }
        return {**answer, "note": note} if note else answer

    @tool(
        writes=False,
        group="fs",
        summary="Search files for “{text}”",
        timeout=_SEARCH_SECONDS,
        names={"path": Referent.FOLDER},
    )
    async def file_search(
        text: Annotated[PathText, Field(max_length=200)], path: PathText = ".", pattern: PathText = "*"
    ) -> dict[str, Any]:
        """Find lines with a text in the files of the workspace, in any case of letters.

        Args:
            text: the text to find, as it is; not a pattern
            path: the folder to search, with all folders below it; the workspace when not given
            pattern: only files with such a name, for example *.py

        """
        return await asyncio.to_thread(Search(confined, text, pattern).run, parse_path(path))

    return file_list, file_read, file_search


def _describe_entry(entry: FolderEntry) -> dict[str, Any]:
    listed: dict[str, Any] = {"name": entry.name, "kind": entry.kind, "size": entry.size}
    if not may_be_in_path(entry.name):
        listed["name"] = ascii(entry.name)
        listed["note"] = "a name that cannot be given as a path"
    return listed


def _make_changing_tools(confined: ConfinedFolder) -> tuple[Tool, ...]:
    # arguments of the decorator `tool` (``bot/tools/decorator.py``), which explains them
    common: dict[str, Any] = {
        "group": "fs",
        "touches": _WORKSPACE,
        "current": _in_thread(confined, _read_current),
        "undo": _make_undo(confined),
        "batch": "files",
        "names": _REFERENTS,
    }

    def change_tool(**options: Any) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
        """Return a decorator for a tool that changes files; ``options`` override the common ones."""
        return tool(**{**common, **options})

    preview_write = _in_thread(confined, _preview_write)
    title_write = _in_thread(confined, _describe_write)
    similarity_options: dict[str, Any] = {
        "key": make_folder_key(confined),
        "begins": make_folder_prefix(confined),
    }

    @change_tool(
        idempotent=True,
        summary="Write {path}",
        title=title_write,
        preview=preview_write,
        **similarity_options,
    )
    async def file_write(path: PathText, content: Content, context: CallContext) -> ToolOutput:
        """Write a whole text file in the workspace: a new one, or in place of the one that is there.

        Folders on the way are made. Read a file before you replace it.

        Args:
            path: the file, relative to the workspace
            content: all of its new text

        """
        return await write_as_shown(parse_changeable_path(path), content, context)

    async def write_as_shown(names: Names, content: str, context: CallContext) -> ToolOutput:
        """Write a file if its content is still what the card showed; any content if no card was shown."""
        expected = None
        for preview_field in context.preview:
            if preview_field.field == _content_field(names):
                expected = ExpectedContent(preview_field.old_value)
        new = content.encode()
        former = await asyncio.to_thread(_describe_former, confined, names)
        await asyncio.to_thread(confined.write, names, new, expected)
        return ToolOutput({"written": format_path(names), "bytes": len(new)}, kept=former)

    @change_tool(summary="Change {path}", title=title_write, preview=preview_write, **similarity_options)
    async def file_edit(path: PathText, old: Piece, new: Content, context: CallContext) -> ToolOutput:
        """Change a piece of a text file in the workspace: ``old`` must stand in it exactly once.

        Args:
            path: the file, relative to the workspace
            old: the text to replace, letter for letter, with enough lines around it to be there once
            new: the text in its place

        """
        content = await asyncio.to_thread(_apply_edit, confined, {"path": path, "old": old, "new": new})
        return await write_as_shown(parse_changeable_path(path), content, context)

    @change_tool(
        summary="Move {path} to {to}",
        preview=_in_thread(confined, _preview_move),
        current=_in_thread(confined, _read_after_move),
        undo=_undo_move,
        names={"path": Referent.TREE, "to": Referent.TREE},
        **similarity_options,
    )
    async def file_move(path: PathText, to: PathText) -> dict[str, Any]:
        """Move or rename a file or folder of the workspace. Nothing is overwritten.

        Args:
            path: what to move, relative to the workspace
            to: its whole new path, relative to the workspace

        """
        source = parse_changeable_path(path)
        target = parse_changeable_path(to)
        await asyncio.to_thread(confined.move, source, target)
        return {"moved": format_path(source), "to": format_path(target)}

    @change_tool(destructive=True, summary="Delete {path}", preview=_in_thread(confined, _preview_deletion))
    async def file_delete(path: PathText) -> ToolOutput:
        """Delete a file or an empty folder of the workspace.

        Args:
            path: what to delete, relative to the workspace

        """
        names = parse_changeable_path(path)
        former = await asyncio.to_thread(_describe_former, confined, names)
        await asyncio.to_thread(confined.delete_entry, names)
        return ToolOutput({"deleted": format_path(names)}, kept=former)

    @change_tool(
        summary="Put {path} back as it was",
        preview=_in_thread(confined, _preview_restore),
        batch="",
        **similarity_options,
    )
    async def file_restore(
        path: PathText,
        context: CallContext,
        content: RestoredContent | None = None,
        encoding: Encoding = "text",
        mode: int = 0o644,
        *,
        folder: bool = False,
    ) -> ToolOutput:
        """Put a file or an empty folder back as it was before a change; without both, nothing was there.

        Args:
            path: what to put back, relative to the workspace
            content: all that the file had
            encoding: how the content is written here
            mode: its permissions
            folder: whether it was a folder

        """
        names = parse_changeable_path(path)
        former = await asyncio.to_thread(_describe_former, confined, names)
        if folder:
            await asyncio.to_thread(confined.make_folder, names, mode)
        elif content is None:
            await asyncio.to_thread(confined.delete_entry, names)
        else:
            # the preview has one field, see `_preview_restore`
            expected = ExpectedContent(context.preview[0].old_value)
            new = _decode_content(content, encoding)
            await asyncio.to_thread(confined.write, names, new, expected, mode=mode)
        return ToolOutput({"restored": format_path(names)}, kept=former)

    undo_tool = replace(file_restore, offered=False, only_for_undo=True)
    return file_write, file_edit, file_move, file_delete, undo_tool


def _describe_former(confined: ConfinedFolder, names: Names) -> RestoreArguments | str:
    """Return the arguments that put the present content back, or the reason why it can't be put back."""
    try:
        former = confined.read_former(names)
    except ToolError as error:
        return error.message
    if former is None:
        return {}
    if former.content is None:
        return {"folder": True, "mode": former.mode}
    text, is_text = decode_text(former.content)
    if is_text:
        return {"content": text, "encoding": "text", "mode": former.mode}
    encoded = base64.b64encode(former.content).decode()
    return {"content": encoded, "encoding": "base64", "mode": former.mode}


def _make_undo(confined: ConfinedFolder) -> Undo:
    """Return the function that finds the undo of a change: a call that restores the file."""

    async def undo(ran: Ran) -> InverseCall | str:
        path = ran.arguments["path"]
        former: RestoreArguments | str = ran.kept
        if ran.output is None:  # it has not run, so the former content is still there
            former = await asyncio.to_thread(_describe_former, confined, parse_changeable_path(path))
        if isinstance(former, str):
            return former  # the reason for having no undo
        return InverseCall("file_restore", {"path": path, **former})

    return undo


async def _undo_move(ran: Ran) -> InverseCall:
    return InverseCall("file_move", {"path": ran.arguments["to"], "to": ran.arguments["path"]})


def _in_thread(
    confined: ConfinedFolder, function: Callable[[ConfinedFolder, Arguments], T]
) -> Callable[[Arguments], Awaitable[T]]:
    """Return an async function that runs ``function`` in a thread."""

    async def run(arguments: Arguments) -> T:
        return await asyncio.to_thread(function, confined, arguments)

    return run


class _ContentChange(NamedTuple):
    """The change of a file by a write or an edit."""

    names: Names
    old: ShownContent | None  # the present content; None if there is no file
    new: str


def _read_change(confined: ConfinedFolder, arguments: Arguments) -> _ContentChange:
    """Return the change that a call of `file_write` or `file_edit` would make."""
    names = parse_changeable_path(arguments["path"])
    if "content" in arguments:
        new = str(arguments["content"])
    else:
        new = _apply_edit(confined, arguments)
    entry = confined.find_entry(names)
    if entry is None:
        return _ContentChange(names, None, new)
    if entry.kind != "file":
        raise ToolError(f"{format_path(names)} is a {entry.kind}, not a file.")
    return _ContentChange(names, confined.read_content(names), new)


def _preview_write(confined: ConfinedFolder, arguments: Arguments) -> Sequence[PreviewField]:
    """Return all of the old and the new content; a card shows the lines that change."""
    names, old, new = _read_change(confined, arguments)
    if len(new.encode()) > confined.max_write:
        raise ToolError(f"The content is longer than the {confined.max_write} bytes that can be written.")
    if old == ShownContent(new, is_text=True):
        raise ToolError(f"This would change nothing: {format_path(names)} already has this content.")
    return [PreviewField(_content_field(names), None if old is None else old.text, new)]


def _apply_edit(confined: ConfinedFolder, arguments: Arguments) -> str:
    """Return the full text of a file after an edit.

    Raises ToolError if the text to replace is not in the file exactly once.
    """
    names = parse_changeable_path(arguments["path"])
    old = str(arguments["old"])
    file = format_path(names)
    content = decode_text(confined.read(names))
    if not content.is_text:
        raise ToolError(f"{file} can't be edited: it is binary.")
    count = content.text.count(old)
    if count == 0:
        raise ToolError(f"The old text is not in {file}. Read the file again.")
    if count > 1:
        raise ToolError(f"The old text is in {file} {count} times. Give more of the lines around it.")
    return content.text.replace(old, str(arguments["new"]))


def _content_field(names: Names) -> str:
    """Return the name of the card's field that has the content of a file."""
    return f"content of {format_path(names)}"


def _preview_move(confined: ConfinedFolder, arguments: Arguments) -> Sequence[PreviewField]:
    source = parse_changeable_path(arguments["path"])
    target = parse_changeable_path(arguments["to"])
    content = confined.read_content(source).text
    if confined.find_entry(target) is not None:
        raise ToolError(f"{format_path(target)} already exists; nothing is overwritten.")
    return [
        PreviewField("path", format_path(source), format_path(target)),
        PreviewField(_content_field(target), content, content),
    ]


def _preview_deletion(confined: ConfinedFolder, arguments: Arguments) -> Sequence[PreviewField]:
    names = parse_changeable_path(arguments["path"])
    entry = confined.find_entry(names)
    if entry is not None and entry.kind == "folder" and confined.list_entries(names):
        raise ToolError(f"{format_path(names)} is a folder with something in it. Delete what is in it first.")
    return [PreviewField(_content_field(names), confined.read_content(names).text, None)]


def _preview_restore(confined: ConfinedFolder, arguments: Arguments) -> Sequence[PreviewField]:
    """Return one field with the present and the restored content."""
    names = parse_changeable_path(arguments["path"])
    old = _read_text(confined, names)
    new = arguments.get("content")
    if new is not None:
        new = decode_text(_decode_content(new, arguments.get("encoding", "text"))).text
    elif arguments.get("folder"):
        new = "folder with 0 entries"
    if old == new:
        raise ToolError(f"This would change nothing: {format_path(names)} already has this content.")
    if arguments.get("folder") and old is not None:
        raise ToolError(f"{format_path(names)} already exists; nothing is overwritten.")
    return [PreviewField(_content_field(names), old, new)]


def _read_text(confined: ConfinedFolder, names: Names) -> str | None:
    """Return the content of a path as people see it; None if nothing is there."""
    if confined.find_entry(names) is None:
        return None
    return confined.read_content(names).text


def _decode_content(content: str, encoding: str) -> bytes:
    try:
        if encoding == "base64":
            return base64.b64decode(content, validate=True)
        return content.encode()
    except ValueError:
        raise ToolError("The content is not base64.") from None


def _read_current(confined: ConfinedFolder, arguments: Arguments) -> dict[str, str | None]:
    """Return the present value of the card's field."""
    names = parse_changeable_path(arguments["path"])
    return {_content_field(names): _read_text(confined, names)}


def _read_after_move(confined: ConfinedFolder, arguments: Arguments) -> dict[str, str | None]:
    """Return the present values of the card's fields: where the file is now, and its content."""
    source = parse_changeable_path(arguments["path"])
    target = parse_changeable_path(arguments["to"])
    is_moved = confined.find_entry(target) is not None and confined.find_entry(source) is None
    current = target if is_moved else source
    return {"path": format_path(current), _content_field(target): confined.read_content(current).text}


def _describe_write(confined: ConfinedFolder, arguments: Arguments) -> str:
    """Describe a write and its changed lines, such as ``Change config.yaml (2 lines)``."""
    names, old, new = _read_change(confined, arguments)
    path = format_path(names)
    if old is None:
        line_count = new.count("\n")
        if not new.endswith("\n"):
            line_count += 1
        return f"Create {path} ({_format_line_count(line_count)})"
    if not old.is_text:
        return f"Replace {path}"
    count = 1  # `diff` returns nothing for two texts of one line
    changes = diff(old.text, new)
    if changes:
        marks = [line[:1] for line in changes.split("\n")]  # each line of a diff begins with its mark
        count = max(marks.count("-"), marks.count("+"))
    return f"Change {path} ({_format_line_count(count)})"


def _format_line_count(count: int) -> str:
    noun = "line" if count == 1 else "lines"
    return f"{count} {noun}"
