"""Fixtures every test may use: a real, empty database, a clock that moves only when told, and the core."""

import functools
import gc
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import certifi
import pytest
import structlog
from hypothesis import Phase, settings

from bot.store.database import Database
from tests.kit import FakeClock, MakeNod, Nod, compiled, cores, make_tables
from tests.kit.urls import EMPTIED, POSTGRES_URL, Urls, drop_emptied, urls
from tests.tiers import LINT, LONGEST, MORE, is_file_left_out, is_for_the_night

_MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, where the machine has one
_ROOM = 2 * 1024**3  # bytes

# What is tried is the same each time and takes as long as it takes, so that a check that fails says something
# about the change, and a state machine that fails says so instead of first looking for a shorter way there;
# `--hypothesis-profile random` looks for what no one has seen, in four times as many examples, and for the
# shortest way.
_AS_IT_IS = (Phase.explicit, Phase.generate)
settings.register_profile("repeatable", derandomize=True, deadline=None, phases=_AS_IT_IS, max_examples=25)
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="what the core, the teams and the channels run on; postgres needs NOD_TEST_POSTGRES_URL",
    )


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all is loaded
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a script that starts the suite in its background ignores it, and so would each process of the tests
        signal.signal(signal.SIGINT, signal.default_int_handler)
    compiled.share()
    _write_in_memory()
    _trust_one(config)
    _tell_plainly()


def _trust_one(config: pytest.Config) -> None:
    """Know one certificate instead of 140, which each client reads: no test speaks TLS to the world."""
    end = "-----END CERTIFICATE-----\n"
    first, *_ = Path(certifi.where()).read_text().partition(end)
    folder = Path(tempfile.mkdtemp(prefix="nod-certificate-"))
    config.add_cleanup(lambda: shutil.rmtree(folder))
    (folder / "one.pem").write_text(first + end)
    # whatever the machine's own are; the processes that tests begin inherit it
    os.environ["SSL_CERT_FILE"] = str(folder / "one.pem")


def _tell_plainly() -> None:
    """As structlog does unasked, but for the frames and colours of a traceback: a tenth of a second each."""
    structlog.reset_defaults()
    *before, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*before, plain])


def _write_in_memory() -> None:
    """Keep what tests write in memory: a commit waits for the disk, and there are thousands of them."""
    wanted = "TMPDIR" not in os.environ
    if wanted and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
        tempfile.tempdir = str(_MEMORY)


_OVER_HTTP = tuple(Path(__file__).parent / name for name in ("web", "clients"))
_QUICK_OVER_HTTP = (
    "test_chat.py",
    "test_looking.py",
    "test_people.py",
    "test_proposals.py",
    "test_rules.py",
    "test_wire.py",
)
_DAY = "not more and not lint"
_FAST = f"not slow and not browser and not platform and {_DAY}"
_LEFT_OUT = re.compile(r"^pytestmark = (pytest\.mark\.(slow|browser|platform)\b|\[$)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what the day or the fast loop leaves out: Playwright and others take seconds."""
    expression = config.option.markexpr
    by_day = expression.endswith(_DAY) and is_file_left_out(collection_path.relative_to(config.rootpath))
    return True if by_day or (expression == _FAST and _is_left_out(collection_path)) else None


@functools.cache
def _is_over_http(path: Path) -> bool:
    """A server is started for each test there; the fast loop has those that tell most for their time."""
    is_quick = path.name in _QUICK_OVER_HTTP
    return not is_quick and any(path.is_relative_to(folder) for folder in _OVER_HTTP)


def _is_left_out(path: Path) -> bool:
    if path.is_dir():  # with its conftest.py
        tests = list(path.rglob("test_*.py"))
        return bool(tests) and all(map(_is_left_out, tests))
    is_test = path.match("test_*.py")
    return is_test and (_is_over_http(path) or bool(_LEFT_OUT.search(path.read_text())))


def pytest_unconfigure() -> None:
    if EMPTIED:
        drop_emptied()


def pytest_collection_finish() -> None:
    """What is loaded by now stays: it need not be looked through for garbage, a tenth of the time."""
    gc.freeze()
    gc.set_threshold(5000)
    gc.enable()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Four more than there are processors: who waits for a process or a browser leaves one free."""
    return (yield) + 4 * ("PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts a server for each test, what is for the night, and what is part of the lint.

    The files that take longest come first.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
    for item in items:
        if _is_over_http(item.path):
            item.add_marker(pytest.mark.platform)
        if is_for_the_night(item):
            item.add_marker(MORE)
        if item.nodeid.startswith(LINT):
            item.add_marker(pytest.mark.lint)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"] if POSTGRES_URL else ["sqlite"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of its own for each test, one of each kind."""
    with urls(request.param, tmp_path) as url:
        yield url("nod")


@pytest.fixture
def database_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Urls]:
    """Databases of the kind that ``--database`` names, for what need not be tried on both each time."""
    with urls(request.config.option.database, tmp_path) as url:
        yield url


@pytest.fixture
def only_on_sqlite(request: pytest.FixtureRequest) -> None:
    """For what only its file, or one process that has it to itself, can do."""
    if request.config.option.database != "sqlite":
        pytest.skip("about SQLite's file")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """With all tables; on PostgreSQL as well when NOD_TEST_POSTGRES_URL is set."""
    make_tables(database_url)
    opened = Database(database_url)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A test that sets up logging does so for itself alone."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    _tell_plainly()


@pytest.fixture(autouse=True)
def _no_server_was_told_to_end() -> Iterator[None]:
    """A server of this process that ended ends no stream of the next, where a library looks for one.

    It keeps a signal that one heard, and believes the server that takes signals: of two that started at the
    same time, one that ended may still do.
    """
    if library := sys.modules.get("sse_starlette.sse"):
        library.AppStatus.should_exit = False
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture
async def make_nod(database_of: Urls, clock: FakeClock) -> AsyncIterator[MakeNod]:
    """Make a core over its own database; arguments as in `Nod`. What always holds is checked at the end."""
    async with cores(Nod, database_of, clock) as make:
        yield make


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    return make_nod()
