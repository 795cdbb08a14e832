"""Several commands of ``nod`` in one process: lists of words come in as JSON, what each did goes out."""

import json
import sys
from pathlib import Path

from typer.testing import CliRunner

from bot.cli.main import main


def _done(words: list[str]) -> dict[str, object]:
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    return {
        "code": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "files": sorted(path.name for path in Path().iterdir()),
    }


if __name__ == "__main__":
    json.dump([_done(words) for words in json.load(sys.stdin)], sys.stdout)
