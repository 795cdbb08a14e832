"""``python -m tests.conversations``: record again what the model is sent; names say in which."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.conversations.conversations import CONVERSATIONS
from tests.conversations.nod import PROMPT, RECORDED, requests_of
from tests.conversations.recording import told, whole


async def _record(names: list[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            usual, *requests = await requests_of(CONVERSATIONS[name], Path(folder))
        for path, text in ((PROMPT, whole(usual)), (RECORDED / f"{name}.txt", told(requests, usual))):
            if not path.exists() or path.read_text() != text:
                sys.stdout.write(f"{path.relative_to(RECORDED.parent)} changed\n")
                path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conversations", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*CONVERSATIONS, []], help="only these")
    asyncio.run(_record(parser.parse_args().names or list(CONVERSATIONS)))


if __name__ == "__main__":
    main()
