"""A factory for the whole core; whatever a test did, the rules that always hold are checked at its end."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.conftest import FakeClock
from tests.kit import Nod, cores

MakeNod = Callable[..., Nod]


@pytest.fixture
async def make_nod(tmp_path: Path, clock: FakeClock) -> AsyncIterator[MakeNod]:
    """Make a core over a file of its own; arguments as in `Nod`."""
    async with cores(Nod, tmp_path, clock) as make:
        yield make


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    return make_nod()
