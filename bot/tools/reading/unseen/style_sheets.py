"""Style sheets of web pages: their rules, and the values that hold for an element.

The terms are those of CSS: a rule has a selector and, in braces, declarations (``color: red``). A rule whose
selector is not understood is counted, never guessed.

`StyleSheets.add` takes the sheets of a page one after the other: `_SheetReader` splits each into rules, and
``selectors.py`` parses their selectors. `StyleSheets.find` returns the values that hold for an element. The
conditions of at-rules (``@media``) and cascade layers are in ``at_rules.py``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bot.tools.reading.markup import local_name
from bot.tools.reading.unseen.at_rules import LayerRank, Layers, judge_at_rule
from bot.tools.reading.unseen.selectors import (
    NO_SPECIFICITY,
    Selector,
    Specificity,
    UnknownSelectorError,
    find_key,
    matches,
    parse_selectors,
    split_unquoted,
)

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
_DECLARATION = re.compile(r"\s*(-{0,2}[A-Za-z][\w-]*|--[\w-]+)\s*:(.*)", re.DOTALL)
_IMPORTANT = re.compile(r"!\s*important\s*$", re.IGNORECASE)


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


class _Rule(NamedTuple):
    """A rule with one selector; a rule with a list of selectors becomes several."""

    selector: Selector
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
    """The rules by the key that `find_key` returns for their selector."""
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
            declarations += self._parse_declarations(body, NO_SPECIFICITY, _AtRules(), is_inline=True)
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
        if not any(self._parse_declarations(body, NO_SPECIFICITY, at_rules)):
            return
        self._rule_count += 1
        if self._rule_count > _MAX_RULES:
            self.unread_rules += 1
            return
        try:
            selectors = parse_selectors(selectors_text)
        except UnknownSelectorError:
            self.unread_rules += 1
            return
        self.has_uncertain_rules = self.has_uncertain_rules or not at_rules.is_certain
        for selector in selectors:
            declarations = list(self._parse_declarations(body, selector.specificity, at_rules))
            self._rules.setdefault(find_key(selector), []).append(_Rule(selector, declarations))

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
        for text in split_unquoted(body, ";"):
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
                if matches(element, rule.selector):
                    yield from rule.declarations


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
    for selector in split_unquoted(inner, ","):
        if "&" in selector:
            selectors.append(selector.replace("&", parent))
        else:
            selectors.append(f"{parent} {selector.strip()}")
    return ",".join(selectors)
