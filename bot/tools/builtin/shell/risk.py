"""The risk of a command, given as an argv: read, write or destructive.

- A command that ``reads.py`` knows to only read is a read.
- A command in which ``harm.py`` finds harm is destructive, and so is a script that is not understood.
- Any other command is a write.

``sh -c`` is judged by the commands of its script (``script.py``); the worst of them counts.

A write is *vouched for* (`Risk.vouched`) if it surely does no more than write files in the workspace. Only
the few commands of `_is_vouched_for` are: most other programs may run programs, or do what files tell them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bot.domain.risks import Level, Risk
from bot.tools.builtin.shell.harm import find_harm, find_hidden_code, is_device_path, program_name
from bot.tools.builtin.shell.reads import IsInWorkspace, Syntax, find_objection
from bot.tools.builtin.shell.script import NotUnderstood, Redirect, ShellWord, SimpleCommand, parse_script

_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"})
_SCRIPT_FLAGS = frozenset({"-c", "-ec", "-euc"})  # the argument after the flag is a script
_MIN_SHELL_WORDS = 3  # the shell, the flag and the script
_READS = Risk(Level.READ, "it only reads")
_SEVERITY = {Level.READ: 0, Level.WRITE: 1, Level.DESTRUCTIVE: 2}  # the worst has the highest number

# the arguments with which a command is vouched for, if its operands are in the workspace and not in .git
_VOUCHED = {
    "mkdir": Syntax(plain="pv"),
    "touch": Syntax(plain="acm"),
}
_GIT_ADD = Syntax(plain="AuvnN", long=("all", "update", "verbose", "dry-run", "intent-to-add"))
_GIT_COMMIT = Syntax(
    plain="navq",
    valued="m",
    long=("no-verify", "all", "quiet", "allow-empty", "signoff"),
    long_valued=("message",),
)


def make_classifier(workspace: Path) -> Callable[[Sequence[str]], Risk]:
    """Return a function that judges commands in ``workspace``. It reads the disk, to follow links."""
    root = workspace.resolve()

    def inside(path: str) -> bool:
        return _is_downward(path) and (root / path).resolve().is_relative_to(root)

    return lambda argv: judge_argv(argv, inside)


def judge_argv(argv: Sequence[str], inside: IsInWorkspace) -> Risk:
    """Return the worst risk of all commands that the argv would run.

    ``inside`` tells if a path stays in the workspace.
    """
    if not argv or not argv[0] or any("\0" in word for word in argv):
        return Risk(Level.DESTRUCTIVE, "it is not understood: there is no program")
    if argv[0] not in _SHELLS or len(argv) < _MIN_SHELL_WORDS or argv[1] not in _SCRIPT_FLAGS:
        words = tuple(ShellWord(word) for word in argv)
        return _judge_command(SimpleCommand(words), inside)
    script = argv[2]
    if script.startswith(("-", "+")):
        return Risk(Level.DESTRUCTIVE, "the script is not understood: the shell takes it for a flag")
    try:
        commands = parse_script(script)
    except (NotUnderstood, RecursionError) as error:
        return Risk(Level.DESTRUCTIVE, f"the script is not understood: {error}")
    return _pick_worst([_judge_command(command, inside) for command in commands])


def _judge_command(command: SimpleCommand, inside: IsInWorkspace) -> Risk:
    """Return the risk of one simple command with its redirections."""
    words = [word.text for word in command.words]
    hidden_effect = _find_hidden_effect(command)
    redirect_risks = [_judge_redirect(redirect, inside) for redirect in command.redirects]
    redirects_risk = _pick_worst([_READS, *redirect_risks])

    # reads come first: “sed -n 1,5p” is a read, though sed can run programs
    objection = hidden_effect or find_objection(words, inside)
    if objection is None:
        return redirects_risk

    harm = find_harm(words, reads_pipe=command.reads_pipe) or _find_injection(command)
    if harm:
        return Risk(Level.DESTRUCTIVE, harm)
    if redirects_risk.level is Level.DESTRUCTIVE:
        return redirects_risk

    hidden_code = find_hidden_code(words)
    if hidden_code:
        return Risk(Level.WRITE, hidden_code, vouched=False)
    vouched = redirects_risk.vouched and hidden_effect is None and _is_vouched_for(words, inside)
    return Risk(Level.WRITE, f"“{program_name(words[0])}” may change something: {objection}", vouched)


def _pick_worst(risks: Sequence[Risk]) -> Risk:
    """Return the worst risk; it is vouched for only if all are."""
    # among equally severe risks, one that is not vouched for: its reason says more
    worst = max(risks, key=lambda risk: (_SEVERITY[risk.level], not risk.vouched))
    return replace(worst, vouched=all(risk.vouched for risk in risks))


def _is_vouched_for(words: Sequence[str], inside: IsInWorkspace) -> bool:
    """Return whether a command only makes files and folders, or commits them without running hooks."""
    allowed: Syntax | None
    match words:
        case ["git", "add", *arguments]:
            allowed = _GIT_ADD
        case ["git", "commit", *arguments] if "-n" in arguments or "--no-verify" in arguments:
            allowed = _GIT_COMMIT
        case [program, *arguments]:
            allowed = _VOUCHED.get(program)
        case _:
            return False
    if allowed is None:
        return False
    objection = allowed.find_objection(arguments, lambda path: inside(path) and _is_outside_git(path))
    return objection is None


def _is_outside_git(path: str) -> bool:
    """Return whether a path is outside of ``.git``, a folder whose settings and hooks run programs."""
    return ".git" not in path.lower().split("/")


def _find_hidden_effect(command: SimpleCommand) -> str | None:
    """Return what the shell does with a command that its words don't say; None if it does nothing more."""
    if command.background:
        return "it runs in the background"
    if any(word.expands for word in command.words):
        return "the shell puts file names into it"
    return None


def _find_injection(command: SimpleCommand) -> str | None:
    """Return a warning if a word may expand to a file name that looks like a flag; None if none may."""
    for word in command.words[1:]:
        if word.expands and word.text[:1] in "*?[":
            return f"“{word.text}” may become a flag; write ./{word.text}"
    return None


def _judge_redirect(redirect: Redirect, inside: IsInWorkspace) -> Risk:
    """Return the risk of a redirection; one that may overwrite a file is destructive."""
    operator = redirect.operator
    path = redirect.target.text
    is_plain = not redirect.target.expands
    if operator == ">&" and path in ("1", "2"):
        return _READS
    if operator in (">", ">>") and path == "/dev/null":
        return _READS
    if operator == "<":
        if is_plain and inside(path):
            return _READS
        if is_device_path(path):
            return Risk(Level.DESTRUCTIVE, f"{path} belongs to the machine, not to the workspace")
        return Risk(Level.WRITE, f"it reads {path}, outside the workspace", vouched=False)
    if operator == ">>" and is_plain:
        return Risk(Level.WRITE, f"it appends to {path}", inside(path) and _is_outside_git(path))
    return Risk(Level.DESTRUCTIVE, f"{operator} overwrites {path}")


def _is_downward(path: str) -> bool:
    return bool(path) and not path.startswith(("/", "~")) and ".." not in path.split("/")
