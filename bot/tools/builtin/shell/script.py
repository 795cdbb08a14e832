"""Parsing of a shell script into simple commands, or the verdict that it is not understood.

The parser is tree-sitter's bash grammar (https://github.com/tree-sitter/tree-sitter-bash). Only a small part
of the language is accepted: literal words, pipes, lists, sub-shells and file redirections. Variables,
substitutions, loops, functions, here-documents and everything else are refused, because their effect cannot
be read from the text.

As a check `shlex` splits the script too. If its words and operators are not those that the grammar found, the
script is refused. For that comparison the functions that read a node append each word and operator to
``tokens``.
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
_REFUSED_CHARS = frozenset("\\{}$`")
_GLOB_CHARS = frozenset("*?[]")
_ESCAPABLE_CHARS = frozenset('$`"\\')  # inside double quotes


class NotUnderstood(Exception):
    """The script uses a construct that is not accepted here, which the message names."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word of a script, without its quotes."""

    text: str
    expands: bool = False  # the shell replaces it by names of files, or by a home folder


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection: an operator such as ``>>``, and the file, or the number of the stream, after it."""

    operator: str
    target: ShellWord


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its arguments."""

    words: tuple[ShellWord, ...]
    redirects: tuple[Redirect, ...] = ()
    reads_pipe: bool = False  # True if its input is another command's output
    background: bool = False  # True if the shell does not wait for its end: "&" follows


def parse_script(script: str) -> tuple[SimpleCommand, ...]:
    """Return every simple command that the script would run, in order. Raises NotUnderstood."""
    if len(script) > _MAX_SCRIPT_CHARS:
        raise NotUnderstood("it is very long")
    if not all(char.isprintable() or char in "\n\t" for char in script):
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
        if is_operator:
            parts.extend(token)  # character by character
        else:
            parts.append(token)
    return parts


def _read_statements(node: Node, tokens: list[str], depth: int) -> Iterator[SimpleCommand]:
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
            # The first command reads no pipe. Nor do the later commands of a sub-shell at the front, but they
            # count as if they did: that errs on the safe side.
            for position, command in enumerate(_read_children(node, tokens, depth)):
                yield replace(command, reads_pipe=command.reads_pipe or position > 0)
        case other:
            raise NotUnderstood(f"it uses {other.replace('_', ' ')}")


def _read_children(node: Node, tokens: list[str], depth: int) -> Iterator[SimpleCommand]:
    """Yield the commands of a node's children, which operators separate.

    A statement's commands are yielded once the operator after it is read: ``&`` puts them in the background.
    """
    commands: list[SimpleCommand] = []
    for child in node.children:
        if child.is_named:
            yield from commands
            commands = list(_read_statements(child, tokens, depth + 1))
            continue
        operator = child.type
        if operator not in ("&&", "||", ";", "|", "|&", "&", "(", ")", "!", "\n"):
            raise NotUnderstood(f"it uses {operator}")
        if operator != "\n":
            tokens.append(operator)
        if operator == "&":
            commands = [replace(command, background=True) for command in commands]
    yield from commands


def _read_redirected(node: Node, tokens: list[str], depth: int) -> Iterator[SimpleCommand]:
    """Yield a statement's commands, with the statement's redirections added to the last one.

    For the risk it is enough that one of these commands has them.
    """
    statement, *redirections = node.children
    *commands, last = _read_statements(statement, tokens, depth + 1)
    redirects = tuple(_read_redirect(redirection, tokens) for redirection in redirections)
    yield from commands
    yield replace(last, redirects=(*last.redirects, *redirects))


def _read_command(node: Node, tokens: list[str]) -> SimpleCommand:
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
        # the grammar wraps the program's word in a node
        if child.type == "command_name" and child.child_count == 1:
            word = _read_word(child.children[0])
        else:
            word = _read_word(child)
        words.append(word)
        tokens.append(word.text)
    if not words or words[0].expands:
        raise NotUnderstood("the name of a program is not plain")
    return SimpleCommand(tuple(words), tuple(redirects))


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
            if _REFUSED_CHARS & set(text):
                raise NotUnderstood("a word has a backslash, a brace or a variable")
            return ShellWord(text, expands=text.startswith("~") or bool(_GLOB_CHARS & set(text)))
        case "raw_string":
            return ShellWord(text[1:-1])
        case "string" if all(child.type in ('"', "string_content") for child in node.children):
            return ShellWord(_unquote(text[1:-1]))
        case "concatenation":
            parts = [_read_word(child) for child in node.children]
            joined_text = "".join(part.text for part in parts)
            return ShellWord(joined_text, expands=any(part.expands for part in parts))
        case other:
            raise NotUnderstood(f"it uses {other.replace('_', ' ')}")


def _unquote(text: str) -> str:
    """Return the content of double quotes, with its escapes undone."""
    content = []
    chars = iter(text)
    for char in chars:
        if char in "$`":
            raise NotUnderstood("a quoted word has a variable")
        if char != "\\":
            content.append(char)
            continue
        escaped = next(chars, "")
        if escaped not in _ESCAPABLE_CHARS:
            content.append(char)  # before any other character a backslash stays
        content.append(escaped)
    return "".join(content)


def _text_of(node: Node) -> str:
    return (node.text or b"").decode()
