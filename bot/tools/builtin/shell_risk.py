"""How much an argv can harm: read, write or destructive, by what stands in it.

``sh -c`` is judged by its parsed script (``shell_script.py``); what is not understood is destructive. What
only reads is listed in ``shell_reads.py``, what loses something in ``shell_harm.py``; the rest writes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from bot.domain.risk import Level, Risk
from bot.tools.builtin import shell_reads_more
from bot.tools.builtin.shell_harm import harm, on_system, program_name
from bot.tools.builtin.shell_reads import Inside
from bot.tools.builtin.shell_script import NotUnderstood, Redirect, Simple, Word, parse

_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"})
_SCRIPT_FLAGS = frozenset({"-c", "-ec", "-euc"})
_READS = Risk(Level.READ, "it only reads")
_ORDER = {Level.READ: 0, Level.WRITE: 1, Level.DESTRUCTIVE: 2}
_SHELL_ARGUMENTS = 3


def classifier(workspace: Path) -> Callable[[Sequence[str]], Risk]:
    """`risk_of` for commands that run in ``workspace``; links on disk are looked through."""
    root = workspace.resolve()

    def inside(path: str) -> bool:
        return _stays(path) and (root / path).resolve().is_relative_to(root)

    return lambda argv: risk_of(argv, inside)


def risk_of(argv: Sequence[str], inside: Inside) -> Risk:
    """The worst of everything the argv would run. ``inside`` tells whether a path stays in the workspace."""
    if not argv or not argv[0] or any("\0" in each for each in argv):
        return Risk(Level.DESTRUCTIVE, "it is not understood: there is no program")
    if argv[0] not in _SHELLS or len(argv) < _SHELL_ARGUMENTS or argv[1] not in _SCRIPT_FLAGS:
        return _simple(Simple(tuple(map(Word, argv))), inside)
    if argv[2][:1] in ("-", "+"):
        return Risk(Level.DESTRUCTIVE, "the script is not understood: the shell takes it for a flag")
    try:
        commands = parse(argv[2])
    except (NotUnderstood, RecursionError) as error:
        return Risk(Level.DESTRUCTIVE, f"the script is not understood: {error}")
    return max((_simple(each, inside) for each in commands), key=lambda risk: _ORDER[risk.level])


def _simple(command: Simple, inside: Inside) -> Risk:
    words = [word.text for word in command.words]
    name = program_name(words[0])
    # what only reads is looked for first: “sed -n 1,5p” is fine, though sed can run programs
    objection = _shape(command) or shell_reads_more.objection(words, inside)
    redirected = [_redirect(each, inside) for each in command.redirects]
    worst = max(redirected, key=lambda risk: _ORDER[risk.level], default=_READS)
    if objection is None:
        return worst
    why = harm(words, fed=command.fed) or _injected(command)
    if why:
        return Risk(Level.DESTRUCTIVE, why)
    if worst.level is Level.DESTRUCTIVE:
        return worst
    return Risk(Level.WRITE, f"{name} may change something: {objection}")


def _shape(command: Simple) -> str | None:
    if command.background:
        return "it runs in the background"
    if any(word.open for word in command.words):
        return "the shell puts file names into it"
    return None


def _injected(command: Simple) -> str | None:
    """A pattern at the beginning of a word could put in a file that is called like a flag."""
    for word in command.words[1:]:
        if word.open and word.text[:1] in "*?[":
            return f"“{word.text}” may become a flag; write ./{word.text}"
    return None


def _redirect(redirect: Redirect, inside: Inside) -> Risk:
    operator, target = redirect.operator, redirect.target
    if operator == ">&" and target.text in ("1", "2"):
        return _READS
    if operator in (">", ">>") and target.text == "/dev/null":
        return _READS
    if operator == "<" and not target.open and inside(target.text):
        return _READS
    if operator == "<" and not on_system(target.text):
        return Risk(Level.WRITE, f"it reads {target.text}, outside the workspace")
    if operator == ">>" and not target.open:
        return Risk(Level.WRITE, f"it appends to {target.text}")
    if operator == "<":
        return Risk(Level.DESTRUCTIVE, f"{target.text} belongs to the machine, not to the workspace")
    return Risk(Level.DESTRUCTIVE, f"{operator} overwrites {target.text}")


def _stays(path: str) -> bool:
    return bool(path) and not path.startswith(("/", "~")) and ".." not in path.split("/")
