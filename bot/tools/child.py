"""A child process that answers questions and can be killed, for work that hostile input could make endless.

`Child` is Nod's side. `serve` is the child's own: it limits time and memory, and ends when Nod is gone.
``reading/child.py`` reads documents that way, and ``mcp/checker.py`` checks JSON schemas.

The child is started as ``python -I SCRIPT SECONDS`` for the first question, and again for the next question
after it has ended. It first writes an empty line, which says that it is ready. A question and its answer are
one line of JSON each, on its standard input and output; `serve` sends all else that the child prints to
standard error. One child serves all threads, one question after the other.
"""

import atexit
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MAX_MEMORY_BYTES = 512 << 20
_BUSY_FACTOR = 5  # on a busy machine an answer may take this many times its processor time
_START_SECONDS = 30.0  # for the start of the child, until it is ready
_READY_LINE = b"\n"


class TookTooLong(Exception):
    """A question has no answer: it took too much time or memory, or there is no child that answers."""


class _ChildEnded(Exception):
    """The child ended before it answered, or could not be started."""


class Child:
    """A child process.

    ``seconds``: the processor time that one question may take, without the child's start. On a busy machine
    an answer may take up to `_BUSY_FACTOR` times as long. `ask` blocks: call it in a thread.
    """

    def __init__(self, script: Path, *, seconds: float) -> None:
        self._script = script
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)

    def ask(self, question: Any, data: bytes = b"") -> Any:
        """Ask a question, and return the answer. Raises TookTooLong.

        ``data``: bytes that the child's script reads itself from its standard input, after the question.
        """
        request = json.dumps(question).encode() + b"\n" + data
        with self._lock:
            with contextlib.suppress(_ChildEnded):  # it may have ended before the question: try again
                return self._ask_child(request)
            try:
                return self._ask_child(request)
            except _ChildEnded:  # twice: the question itself ended it, or no child can be started
                raise TookTooLong from None

    def stop(self) -> None:
        """End the child, if there is one."""
        atexit.unregister(self.stop)
        with self._lock:
            self._end()

    def _ask_child(self, request: bytes) -> Any:
        """Start a child unless it runs, and ask it once. Raises TookTooLong or _ChildEnded."""
        process = self._process
        try:
            if process is None or process.poll() is not None:
                process = self._start()
            return json.loads(self._exchange(process, request, self._seconds * _BUSY_FACTOR))
        except ValueError:  # the line is no JSON: from here on the lines may not fit the questions
            self._end()
            raise _ChildEnded from None
        except BaseException:
            self._end()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a child, and wait for the empty line that says that it is ready."""
        self._end()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                [sys.executable, "-I", str(self._script), str(self._seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
            )
        except OSError:  # too many files are open, or there is no memory
            raise _ChildEnded from None
        if self._exchange(self._process, b"", _START_SECONDS) != _READY_LINE:
            raise _ChildEnded
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, max_seconds: float) -> bytes:
        """Write to the child, and return the line that it answers. Raises TookTooLong or _ChildEnded.

        After ``max_seconds`` the child is killed.
        """
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        deadline = time.monotonic() + max_seconds
        killer = threading.Timer(max_seconds, process.kill)
        killer.start()
        answer = b""
        try:
            with contextlib.suppress(OSError):  # the child has closed its end of a pipe
                process.stdin.write(request)
                process.stdin.flush()
                answer = process.stdout.readline()
            is_complete = answer.endswith(b"\n")
            if not is_complete:  # the child has ended, or ends now
                process.wait()
        finally:
            killer.cancel()
        if is_complete:
            return answer
        # the timer of `serve` ends the child by SIGPROF
        is_ended_by_timer = process.poll() == -signal.SIGPROF
        if is_ended_by_timer or time.monotonic() >= deadline:
            raise TookTooLong
        raise _ChildEnded

    def _end(self) -> None:
        process = self._process
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        process.wait()
        self._process = None


def serve(answer: Callable[[Any], Any], seconds: float) -> None:
    """Run the child: answer questions until standard input ends.

    A question that takes more than ``seconds`` of processor time ends the process.
    """
    os.nice(5)  # Nod itself goes first
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # from here on, what a library prints goes to standard error
    answers.write(_READY_LINE)
    answers.flush()
    for line in sys.stdin.buffer:
        # SIGPROF has no handler, so it ends the process whatever that is doing
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answers.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
        answers.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)
