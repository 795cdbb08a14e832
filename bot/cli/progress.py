"""A progress bar for a long command, shown only to a person at a terminal."""

import contextlib
import os
import sys
from collections.abc import Iterator

from bot.cli.command import get_shared_options
from bot.domain.progress import Progress, ignore_progress


@contextlib.contextmanager
def show_progress(what: str, *, wanted: bool = True) -> Iterator[Progress]:
    """Show a bar on stderr, and yield the function that moves it: it takes the work done and the total.

    ``what``: the bar's label. Nothing is shown in a pipe, in a log, with ``-q``, or if it is not ``wanted``.
    """
    if not (wanted and _is_watched()):
        yield ignore_progress
        return
    from rich import progress  # a twentieth of a second, only for a bar
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    console = Console(stderr=True, no_color=True if os.environ.get("NO_COLOR") else None)
    with progress.Progress(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,  # printed text goes to the same file as before
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _is_watched() -> bool:
    if get_shared_options().quiet or os.environ.get("TERM") == "dumb":
        return False
    return sys.stderr is not None and sys.stderr.isatty()
