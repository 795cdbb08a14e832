"""What people want, gathered clause by clause: pronouns settled, wishes about one issue put together. Pure.

One issue's changes become one wish, so that one card shows them all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

IT = "it"


@dataclass(frozen=True, slots=True)
class Wish:
    """One call somebody wants. ``about`` describes the issue where its number is still to be found."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    add: tuple[str, ...] = ()  # labels to add to those the issue has
    drop: tuple[str, ...] = ()

    @property
    def number(self) -> int | None:
        return self.arguments.get("number")

    def same_issue(self, other: "Wish") -> bool:
        return (self.number, self.about) == (other.number, other.about)


@dataclass(frozen=True, slots=True)
class Unclear:
    """A clause that cannot be acted on; ``question`` asks for what is missing."""

    question: str


Target = int | str | Unclear | None  # a number, the words for an issue (or IT), neither, none needed


class Reading:
    """The wishes so far, and those of the clause before, which a pronoun means."""

    def __init__(self, it: int | None) -> None:
        self.wishes: list[Wish | Unclear] = []
        self._it = it
        self._latest: list[Wish] = []

    def create(self, wishes: list[Wish]) -> None:
        self.wishes += wishes or [Unclear("What should the new issue be called?")]
        self._latest = wishes

    def take(self, wish: Wish, targets: Iterable[Target]) -> None:
        meant: list[Wish] = []
        for target in targets:
            if target == IT:
                meant += self._pronoun(wish)
            elif target is None:
                self.wishes.append(wish)
            elif isinstance(target, Unclear):
                self.wishes.append(target)
            else:
                meant.append(self._place(wish, target))
        self._latest = meant or self._latest

    def _pronoun(self, wish: Wish) -> list[Wish]:
        latest = self._latest
        if latest and latest[0].tool == "create_issue":
            return self._into_new(wish)
        if latest:
            return [self._place(wish, one.number or one.about) for one in latest]
        if self._it is not None:
            return [self._place(wish, self._it)]
        self.wishes.append(Unclear("Which issue do you mean? Please give me its number."))
        return []

    def _into_new(self, wish: Wish) -> list[Wish]:
        """Put what is said of an issue that does not exist yet into its creation."""
        if wish.tool != "update_issue" or "state" in wish.arguments:
            self.wishes.append(Unclear("I can do more with a new issue once it exists."))
            return []
        labels = {"labels": list(wish.add)} if wish.add else {}
        more = {**wish.arguments, **labels}
        return [self._swap(one, replace(one, arguments={**one.arguments, **more})) for one in self._latest]

    def _place(self, wish: Wish, target: int | str) -> Wish:
        placed = (
            replace(wish, arguments={"number": target, **wish.arguments})
            if isinstance(target, int)
            else replace(wish, about=target)
        )
        for one in self.wishes:
            if isinstance(one, Wish) and one.tool == wish.tool == "update_issue" and one.same_issue(placed):
                return self._swap(one, _both(one, placed))
        self.wishes.append(placed)
        return placed

    def _swap(self, old: Wish, new: Wish) -> Wish:
        self.wishes[self.wishes.index(old)] = new
        return new


def _both(one: Wish, other: Wish) -> Wish:
    return replace(
        one,
        arguments={**one.arguments, **other.arguments},
        add=one.add + other.add,
        drop=one.drop + other.drop,
    )
