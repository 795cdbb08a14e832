"""CommonMark as Telegram shows it: a walk over the parser's tokens, which writes text and notes its entities.

Model text is hostile. Pictures and links into the app itself are taken out, because both can carry data away.
Nothing else that was written is hidden: tags, formulas, spoilers, titles and the definitions of references
are text, and so is what is nested deeper than anyone reads.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from telegram import MessageEntity

from bot.channels.markdown import clean_prose, misleads
from bot.channels.tables import bound_links, is_too_wide, lay_out_tables
from bot.channels.telegram.limits import TEXT_UNITS
from bot.channels.telegram.text import Rich, drop_halves, keep_harmless, utf16_len, web_link

DEEPEST_LEVEL = 16  # of blocks in blocks; a list is two
MAX_ENTITIES = 2000  # twenty full messages
MAX_LINK_CHARS = 300  # of its words; no one reads on to where it leads
MAX_GROWTH = 4  # characters shown for one that was written; more only in wide tables of empty cells
_TOO_DEEP = "too_deep"
_PICTURE = "▣"
_RULE = "—" * 8
_BULLET = "•"
_INDENT = "  "
_TASK = re.compile(r"\[([ xX])\](?=\s)")
_LANGUAGE = re.compile(r"[\w.+#-]{1,40}")
_UNDERLINED = ("h1", "h2")
_STYLES = {
    "strong": MessageEntity.BOLD,
    "em": MessageEntity.ITALIC,
    "s": MessageEntity.STRIKETHROUGH,
}


def from_markdown(markdown: str) -> Rich:
    """Render CommonMark, finished or cut off anywhere.

    Falls back to the text as it was written where that would make much more of it, or too many entities.
    """
    source = clean_prose(drop_halves(markdown))
    bare = Rich(keep_harmless(source))
    if is_too_wide(source):
        return bare
    laid_out = lay_out_tables(source)
    if len(laid_out) > MAX_GROWTH * len(source) + TEXT_UNITS:
        return bare
    try:
        tokens = _PARSER.parse(laid_out)
    except Exception:  # noqa: BLE001 - whatever the parser stumbles on, people still get the words
        return bare
    lines = laid_out.split("\n")
    walk = _Walk(lines)
    walk.write_blocks([token for block in _split_blocks(tokens, lines) for token in block])
    made = walk.finish()
    if len(made.entities) > MAX_ENTITIES:
        return bare
    return made


def _take_rest(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - as the parser calls it
    """Take what is nested too deep: the parser itself would drop it without a word."""
    if state.level < DEEPEST_LEVEL:
        return False
    if silent:
        return True
    line = start + 1
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    state.push(_TOO_DEEP, "", 0)
    state.line = line
    return True


def _make_parser() -> MarkdownIt:
    """Make a parser without tags and references: they hide what was written."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").disable("reference")
    parser.block.ruler.before("code", _TOO_DEEP, _take_rest)
    return bound_links(parser)


_PARSER = _make_parser()


def _split_blocks(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[Sequence[Token]]:
    """Yield the blocks of a text; one in which something is too deep as it was written."""
    begin = 0
    for at, token in enumerate(tokens):
        if token.level or token.nesting > 0:
            continue
        block, begin = tokens[begin : at + 1], at + 1
        if any(each.type == _TOO_DEEP for each in block) and (place := block[0].map):
            written = "\n".join(lines[place[0] : place[1]]).rstrip()
            yield [Token(_TOO_DEEP, "", 0, map=place, content=written)]
        else:
            yield block


@dataclass
class _List:
    """A list that is being written; ``number`` is that of its next item, None for bullets."""

    number: int | None
    begun: bool = False


@dataclass
class _Walk:
    """Writes the tokens of a text whose lines are ``lines``."""

    lines: Sequence[str]
    _parts: list[str] = field(default_factory=list)
    _units: int = 0
    _entities: list[MessageEntity] = field(default_factory=list)
    _lists: list[_List] = field(default_factory=list)
    _quotes: int = 0
    _quote_begin: int | None = None
    _at_marker: bool = False  # the marker of an item is written, and nothing of the item
    _open: list[int] = field(default_factory=list)  # where the styles that are open begin
    _links: list[tuple[Token, int]] = field(default_factory=list)  # open ones, with how many parts are before

    def finish(self) -> Rich:
        return Rich(keep_harmless("".join(self._parts)), tuple(sorted(self._entities, key=_order)))

    def write_blocks(self, tokens: Sequence[Token]) -> None:
        for at, token in enumerate(tokens):
            match token.type:
                case "bullet_list_open":
                    self._lists.append(_List(None))
                case "ordered_list_open":
                    self._lists.append(_List(int(token.attrs.get("start", 1))))
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "list_item_open":
                    self._begin_item(token, tokens[at + 1 : at + 3])
                case "blockquote_open":
                    self._quotes += 1
                case "blockquote_close":
                    self._end_quote()
                case _:
                    self._write_block(token)

    def _write_block(self, token: Token) -> None:
        """Write a block that holds no others, or a part of one."""
        match token.type:
            case "paragraph_open":
                self._begin_block(token)
            case "inline":
                self._write_inline(token.children or ())
            case "heading_open":
                self._begin_block(token)
                self._open.append(self._units)
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
        if self._quotes and self._quote_begin is None:
            self._quote_begin = self._units
        self._at_marker = False
        self._parts.append(text)
        self._units += utf16_len(text)

    def _style(self, kind: str, begin: int, url: str | None = None, language: str | None = None) -> None:
        if self._units > begin:
            self._entities.append(MessageEntity(kind, begin, self._units - begin, url=url, language=language))

    def _begin_line(self, token: Token) -> None:
        """End the line before, with a blank one where there was one."""
        if not self._parts:
            return
        before = self.lines[token.map[0] - 1] if token.map and token.map[0] else "-"
        self._separate("\n" if before.strip(" \t>") or len(self._lists) > 1 else "\n\n")

    def _separate(self, text: str) -> None:
        """Write what belongs to no quote that begins here."""
        self._parts.append(text)
        self._units += len(text)

    def _begin_block(self, token: Token, *, indented: bool = True) -> None:
        if self._at_marker and indented:
            return
        if self._lists and self._parts:
            self._separate("\n" + _INDENT * len(self._lists) * indented)
        else:
            self._begin_line(token)

    def _begin_item(self, token: Token, first: Sequence[Token]) -> None:
        current = self._lists[-1]
        marker = _BULLET
        if current.number is not None:
            marker = f"{current.number}."
            current.number += 1
        elif task := _task_of(first):
            marker = "☐" if task[1] == " " else "☑"
        if current.begun:
            self._separate("\n")
        else:
            self._begin_line(token)
        current.begun = True
        self._separate(_INDENT * (len(self._lists) - 1))
        self._write(f"{marker} ")
        self._at_marker = True

    def _end_quote(self) -> None:
        self._quotes -= 1
        if not self._quotes and self._quote_begin is not None:  # quotes do not nest in Telegram
            self._style(MessageEntity.BLOCKQUOTE, self._quote_begin)
            self._quote_begin = None

    def _end_heading(self, token: Token) -> None:
        begin = self._open.pop()
        self._style(MessageEntity.BOLD, begin)
        if token.tag in _UNDERLINED:
            self._style(MessageEntity.UNDERLINE, begin)

    def _write_code(self, token: Token) -> None:
        info = token.info.strip()
        language = _LANGUAGE.match(info)
        self._begin_block(token, indented=False)
        if language is None or language[0] != info:
            self._write(f"{info}\n" if info else "")
        begin = self._units
        self._write(token.content.removesuffix("\n"))
        self._style(MessageEntity.PRE, begin, language=language[0] if language else None)

    def _write_inline(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            match token.type:
                case "softbreak" | "hardbreak":
                    self._write("\n" + _INDENT * len(self._lists))
                case "code_inline":
                    begin = self._units
                    self._write(token.content)
                    self._style(MessageEntity.CODE, begin)
                case "strong_open" | "em_open" | "s_open":
                    self._open.append(self._units)
                case "strong_close" | "em_close" | "s_close":
                    self._style(_STYLES[token.tag], self._open.pop())
                case "link_open":
                    self._open.append(self._units)
                    self._links.append((token, len(self._parts)))
                case "link_close":
                    self._end_link(*self._links.pop())
                case "image":
                    self._write(_PICTURE)
                    self._write_inline(token.children or ())
                    self._write_title(token)
                case _:
                    self._write(token.content)

    def _end_link(self, opened: Token, before: int) -> None:
        begin, words = self._open.pop(), "".join(self._parts[before:])
        address = str(opened.attrs.get("href", ""))
        if web_link(address) and len(words) <= MAX_LINK_CHARS and not misleads(words, address):
            self._style(MessageEntity.TEXT_LINK, begin, url=address)
        self._write_title(opened)

    def _write_title(self, token: Token) -> None:
        title = token.attrs.get("title")
        if title:
            self._write(f" ({title})")


def _task_of(tokens: Sequence[Token]) -> re.Match[str] | None:
    """Take the box of a task off the text that an item begins with."""
    paragraph = len(tokens) == 2 and tokens[0].type == "paragraph_open"  # noqa: PLR2004 - and its text
    first = tokens[1].children[0] if paragraph and tokens[1].children else None
    if first is not None and first.type == "text":
        found = _TASK.match(first.content)
    else:
        found = None
    if first is not None and found:
        first.content = first.content[found.end() :].lstrip()
    return found


def _order(entity: MessageEntity) -> tuple[int, int]:
    return entity.offset, -entity.length
