"""Tries a script again and again until it is killed: ``python -m … FOLDER SCRIPT``."""

import asyncio
import sys
from pathlib import Path

from bot.tools.builtin.trials.cage import Cage
from bot.tools.builtin.trials.command import CommandTrials
from tests.tools.builtin.trials.world import SMALL


async def main(workspace: Path, script: str) -> None:
    trials = CommandTrials(workspace, Cage(workspace, 20_000, SMALL))
    while True:
        await trials.trial({"argv": ["sh", "-c", script]})


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
