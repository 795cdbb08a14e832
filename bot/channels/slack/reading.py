"""Reads a Slack message as text for the model: its words, blocks, tables, attachments and files. Pure.

A message has a ``text``, and ``blocks``, its contents in nested JSON objects. In a person's message both say
the same. A program's text may be only the headline of its blocks. ``attachments`` are forwarded messages,
alerts of programs, previews of links, and tables that a person pasted. The text that is returned still has
Slack's marks (``<@U7>``, ``&lt;``), which ``marks.make_readable`` turns into words.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from bot.domain.attachments import Upload, describe_files

MAX_ATTACHED = 10  # forwarded messages, alerts and previews of one message
_MAX_DEPTH = 8  # blocks in blocks
_MAX_INDENT = 8  # the levels of a list
# of one table
_MAX_ROWS = 200
_MAX_COLUMNS = 30
_MAX_TABLE_CHARS = 20_000
_AUTHOR_KEYS = ("author_name", "author_subname", "service_name", "username")  # of an attachment
_CLIP_SUBTYPES = frozenset({"slack_audio", "slack_video"})  # of files that people record in Slack
_PASTED_TABLE_KEYS = frozenset({"id", "blocks", "fallback", "color", "mrkdwn_in"})
"""The only fields of an attachment that is a pasted table."""
_PLACEHOLDERS = frozenset({"", "[no preview available]", "This content can't be displayed."})
"""The texts that Slack sends for a message that consists of blocks."""

_NESTED_KEYS = (  # the fields of a block that hold further texts and blocks
    "text",
    "elements",
    "fields",
    "message",
    "blocks",
    "title",
    "description",
    "details",
    "output",
    "tasks",
    "message_blocks",
)


def read_message_text(message: Mapping[str, Any]) -> str:
    """Return a message's own text, or that of its blocks, and the tables that people pasted.

    Other attachments and files are left out; `read_full_text` has them, too.
    """
    blocks = _list_mappings(message.get("blocks"))
    tables = [_format_table(block) for block in blocks if _is_table(block)]
    for attachment in _list_attachments(message):
        if _is_pasted_table(attachment):
            pasted_blocks = _list_mappings(attachment.get("blocks"))
            tables += [_format_table(block) for block in pasted_blocks if _is_table(block)]
    text = str(message.get("text") or "")
    if text.strip() in _PLACEHOLDERS:
        text = "\n".join(_read_blocks(blocks))
    return "\n\n".join(part for part in (text, *tables) if part.strip())


def read_attachments(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the author and text of each attachment: a forwarded message, an alert, or a preview of a link.

    For a forwarded message that has files and no text, the text names the files. Pasted tables are left out.
    """
    for attachment in _list_attachments(message):
        text = "" if _is_pasted_table(attachment) else _format_attachment(attachment)
        text = text or describe_files(_read_own_files(attachment))
        if not text:
            continue
        names = [str(attachment[key]) for key in _AUTHOR_KEYS if attachment.get(key)]
        author = names[0] if names else "someone"
        if attachment.get("channel_name"):
            author = f"{author} in #{attachment['channel_name']}"
        yield author, text


def read_full_text(message: Mapping[str, Any], unread: Collection[str] = ()) -> str:
    """Return the full text of a person's or program's message, for the history of a conversation.

    It has the message's own text, its attachments, and the names of its files. ``unread``: the ids of files
    that the model is not given.
    """
    words = read_message_text(message)
    if message.get("bot_id"):  # a program's text may be only the headline of its blocks
        block_lines = _read_blocks(_list_mappings(message.get("blocks")))
        new_lines = [line for line in block_lines if line not in words]  # blocks often repeat the text
        words = "\n".join([words, *new_lines])
    attachments = [part for part in _list_attachments(message) if not _is_pasted_table(part)]
    attached = [_format_attachment(attachment) for attachment in attachments]
    files = describe_files(read_files(message), unread)
    return "\n".join(part for part in (words, *attached, files) if part.strip())


def read_files(message: Mapping[str, Any]) -> Iterator[Upload]:
    """Yield the attached files that still exist, with snippets and the files of forwarded messages.

    A recording by the writer of the message is marked as spoken: its words count as theirs. A recording in a
    forwarded message is not.
    """
    yield from _read_own_files(message, message.get("user"))
    for attachment in _list_attachments(message):
        yield from _read_own_files(attachment)


def _read_own_files(message_or_attachment: Mapping[str, Any], user: object = None) -> Iterator[Upload]:
    """Yield the files of a message or of an attachment. ``user``: the writer, whose recordings are spoken."""
    for file in _list_mappings(message_or_attachment.get("files")):
        if not file.get("id") or file.get("mode") == "tombstone":
            continue
        name = str(file.get("name") or file.get("title") or "")
        size = file.get("size")
        known_size = size if isinstance(size, int) else 0
        yield Upload(name, ref=str(file["id"]), size=known_size, spoken=_is_clip_of(file, user))


def _is_clip_of(file: Mapping[str, Any], user: object) -> bool:
    """Tell if a file is an audio or video clip that this user recorded in Slack.

    A file that names no user counts as theirs.
    """
    return file.get("subtype") in _CLIP_SUBTYPES and user is not None and file.get("user") in (None, user)


def find_program_name(message: Mapping[str, Any]) -> str:
    """Return the name of a program; empty where Slack does not say."""
    profile = message.get("bot_profile")
    profile_name = profile.get("name") if isinstance(profile, Mapping) else ""
    return str(message.get("username") or profile_name or "")


def _list_attachments(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _list_mappings(message.get("attachments"))[:MAX_ATTACHED]


def _list_mappings(value: object) -> list[Mapping[str, Any]]:
    if isinstance(value, list):
        return [item for item in value if isinstance(item, Mapping)]
    return []


def _read_blocks(blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of all blocks but tables."""
    for block in blocks:
        if not _is_table(block):
            yield from _read_lines(block)


def _is_table(block: Mapping[str, Any]) -> bool:
    return isinstance(block.get("rows"), list)


def _is_pasted_table(attachment: Mapping[str, Any]) -> bool:
    """Tell if an attachment is a table that a person pasted: it has no author and no other fields."""
    filled_keys = {key for key, value in attachment.items() if value}
    has_table = any(_is_table(block) for block in _list_mappings(attachment.get("blocks")))
    return has_table and filled_keys <= _PASTED_TABLE_KEYS


def _format_attachment(attachment: Mapping[str, Any]) -> str:
    """Return an attachment's text in the order in which Slack shows it, or its fallback if it has none."""
    title = str(attachment.get("title") or "")
    link = str(attachment.get("title_link") or "")
    if title and link and link not in title:
        title = f"{title} ({link})"
    text = str(attachment.get("text") or "")
    if not text:
        forwarded = {"message_blocks": attachment.get("message_blocks")}  # a block, for `_read_lines`
        text = "\n".join(_read_lines(forwarded))
    fields = [_format_field(field) for field in _list_mappings(attachment.get("fields"))]
    parts = [str(attachment.get("pretext") or ""), title, text, *fields]
    for block in _list_mappings(attachment.get("blocks")):
        parts += [line for line in _read_lines(block) if line not in text]  # blocks often repeat the text
    shown = [part.strip() for part in parts if part.strip()]
    fallback = str(attachment.get("fallback") or "").strip()
    if not shown and fallback not in _PLACEHOLDERS:
        shown = [fallback]
    footer = str(attachment.get("footer") or "").strip()
    if footer:
        shown.append(footer)
    return "\n".join(shown)


def _format_field(field: Mapping[str, Any]) -> str:
    return ": ".join(str(field[key]) for key in ("title", "value") if field.get(key))


def _read_lines(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a block and of the blocks in it, in their order."""
    if depth > _MAX_DEPTH or not isinstance(value, Mapping):
        return
    kind = str(value.get("type") or "")
    if _is_table(value):
        yield _format_table(value)
        return
    if kind.startswith("rich_text_"):
        yield from _read_rich_text(value, kind)
        return
    for name in ("title", "text"):
        if isinstance(value.get(name), str) and value[name].strip():
            yield value[name]
    if isinstance(value.get("alt_text"), str) and kind == "image":
        yield f"(picture: {value['alt_text']})"
    for name in _NESTED_KEYS:
        nested = value.get(name)
        children = nested if isinstance(nested, list) else [nested]
        for child in children:
            yield from _read_lines(child, depth + 1)


def _read_rich_text(part: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield the lines of a part of rich text, with the marks of its kind: a list, a quote, or code."""
    elements = _list_mappings(part.get("elements"))
    if kind == "rich_text_list":
        for number, item in enumerate(elements, 1):
            marker = f"{number}." if part.get("style") == "ordered" else "-"
            indent = "  " * min(int(part.get("indent") or 0), _MAX_INDENT)
            yield f"{indent}{marker} {_join_leaves(item)}"
        return
    text = _join_leaves(part)
    if kind == "rich_text_quote":
        text = "\n".join(f"> {line}" for line in text.splitlines())
    elif kind == "rich_text_preformatted":
        text = f"```\n{text}\n```"
    if text.strip():
        yield text


def _join_leaves(section: Mapping[str, Any]) -> str:
    """Return the text of a section: its leaves are texts, links, mentions and emoji."""
    return "".join(_format_leaf(leaf) for leaf in _list_mappings(section.get("elements")))


def _format_leaf(leaf: Mapping[str, Any]) -> str:
    kind = str(leaf.get("type") or "")
    if kind.startswith("rich_text_"):
        return "; ".join(_read_rich_text(leaf, kind))
    match kind:
        case "user":
            return f"<@{leaf.get('user_id')}>"
        case "usergroup":
            return f"<!subteam^{leaf.get('usergroup_id')}>"
        case "channel":
            return f"<#{leaf.get('channel_id')}>"
        case "broadcast":
            return f"<!{leaf.get('range')}>"
        case "emoji":
            return f":{leaf.get('name')}:"
        case "link":
            url, words = str(leaf.get("url") or ""), str(leaf.get("text") or "")
            if words and words != url:
                return escape(f"{words} ({url})", quote=False)
            return escape(url, quote=False)
        case _:
            text = str(leaf.get("text") or leaf.get("fallback") or leaf.get("value") or "")
            return escape(text, quote=False)


def _format_table(block: Mapping[str, Any]) -> str:
    """Return a table as Markdown, the first row as its head, with a note of the rows and columns left out."""
    rows = [row for row in block["rows"] if isinstance(row, list)]
    columns = min(max(map(len, rows), default=0), _MAX_COLUMNS)
    lines: list[str] = []
    remaining_chars = _MAX_TABLE_CHARS
    for row in rows[:_MAX_ROWS]:
        cells = [_format_cell(cell) for cell in row[:columns]]
        cells += [""] * (columns - len(cells))
        line = f"| {' | '.join(cells)} |"
        remaining_chars -= len(line)
        if remaining_chars < 0:
            break
        lines.append(line)
    if not lines:
        return ""
    omitted: list[str] = []
    if len(rows) > len(lines):
        omitted.append(f"{len(rows) - len(lines)} rows")
    all_columns = max(map(len, rows))
    if all_columns > columns:
        omitted.append(f"{all_columns - columns} columns")
    lines.insert(1, f"|{' --- |' * columns}")
    if isinstance(block.get("caption"), str):
        lines.insert(0, escape(block["caption"], quote=False))
    if omitted:
        lines.append(f"(… {' and '.join(omitted)} of this table are left out)")
    return "\n".join(lines)


def _format_cell(cell: object) -> str:
    """Return the content of a cell on one line: rich text, a text or a number, or nothing."""
    if not isinstance(cell, Mapping):
        if cell is None:
            return ""
        return escape(str(cell), quote=False)
    is_rich_text = cell.get("type") == "rich_text"
    if not is_rich_text and isinstance(cell.get("fallback"), Mapping):  # the cell shows a button
        return _format_cell(cell["fallback"])
    text = _read_rich_cell(cell) if is_rich_text else _read_plain_cell(cell)
    return " ".join(text.split()).replace("|", "\\|")


def _read_rich_cell(cell: Mapping[str, Any]) -> str:
    lines: list[str] = []
    for part in _list_mappings(cell.get("elements")):
        lines += _read_lines(part)
    return "; ".join(lines)


def _read_plain_cell(cell: Mapping[str, Any]) -> str:
    content = cell.get("text")
    if content in (None, ""):
        content = cell.get("value")  # the cell shows a number
    if isinstance(content, str | int | float):
        return escape(str(content), quote=False)
    return "; ".join(_read_lines(cell))
