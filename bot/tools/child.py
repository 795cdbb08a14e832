"""A child process that answers questions and can be killed, for work that hostile input could make endless.

Started as ``python -I SCRIPT SECONDS``; question and answer are one line of JSON each, on its standard input
and output. One child serves all askers, one question after the other; it starts with the first question and
again after it was killed. `serve` is the child's own side: it bounds the memory, and ends when Nod is gone.
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

_MEMORY = 512 << 20  # bytes of a child
_BUSY = 5  # times as long as a question takes by itself
_STARTING = 30.0  # seconds


class TookTooLong(Exception):
    """There was no answer within the time, or the child ended or could not be started (out of memory)."""


class _Ended(Exception):
    """The child is no more."""


class Child:
    """A child process. ``seconds`` is the processor time that one question may take.

    It begins to count after the child has started. On a busy machine that may last longer, five times that at
    most. `ask` blocks: call it in a thread.
    """

    def __init__(self, script: Path, *, seconds: float) -> None:
        self._script = script
        self._seconds = seconds
        self._one = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)

    def ask(self, question: Any, data: bytes = b"") -> Any:
        """Return the answer; raises TookTooLong. ``data`` follows the line, for a script that reads it."""
        line = json.dumps(question).encode() + b"\n" + data
        with self._one:
            try:
                try:
                    return self._ask_child(line)
                except _Ended:  # perhaps it died before it was asked
                    return self._ask_child(line)
            except _Ended:
                raise TookTooLong from None

    def _ask_child(self, line: bytes) -> Any:
        process = self._process
        try:
            if process is None or process.poll() is not None:
                process = self._start()
            return json.loads(self._exchange(process, line, self._seconds * _BUSY))
        except (TookTooLong, _Ended):
            self._end()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a child and wait until it is ready, which is not counted as time of the first question."""
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
        self._exchange(self._process, b"", _STARTING)
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes, longest: float) -> bytes:
        """Write the line and read the answer; after the ``longest`` seconds the child is killed."""
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        until = time.monotonic() + longest
        killer = threading.Timer(longest, process.kill)
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
        spent = process.poll() == -signal.SIGPROF or time.monotonic() >= until
        raise TookTooLong if spent else _Ended

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
        with self._one:
            self._end()


def serve(answer: Callable[[Any], Any], seconds: float) -> None:
    """Answer until there are no more questions. One that takes more processor time ends the process.

    An empty line before says that it is ready.
    """
    os.nice(5)  # people come first
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sys.stdout.write("\n")
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # no handler: it ends the process, whatever that does
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)
