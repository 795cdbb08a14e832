"""Written corpora of escapes and injections: one case a line; lines that begin with # are for people."""

import json
from pathlib import Path


def lines(name: str) -> list[str]:
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def texts(name: str) -> list[str]:
    """Cases written as JSON strings, for they have several lines or characters no one sees."""
    return [json.loads(line) for line in lines(name)]
