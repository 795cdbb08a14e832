"""A factory for the whole core; whatever a test did, the rules that always hold are checked at its end."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FakeClock
from tests.kit import Nod

MakeNod = Callable[..., Nod]


@pytest.fixture
async def make_nod(tmp_path: Path, clock: FakeClock) -> AsyncIterator[MakeNod]:
    """Make a core over a file of its own; arguments as in `Nod`."""
    made: list[Nod] = []

    def make(**parts: Any) -> Nod:
        made.append(Nod(f"sqlite:///{tmp_path / f'{len(made)}.db'}", clock, **parts))
        return made[-1]

    yield make
    for nod in made:
        await nod.check()
        await nod.close()


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    return make_nod()
