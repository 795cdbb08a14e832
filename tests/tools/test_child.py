"""The killable child: what an asker gets where it can't be started, and where it takes too long."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.tools import child
from bot.tools.child import Child, TookTooLong

pytestmark = pytest.mark.slow

BEGIN = f"""\
import sys, time

sys.path.insert(0, {str(Path(child.__file__).parents[2])!r})
from bot.tools.child import serve

def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return seconds

"""
ECHO = f"{BEGIN}serve(lambda question: question, 5)\n"


def test_a_child_that_can_not_be_started_is_no_answer_and_the_next_question_has_one(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    asked = Child(script, seconds=20)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, before[1]))  # there is no file for a pipe
    try:
        with pytest.raises(TookTooLong):
            asked.ask("hello")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    try:
        assert asked.ask("hello") == "hello"
    finally:
        asked.stop()


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Child]:
    """A child that works for longer when it starts than a question may take; each says how long it takes."""
    script = tmp_path / "slow.py"
    script.write_text(f"{BEGIN}work(1)\nserve(work, float(sys.argv[1]))\n")
    asked = Child(script, seconds=0.5)  # by the clock five times that, for a busy machine
    yield asked
    asked.stop()


def test_the_start_of_a_child_takes_nothing_from_the_time_of_its_first_question(slow: Child) -> None:
    assert slow.ask(0.05) == 0.05


def test_a_question_that_takes_more_processor_time_has_no_answer_and_the_next_one_has(slow: Child) -> None:
    with pytest.raises(TookTooLong):
        slow.ask(60)
    assert slow.ask(0.05) == 0.05


def run_script(tmp_path: Path, lines: str, seconds: float = 5) -> Child:
    script = tmp_path / "script.py"
    script.write_text(BEGIN + lines)
    return Child(script, seconds=seconds)


def test_text_that_a_library_prints_in_the_child_is_no_answer(tmp_path: Path) -> None:
    # Python's print, and a library that writes to the descriptor itself, as those in C do
    asked = run_script(
        tmp_path,
        "import os\n"
        "def answer(question):\n"
        "    print('12')\n"
        "    os.write(1, b'odd\\n')\n"
        "    return question\n"
        "serve(answer, 5)\n",
    )
    try:
        assert [asked.ask("first"), asked.ask("second")] == ["first", "second"]
    finally:
        asked.stop()


@pytest.mark.parametrize("line", ["odd\\n", "\\xff\\n"])
def test_after_a_line_that_is_no_answer_the_next_question_has_its_own(tmp_path: Path, line: str) -> None:
    asked = run_script(
        tmp_path,
        "import json\n"
        "print(flush=True)\n"
        "for question in sys.stdin.buffer:\n"
        "    if json.loads(question) == 'first':\n"
        f"        sys.stdout.buffer.write('{line}'.encode('latin-1'))\n"
        "    sys.stdout.buffer.write(question)\n"
        "    sys.stdout.flush()\n",
    )
    try:
        with pytest.raises(TookTooLong):
            asked.ask("first")
        assert asked.ask("second") == "second"
    finally:
        asked.stop()


def test_a_child_that_prints_before_it_is_ready_is_not_started(tmp_path: Path) -> None:
    asked = run_script(tmp_path, "print('odd', flush=True)\nserve(lambda question: question, 5)\n")
    try:
        with pytest.raises(TookTooLong):
            asked.ask("hello")
    finally:
        asked.stop()


def test_a_child_whose_time_ends_while_it_is_written_to_is_not_asked_again(tmp_path: Path) -> None:
    started = tmp_path / "started"
    asked = run_script(  # its end of the pipe closes a moment before it ends
        tmp_path,
        "import os, signal\n"
        f"with open({str(started)!r}, 'a') as file:\n"
        "    file.write('x')\n"
        "signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))\n"
        "print(flush=True)\n"
        "os.close(0)\n"
        "work(60)\n",
        seconds=0.3,
    )
    try:
        with pytest.raises(TookTooLong):
            asked.ask(60, b"x" * (4 << 20))  # more than a pipe holds
    finally:
        asked.stop()
    assert started.read_text() == "x"
