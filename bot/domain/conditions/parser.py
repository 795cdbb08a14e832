"""The parser of conditions: a text becomes an expression, or an error that says what to write.

The grammar, with words in any case::

    any    = all ("or" all)*
    all    = one ("and" one)*
    one    = "not" one | "(" any ")" | field compared
             | "connection" "is" ("nod" | "person" | "place")
             | "risk" "is" ("read" | "write" | "destructive")
    compared = ("=" | "==" | "!=") value | ("<" | "<=" | ">" | ">=") NUMBER
             | ["not"] "in" "(" value ("," value)* ")" | ["not"] "matches" TEXT
    field  = PATH | "host" "(" PATH ")"       where PATH is NAME ("." NAME | "." NUMBER)*
    value  = NUMBER | "true" | "false" | WORD | "quoted text"

``connection is person`` is about the account under which the call is made, ``risk is destructive`` about the
risk of the call; neither is about an argument.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from bot.domain.conditions.expressions import (
    ORDER,
    Comparison,
    ConnectionIs,
    Expression,
    FieldRef,
    Not,
    RiskIs,
    Several,
    Value,
)
from bot.domain.conditions.hints import OPERATORS, hint_at_date, hint_at_operator
from bot.domain.conditions.schemas import MAX_DEPTH, NUMBER, kind_of
from bot.domain.connections import Identity
from bot.domain.risks import Level

_Word = TypeVar("_Word", Identity, Level)
MAX_CONDITION_CHARS = 500
_EXAMPLE = "An example: where amount > 100 and currency in (EUR, USD)"
# after any white space: a text in double or single quotes, a sign, or a word; one group for each of the four
_TOKEN = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(<=|>=|!=|==|[=<>(),])|([^\s"'=<>!(),]+))""")
_FOREIGN_SIGN_CHARS = 2  # a sign of another language, such as "<>", is read as two tokens
_QUOTES = str.maketrans("\u201c\u201d\u201e\u2018\u2019", '"""\'\'')  # the quotes that phones write
_PATH = re.compile(r"[^\W\d][\w-]*(\.[\w-]+)*")
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


class ConditionError(ValueError):
    """A condition that does not parse; the message names the word that is wrong and gives an example."""


def parse_expression(text: str) -> tuple[str, Expression]:
    """Return a condition's text in its plain form, and its expression. Raises ConditionError.

    The plain form has single spaces and straight quotes, also inside a quoted text.
    """
    plain = " ".join(text.translate(_QUOTES).split())
    if len(plain) > MAX_CONDITION_CHARS:
        raise ConditionError(
            f"A condition has at most {MAX_CONDITION_CHARS} characters. This has {len(plain)}."
        )
    return plain, _Parser(plain).parse()


class _Token(NamedTuple):
    """A word, sign or quoted text of a condition."""

    text: str
    is_quoted: bool = False

    def is_word(self, *words: str) -> bool:
        return not self.is_quoted and self.text.lower() in words


def _tokenize(text: str) -> Iterator[_Token]:
    end = 0
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None:
            raise ConditionError(f"`{text[end:].strip()[:40]}` can't be read here. {_EXAMPLE}.")
        end = match.end()
        double_quoted, single_quoted, sign, word = match.groups()
        if double_quoted is not None:
            yield _Token(double_quoted, is_quoted=True)
        elif single_quoted is not None:
            yield _Token(single_quoted, is_quoted=True)
        else:
            yield _Token(sign or word)


class _Parser:
    """Parses a condition by recursive descent, one method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokenize(text))
        self._position = 0
        self._depth = 0

    def parse(self) -> Expression:
        expression = self._parse_any()
        if self._position < len(self._tokens):
            raise self._make_error(" Write `where` and its condition last.")
        return expression

    def _parse_any(self) -> Expression:
        parts = [self._parse_all()]
        while self._take_if("or"):
            parts.append(self._parse_all())
        if len(parts) == 1:
            return parts[0]
        return Several(tuple(parts), decisive=True)  # one part that is True decides

    def _parse_all(self) -> Expression:
        parts = [self._parse_one()]
        while self._take_if("and"):
            parts.append(self._parse_one())
        if len(parts) == 1:
            return parts[0]
        return Several(tuple(parts), decisive=False)  # one part that is False decides

    def _parse_one(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:  # the comparison in the brackets counts, too
            raise ConditionError(f"This is nested too deeply: at most {MAX_DEPTH} brackets and nots.")
        expression: Expression
        if self._take_if("not"):
            expression = Not(self._parse_one())
        elif self._take_if("("):
            expression = self._parse_any()
            self._require(")")
        elif self._is_at("connection") and self._is_at("is", ahead=1):
            expression = ConnectionIs(self._parse_word(Identity))
        elif self._is_at("risk") and self._is_at("is", ahead=1):
            expression = RiskIs(self._parse_word(Level))
        else:
            expression = self._parse_comparison(self._parse_field())
        self._depth -= 1
        return expression

    def _parse_word(self, words: type[_Word]) -> _Word:
        """Parse ``NAME is WORD``, and return the member of the enum ``words`` that the word is."""
        name = self._peek().text.lower()
        self._position += 2
        word = self._peek().text.lower()
        if word not in set(words):
            raise self._make_error(f" After `{name} is` comes {', '.join(words)}.")
        self._position += 1
        return words(word)

    def _parse_field(self) -> FieldRef:
        self._peek()
        is_host = self._is_at("host") and self._is_at("(", ahead=1)
        if is_host:
            self._position += 2
        name = self._peek()
        path = tuple(name.text.split("."))
        if name.is_quoted or not _PATH.fullmatch(name.text) or len(path) > MAX_DEPTH:
            raise self._make_error(" Name a field of the tool.")
        self._position += 1
        if is_host:
            self._require(")")
        return FieldRef(path, is_host)

    def _parse_comparison(self, field: FieldRef) -> Expression:
        signs = "".join(token.text for token in self._list_next(2) if not token.is_quoted)
        if signs in OPERATORS and len(signs) == _FOREIGN_SIGN_CHARS:
            raise self._make_error(hint_at_operator(signs, field.name))
        if self._take_if("not"):
            return Not(self._parse_set_or_pattern(field))
        if self._take_if("=") or self._take_if("=="):
            return _make_membership(field, [self._parse_value()])
        if self._take_if("!="):
            return Not(_make_membership(field, [self._parse_value()]))
        if self._peek().text in ORDER:
            return self._parse_order(field)
        return self._parse_set_or_pattern(field)

    def _parse_set_or_pattern(self, field: FieldRef) -> Comparison:
        if self._take_if("in"):
            self._require("(")
            values = [self._parse_value()]
            while self._take_if(","):
                values.append(self._parse_value())
            self._require(")")
            return _make_membership(field, values)
        if self._take_if("matches"):
            return Comparison(field, "matches", (self._take_value().text,))
        next_tokens = self._list_next(2)
        following = next_tokens[1].text if len(next_tokens) > 1 else ""
        hint = hint_at_date(following, field.name) or hint_at_operator(self._peek().text, field.name)
        raise self._make_error(hint)

    def _parse_order(self, field: FieldRef) -> Comparison:
        sign = self._peek().text
        self._position += 1
        value = self._parse_value()
        if kind_of(value) != NUMBER:
            self._position -= 1
            raise self._make_error(hint_at_date(str(value), field.name) or f" After {sign} comes a number.")
        return Comparison(field, sign, (value,))  # type: ignore[arg-type]

    def _parse_value(self) -> Value:
        token = self._take_value()
        if token.is_quoted:
            return token.text
        if _NUMBER.fullmatch(token.text):
            return float(token.text) if "." in token.text else int(token.text)
        if token.is_word("true", "false"):
            return token.is_word("true")
        return token.text

    def _take_value(self) -> _Token:
        token = self._peek()
        if token.is_word("(", ")", ",", *ORDER):
            raise self._make_error(" A value belongs here.")
        self._position += 1
        return token

    def _peek(self) -> _Token:
        if self._position == len(self._tokens):
            raise ConditionError(f"The condition stops too early. {_EXAMPLE}.")
        return self._tokens[self._position]

    def _list_next(self, count: int) -> list[_Token]:
        return self._tokens[self._position : self._position + count]

    def _is_at(self, word: str, *, ahead: int = 0) -> bool:
        """Tell if the next token, or the token ``ahead`` places after it, is this word."""
        position = self._position + ahead
        return position < len(self._tokens) and self._tokens[position].is_word(word)

    def _take_if(self, word: str) -> bool:
        """Take the next token if it is this word, and tell if it was."""
        is_taken = self._is_at(word)
        if is_taken:
            self._position += 1
        return is_taken

    def _require(self, word: str) -> None:
        self._peek()
        if not self._take_if(word):
            raise self._make_error(f" `{word}` belongs here.")

    def _make_error(self, hint: str) -> ConditionError:
        return ConditionError(f"`{self._peek().text[:40]}` does not fit here.{hint} {_EXAMPLE}.")


def _make_membership(field: FieldRef, values: Sequence[Value]) -> Comparison:
    """Return the comparison of a field with these values, any of which may fit; hosts in lower case."""
    if field.is_host:
        return Comparison(field, "in", tuple(str(value).lower() for value in values))
    return Comparison(field, "in", tuple(values))
