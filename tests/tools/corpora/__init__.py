"""Written corpora of escapes: one case a line; lines that begin with # are for people."""

from pathlib import Path


def lines(name: str) -> list[str]:
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]
