"""``python -m tests.agentdojo``: all tasks and injections of AgentDojo behind the gate, without a network."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from bot.telemetry import logs
from tests.agentdojo.figures import Figures, annotations, measure, suites, table


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


async def _run(names: list[str]) -> dict[str, Figures]:
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = await measure(suites()[name], Path(folder), _say)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.agentdojo", description=__doc__)
    parser.add_argument("suites", nargs="*", help="only these of workspace, travel, banking, slack")
    logs.configure("error")
    found = asyncio.run(_run(parser.parse_args().suites or list(suites())))
    sys.stdout.write(f"{table(found)}\n{annotations()}")
    if any(f.unpressed or f.met or f.done < f.tasks or f.pairs_done < f.pairs for f in found.values()):
        sys.exit("A change was made without a press, a goal was met by reading, or a task was not done.")


if __name__ == "__main__":
    main()
