"""Parsing of a shell script into simple commands, or the verdict that it is not understood.

Parsed with tree-sitter's bash grammar (https://github.com/tree-sitter/tree-sitter-bash). Only a small part of
the language is accepted: literal words, pipes, lists, sub-shells and file redirections. Variables,
substitutions, loops, functions, here-documents and everything else are refused, because their effect cannot
be read from the text. The words are also split by `shlex`; if the two disagree, the script is refused.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_MAX_SCRIPT_CHARS = 10_000
_MAX_DEPTH = 40
_OPERATORS = "();<>|&"
_EXPANDING_CHARS = frozenset("\\{}$`")
_GLOB_CHARS = frozenset("*?[]")
_ESCAPABLE_CHARS = '$`"\\'


class NotUnderstood(Exception):
    """The script uses a construct that is not accepted here, which the message names."""


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
    if len(script) > _MAX_SCRIPT_CHARS:
        raise NotUnderstood("it is very long")
    if any(not (char.isprintable() or char in "\n\t") for char in script):
        raise NotUnderstood("it has unprintable characters")
    tree = _make_parser().parse(script.encode())
    if tree.root_node.has_error:
        raise NotUnderstood("it is not valid shell")
    tokens: list[str] = []
    commands = tuple(_read_statements(tree.root_node, tokens, 0))
    if not commands:
        raise NotUnderstood("it is empty")
    if _split_operators(tokens) != _split_operators(_split_by_shlex(script)):
        raise NotUnderstood("it can be read in two ways")
    return commands


@cache
def _make_parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _split_by_shlex(script: str) -> list[str]:
    lexer = shlex.shlex(script, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError as error:
        raise NotUnderstood(str(error)) from None


def _split_operators(tokens: list[str]) -> list[str]:
    """Split operators into characters, since the two parsers cut runs of them differently."""
    parts: list[str] = []
    for token in tokens:
        is_operator = token and not token.strip(_OPERATORS)
        parts += token if is_operator else [token]
    return parts


def _read_statements(node: Node, tokens: list[str], depth: int) -> Iterator[Simple]:
    """Yield the commands under a program, a list, a pipeline or a sub-shell."""
    if depth > _MAX_DEPTH:
        raise NotUnderstood("it is nested deeply")
    match node.type:
        case "command":
            yield _read_command(node, tokens)
        case "redirected_statement":
            yield from _read_redirected(node, tokens, depth)
        case "program" | "list" | "subshell" | "negated_command":
            yield from _read_children(node, tokens, depth)
        case "pipeline":
            for position, command in enumerate(_read_children(node, tokens, depth)):
                yield replace(command, fed=command.fed or position > 0)
        case other:
            raise NotUnderstood(f"it uses {other.replace('_', ' ')}")


def _read_children(node: Node, tokens: list[str], depth: int) -> Iterator[Simple]:
    """Yield the commands of a node's children, which operators separate."""
    commands: list[Simple] = []
    for child in node.children:
        if child.is_named:
            yield from commands
            commands = list(_read_statements(child, tokens, depth + 1))
            continue
        if child.type not in ("&&", "||", ";", "|", "|&", "&", "(", ")", "!", "\n"):
            raise NotUnderstood(f"it uses {child.type}")
        if child.type.strip():
            tokens.append(child.type)
        if child.type == "&":
            commands = [replace(command, background=True) for command in commands]
    yield from commands


def _read_redirected(node: Node, tokens: list[str], depth: int) -> Iterator[Simple]:
    """Yield a statement's commands. Its redirections are added to the last one: their harm is the same."""
    body, *redirections = node.children
    *first, last = _read_statements(body, tokens, depth + 1)
    redirects = tuple(_read_redirect(redirection, tokens) for redirection in redirections)
    yield from first
    yield replace(last, redirects=(*last.redirects, *redirects))


def _read_command(node: Node, tokens: list[str]) -> Simple:
    if node.start_point.row != node.end_point.row:
        raise NotUnderstood("a command goes over several lines")
    words: list[ShellWord] = []
    redirects: list[Redirect] = []
    for child in node.children:
        if child.type == "file_redirect":
            redirects.append(_read_redirect(child, tokens))
            continue
        if child.type == "variable_assignment":
            raise NotUnderstood("it sets a variable")
        is_name = child.type == "command_name" and child.child_count == 1
        words.append(_read_word(child.children[0] if is_name else child))
        tokens.append(words[-1].text)
    if not words or words[0].open:
        raise NotUnderstood("the name of a program is not plain")
    return Simple(tuple(words), tuple(redirects))


def _read_redirect(node: Node, tokens: list[str]) -> Redirect:
    if node.type != "file_redirect":
        raise NotUnderstood(f"it uses {node.type.replace('_', ' ')}")
    operator = ""
    targets: list[ShellWord] = []
    for child in node.children:
        if child.type == "file_descriptor":
            tokens.append(_text_of(child))
        elif child.is_named:
            targets.append(_read_word(child))
            tokens.append(targets[-1].text)
        else:
            operator = child.type
            tokens.append(operator)
    if len(targets) != 1:
        raise NotUnderstood("a redirection has no single target")
    return Redirect(operator, targets[0])


def _read_word(node: Node) -> ShellWord:
    text = _text_of(node)
    match node.type:
        case "word" | "number" if node.named_child_count == 0:
            if _EXPANDING_CHARS & set(text):
                raise NotUnderstood("a word has a backslash, a brace or a variable")
            return ShellWord(text, open=text.startswith("~") or bool(_GLOB_CHARS & set(text)))
        case "raw_string":
            return ShellWord(text[1:-1])
        case "string" if all(child.type in ('"', "string_content") for child in node.children):
            return ShellWord(_unquote(text[1:-1]))
        case "concatenation":
            parts = [_read_word(child) for child in node.children]
            return ShellWord("".join(part.text for part in parts), open=any(part.open for part in parts))
        case other:
            raise NotUnderstood(f"it uses {other.replace('_', ' ')}")


def _unquote(text: str) -> str:
    """Return the content of double quotes, with its escapes undone."""
    content = []
    letters = iter(text)
    for letter in letters:
        if letter in "$`":
            raise NotUnderstood("a quoted word has a variable")
        if letter != "\\":
            content.append(letter)
            continue
        escaped = next(letters, "")
        content.append(escaped if escaped and escaped in _ESCAPABLE_CHARS else letter + escaped)
    return "".join(content)


def _text_of(node: Node) -> str:
    return (node.text or b"").decode()
