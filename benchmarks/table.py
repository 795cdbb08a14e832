"""The one table that is printed."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; ``met`` says whether its target holds, None where it has none."""

    what: str
    figure: str
    target: str = ""
    met: bool | None = None


def show(title: str, explained: str, rows: Iterable[Row]) -> None:
    print(f"\n{title}\n{explained}")
    for row in rows:
        verdict = {True: "met", False: "MISSED", None: ""}[row.met]
        print(f"  {row.what:<78} {row.figure:>12}  {row.target:<8} {verdict}".rstrip())
