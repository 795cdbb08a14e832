"""Adopting the tools of MCP servers: a server's tool (the SDK's ``types.Tool``) becomes a `Tool`.

`adopt` puts together the tool's name for the model, its risk, its version and its arguments. The run of the
`Tool` calls the server, and makes a `ToolOutput` of the result. In all functions ``listed_tool`` is a tool as
the server lists it.

A server's annotations of a tool are hints. A hint that raises the risk is always believed. A hint that lowers
it (the tool only reads, or is not destructive) is believed only if the configuration trusts the server.
"""

import asyncio
import base64
import hashlib
import mimetypes
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcp import types

from bot.domain.attachments import MEGABYTE, UNKNOWN, type_of
from bot.domain.digests import to_canonical_json
from bot.domain.files import File
from bot.domain.forms import without_defaults
from bot.domain.risks import Level, Risk
from bot.domain.text import as_text, shorten
from bot.domain.value_text import summarize_arguments
from bot.errors import BadArguments, ToolError
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.mcp.answers import MALFORMED_KEY, OUTPUT_SCHEMA_KEY
from bot.tools.mcp.config import ServerConfig, Trust
from bot.tools.mcp.schemas import ArgumentSchema, simplify_schema
from bot.tools.mcp.server import QUICK_REQUEST_SECONDS, Server
from bot.tools.schema import fits_strict_mode
from bot.tools.tool import Tool

_MAX_NAME_CHARS = 64  # the limit of language models
_MAX_DESCRIPTION_CHARS = 4000
_MAX_ERROR_CHARS = 2000
_MAX_FILES = 10  # the files of one answer
_MAX_FILE_BYTES = 10 * MEGABYTE  # all files of one answer together
# what becomes of a file, in the text of an output
_FILE_FOR_PEOPLE_TEXT = "people get it as a file"
_FILE_FOR_AGENT_TEXT = "it comes as a file"
_NO_FILE_TEXT = "not shown"
_MISFIT_TEXT = "[its answer does not fit the form that the tool names]"
_MAX_TITLE_CHARS = 60  # a title, a name or one argument in a summary


def adopt(server: Server, listed_tool: types.Tool, answer_seconds: float, name: str = "") -> Tool:
    """Return a server's tool as a `Tool`. Raises ValueError if it can't be offered.

    ``name`` is its name for the model, by default that of `make_model_name`. ``answer_seconds``: the time
    that a person has to answer a question of the server. Blocks while the schema is checked: call it in a
    thread.
    """
    config = server.config
    meta = listed_tool.meta or {}  # the transport stores faults of the tool in it, see ``answers.py``
    if meta.get(MALFORMED_KEY):
        raise ValueError(meta[MALFORMED_KEY])
    argument_schema = ArgumentSchema(listed_tool.input_schema)
    parameters = simplify_schema(listed_tool.input_schema)
    adopted_version = hash_tool(config.name, listed_tool)
    hints = listed_tool.annotations
    tool_risk = judge_risk(config, hints)
    description = listed_tool.description or listed_tool.title or _format_name(listed_tool.name)

    def is_unchanged(current: types.Tool | None) -> bool:
        return current is not None and hash_tool(config.name, current) == adopted_version

    async def run(values: Arguments, context: CallContext) -> ToolOutput:
        check = is_unchanged if tool_risk.writes else None
        result = await server.call(listed_tool.name, values, context, is_unchanged=check)
        fits = await asyncio.to_thread(fits_schema, meta.get(OUTPUT_SCHEMA_KEY), result.structured_content)
        file_text = _FILE_FOR_AGENT_TEXT if context.agent else _FILE_FOR_PEOPLE_TEXT
        return make_output(config, result, fits=fits, file_text=file_text)

    def summarise(values: Arguments) -> str:
        heading = f"{format_title(listed_tool)} on {config.name}"
        values_text = summarize_arguments(without_defaults(values, argument_schema.defaults), shorten_words)
        return f"{heading}: {values_text}" if values_text else heading

    return Tool(
        name=name or make_model_name(config, listed_tool.name),
        description=description[:_MAX_DESCRIPTION_CHARS],
        parameters=parameters,
        strict=fits_strict_mode(parameters),
        version=adopted_version,
        group=server.group,
        reads=not tool_risk.writes,  # whatever its arguments
        idempotent=_is_idempotent(config, hints),
        timeout=config.timeout + QUICK_REQUEST_SECONDS + answer_seconds,
        validate=argument_schema.check,
        validates_in_thread=True,  # the check of arguments waits for a child process
        classify=lambda _: tool_risk,
        summary=summarise,
        run=run,
        destructive=tool_risk.level is Level.DESTRUCTIVE,
        open_world=hints is None or hints.open_world_hint is not False,  # true by default in the protocol
    )


def choose_model_names(config: ServerConfig, names: Iterable[str]) -> dict[str, str]:
    """Return each tool's name for the model, by the server's own name.

    If two tools would have the same name (``repo.get``, ``repo/get``), a hash is added to each. A tool that
    the server itself calls by that name (``repo_get``) gets no hash.
    """
    model_names = {name: make_model_name(config, name) for name in names}
    counts = Counter(model_names.values())
    for name, model_name in model_names.items():
        is_own_name = model_name.endswith(name)  # besides the prefix it is the server's own name for it
        if counts[model_name] > 1 and not is_own_name:
            model_names[name] = make_model_name(config, name, with_hash=True)
    return model_names


def make_model_name(config: ServerConfig, name: str, *, with_hash: bool = False) -> str:
    """Return a tool's name for the model: prefixed, in the characters and length that models take.

    ``with_hash``: add a hash of the server's own name for it. A name that is too long is cut, and always gets
    the hash.
    """
    clean = re.sub(r"[^A-Za-z0-9_\-]", "_", name)
    prefixed = config.prefix + clean.removeprefix(config.prefix)
    if len(prefixed) <= _MAX_NAME_CHARS and not with_hash:
        return prefixed
    ending = "_" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return prefixed[: _MAX_NAME_CHARS - len(ending)] + ending


def format_title(listed_tool: types.Tool) -> str:
    """Return a tool's title with its name in brackets; the name alone without a title.

    The name is there so that a title can't hide it.
    """
    name = _format_name(listed_tool.name)
    hints = listed_tool.annotations
    raw_title = listed_tool.title or (hints.title if hints else None) or ""
    title = shorten_words("".join(filter(str.isprintable, raw_title)))
    if not title or title.casefold() == name.casefold():
        return name
    return f"{title} ({listed_tool.name[:_MAX_TITLE_CHARS]})"


def hash_tool(server_name: str, listed_tool: types.Tool) -> str:
    """Return the tool's version: a hash over its names, description, schema and hints.

    Raises ValueError if they can't be written as JSON.
    """
    hints = listed_tool.annotations.model_dump(mode="json") if listed_tool.annotations else None
    parts = [server_name, listed_tool.name, listed_tool.description, listed_tool.input_schema, hints]
    if listed_tool.title:
        parts.append(listed_tool.title)
    return hashlib.sha256(to_canonical_json(parts).encode()).hexdigest()[:16]


def judge_risk(config: ServerConfig, hints: types.ToolAnnotations | None) -> Risk:
    """Return a tool's risk by the server's hints.

    The first of these that holds decides:

    1. ``destructiveHint`` is true: destructive.
    2. ``readOnlyHint`` is true: a read if the server is trusted, else a write.
    3. Otherwise it is a write.

    A write is *vouched for* (`Risk.vouched`) if a trusted server says that it is not destructive. A write
    without a ``destructiveHint`` never is: by the protocol such a tool may be destructive.
    """
    if hints is not None and hints.destructive_hint:
        return Risk(Level.DESTRUCTIVE, f"{config.name} says it cannot be undone")
    is_trusted = config.trust is Trust.TRUSTED
    is_harmless = hints is not None and hints.destructive_hint is False
    vouched = is_trusted and is_harmless
    if hints is not None and hints.read_only_hint:
        if is_trusted:
            return Risk(Level.READ, f"it only reads, says {config.name}, which is trusted")
        return Risk(Level.WRITE, f"{config.name} says it only reads, but is not trusted to say so", vouched)
    if hints is None or hints.read_only_hint is None:
        return Risk(Level.WRITE, f"{config.name} does not say that it only reads", vouched)
    return Risk(Level.WRITE, "", vouched)


def fits_schema(schema: Any, data: Any) -> bool:
    """Return whether data fits the output schema of its tool; any data fits a missing schema. Blocks."""
    if not isinstance(schema, dict):
        return True
    if not isinstance(data, dict):  # a plain value is not checked further
        return data is not None and schema.get("type") != "object"
    try:
        ArgumentSchema(schema).check(data)
    except (BadArguments, ValueError):
        return False
    return True


def make_output(
    config: ServerConfig,
    result: types.CallToolResult,
    *,
    fits: bool = True,
    file_text: str = _FILE_FOR_PEOPLE_TEXT,
) -> ToolOutput:
    """Return the output of a call: the result's data, or its text if it has none, with notes on other parts.

    ``fits``: True if the data fits the tool's output schema. Data that does not fit is added to the text, so
    that nothing is lost. ``file_text``: what becomes of a file, in words. Raises ToolError if the tool
    reports a failure.
    """
    texts, notes, files = read_content(result.content, file_text)
    text = "\n".join([*texts, *notes])
    if result.is_error:
        raise ToolError(config.scrub(text)[:_MAX_ERROR_CHARS] or f"{config.name} failed and did not say why.")
    data = result.structured_content
    if not fits:
        if data is not None and as_text(data) not in texts:
            texts.append(as_text(data))
        notes.append(_MISFIT_TEXT)
        return ToolOutput("\n".join([*texts, *notes]), files=files)
    if data is None:
        return ToolOutput(text or "no output", files=files)
    if isinstance(data, dict) and data.keys() == {"result"}:
        data = data["result"]  # the SDK's servers wrap a plain value in an object
    if notes:
        return ToolOutput("\n".join([as_text(data), *notes]), files=files)
    return ToolOutput(data, files=files)


def join_content(content: Sequence[types.ContentBlock]) -> str:
    """Return the texts in the content as one text, with notes on the other parts."""
    texts, notes, _ = read_content(content, _NO_FILE_TEXT)
    return "\n".join([*texts, *notes])


class ReadContent(NamedTuple):
    """The parts of an answer, by their kind."""

    texts: list[str]
    notes: list[str]  # one for each part that is not a text
    files: tuple[File, ...]  # the parts that are files, as many as fit


def read_content(
    content: Sequence[types.ContentBlock], file_text: str = _FILE_FOR_PEOPLE_TEXT
) -> ReadContent:
    """Return the parts of the content. ``file_text``: what becomes of a file, in the words of its note."""
    texts: list[str] = []
    notes: list[str] = []
    files: list[File] = []
    bytes_left = _MAX_FILE_BYTES

    def attach_file(label: str, kind: str | None, name: str, data: str) -> None:
        nonlocal bytes_left
        size = len(data) * 3 // 4  # base64 writes three bytes as four characters
        file = None
        if size <= bytes_left and len(files) < _MAX_FILES:
            file = _make_file(name, data)
        if file is not None:
            bytes_left -= size
            files.append(file)
        outcome = _NO_FILE_TEXT if file is None else file_text
        notes.append(f"[{label}, {kind or 'unknown type'}, about {size} bytes, {outcome}]")

    for part in content:
        if isinstance(part, types.TextContent):
            texts.append(part.text)
        elif isinstance(part, types.ImageContent | types.AudioContent):
            attach_file(part.type, part.mime_type, f"{part.type}-{len(files) + 1}", part.data)
        elif isinstance(part, types.ResourceLink):
            notes.append(f"[link to {part.name}: {part.uri}]")
        elif isinstance(part.resource, types.TextResourceContents):
            texts.append(part.resource.text)
        else:
            uri = str(part.resource.uri)
            attach_file(f"file {uri}", part.resource.mime_type, uri.rsplit("/", 1)[-1], part.resource.blob)
    return ReadContent(texts, notes, tuple(files))


def _make_file(name: str, data: str) -> File | None:
    """Return a file of a result, with the ending of its type added to its name; None for invalid base64.

    ``data``: the content as base64.
    """
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    kind = type_of(content)
    ending = mimetypes.guess_extension(kind) if kind != UNKNOWN else None
    if ending and "." not in name:
        name = f"{name}{ending}"
    return File(name, "", content, kind)


def _is_idempotent(config: ServerConfig, hints: types.ToolAnnotations | None) -> bool:
    return config.trust is Trust.TRUSTED and hints is not None and bool(hints.idempotent_hint)


def _format_name(name: str) -> str:
    """Return a tool's name as words: "create_issue" becomes "Create issue"."""
    words = " ".join(re.sub(r"[^A-Za-z0-9]+", " ", name).split())
    return shorten_words(words[:1].upper() + words[1:])


def shorten_words(text: str) -> str:
    """Return a server's words on one short line."""
    line = " ".join(text.split())
    return shorten(line, _MAX_TITLE_CHARS)
