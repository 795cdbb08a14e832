# ruff: noqa: INP001, T201 - a script, not a package
"""Print the notes of a release: its part of CHANGELOG.md, with the words of its links."""

import re
import sys
from pathlib import Path


def notes(changelog: str, version: str = "") -> str:
    """Return the part of one version, by default the newest. Raises LookupError for an unknown one."""
    parts = re.split(r"^## \[([^\]]+)\].*\n", changelog, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True)).get(version or parts[1])
    if found is None:
        raise LookupError(f"CHANGELOG.md has no [{version}]. It has: {', '.join(parts[1::2])}")
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", found).strip()


if __name__ == "__main__":
    print(notes((Path(__file__).parent.parent / "CHANGELOG.md").read_text(), *sys.argv[1:]))
