"""Style sheets of web pages: their rules, and the values that hold for an element.

The terms are those of CSS: a rule has a selector and, in braces, declarations (``color: red``). A selector is
a chain of compounds with a combinator before each but the first: ``div.a > p`` has the compounds ``div.a``
and ``p``. A compound is a list of conditions that an element must meet (``div``, ``.a``, ``:first-child``). A
rule whose selector is not understood is counted, never guessed.

`StyleSheets.add` takes the sheets of a page one after the other: `_SheetReader` splits each into rules, and
`_parse_selectors` parses their selectors. `StyleSheets.find` returns the values that hold for an element. The
conditions of at-rules (``@media``) and cascade layers are in ``at_rules.py``.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bot.tools.reading.markup import local_name
from bot.tools.reading.unseen.at_rules import LayerRank, Layers, judge_at_rule

_MAX_RULES = 20_000
_MAX_NESTING = 20
_IGNORED_RULES = ("@font-face", "@keyframes", "@-webkit-keyframes", "@page", "@property", "@counter-style")
_CONDITION_RULES = ("@media", "@supports", "@layer", "@container", "@scope", "@document", "@starting-style")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_TOKEN = re.compile(
    r"""[^{};"'\\()]++ | \\. | "(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'? | [{};()\\]""",
    re.DOTALL | re.VERBOSE,
)
"""One piece of a style sheet: plain text, an escape, a quoted text, or one of the marks ``{ } ; ( )``."""
_PIECE = re.compile(
    r"""[^;,"'()\[\]\\]++ | "(?:[^"\\]|\\.)*+"? | '(?:[^'\\]|\\.)*+'? | \\. | .""", re.DOTALL | re.VERBOSE
)
"""One piece of a text that `_split` divides: plain text, a quoted text, an escape, or a single mark."""
_DECLARATION = re.compile(r"\s*(-{0,2}[A-Za-z][\w-]*|--[\w-]+)\s*:(.*)", re.DOTALL)
_IMPORTANT = re.compile(r"!\s*important\s*$", re.IGNORECASE)
_NAME = r"(?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\[^0-9a-fA-F])++"
# one condition of a selector: "p", "#id", ".class", "[href^='x' i]", ":not(" or "::before"
_CONDITION = re.compile(
    rf"""
    (?P<tag>\*|{_NAME}) | \#(?P<id>{_NAME}) | \.(?P<class>{_NAME})
    | \[\s*(?P<attribute>{_NAME})\s*(?:(?P<operator>[~|^$*]?=)\s*
      (?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>{_NAME}))\s*(?P<flag>[iIsS])?\s*)?\]
    | ::?(?P<pseudo>[\w-]+)(?P<opens>\()?
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)  # "\31 " (a character's number), "\:"
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")  # blanks alone stand for "any ancestor"
_STATES = frozenset({  # states that no element has before someone touches the page
    "hover", "focus", "focus-within", "focus-visible", "active", "visited", "target",
    "target-within", "indeterminate", "fullscreen", "modal", "popover-open",
    "invalid", "user-invalid", "playing",
    "placeholder-shown", "autofill", "paused", "current", "past", "future",
})  # fmt: skip
_TRUE_CLASSES = frozenset({  # pseudo-classes that are taken as true
    "valid", "defined", "read-only", "read-write", "optional", "scope",
})  # fmt: skip
_POSITION_CLASSES = frozenset({  # pseudo-classes for an element's place among others
    "root", "first-child", "last-child", "only-child", "first-of-type", "last-of-type", "empty",
})  # fmt: skip
_BY_ATTRIBUTE = {  # the attributes of which an element must have one, by pseudo-class
    "link": ("href",), "any-link": ("href",), "checked": ("checked", "selected"), "disabled": ("disabled",),
    "open": ("open",), "required": ("required",),
}  # fmt: skip
_ANY_OF_CLASSES = frozenset({"is", "where", "matches", "any", "-webkit-any", "-moz-any"})
"""Pseudo-classes that hold if one of the selectors in their brackets matches."""
_PSEUDO_ELEMENTS = frozenset({
    "before", "after", "first-line", "first-letter", "selection", "placeholder", "marker", "backdrop",
    "file-selector-button",
})  # fmt: skip
_NTH = re.compile(r"([+-]?\d*)n\s*(?:([+-])\s*(\d+))?|([+-]?\d+)")  # "2n+1", or a number alone

Specificity = tuple[int, int, int]
"""The weight of a selector: the numbers of its ids, of its classes and attributes, and of its tags."""
_NO_SPECIFICITY: Specificity = (0, 0, 0)


class _UnknownSelectorError(Exception):
    """A selector has a part that is not understood."""


class _MatchesNothingError(Exception):
    """A selector can match no text: it is for a state (``:hover``) or a pseudo-element (``::before``)."""


class _Weight(NamedTuple):
    """The rank of a declaration: of those for one property, the largest wins."""

    is_important: bool
    is_inline: bool  # True in a ``style`` attribute
    layer: LayerRank
    specificity: Specificity
    order: int  # the number of its rule, in the order of the sheets


@dataclass(frozen=True, slots=True)
class Declaration:
    """One property's value."""

    name: str
    value: str
    weight: _Weight
    is_certain: bool = True
    """False below an at-rule whose condition can't be judged."""


@dataclass(frozen=True, slots=True)
class _AtRules:
    """The at-rules around a rule."""

    is_certain: bool = True  # False if the condition of one of them can't be judged
    layer: str = ""  # the full name of the cascade layer; empty outside all layers


@dataclass(frozen=True, slots=True)
class _Condition:
    """One condition on an element, such as a class."""

    kind: str  # tag, id, class, attribute, is, not or pseudo
    name: str
    value: str = ""
    operator: str = ""
    selectors: tuple["_Selector", ...] = ()  # the selectors inside ``:not()`` or ``:is()``


@dataclass(frozen=True, slots=True)
class _Compound:
    """A compound of a selector, and the combinator before it."""

    combinator: str  # ">", "+", "~", " " for any ancestor; empty before the first compound
    conditions: tuple[_Condition, ...]


@dataclass(frozen=True, slots=True)
class _Selector:
    """A selector: its compounds from left to right."""

    compounds: tuple[_Compound, ...]

    @property
    def specificity(self) -> Specificity:
        ids = classes = tags = 0
        for compound in self.compounds:
            for condition in compound.conditions:
                if condition.kind == "id":
                    ids += 1
                elif condition.kind in ("class", "attribute", "pseudo"):
                    classes += 1
                elif condition.kind == "tag" and condition.name != "*":
                    tags += 1
                if condition.selectors and condition.name != "where":  # `:where()` adds no weight
                    inner = max(selector.specificity for selector in condition.selectors)
                    inner_ids, inner_classes, inner_tags = inner
                    ids += inner_ids
                    classes += inner_classes
                    tags += inner_tags
        return ids, classes, tags


class _Rule(NamedTuple):
    """A rule with one selector; a rule with a list of selectors becomes several."""

    selector: _Selector
    declarations: list[Declaration]


@dataclass(slots=True)
class StyleSheets:
    """The rules of a page that set one of the ``wanted`` properties."""

    wanted: frozenset[str]
    unread_rules: int = 0
    """The number of rules with a wanted property that are not read.

    Their selectors are not understood, or `_MAX_RULES` rules came before.
    """
    imports: int = 0
    """The number of ``@import`` rules; the sheets that they name are not read."""
    has_uncertain_rules: bool = False
    """True if a rule is below an at-rule whose condition can't be judged."""
    layers: Layers = field(default_factory=Layers)
    _rules: dict[tuple[str, str], list[_Rule]] = field(default_factory=dict)
    """The rules by the key that `_find_key` returns for their selector."""
    _rule_count: int = 0
    """The number of rules so far, which orders their declarations."""

    @property
    def assumptions(self) -> tuple[bool, ...]:
        """The ways to treat conditions that can't be judged: as met (True), and as not met (False).

        Only True if the page has no such conditions.
        """
        return (True, False) if self.has_uncertain_rules else (True,)

    def add(self, sheet: str, *, is_certain: bool) -> None:
        """Add the rules of one sheet, after those of earlier sheets.

        ``is_certain``: False if it can't be judged whether the sheet is for this window.
        """
        _SheetReader(self, _COMMENT.sub(" ", sheet), _AtRules(is_certain)).read("", 0)

    def find(self, element: Any) -> list[dict[str, str]]:
        """Return the values that hold for an element by property, including its ``style`` attribute.

        There is one result for each of the `assumptions`.
        """
        declarations = list(self._list_matching(element))
        inline = element.get("style")
        if inline:
            body = _COMMENT.sub(" ", inline)
            declarations += self._parse_declarations(body, _NO_SPECIFICITY, _AtRules(), is_inline=True)
        declarations.sort(key=lambda declaration: declaration.weight)
        results = []
        for is_met in self.assumptions:
            applied = [declaration for declaration in declarations if is_met or declaration.is_certain]
            # in the order of their weights, so that the last value of a property wins
            results.append({declaration.name: declaration.value for declaration in applied})
        return results

    def add_rule(self, selectors_text: str, body: str, at_rules: _AtRules) -> None:
        """Add a rule if it sets a wanted property or a variable."""
        # they are parsed below once more, with the specificity of each selector
        if not any(self._parse_declarations(body, _NO_SPECIFICITY, at_rules)):
            return
        self._rule_count += 1
        if self._rule_count > _MAX_RULES:
            self.unread_rules += 1
            return
        try:
            selectors = _parse_selectors(selectors_text)
        except _UnknownSelectorError:
            self.unread_rules += 1
            return
        self.has_uncertain_rules = self.has_uncertain_rules or not at_rules.is_certain
        for selector in selectors:
            declarations = list(self._parse_declarations(body, selector.specificity, at_rules))
            self._rules.setdefault(_find_key(selector), []).append(_Rule(selector, declarations))

    def _parse_declarations(
        self,
        body: str,
        specificity: Specificity,
        at_rules: _AtRules,
        *,
        is_inline: bool = False,
    ) -> Iterator[Declaration]:
        """Yield the declarations of wanted properties, and of variables, in the body of a rule."""
        rank = self.layers.rank(at_rules.layer)
        for text in _split(body, ";"):
            match = _DECLARATION.match(text)
            if not match:
                continue
            name = match[1]
            value = match[2].strip()
            is_variable = name.startswith("--")
            if not is_variable:
                name = name.lower()
            is_important = _IMPORTANT.search(value) is not None
            value = _IMPORTANT.sub("", value).strip()
            if is_variable or name in self.wanted:
                # among important declarations, layers rank the other way round
                layer_rank = tuple(-place for place in rank) if is_important else rank
                weight = _Weight(is_important, is_inline, layer_rank, specificity, self._rule_count)
                yield Declaration(name, value, weight, at_rules.is_certain)

    def _list_matching(self, element: Any) -> Iterator[Declaration]:
        """Yield the declarations of the rules that match an element, its ``style`` attribute apart."""
        keys = [("tag", "*"), ("tag", local_name(element).lower())]
        keys += [("class", name) for name in element.get("class", "").split()]
        if element.get("id"):
            keys.append(("id", element.get("id")))
        for key in keys:
            for rule in self._rules.get(key, ()):
                if _matches(element, rule.selector):
                    yield from rule.declarations


def _find_key(selector: _Selector) -> tuple[str, str]:
    """Return a pair of a kind and a name: the id, class or tag that an element must have to match."""
    conditions = selector.compounds[-1].conditions
    for kind in ("id", "class", "tag"):
        for condition in conditions:
            if condition.kind == kind:
                return kind, condition.name
    return "tag", "*"


@dataclass(slots=True)
class _SheetReader:
    """A reader of one sheet's rules, including rules inside other rules."""

    sheets: StyleSheets
    text: str
    at_rules: _AtRules  # around the current position
    position: int = 0

    def read(self, outer_selectors: str, depth: int) -> None:
        """Add the rules up to the end of the current block.

        ``outer_selectors``: the selectors of the rule that the block belongs to, as text; empty outside a
        rule. ``depth``: the number of blocks around it.
        """
        statement: list[str] = []
        declarations: list[str] = []
        while token := _TOKEN.match(self.text, self.position):
            self.position = token.end()
            if token[0] == "{":
                # declarations before a nested rule come before it in the order of rules, too
                self._add_declarations(outer_selectors, declarations)
                declarations = []
                self._read_block("".join(statement).strip(), outer_selectors, depth)
                statement = []
            elif token[0] == ";":
                self._end_statement("".join(statement).strip(), declarations)
                statement = []
            elif token[0] == "}":
                break
            else:
                statement.append(token[0])
        declarations.append("".join(statement))
        self._add_declarations(outer_selectors, declarations)

    def _add_declarations(self, selectors: str, declarations: list[str]) -> None:
        if selectors:
            self.sheets.add_rule(selectors, ";".join(declarations), self.at_rules)

    def _end_statement(self, statement: str, declarations: list[str]) -> None:
        if statement.lower().startswith("@import"):
            self.sheets.imports += 1
        elif statement.lower().startswith("@layer"):  # only names layers, and so sets their order
            for name in statement[len("@layer") :].split(","):
                self.sheets.layers.add(self.at_rules.layer, name)
        elif not statement.startswith("@"):
            declarations.append(statement)

    def _read_block(self, prelude: str, outer_selectors: str, depth: int) -> None:
        """Read or skip a block. ``prelude``: the text before its brace, a selector or an at-rule."""
        name = prelude.lower()
        if depth > _MAX_NESTING or name.startswith(_IGNORED_RULES):
            self._skip_block()
        elif name.startswith(_CONDITION_RULES):
            self._read_conditional_block(prelude, outer_selectors, depth)
        elif name.startswith("@"):
            self._skip_block()
        else:
            self.read(_nest(prelude, outer_selectors), depth + 1)

    def _read_conditional_block(self, prelude: str, outer_selectors: str, depth: int) -> None:
        """Read the block of an at-rule, or skip it if its condition does not hold."""
        is_met = judge_at_rule(prelude)
        if is_met is False:
            self._skip_block()
            return
        outer_at_rules = self.at_rules
        layer = outer_at_rules.layer
        if prelude.lower().startswith("@layer"):
            layer = self.sheets.layers.add(layer, prelude[len("@layer") :])
        self.at_rules = _AtRules(outer_at_rules.is_certain and is_met is True, layer)
        self.read(outer_selectors, depth + 1)
        self.at_rules = outer_at_rules

    def _skip_block(self) -> None:
        depth = 1
        while depth and (token := _TOKEN.match(self.text, self.position)):
            self.position = token.end()
            if token[0] == "{":
                depth += 1
            elif token[0] == "}":
                depth -= 1


def _nest(inner: str, outer: str) -> str:
    """Return the selectors of a rule inside another, written out; ``&`` stands for the outer selector."""
    if not outer:
        return inner
    parent = f":is({outer})" if "," in outer else outer
    selectors = []
    for selector in _split(inner, ","):
        if "&" in selector:
            selectors.append(selector.replace("&", parent))
        else:
            selectors.append(f"{parent} {selector.strip()}")
    return ",".join(selectors)


def _split(text: str, separator: str) -> Iterator[str]:
    """Yield the parts of a text between separators; separators in quotes or brackets don't count."""
    part: list[str] = []
    depth = 0
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece in ("(", "["):
            depth += 1
        elif piece in (")", "]"):
            depth -= 1
        if piece == separator and depth <= 0:
            yield "".join(part)
            part = []
        else:
            part.append(piece)
    yield "".join(part)


def _parse_selectors(text: str) -> list[_Selector]:
    """Return the selectors of a list, except those that can match no text."""
    selectors = []
    for selector in _split(text, ","):
        try:
            selectors.append(_parse_selector(selector.strip()))
        except _MatchesNothingError:
            continue
    return selectors


def _parse_selector(text: str) -> _Selector:
    compounds: list[_Compound] = []
    combinator = ""
    conditions: list[_Condition] = []
    position = 0
    while position < len(text):
        between = _COMBINATOR.match(text, position)
        if between is None:
            condition, position = _parse_condition(text, position)
            conditions.append(condition)
            continue
        is_leading_combinator = not conditions and not compounds and between[1] is not None  # as in "> p"
        if not is_leading_combinator:
            compounds.append(_Compound(combinator, tuple(conditions)))
        combinator = between[1] or " "
        conditions = []
        position = between.end()
    if not conditions:
        raise _UnknownSelectorError
    return _Selector((*compounds, _Compound(combinator, tuple(conditions))))


def _parse_condition(text: str, position: int) -> tuple[_Condition, int]:
    """Return the condition that begins at a position of a selector, and the position after it."""
    match = _CONDITION.match(text, position)
    if not match:
        raise _UnknownSelectorError
    if match["pseudo"]:
        return _parse_pseudo(text, match)
    if match["id"]:
        return _Condition("id", _unescape(match["id"])), match.end()
    if match["class"]:
        return _Condition("class", _unescape(match["class"])), match.end()
    if match["tag"]:
        return _Condition("tag", _unescape(match["tag"]).lower()), match.end()
    value = match["double"] or match["single"] or match["bare"] or ""
    name = _unescape(match["attribute"]).lower()
    return _Condition("attribute", name, value, match["operator"] or ""), match.end()


def _parse_pseudo(text: str, match: re.Match[str]) -> tuple[_Condition, int]:
    """Return the condition of a pseudo-class, such as ``:not(.a)``, and the position after it."""
    name = match["pseudo"].lower()
    end = match.end()
    argument = ""
    if match["opens"]:
        end = _find_closing(text, match.end())
        argument = text[match.end() : end - 1]
    if name in _STATES or name in _PSEUDO_ELEMENTS or name.startswith(("-webkit-", "-moz-", "-ms-")):
        raise _MatchesNothingError
    if name == "not":
        return _Condition("not", name, selectors=tuple(_parse_selectors(argument))), end
    if name in _ANY_OF_CLASSES:
        selectors = tuple(_parse_selectors(argument))
        if not selectors:
            raise _MatchesNothingError
        return _Condition("is", name, selectors=selectors), end
    if name in ("nth-child", "nth-last-child", "nth-of-type") and " of " not in argument:
        return _Condition("pseudo", name, argument.strip().lower()), end
    if name in _TRUE_CLASSES | _POSITION_CLASSES | _BY_ATTRIBUTE.keys():
        return _Condition("pseudo", name), end
    raise _UnknownSelectorError


def _find_closing(text: str, position: int) -> int:
    """Return the position after the bracket that closes the one before ``position``; else the text's end."""
    depth = 1
    while depth and position < len(text):
        if text[position] == "(":
            depth += 1
        elif text[position] == ")":
            depth -= 1
        position += 1
    return position


def _unescape(name: str) -> str:
    r"""Return a name without its escapes: ``\31 a`` is ``1a``, ``\:`` is ``:``."""

    def replace_escape(match: re.Match[str]) -> str:
        if not match[1]:
            return match[2]
        number = int(match[1], 16)
        if 0 < number <= sys.maxunicode:
            return chr(number)
        return "\ufffd"

    return _ESCAPE.sub(replace_escape, name)


def _matches(element: Any, selector: _Selector) -> bool:
    return _matches_up_to(element, selector, len(selector.compounds) - 1)


def _matches_up_to(element: Any, selector: _Selector, index: int) -> bool:
    """Tell if an element matches the compounds of a selector up to ``index``, from right to left.

    The element must meet the compound at ``index`` itself, and a related element those before.
    """
    compound = selector.compounds[index]
    if not all(_meets(element, condition) for condition in compound.conditions):
        return False
    if index == 0:
        return True
    related = _list_related(element, compound.combinator)
    return any(_matches_up_to(other, selector, index - 1) for other in related)


def _list_related(element: Any, combinator: str) -> Iterator[Any]:
    """Yield the elements that the compound before the combinator may match."""
    if combinator == " ":
        yield from element.iterancestors()
    elif combinator == ">":
        parent = element.getparent()
        if parent is not None:
            yield parent
    elif combinator == "+":
        previous = element.getprevious()
        if previous is not None:
            yield previous
    else:
        yield from element.itersiblings(preceding=True)


def _meets(element: Any, condition: _Condition) -> bool:
    match condition.kind:
        case "tag":
            return condition.name in ("*", local_name(element).lower())
        case "id":
            return bool(element.get("id") == condition.name)
        case "class":
            return condition.name in element.get("class", "").split()
        case "attribute":
            return _has_attribute(element, condition)
        case "is":
            return _matches_any(element, condition.selectors)
        case "not":
            return not _matches_any(element, condition.selectors)
    return _meets_pseudo(element, condition)


def _matches_any(element: Any, selectors: tuple[_Selector, ...]) -> bool:
    return any(_matches(element, selector) for selector in selectors)


def _has_attribute(element: Any, condition: _Condition) -> bool:
    value = element.get(condition.name)
    expected = condition.value
    if value is None:
        return False
    tests: Mapping[str, bool] = {
        "": True,
        "=": value.lower() == expected.lower(),
        "~=": expected in value.split(),
        "|=": value == expected or value.startswith(f"{expected}-"),
        "^=": bool(expected) and value.startswith(expected),
        "$=": bool(expected) and value.endswith(expected),
        "*=": bool(expected) and expected in value,
    }
    return tests[condition.operator]


def _meets_pseudo(element: Any, condition: _Condition) -> bool:
    """Tell if a pseudo-class holds for an element: by an attribute, or by its place among others."""
    name = condition.name
    tag = element.tag
    if name in _TRUE_CLASSES:
        return True
    if name in _BY_ATTRIBUTE:
        return any(element.get(attribute) is not None for attribute in _BY_ATTRIBUTE[name])
    if name == "root":
        return element.getparent() is None
    if name == "empty":
        return len(element) == 0 and not element.text
    if name in ("first-child", "last-child", "only-child"):
        is_first = element.getprevious() is None
        is_last = element.getnext() is None
        return {"first-child": is_first, "last-child": is_last, "only-child": is_first and is_last}[name]
    if name in ("first-of-type", "last-of-type"):
        siblings = element.itersiblings(tag, preceding=name == "first-of-type")
        return next(siblings, None) is None
    counted_tag = tag if name == "nth-of-type" else None  # None counts elements of any tag
    siblings = element.itersiblings(counted_tag, preceding=name != "nth-last-child")
    return _is_nth(1 + len(list(siblings)), condition.value)


def _is_nth(number: int, formula: str) -> bool:
    """Tell if a formula such as ``2n+1`` gives this number, from 1, for any n from 0."""
    formula = {"odd": "2n+1", "even": "2n"}.get(formula, formula)
    match = _NTH.fullmatch(formula)
    if not match:
        return False
    factor, sign, offset, single_number = match.groups()
    if single_number:
        return number == int(single_number)
    if factor in ("", "+", "-"):
        factor += "1"
    step = int(factor)
    first = int(f"{sign}{offset}") if sign else 0
    if step == 0:
        return number == first
    n, rest = divmod(number - first, step)
    return rest == 0 and n >= 0
