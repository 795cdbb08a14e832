"""What people want, gathered clause by clause: pronouns settled, wishes about one issue put together. Pure.

One issue's changes become one wish, so that one card shows them all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

READS = frozenset({"search_issues", "get_issue", "list_issues", "workload"})
"""What the tracker can be asked."""
LOOKUPS = READS | {"proposals_waiting", "my_decisions"}


@dataclass(frozen=True, slots=True)
class Some:
    """Issues without a number: ``words`` to search for, ``filters`` to list by, ``pick`` which of those.

    ``many``: all of them are meant, so people are asked once, with their numbers.
    """

    words: str = ""
    filters: Mapping[str, Any] = field(default_factory=dict)
    pick: str = ""
    many: bool = False


IT = Some("it")
Target = int | Some


@dataclass(frozen=True, slots=True)
class Wish:
    """One call that is wanted. ``view`` says what of a read's result to tell."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    target: Some | None = None  # where the number is still to be found
    add: tuple[str, ...] = ()  # labels to add to those the issue has
    drop: tuple[str, ...] = ()
    view: str = ""
    said: str = field(default="", compare=False)  # the clause that asks for it

    @property
    def number(self) -> int | None:
        return self.arguments.get("number")

    @property
    def looks(self) -> bool:
        """Whether it changes nothing."""
        return self.tool in LOOKUPS


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """What to answer, and sentences to offer with it."""

    text: str
    chips: tuple[str, ...] = ()


class Reading:
    """The wishes so far, and those of the clause before, which a pronoun means."""

    def __init__(self, it: int | None) -> None:
        self.wishes: list[Wish | DemoAnswer] = []
        self.clause = ""
        self._it = it
        self._latest: list[Wish] = []

    @property
    def changed(self) -> list[int]:
        """The issues that the clause before changes."""
        return [one.number for one in self._latest if one.number and not one.looks]

    def say(self, text: str, *chips: str) -> None:
        if DemoAnswer(text, chips) not in self.wishes:
            self.wishes.append(DemoAnswer(text, chips))

    def forget(self) -> None:
        """After a clause that was not understood, a pronoun means nothing known."""
        self._it, self._latest = None, []

    def create(self, wishes: list[Wish]) -> None:
        self._latest = [replace(wish, said=self.clause) for wish in wishes]
        self.wishes += self._latest

    def take(self, wish: Wish, targets: Iterable[Target] | None) -> None:
        """Put in which issues are meant; None: the wish needs none, [] : no one said which."""
        wish = replace(wish, said=self.clause)
        if targets is None:
            self.wishes.append(wish)
            return
        targets = list(targets)
        meant = [] if targets else self._ask()
        for target in targets:
            meant += self._pronoun(wish) if target is IT else [self._place(wish, target)]
        self._latest = meant or self._latest

    def _ask(self) -> list[Wish]:
        self.say(
            f"Which issue do you mean by “{self.clause}”? Please give me its number.", "show open issues"
        )
        return []

    def _pronoun(self, wish: Wish) -> list[Wish]:
        if self._latest and self._latest[0].tool == "create_issue":
            return self._into_new(wish)
        if self._latest:
            return [self._place(wish, one.number or one.target or IT) for one in self._latest]
        return [self._place(wish, self._it)] if self._it is not None else self._ask()

    def _into_new(self, wish: Wish) -> list[Wish]:
        """Put what is said of an issue that does not exist yet into its creation."""
        if wish.tool != "update_issue" or "state" in wish.arguments or wish.drop:
            self.say(f"I can do more with a new issue once it exists, so I left out “{self.clause}”.")
            return []
        labels = {"labels": list(wish.add)} if wish.add else {}
        more = {**wish.arguments, **labels}
        self._replaced(self._latest[0], more)
        said = [f"{one.said} and {self.clause}" for one in self._latest]
        made = [
            replace(o, arguments={**o.arguments, **more}, said=s)
            for o, s in zip(self._latest, said, strict=True)
        ]
        return [self._swap(old, new) for old, new in zip(self._latest, made, strict=True)]

    def _place(self, wish: Wish, target: Target) -> Wish:
        placed = (
            replace(wish, arguments={"number": target, **wish.arguments})
            if isinstance(target, int)
            else replace(wish, target=target)
        )
        for one in self.wishes:
            if one == placed:
                return placed
            same = isinstance(one, Wish) and (one.number, one.target) == (placed.number, placed.target)
            if isinstance(one, Wish) and same and one.tool == wish.tool == "update_issue":
                self._replaced(one, placed.arguments)
                return self._swap(one, _both(one, placed))
        self.wishes.append(placed)
        return placed

    def _replaced(self, one: Wish, more: Mapping[str, Any]) -> None:
        """Say what a later clause says differently: the last word counts."""
        for name in one.arguments.keys() & more.keys():
            if one.arguments[name] != more[name]:
                self.say(f"You first said “{one.arguments[name]}”, then “{more[name]}”. I took the last.")

    def _swap(self, old: Wish, new: Wish) -> Wish:
        self.wishes[self.wishes.index(old)] = new
        return new


def _both(one: Wish, other: Wish) -> Wish:
    return replace(
        one,
        arguments={**one.arguments, **other.arguments},
        add=one.add + other.add,
        drop=one.drop + other.drop,
        said=f"{one.said} and {other.said}",
    )
