"""Conditions of rules on the arguments of a call: a small typed language that admins write after ``where``.

    amount > 100 and currency in (EUR, USD)
    path matches "infra/**" or not (options.force = true)
    host(url) not in (docs.python.org, pypi.org)

``parser.py`` has the grammar; ``expressions.py`` judges a call; ``schemas.py`` reads the JSON schemas of
tools; ``hints.py`` says what to write in place of what does not parse. Other modules use `Condition`.

A condition answers True or False, or None where the answer is unknown: a field is missing or of another
kind, the condition does not fit the tool, or spellings of one path, address or name disagree
(``bot/domain/spellings``). ``bot/domain/rulebook.py`` says how a rule counts when the answer is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.conditions.expressions import (
    Comparison,
    Expression,
    FieldRef,
    GivenArguments,
    RiskIs,
    list_parts,
)
from bot.domain.conditions.parser import MAX_CONDITION_CHARS, ConditionError, parse_expression
from bot.domain.connections import Identity
from bot.domain.risks import Level
from bot.domain.spellings import Answer

__all__ = ("MAX_CONDITION_CHARS", "Condition", "ConditionError")


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition that an admin wrote after ``where``."""

    text: str
    root: Expression | None  # None: another release of Nod stored the text, and this one can't parse it

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Parse a condition; its text gets single spaces and straight quotes. Raises ConditionError."""
        plain, root = parse_expression(text)
        return cls(plain, root)

    @classmethod
    def restore(cls, text: str) -> "Condition":
        """Read a condition from a row. Never raises: the answer of an unreadable condition is always None."""
        try:
            return cls.parse(text)
        except ConditionError:
            return cls(text, None)

    @property
    def fields(self) -> list[FieldRef]:
        """The fields that the condition compares."""
        return [comparison.field for comparison in self._comparisons]

    @property
    def looks_at_risk(self) -> bool:
        """True if a part of the condition is ``risk is …``."""
        return any(isinstance(part, RiskIs) for part in list_parts(self.root))

    @property
    def _comparisons(self) -> list[Comparison]:
        return [part for part in list_parts(self.root) if isinstance(part, Comparison)]

    def holds(
        self,
        arguments: Mapping[str, Any],
        schema: Mapping[str, Any],
        *,
        of_several: bool = False,
        identity: Identity = Identity.NOD,
        level: Level | None = None,
    ) -> Answer:
        """Return the answer for a call: its ``arguments``, and the JSON schema of its tool.

        - ``of_several``: the rule is about several tools. Then the answer for a tool that lacks a field of
          the condition is False, unless another argument of the call may be the path that the rule names
        - ``identity``: the account under which the call is made
        - ``level``: the risk of the call; None if it is not known yet
        """
        if self.root is None:
            return None
        if of_several and self.find_lacking_field(schema):
            # the tool lacks a field of the condition, so every argument may be the path that is meant
            call = GivenArguments(arguments, schema, condition_fields=frozenset())
            if any(comparison.may_be_in_other_argument(call) for comparison in self._comparisons):
                return None
            return False
        if self.find_misfit(schema):
            return None
        condition_fields = frozenset(field.path[0] for field in self.fields)
        return self.root.holds(GivenArguments(arguments, schema, condition_fields, identity, level))

    def find_lacking_field(self, schema: Mapping[str, Any]) -> str | None:
        """Return the condition's first field that a tool with this JSON schema lacks; None if it has all."""
        for comparison in self._comparisons:
            if comparison.is_lacking_in(schema):
                return comparison.field.name
        return None

    def find_misfit(self, schema: Mapping[str, Any]) -> str | None:
        """Return why the condition does not fit a tool's JSON schema, in words; None where it fits."""
        if self.root is None:
            return "this release can't read it"
        for comparison in self._comparisons:
            if reason := comparison.describe_misfit(schema):
                return reason
        return None
