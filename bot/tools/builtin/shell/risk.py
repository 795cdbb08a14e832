"""The risk of an argv: read, write or destructive.

``sh -c`` is judged by its parsed script (``script.py``); what is not understood is destructive. What only
reads is listed in ``reads.py``, what loses something in ``harm.py``. The rest writes, and it is vouched for
only where `_VOUCHED` has it: most programs run others, and do what files tell them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bot.domain.proposals import Level, Risk
from bot.tools.builtin.shell.harm import find_harm, find_hidden_code, is_on_system, program_name
from bot.tools.builtin.shell.reads import Inside, Reader, reading_objection
from bot.tools.builtin.shell.script import NotUnderstood, Redirect, ShellWord, Simple, parse_script

_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"})
_SCRIPT_FLAGS = frozenset({"-c", "-ec", "-euc"})
_READS = Risk(Level.READ, "it only reads")
_ORDER = {Level.READ: 0, Level.WRITE: 1, Level.DESTRUCTIVE: 2}
_SHELL_ARGUMENTS = 3
_VOUCHED = {  # what the arguments may be; operands must stay in the workspace and out of .git
    "mkdir": Reader(plain="pv"),
    "touch": Reader(plain="acm"),
}
_GIT_ADD = Reader(plain="AuvnN", long=("all", "update", "verbose", "dry-run", "intent-to-add"))
_GIT_COMMIT = Reader(
    plain="navq",
    valued="m",
    long=("no-verify", "all", "quiet", "allow-empty", "signoff"),
    long_valued=("message",),
)


def classifier(workspace: Path) -> Callable[[Sequence[str]], Risk]:
    """Return `risk_of` for commands in ``workspace``; links on disk are resolved."""
    root = workspace.resolve()

    def inside(path: str) -> bool:
        return _stays(path) and (root / path).resolve().is_relative_to(root)

    return lambda argv: risk_of(argv, inside)


def risk_of(argv: Sequence[str], inside: Inside) -> Risk:
    """Return the worst of everything the argv would run.

    ``inside`` tells whether a path stays in the workspace.
    """
    if not argv or not argv[0] or any("\0" in each for each in argv):
        return Risk(Level.DESTRUCTIVE, "it is not understood: there is no program")
    if argv[0] not in _SHELLS or len(argv) < _SHELL_ARGUMENTS or argv[1] not in _SCRIPT_FLAGS:
        return _simple(Simple(tuple(map(ShellWord, argv))), inside)
    if argv[2][:1] in ("-", "+"):
        return Risk(Level.DESTRUCTIVE, "the script is not understood: the shell takes it for a flag")
    try:
        commands = parse_script(argv[2])
    except (NotUnderstood, RecursionError) as error:
        return Risk(Level.DESTRUCTIVE, f"the script is not understood: {error}")
    return _worst([_simple(each, inside) for each in commands])


def _simple(command: Simple, inside: Inside) -> Risk:
    words = [word.text for word in command.words]
    name = program_name(words[0])
    # what only reads is looked for first: “sed -n 1,5p” is fine, though sed can run programs
    objection = _shape(command) or reading_objection(words, inside)
    redirected = [_redirect(each, inside) for each in command.redirects]
    worst = _worst([_READS, *redirected])
    if objection is None:
        return worst
    why = find_harm(words, fed=command.fed) or _find_injection(command)
    if why:
        return Risk(Level.DESTRUCTIVE, why)
    if worst.level is Level.DESTRUCTIVE:
        return worst
    code = find_hidden_code(words)
    if code:
        return Risk(Level.WRITE, code, vouched=False)
    vouched = worst.vouched and _shape(command) is None and _is_vouched_for(words, inside)
    return Risk(Level.WRITE, f"“{name}” may change something: {objection}", vouched)


def _worst(risks: Sequence[Risk]) -> Risk:
    worst = max(risks, key=lambda risk: (_ORDER[risk.level], not risk.vouched))
    return replace(worst, vouched=all(risk.vouched for risk in risks))


def _is_vouched_for(words: Sequence[str], inside: Inside) -> bool:
    """Tell if a command does no more than make files and folders, or commit them without running hooks."""

    def apart(path: str) -> bool:
        return inside(path) and _apart(path)

    match words:
        case ["git", "add", *rest]:
            known: Reader | None = _GIT_ADD
        case ["git", "commit", *rest] if {"-n", "--no-verify"} & set(rest):
            known = _GIT_COMMIT
        case [program, *rest]:
            known = _VOUCHED.get(program)
        case _:
            return False
    return known is not None and known.objection(rest, apart) is None


def _apart(path: str) -> bool:
    """Tell if a path is outside a repository's own folder, whose settings and hooks run programs."""
    return ".git" not in path.lower().split("/")


def _shape(command: Simple) -> str | None:
    if command.background:
        return "it runs in the background"
    if any(word.open for word in command.words):
        return "the shell puts file names into it"
    return None


def _find_injection(command: Simple) -> str | None:
    """Return a warning if a leading pattern may expand to a file name that looks like a flag."""
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
    if operator == "<" and not is_on_system(target.text):
        return Risk(Level.WRITE, f"it reads {target.text}, outside the workspace", vouched=False)
    if operator == ">>" and not target.open:
        vouched = inside(target.text) and _apart(target.text)
        return Risk(Level.WRITE, f"it appends to {target.text}", vouched)
    if operator == "<":
        return Risk(Level.DESTRUCTIVE, f"{target.text} belongs to the machine, not to the workspace")
    return Risk(Level.DESTRUCTIVE, f"{operator} overwrites {target.text}")


def _stays(path: str) -> bool:
    return bool(path) and not path.startswith(("/", "~")) and ".." not in path.split("/")
