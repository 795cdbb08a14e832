"""A tool of an MCP server as a `Tool`: its name, its risk, its version, its arguments and its answer.

What a server says about its tools is a hint. It may always make a tool more dangerous; that a tool only
reads, or that its change can be undone, is believed of servers which the configuration trusts.
"""

import asyncio
import base64
import hashlib
import mimetypes
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from mcp import types

from bot.domain.attachments import MEGABYTE, UNKNOWN, type_of
from bot.domain.files import File
from bot.domain.forms import without_defaults
from bot.domain.proposals import Level, Risk, canonical
from bot.domain.text import as_text, shorten
from bot.domain.value_text import sum_up
from bot.errors import BadArguments, ToolError
from bot.tools.mcp.answers import MALFORMED, OUTPUT
from bot.tools.mcp.config import ServerConfig, Trust
from bot.tools.mcp.schemas import Arguments, as_offered
from bot.tools.mcp.server import LOOK_SECONDS, Server
from bot.tools.schema import fits_strict
from bot.tools.tool import Arguments as Given
from bot.tools.tool import CallContext, Tool, ToolOutput

_LONGEST_NAME = 64  # of what language models take
_LONGEST_DESCRIPTION = 4000
_LONGEST_ERROR = 2000
_MOST_FILES, _MOST_FILE_BYTES = 10, 10 * MEGABYTE  # of one answer
_MISFIT = "[its answer does not fit the form that the tool names]"
_SHOWN = 60  # characters of one argument in a summary


def adopt(server: Server, theirs: types.Tool, patience: float, name: str = "") -> Tool:
    """Make one of a server's tools ours; blocks for its schema. Raises ValueError if that isn't one.

    ``name`` is its name for the model where its own would be that of another.
    """
    config = server.config
    why = (theirs.meta or {}).get(MALFORMED)
    if why:
        raise ValueError(why)
    arguments = Arguments(theirs.input_schema)
    parameters = as_offered(theirs.input_schema)
    offered = version(config.name, theirs)
    hints = theirs.annotations
    level = risk(config, hints)

    def is_unchanged(now: types.Tool | None) -> bool:
        return now is not None and version(config.name, now) == offered

    async def run(given: Given, context: CallContext) -> ToolOutput:
        judge = is_unchanged if level.writes else None
        result = await server.call(theirs.name, given, context, is_unchanged=judge)
        fits = await asyncio.to_thread(
            fits_schema, (theirs.meta or {}).get(OUTPUT), result.structured_content
        )
        return output(config, result, fits=fits)

    def summary(given: Given) -> str:
        inside = sum_up(without_defaults(given, arguments.defaults), cut)
        return f"{title(theirs)} on {config.name}" + (f": {inside}" if inside else "")

    return Tool(
        name=name or name_of(config, theirs.name),
        description=(theirs.description or theirs.title or _words(theirs.name))[:_LONGEST_DESCRIPTION],
        parameters=parameters,
        strict=fits_strict(parameters),
        version=offered,
        group=server.group,
        reads=not level.writes,
        idempotent=_repeatable(config, theirs.annotations),
        timeout=config.timeout + LOOK_SECONDS + patience,
        validate=arguments.check,
        waits=True,
        classify=lambda _: level,
        summary=summary,
        run=run,
        destructive=level.level is Level.DESTRUCTIVE,
        open_world=hints is None or hints.open_world_hint is not False,  # as the protocol has it
    )


def names_of(config: ServerConfig, names: Iterable[str]) -> dict[str, str]:
    """Return the name for the model of each tool of a list, by the server's own.

    Where two would have one name (``repo.get``, ``repo/get``), each has a mark of its own behind it, but for
    the one that is really called so.
    """
    made = {name: name_of(config, name) for name in names}
    shared = {each for each, count in Counter(made.values()).items() if count > 1}
    return {
        name: name_of(config, name, marked=each in shared and not each.endswith(name))
        for name, each in made.items()
    }


def name_of(config: ServerConfig, name: str, *, marked: bool = False) -> str:
    """Return the tool's name for the model: prefixed, in the characters and length that it may have.

    ``marked``: with a mark that tells it from others.
    """
    clean = re.sub(r"[^A-Za-z0-9_\-]", "_", name)
    if config.prefix and clean.startswith(config.prefix):
        whole = clean
    else:
        whole = config.prefix + clean
    if len(whole) <= _LONGEST_NAME and not marked:
        return whole
    return f"{whole[: _LONGEST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def title(theirs: types.Tool) -> str:
    """Return the tool's title with its name, which no title can hide; or the name alone."""
    name = _words(theirs.name)
    hints = theirs.annotations
    given = cut("".join(filter(str.isprintable, theirs.title or (hints.title if hints else None) or "")))
    if not given or given.casefold() == name.casefold():
        return name
    return f"{given} ({theirs.name[:_SHOWN]})"


def version(server_name: str, theirs: types.Tool) -> str:
    """Return a digest of all that the tool is judged by. Raises ValueError for what is not JSON."""
    if theirs.annotations:
        hints = theirs.annotations.model_dump(mode="json")
    else:
        hints = None
    known = [server_name, theirs.name, theirs.description, theirs.input_schema, hints]
    shape = canonical([*known, theirs.title] if theirs.title else known)
    return hashlib.sha256(shape.encode()).hexdigest()[:16]


def risk(config: ServerConfig, hints: types.ToolAnnotations | None) -> Risk:
    """Return the risk by the server's hints, as far as it is trusted. Without hints a tool writes.

    The protocol's own default is that a tool destroys unless ``destructiveHint`` is false; so no one vouches
    for a write without that word from a trusted server.
    """
    if hints is not None and hints.destructive_hint:
        return Risk(Level.DESTRUCTIVE, f"{config.name} says it cannot be undone")
    said_mild = hints is not None and hints.destructive_hint is False
    vouched = config.trust is Trust.TRUSTED and said_mild
    if hints is not None and hints.read_only_hint:
        if config.trust is Trust.TRUSTED:
            return Risk(Level.READ, f"it only reads, says {config.name}, which is trusted")
        return Risk(Level.WRITE, f"{config.name} says it only reads, but is not trusted to say so", vouched)
    if hints is None or hints.read_only_hint is None:
        return Risk(Level.WRITE, f"{config.name} does not say that it only reads", vouched)
    return Risk(Level.WRITE, "", vouched)


def fits_schema(schema: Any, data: Any) -> bool:
    """Return whether data fits the output schema that its tool names, if it names one; blocks."""
    if not isinstance(schema, dict):
        return True
    if not isinstance(data, dict):
        return data is not None and schema.get("type") != "object"
    try:
        Arguments(schema).check(data)
    except (BadArguments, ValueError):
        return False
    return True


def output(config: ServerConfig, result: types.CallToolResult, *, fits: bool = True) -> ToolOutput:
    """Return a tool's output: data where there is some, else text; what can't be shown is named.

    Data that does not ``fits`` its schema is given with the text: the tool ran, and this is all that it said.
    Raises ToolError where the tool says that it failed.
    """
    texts, notes, files = read_content(result.content)
    text = "\n".join([*texts, *notes])
    if result.is_error:
        raise ToolError(config.scrub(text)[:_LONGEST_ERROR] or f"{config.name} failed and did not say why.")
    data = result.structured_content
    if not fits:
        texts += [as_text(data)] if data is not None and as_text(data) not in texts else []
        notes.append(_MISFIT)
        return ToolOutput("\n".join([*texts, *notes]), files=files)
    if data is None:
        return ToolOutput(text or "no output", files=files)
    if isinstance(data, dict) and data.keys() == {"result"}:
        data = data["result"]  # how the SDK's servers wrap a plain value
    return ToolOutput("\n".join([as_text(data), *notes]) if notes else data, files=files)


def content_text(content: Sequence[types.ContentBlock]) -> str:
    """Return all readable content, with notes on the rest."""
    texts, notes, _ = read_content(content, "not shown")
    return "\n".join([*texts, *notes])


def read_content(
    content: Sequence[types.ContentBlock], where: str = "people get it as a file"
) -> tuple[list[str], list[str], tuple[File, ...]]:
    """Return the texts, a note for each other part, and those parts as files while there is room."""
    texts: list[str] = []
    notes: list[str] = []
    files: list[File] = []
    room = _MOST_FILE_BYTES

    def attach(what: str, kind: str | None, name: str, data: str) -> None:
        nonlocal room
        size = len(data) * 3 // 4
        fits = size <= room and len(files) < _MOST_FILES
        file = _file(name, data) if fits else None
        notes.append(
            f"[{what}, {kind or 'unknown type'}, about {size} bytes, {where if file else 'not shown'}]"
        )
        if file:
            room -= size
            files.append(file)

    for part in content:
        if isinstance(part, types.TextContent):
            texts.append(part.text)
        elif isinstance(part, types.ImageContent | types.AudioContent):
            attach(part.type, part.mime_type, f"{part.type}-{len(files) + 1}", part.data)
        elif isinstance(part, types.ResourceLink):
            notes.append(f"[link to {part.name}: {part.uri}]")
        elif isinstance(part.resource, types.TextResourceContents):
            texts.append(part.resource.text)
        else:
            uri = str(part.resource.uri)
            attach(f"file {uri}", part.resource.mime_type, uri.rsplit("/", 1)[-1], part.resource.blob)
    return texts, notes, tuple(files)


def _file(name: str, data: str) -> File | None:
    """Return a server's file, named by its bytes; None for what is not base64."""
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    kind = type_of(content)
    ending = mimetypes.guess_extension(kind) if kind != UNKNOWN else None
    return File(name if "." in name or not ending else f"{name}{ending}", "", content, kind)


def _repeatable(config: ServerConfig, hints: types.ToolAnnotations | None) -> bool:
    return config.trust is Trust.TRUSTED and hints is not None and bool(hints.idempotent_hint)


def _words(name: str) -> str:
    words = " ".join(re.sub(r"[^A-Za-z0-9]+", " ", name).split())
    return cut(words[:1].upper() + words[1:])


def cut(text: str) -> str:
    """Return one line of a server's words."""
    line = " ".join(text.split())
    return shorten(line, _SHOWN)
