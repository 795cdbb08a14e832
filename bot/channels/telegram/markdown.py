"""CommonMark as Telegram shows it: `from_markdown` turns an answer into text with entities.

A parser splits the text into tokens, such as ``paragraph_open``; `_Writer` writes their text and notes the
offsets of styles and links. Tables are laid out before (``bot/channels/tables.py``).

The text of a model is hostile. Pictures and links into the app itself lose their target, because both can
carry data away; their text stays. Nothing else that was written is hidden. Tags, formulas, spoilers, titles,
definitions of references and addresses that become no link stay as text. So do blocks that are nested more
than `DEEPEST_LEVEL` deep.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from telegram import MessageEntity

from bot.channels.markdown import clean_prose, misleads
from bot.channels.tables import has_too_many_columns, lay_out_tables, limit_brackets
from bot.channels.telegram.limits import TEXT_UNITS
from bot.channels.telegram.text import (
    Rich,
    break_app_links,
    fix_surrogates_and_line_ends,
    is_web_link,
    utf16_len,
)

DEEPEST_LEVEL = 16  # the nesting of blocks; a list counts as two levels: itself and its item
MAX_ENTITIES = 2000  # enough for twenty full messages
MAX_LINK_CHARS = 300  # the text of a link; people would not see where a longer link leads
MAX_GROWTH = 4  # how many times longer tables may make a text; only wide tables of empty cells need more
_TOO_DEEP = "too_deep"  # the type of a token, by our own rule of the parser
_PICTURE = "▣"
_RULE = "—" * 8
_BULLET = "•"
_INDENT = "  "
_OPEN_TASK = "☐"
_DONE_TASK = "☑"
_CHECKBOX = re.compile(r"\[([ xX])\](?=\s)")  # "[x] " at the beginning of an item that is a task
_AUTOLINK = "auto"  # `Token.info` of a link whose text is its address: <https://example.org>
_INTO_THE_APP = re.compile(r"(?:tg|ton|tonsite):", re.IGNORECASE)
_LANGUAGE = re.compile(r"[\w.+#-]{1,40}")  # the first word of a fence's info string, such as python
_UNDERLINED = ("h1", "h2")
_STYLES = {
    "strong": MessageEntity.BOLD,
    "em": MessageEntity.ITALIC,
    "s": MessageEntity.STRIKETHROUGH,
}


def from_markdown(markdown: str) -> Rich:
    """Render CommonMark, finished or cut off anywhere.

    Where the result would be much longer than the text, or have too many entities, it is the text as written.
    """
    source = clean_prose(fix_surrogates_and_line_ends(markdown))
    as_written = Rich(break_app_links(source))
    if has_too_many_columns(source):
        return as_written
    laid_out = lay_out_tables(source)
    if len(laid_out) > MAX_GROWTH * len(source) + TEXT_UNITS:
        return as_written
    try:
        tokens = _PARSER.parse(laid_out)
    except Exception:  # noqa: BLE001 - whatever the parser stumbles on, people still get the words
        return as_written
    lines = laid_out.split("\n")
    writer = _Writer(lines)
    for block in _split_blocks(tokens, lines):
        writer.write_blocks(block)
    rendered = writer.finish()
    if len(rendered.entities) > MAX_ENTITIES:
        return as_written
    return rendered


def _keep_too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - as the parser calls it
    """Make one token of the blocks that are nested too deep; the parser itself would drop them.

    This is a rule of the parser: it returns True if it applies to the line ``start``. With ``silent`` it
    makes no token.
    """
    if state.level < DEEPEST_LEVEL:
        return False
    if silent:
        return True
    line = start + 1
    # sCount: the indent of each line; blkIndent: that of the current block
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    state.push(_TOO_DEEP, "", 0)
    state.line = line
    return True


def _make_parser() -> MarkdownIt:
    """Make a parser that knows no HTML and no definitions of references, so that people see both."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").disable("reference")
    parser.block.ruler.before("code", _TOO_DEEP, _keep_too_deep)
    return limit_brackets(parser)


_PARSER = _make_parser()


def _split_blocks(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[Sequence[Token]]:
    """Yield the tokens of each block of the top level, such as a paragraph or a full list.

    A block with a too deep block in it becomes one token, whose content is the block as written.
    """
    begin = 0
    for index, token in enumerate(tokens):
        is_end_of_block = token.level == 0 and token.nesting <= 0  # -1 closes a block, 0 is a complete one
        if not is_end_of_block:
            continue
        block = tokens[begin : index + 1]
        begin = index + 1
        is_too_deep = any(inner.type == _TOO_DEEP for inner in block)
        place = block[0].map
        if is_too_deep and place:
            as_written = "\n".join(lines[place[0] : place[1]]).rstrip()
            yield [Token(_TOO_DEEP, "", 0, map=place, content=as_written)]
        else:
            yield block


@dataclass
class _List:
    """A list that is being written."""

    number: int | None  # the number of its next item; None for a list with bullets
    has_items: bool = False


@dataclass
class _Writer:
    """The writer of a text and its entities from tokens. ``lines`` are the lines of the parsed text."""

    lines: Sequence[str]
    _parts: list[str] = field(default_factory=list)
    _units: int = 0  # the UTF-16 units of all parts, in which Telegram counts offsets
    _entities: list[MessageEntity] = field(default_factory=list)
    _lists: list[_List] = field(default_factory=list)  # the open lists, from the outermost
    _quotes: int = 0  # the number of open quotes
    _quote_offset: int | None = None  # the offset of the first text in the outermost open quote
    _is_after_marker: bool = False  # the current item has its marker, and no text yet
    _open_offsets: list[int] = field(default_factory=list)  # where each open style, link or heading begins
    _links: list[tuple[Token, int]] = field(default_factory=list)
    """The open links, each with the number of parts before its text."""

    def finish(self) -> Rich:
        """Return the text and its entities, by offset; where entities begin together, the longest first."""
        entities = sorted(self._entities, key=lambda entity: (entity.offset, -entity.length))
        text = break_app_links("".join(self._parts))  # the length stays the same, so the offsets still fit
        return Rich(text, tuple(entities))

    def write_blocks(self, tokens: Sequence[Token]) -> None:
        for index, token in enumerate(tokens):
            match token.type:
                case "bullet_list_open":
                    self._lists.append(_List(None))
                case "ordered_list_open":
                    self._lists.append(_List(int(token.attrs.get("start", 1))))
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "list_item_open":
                    self._begin_item(token, tokens[index + 1 : index + 3])
                case "blockquote_open":
                    self._quotes += 1
                case "blockquote_close":
                    self._end_quote()
                case _:
                    self._write_block(token)

    def _write_block(self, token: Token) -> None:
        """Write a token of a block that holds no other blocks."""
        match token.type:
            case "paragraph_open":
                self._begin_block(token)
            case "inline":
                self._write_inline(token.children or ())
            case "heading_open":
                self._begin_block(token)
                self._open_offsets.append(self._units)
            case "heading_close":
                self._end_heading(token)
            case "fence" | "code_block":
                self._write_code(token)
            case "paragraph_close" | "list_item_close":
                pass
            case _:
                self._begin_block(token)
                self._write(_RULE if token.type == "hr" else token.content)

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._quotes and self._quote_offset is None:
            self._quote_offset = self._units
        self._is_after_marker = False
        self._parts.append(text)
        self._units += utf16_len(text)

    def _write_space(self, space: str) -> None:
        """Write line ends or an indent. A quote that is open begins only with its first text."""
        self._parts.append(space)
        self._units += len(space)

    def _add_entity(
        self, kind: str, offset: int, *, url: str | None = None, language: str | None = None
    ) -> None:
        """Add an entity from an offset to the end of what is written; none over an empty text."""
        length = self._units - offset
        if length > 0:
            self._entities.append(MessageEntity(kind, offset, length, url=url, language=language))

    def _begin_block(self, token: Token, *, is_code: bool = False) -> None:
        """Begin a block on a new line; the first block of an item continues the line of the item's marker.

        A code block always has lines of its own, without an indent.
        """
        if self._is_after_marker and not is_code:
            return
        if self._lists and self._parts:
            indent = "" if is_code else _INDENT * len(self._lists)
            self._write_space(f"\n{indent}")
        else:
            self._begin_line(token)

    def _begin_line(self, token: Token) -> None:
        """Begin a line, after a blank line if the source has one; inner lists have no blank lines."""
        if not self._parts:
            return
        first_line = token.map[0] if token.map else 0
        is_below_blank_line = first_line > 0 and not self.lines[first_line - 1].strip(" \t>")
        is_in_inner_list = len(self._lists) > 1
        self._write_space("\n\n" if is_below_blank_line and not is_in_inner_list else "\n")

    def _begin_item(self, token: Token, first_tokens: Sequence[Token]) -> None:
        current = self._lists[-1]
        if current.has_items:
            self._write_space("\n")
        else:
            self._begin_line(token)
        current.has_items = True
        self._write_space(_INDENT * (len(self._lists) - 1))
        if current.number is None:
            marker = _take_checkbox(first_tokens) or _BULLET
        else:
            marker = f"{current.number}."
            current.number += 1
        self._write(f"{marker} ")
        self._is_after_marker = True

    def _end_quote(self) -> None:
        self._quotes -= 1
        if not self._quotes and self._quote_offset is not None:  # Telegram has no quotes in quotes
            self._add_entity(MessageEntity.BLOCKQUOTE, self._quote_offset)
            self._quote_offset = None

    def _end_heading(self, token: Token) -> None:
        offset = self._open_offsets.pop()
        self._add_entity(MessageEntity.BOLD, offset)
        if token.tag in _UNDERLINED:
            self._add_entity(MessageEntity.UNDERLINE, offset)

    def _write_code(self, token: Token) -> None:
        """Write a code block. The info string of a fence is written as text, unless it is only a language."""
        info = token.info.strip()
        match = _LANGUAGE.match(info)
        language = match[0] if match else None
        self._begin_block(token, is_code=True)
        if info and language != info:
            self._write(f"{info}\n")
        offset = self._units
        self._write(token.content.removesuffix("\n"))
        self._add_entity(MessageEntity.PRE, offset, language=language)

    def _write_inline(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            match token.type:
                case "softbreak" | "hardbreak":
                    self._write("\n" + _INDENT * len(self._lists))
                case "code_inline":
                    offset = self._units
                    self._write(token.content)
                    self._add_entity(MessageEntity.CODE, offset)
                case "strong_open" | "em_open" | "s_open":
                    self._open_offsets.append(self._units)
                case "strong_close" | "em_close" | "s_close":
                    self._add_entity(_STYLES[token.tag], self._open_offsets.pop())
                case "link_open":
                    self._open_offsets.append(self._units)
                    self._links.append((token, len(self._parts)))
                case "link_close":
                    self._end_link(*self._links.pop())
                case "image":
                    self._write(_PICTURE)
                    self._write_inline(token.children or ())
                    self._write_title(token)
                case _:
                    self._write(token.content)

    def _end_link(self, link: Token, first_part: int) -> None:
        """Make the text a link to a web page, unless the text is too long, or names another host.

        The address of any other link is written behind its text, unless it leads into the app.
        """
        offset = self._open_offsets.pop()
        text = "".join(self._parts[first_part:])
        address = str(link.attrs.get("href", ""))
        has_fit_text = bool(text.strip()) and len(text) <= MAX_LINK_CHARS and not misleads(text, address)
        if has_fit_text and is_web_link(address):
            self._add_entity(MessageEntity.TEXT_LINK, offset, url=address)
        elif link.info != _AUTOLINK and not _INTO_THE_APP.match(address):
            shown_address = address.removeprefix("mailto:").removeprefix("tel:")
            if shown_address not in ("", text):
                self._write(f" ({shown_address})")
        self._write_title(link)

    def _write_title(self, token: Token) -> None:
        title = token.attrs.get("title")
        if title:
            self._write(f" ({title})")


def _take_checkbox(tokens: Sequence[Token]) -> str:
    """Remove a task's checkbox from the beginning of an item; return its sign, empty without one."""
    # the parser puts the text of a paragraph into the token behind its beginning
    begins_with_text = len(tokens) == 2 and tokens[0].type == "paragraph_open"  # noqa: PLR2004
    if not begins_with_text or not tokens[1].children:
        return ""
    text = tokens[1].children[0]
    box = _CHECKBOX.match(text.content) if text.type == "text" else None
    if box is None:
        return ""
    text.content = text.content[box.end() :].lstrip()
    return _OPEN_TASK if box[1] == " " else _DONE_TASK
