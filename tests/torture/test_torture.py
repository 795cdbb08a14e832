"""A short run of the torture: what it asserts holds whatever is killed when."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.urls import POSTGRES_URL, schema
from tests.torture.harness import torture

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # however busy the machine is

_postgres = pytest.mark.skipif(not POSTGRES_URL, reason="NOD_TEST_POSTGRES_URL names no PostgreSQL")
Place = Callable[[Path], contextlib.AbstractContextManager[str]]


@contextlib.contextmanager
def _file(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder}/nod.db"


def _server(_: Path) -> contextlib.AbstractContextManager[str]:
    return schema()


_STORIES = (
    "account",
    "death",
    "revoke",
    "undo",
    "trial",
    "question",
    "memory",
    "file",
    "team",
    "slack",
    "telegram",
    "agent",
    "ended agent",
)
_STORIES_OF_SEVERAL = ("account", "death", "undo", "question", "team", "telegram", "agent", "ended agent")


@pytest.mark.parametrize(
    ("place", "processes", "stories"),
    [
        pytest.param(_file, 1, _STORIES, id="SQLite"),
        pytest.param(_server, 2, _STORIES_OF_SEVERAL, id="PostgreSQL", marks=_postgres),
    ],
)
async def test_whatever_is_killed_nothing_is_lost_or_doubled_and_no_one_is_told_wrong(
    place: Place, processes: int, stories: tuple[str, ...], tmp_path: Path
) -> None:
    with place(tmp_path) as url:
        figures = await torture(
            url,
            tmp_path,
            processes=processes,
            kills=3,
            rolls=1,
            seed=1,
            people=2,
            stories=stories,
            pause=(0.2, 1.0),
        )
    assert figures.faults == []
    assert len(figures.kills) >= 3
    assert figures.messages >= (len(stories) - 2) * 2  # agents send none
