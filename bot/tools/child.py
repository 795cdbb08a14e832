"""A child process that answers questions and can be killed, for work that hostile input could make endless.

It is started as ``python -I SCRIPT SECONDS``. A question and its answer are one line of JSON each, on its
standard input and output. One child serves all threads, one question after the other. It starts with the
first question, and again after it was killed.

`Child` is Nod's side. `serve` is the child's own: it limits the memory, and ends when Nod is gone.
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
_BUSY_FACTOR = 5  # a busy machine may take so many times the processor time of a question
_START_SECONDS = 30.0


class TookTooLong(Exception):
    """There was no answer within the time, or the child ended or could not be started (out of memory)."""


class _Ended(Exception):
    """The child is no more."""


class Child:
    """A child process. ``seconds``: the processor time that one question may take, without the child's start.

    On a busy machine a question may last longer, but no more than `_BUSY_FACTOR` times that. `ask` blocks:
    call it in a thread.
    """

    def __init__(self, script: Path, *, seconds: float) -> None:
        self._script = script
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)

    def ask(self, question: Any, data: bytes = b"") -> Any:
        """Return the answer; raises TookTooLong. ``data`` follows the line, for a script that reads it."""
        line = json.dumps(question).encode() + b"\n" + data
        with self._lock:
            with contextlib.suppress(_Ended):  # perhaps it died before it was asked
                return self._ask_child(line)
            try:
                return self._ask_child(line)
            except _Ended:
                raise TookTooLong from None

    def _ask_child(self, line: bytes) -> Any:
        process = self._process
        try:
            if process is None or process.poll() is not None:
                process = self._start()
            return json.loads(self._exchange(process, line, self._seconds * _BUSY_FACTOR))
        except (TookTooLong, _Ended):
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
            raise _Ended from None
        self._exchange(self._process, b"", _START_SECONDS)
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes, max_seconds: float) -> bytes:
        """Write the line and return the answer. Raises TookTooLong after killing the child, or _Ended."""
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        deadline = time.monotonic() + max_seconds
        killer = threading.Timer(max_seconds, process.kill)
        killer.start()
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
            if not answer.endswith(b"\n"):
                process.wait()
        except OSError:
            answer = b""
        finally:
            killer.cancel()
        if answer.endswith(b"\n"):
            return answer
        if process.poll() == -signal.SIGPROF or time.monotonic() >= deadline:  # the signal of `serve`
            raise TookTooLong
        raise _Ended

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

    def stop(self) -> None:
        """End the child, if there is one."""
        atexit.unregister(self.stop)
        with self._lock:
            self._end()


def serve(answer: Callable[[Any], Any], seconds: float) -> None:
    """Answer until there are no more questions. A question that takes more processor time ends the process.

    The empty line that comes first says that the process is ready.
    """
    os.nice(5)  # Nod itself goes first
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    sys.stdout.write("\n")
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        # its signal has no handler, so it ends the process whatever that is doing
        signal.setitimer(signal.ITIMER_PROF, seconds)
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)
