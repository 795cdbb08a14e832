"""Parsing of a shell script into simple commands, or the verdict that it is not understood.

Parsed with tree-sitter's bash grammar (https://github.com/tree-sitter/tree-sitter-bash). Only a small part of
the language is taken: literal words, pipes, lists, sub-shells and file redirections. Variables,
substitutions, loops, functions, here-documents and the rest are not, because what they will do cannot be read
from the text. Its words are read a second time by `shlex`; where the two disagree, nothing is believed.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_LONGEST = 10_000  # characters
_DEEPEST = 40
_OPERATORS = "();<>|&"
_EXPANDING = frozenset("\\{}$`")
_GLOB = frozenset("*?[]")
_ESCAPED_IN_QUOTES = '$`"\\'


class NotUnderstood(Exception):
    """The script uses what is not read here; the message says what."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word of a script. ``text`` is what the program gets; ``open``: the shell expands it."""

    text: str
    open: bool = False


@dataclass(frozen=True, slots=True)
class Redirect:
    operator: str
    target: ShellWord


@dataclass(frozen=True, slots=True)
class Simple:
    """One program with its arguments. ``fed``: another command's output is its input."""

    words: tuple[ShellWord, ...]
    redirects: tuple[Redirect, ...] = ()
    fed: bool = False
    background: bool = False


def parse_script(script: str) -> tuple[Simple, ...]:
    """Return every simple command that the script would run, in order. Raises NotUnderstood."""
    if len(script) > _LONGEST:
        raise NotUnderstood("it is very long")
    if any(not (each.isprintable() or each in "\n\t") for each in script):
        raise NotUnderstood("it has unprintable characters")
    tree = _parser().parse(script.encode())
    if tree.root_node.has_error:
        raise NotUnderstood("it is not valid shell")
    tokens: list[str] = []
    found = tuple(_statements(tree.root_node, tokens, 0))
    if not found:
        raise NotUnderstood("it is empty")
    if _split_operators(tokens) != _split_operators(_second_opinion(script)):
        raise NotUnderstood("it can be read in two ways")
    return found


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _second_opinion(script: str) -> list[str]:
    lexer = shlex.shlex(script, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError as error:
        raise NotUnderstood(str(error)) from None


def _split_operators(tokens: list[str]) -> list[str]:
    """Split operators into characters, since the two parsers cut runs of them differently."""
    return [
        part for token in tokens for part in (token if token and not token.strip(_OPERATORS) else [token])
    ]


def _statements(node: Node, tokens: list[str], depth: int) -> Iterator[Simple]:
    """Yield the commands under a program, a list, a pipeline or a sub-shell."""
    if depth > _DEEPEST:
        raise NotUnderstood("it is nested deeply")
    match node.type:
        case "command":
            yield _command(node, tokens)
        case "redirected_statement":
            yield from _read_redirected(node, tokens, depth)
        case "program" | "list" | "subshell" | "negated_command":
            yield from _row(node, tokens, depth)
        case "pipeline":
            for place, each in enumerate(_row(node, tokens, depth)):
                yield replace(each, fed=each.fed or place > 0)
        case other:
            raise NotUnderstood(f"it uses {other.replace('_', ' ')}")


def _row(node: Node, tokens: list[str], depth: int) -> Iterator[Simple]:
    before: list[Simple] = []
    for child in node.children:
        if child.is_named:
            yield from before
            before = list(_statements(child, tokens, depth + 1))
            continue
        if child.type not in ("&&", "||", ";", "|", "|&", "&", "(", ")", "!", "\n"):
            raise NotUnderstood(f"it uses {child.type}")
        if child.type.strip():
            tokens.append(child.type)
        if child.type == "&":
            before = [replace(each, background=True) for each in before]
    yield from before


def _read_redirected(node: Node, tokens: list[str], depth: int) -> Iterator[Simple]:
    """Yield a statement's commands, its redirections put on the last one: what they harm is the same."""
    body, *rest = node.children
    *before, last = _statements(body, tokens, depth + 1)
    redirects = tuple(_redirect(each, tokens) for each in rest)
    yield from before
    yield replace(last, redirects=(*last.redirects, *redirects))


def _command(node: Node, tokens: list[str]) -> Simple:
    if node.start_point.row != node.end_point.row:
        raise NotUnderstood("a command goes over several lines")
    words: list[ShellWord] = []
    redirects: list[Redirect] = []
    for child in node.children:
        if child.type == "file_redirect":
            redirects.append(_redirect(child, tokens))
            continue
        if child.type == "variable_assignment":
            raise NotUnderstood("it sets a variable")
        if child.type == "command_name" and child.child_count == 1:
            inner = child.children[0]
        else:
            inner = child
        words.append(_word(inner))
        tokens.append(words[-1].text)
    if not words or words[0].open:
        raise NotUnderstood("the name of a program is not plain")
    return Simple(tuple(words), tuple(redirects))


def _redirect(node: Node, tokens: list[str]) -> Redirect:
    if node.type != "file_redirect":
        raise NotUnderstood(f"it uses {node.type.replace('_', ' ')}")
    operator = ""
    targets: list[ShellWord] = []
    for child in node.children:
        if child.type == "file_descriptor":
            tokens.append(_text(child))
        elif child.is_named:
            targets.append(_word(child))
            tokens.append(targets[-1].text)
        else:
            operator = child.type
            tokens.append(operator)
    if len(targets) != 1:
        raise NotUnderstood("a redirection has no single target")
    return Redirect(operator, targets[0])


def _word(node: Node) -> ShellWord:
    text = _text(node)
    match node.type:
        case "word" | "number" if node.named_child_count == 0:
            if _EXPANDING & set(text):
                raise NotUnderstood("a word has a backslash, a brace or a variable")
            return ShellWord(text, open=text.startswith("~") or bool(_GLOB & set(text)))
        case "raw_string":
            return ShellWord(text[1:-1])
        case "string" if all(child.type in ('"', "string_content") for child in node.children):
            return ShellWord(_unquote(text[1:-1]))
        case "concatenation":
            parts = [_word(child) for child in node.children]
            return ShellWord("".join(part.text for part in parts), open=any(part.open for part in parts))
        case other:
            raise NotUnderstood(f"it uses {other.replace('_', ' ')}")


def _unquote(text: str) -> str:
    """Return the content of double quotes, with its escapes undone."""
    found = []
    letters = iter(text)
    for letter in letters:
        if letter in "$`":
            raise NotUnderstood("a quoted word has a variable")
        if letter != "\\":
            found.append(letter)
            continue
        escaped = next(letters, "")
        found.append(escaped if escaped and escaped in _ESCAPED_IN_QUOTES else letter + escaped)
    return "".join(found)


def _text(node: Node) -> str:
    return (node.text or b"").decode()
