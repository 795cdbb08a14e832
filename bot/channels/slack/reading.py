"""A Slack message as text for the model: its words, its blocks and tables, and what programs attach. Pure.

What comes out is still in Slack's marks (``<@U7>``, ``&lt;``), which `readable` turns into words.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from bot.domain.attachments import Upload, describe_files

MAX_ATTACHED = 10  # forwarded messages, alerts and previews in one
_MAX_DEPTH = 8  # blocks in blocks
_MAX_ROWS, _MAX_COLUMNS, _MAX_TABLE_CHARS = 200, 30, 20_000
_AUTHORS = ("author_name", "author_subname", "service_name", "username")
_OF_A_TABLE = frozenset({"id", "blocks", "fallback", "color", "mrkdwn_in"})
_NOTHING = frozenset({"", "[no preview available]", "This content can't be displayed."})
"""The text that Slack writes in place of blocks."""

_PARTS = (
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
)


def read_words(message: Mapping[str, Any]) -> str:
    """Return a message's text, or that of its blocks, and the tables that people pasted."""
    blocks = _mappings(message.get("blocks"))
    tables = [_table(block) for block in blocks if _is_table(block)]
    for each in _attachments(message):
        if _is_pasted(each):
            tables += [_table(block) for block in _mappings(each.get("blocks")) if _is_table(block)]
    text = str(message.get("text") or "")
    if text.strip() in _NOTHING:
        text = "\n".join(line for block in blocks if not _is_table(block) for line in _lines(block))
    return "\n\n".join(part for part in (text, *tables) if part.strip())


def read_attached(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the author and the text of what is passed on: messages, alerts, cards of links."""
    for each in _attachments(message):
        said = "" if _is_pasted(each) else _attachment(each)
        if said:
            author = next((str(each[key]) for key in _AUTHORS if each.get(key)), "someone")
            where = f" in #{each['channel_name']}" if each.get("channel_name") else ""
            yield f"{author}{where}", said


def read_all(message: Mapping[str, Any], unread: Collection[str] = ()) -> str:
    """Return everything that a message of a thread says, a program's too, with the names of its files.

    ``unread``: the ids of files that the model is not given.
    """
    words = read_words(message)
    if message.get("bot_id"):  # a program's text may be no more than the headline of its blocks
        blocks = [
            line
            for block in _mappings(message.get("blocks"))
            if not _is_table(block)
            for line in _lines(block)
        ]
        words = "\n".join([words, *(line for line in blocks if line not in words)])
    said = [text for _, text in read_attached(message)]
    files = describe_files(read_files(message), unread)
    return "\n".join(part for part in (words, *said, files) if part.strip())


def read_files(message: Mapping[str, Any]) -> Iterator[Upload]:
    """Yield the attached files, snippets and files of forwarded messages included; deleted ones are gone."""
    for holder in (message, *_attachments(message)):
        for each in _mappings(holder.get("files")):
            size = each.get("size")
            name = str(each.get("name") or each.get("title") or "")
            if each.get("id") and each.get("mode") != "tombstone":
                yield Upload(name, ref=str(each["id"]), size=size if isinstance(size, int) else 0)


def name_program(message: Mapping[str, Any]) -> str:
    """Return the name of a program; empty where Slack does not say."""
    profile = message.get("bot_profile")
    called = profile.get("name") if isinstance(profile, Mapping) else ""
    return str(message.get("username") or called or "")


def _attachments(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _mappings(message.get("attachments"))[:MAX_ATTACHED]


def _mappings(value: object) -> list[Mapping[str, Any]]:
    if isinstance(value, list):
        return [each for each in value if isinstance(each, Mapping)]
    return []


def _is_table(block: Mapping[str, Any]) -> bool:
    return isinstance(block.get("rows"), list)


def _is_pasted(attachment: Mapping[str, Any]) -> bool:
    """Tell if a person pasted the attachment into their message: it is a table without an author."""
    says = {key for key, value in attachment.items() if value}
    return says <= _OF_A_TABLE and any(map(_is_table, _mappings(attachment.get("blocks"))))


def _attachment(said: Mapping[str, Any]) -> str:
    """Return an attachment as text in the order in which Slack shows it, else its fallback."""
    title, link = str(said.get("title") or ""), str(said.get("title_link") or "")
    if title and link and link not in title:
        title = f"{title} ({link})"
    text = str(said.get("text") or "") or "\n".join(_lines({"message_blocks": said.get("message_blocks")}))
    fields = [_field(each) for each in _mappings(said.get("fields"))]
    blocks = [line for block in _mappings(said.get("blocks")) for line in _lines(block)]
    parts = [str(said.get("pretext") or ""), title, text, *fields]
    parts += [line for line in blocks if line not in text]
    shown = [part.strip() for part in (*parts, str(said.get("footer") or "")) if part.strip()]
    fallback = str(said.get("fallback") or "").strip()
    has_more_than_footer = len(shown) > bool(said.get("footer"))
    if not has_more_than_footer and fallback not in _NOTHING:
        shown.insert(0, fallback)
    return "\n".join(part for part in shown if part)


def _field(field: Mapping[str, Any]) -> str:
    return ": ".join(str(field[key]) for key in ("title", "value") if field.get(key))


def _lines(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every text in blocks, in their order, a line or more for each."""
    if depth > _MAX_DEPTH or not isinstance(value, Mapping):
        return
    kind = str(value.get("type") or "")
    if _is_table(value):
        yield _table(value)
        return
    if kind.startswith("rich_text_"):
        yield from _rich(value, kind)
        return
    for name in ("title", "text"):
        if isinstance(value.get(name), str) and value[name].strip():
            yield value[name]
    if isinstance(value.get("alt_text"), str) and kind == "image":
        yield f"(picture: {value['alt_text']})"
    for name in (*_PARTS, "message_blocks"):
        part = value.get(name)
        for each in part if isinstance(part, list) else [part]:
            yield from _lines(each, depth + 1)


def _rich(part: Mapping[str, Any], kind: str) -> Iterator[str]:
    elements = _mappings(part.get("elements"))
    if kind == "rich_text_list":
        for number, item in enumerate(elements, 1):
            sign = f"{number}." if part.get("style") == "ordered" else "-"
            yield f"{'  ' * min(int(part.get('indent') or 0), 8)}{sign} {_inline(item)}"
        return
    said = _inline(part)
    if kind == "rich_text_quote":
        said = "\n".join(f"> {line}" for line in said.splitlines())
    elif kind == "rich_text_preformatted":
        said = f"```\n{said}\n```"
    if said.strip():
        yield said


def _inline(section: Mapping[str, Any]) -> str:
    return "".join(map(_leaf, _mappings(section.get("elements"))))


def _leaf(leaf: Mapping[str, Any]) -> str:
    match leaf.get("type"):
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
            return escape(f"{words} ({url})" if words and words != url else url, quote=False)
        case kind if str(kind).startswith("rich_text_"):
            return "; ".join(_rich(leaf, str(kind)))
        case _:
            return escape(
                str(leaf.get("text") or leaf.get("fallback") or leaf.get("value") or ""), quote=False
            )


def _table(block: Mapping[str, Any]) -> str:
    """Return a table as Markdown, the first row as its head; it says what was too much."""
    rows = [row for row in block["rows"] if isinstance(row, list)]
    width = min(max(map(len, rows), default=0), _MAX_COLUMNS)
    lines: list[str] = []
    room = _MAX_TABLE_CHARS
    for row in rows[:_MAX_ROWS]:
        cells = [_cell(cell) for cell in row[:width]]
        line = f"| {' | '.join(cells + [''] * (width - len(cells)))} |"
        room = room - len(line)
        if room < 0:
            break
        lines.append(line)
    if not lines:
        return ""
    left = [f"{len(rows) - len(lines)} rows"] if len(rows) > len(lines) else []
    widest = max(map(len, rows))
    if widest > width:
        left.append(f"{widest - width} columns")
    note = [f"(… {' and '.join(left)} of this table are left out)"] if left else []
    caption = [escape(block["caption"], quote=False)] if isinstance(block.get("caption"), str) else []
    return "\n".join([*caption, lines[0], f"|{' --- |' * width}", *lines[1:], *note])


def _cell(cell: object) -> str:
    """Return a cell of any kind on one line: rich text, a raw text or a raw number, or nothing."""
    if not isinstance(cell, Mapping):
        if cell is None:
            return ""
        return escape(str(cell), quote=False)
    if cell.get("type") == "rich_text":
        said = "; ".join(line for part in _mappings(cell.get("elements")) for line in _lines(part))
    else:
        if isinstance(cell.get("fallback"), Mapping):  # a button, as text
            return _cell(cell["fallback"])
        text, number = cell.get("text"), cell.get("value")
        shown = number if text in (None, "") else text
        if isinstance(shown, str | int | float):
            said = escape(str(shown), quote=False)
        else:
            said = "; ".join(_lines(cell))
    return " ".join(said.split()).replace("|", "\\|")


def count_missing(messages: Sequence[object], total: object) -> int:
    """Return the number of replies that are not among ``messages``, which include the thread's first."""
    if isinstance(total, int):
        return max(int(total) + 1 - len(messages), 0)
    return 0
