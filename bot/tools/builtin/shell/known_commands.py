"""The commands that *Approve similar* knows, each with the words and options that may follow.

When people approve such a command, they may give a grant. By the grant the same command also runs unasked
with other options of this table (``prefix.py``). The options never change which code runs, nor in which
folder: no option here names a file, a folder, a program, a setting or a plugin. An option must be spelled as
it is here, neither abbreviated nor joined with others. `format_table_rows` makes the table in
``docs/commands.md`` from `COMMANDS`.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

_SEPARATOR = " · "  # between options
_MAX_SHOWN_OPTIONS = 3  # the options that a card names as examples
_OPTION_VALUE = re.compile(r"[ =]|(?<=[a-z])NUMBER")
"""The beginning of an option's value: after a space, after a "=", or after the letter in "-jNUMBER"."""
_VALUE_NAME = re.compile(r"(?<![A-Za-z])[A-Z]{4,}$|(?<=-[jk])NUMBER$")
"""A name of `VALUES` at the end of a word. It may follow a letter only in ``-jNUMBER`` and ``-kNUMBER``."""

VALUES = {
    "NUMBER": r"[0-9]{1,6}",
    "NAME": r"[A-Za-z_][A-Za-z0-9_]*",
    "NAMES": r"[A-Za-z_][A-Za-z0-9_]*((::|\.)[A-Za-z_][A-Za-z0-9_]*)*",
    "PATTERN": r"\^?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*\$?",
    "WORDS": r"[A-Za-z0-9_]+( [A-Za-z0-9_]+){0,19}",
    "MESSAGE": r"[^-@$`\\\s\x00-\x1f\x7f][^$`\\\x00-\x1f\x7f]{0,2000}",
    "CODES": r"[A-Z]+[0-9]*(,[A-Z]+[0-9]*)*",
    "DURATION": r"[0-9]{1,5}(ms|s|m|h)",
    "TRACEBACK": r"auto|long|short|line|native|no",
    "OUTPUT": r"concise|full|grouped|human|short|json|plain",
    "WHEN": r"always|auto|never|yes|no",
    "FILTER": r"[A-Za-z_][A-Za-z0-9_.]*([~=][A-Za-z_][A-Za-z0-9_.]*)?",
    "VERBOSITY": r"q|quiet|m|minimal|n|normal|d|detailed",
    "ENDINGS": r"\.[a-z]{1,5}(,\.[a-z]{1,5})*",
}
"""The kinds of values that an option may have, as patterns of the whole value."""

# patterns of targets, the plain words that a grant fixes, such as what make builds
_TARGET = r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*"
_SCRIPT = r"[A-Za-z][A-Za-z0-9_-]*([:.][A-Za-z0-9_-]+)*"
FOLDER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"  # the folder that cmake --build builds
_REMOTE = r"[A-Za-z][A-Za-z0-9_-]*([.-][A-Za-z0-9_]+)*"
_ALL_PACKAGES = r"\./\.\.\."
_GRADLE_TASKS = "test|check|build|assemble|classes|testClasses"
_MAVEN_PHASES = "validate|compile|test-compile|test|package|verify"
_TARGET_TEXTS = {  # by pattern: its text in the table of the documents
    _TARGET: " and targets",
    _SCRIPT: " and a script",
    FOLDER: " and a folder",
    _REMOTE: " and a remote, a branch",
    _ALL_PACKAGES: " and `./...`",
    _GRADLE_TASKS: f" with {_GRADLE_TASKS.replace('|', ', ')}",
    _MAVEN_PHASES: f" with {_MAVEN_PHASES.replace('|', ', ')}",
}

# options of several commands, and the files of settings of pytest
_PYTEST = (
    "-q · -qq · -v · -vv · -x · -s · -l · -ra · -rA · -rs · -rf · -k WORDS · -m WORDS · -n NUMBER"
    " · -n auto · --quiet · --verbose · --exitfirst · --maxfail=NUMBER · --maxfail NUMBER"
    " · --tb=TRACEBACK · --durations=NUMBER · --lf · --last-failed · --ff · --failed-first · --nf · --sw"
    " · --stepwise · --no-header · --no-summary · --showlocals · --color=WHEN · --strict-markers"
)
_PYTEST_SETTINGS = (
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
    "setup.py",
)
_UNITTEST = "-v · -q · -f · -b · -k NAME · --verbose · --quiet · --failfast · --buffer · --locals"
_MYPY = (
    "--strict · --pretty · --no-pretty · --show-error-codes · --show-error-context"
    " · --ignore-missing-imports · --no-error-summary · --warn-unused-ignores · --check-untyped-defs"
    " · --no-incremental"
)
_RUFF = (
    "-q · --quiet · -v · --verbose · --select=CODES · --select CODES · --ignore=CODES · --ignore CODES"
    " · --extend-select=CODES · --extend-select CODES · --output-format=OUTPUT · --statistics"
    " · --no-cache · -n · --preview · --exit-zero · --show-fixes"
)
_GO_TEST = (
    "-v · -race · -short · -failfast · -json · -cover · -benchmem · -run PATTERN · -run=PATTERN"
    " · -skip PATTERN · -skip=PATTERN · -bench PATTERN · -bench=PATTERN · -count=NUMBER · -count NUMBER"
    " · -timeout DURATION · -timeout=DURATION · -parallel NUMBER · -parallel=NUMBER · -bench . · -bench=."
    " · -shuffle=on · -shuffle=off"
)
_CARGO = (
    "-q · --quiet · -v · --verbose · --release · --lib · --locked · --offline · --frozen · --keep-going"
    " · -j NUMBER · -jNUMBER · --jobs NUMBER · --jobs=NUMBER · --message-format=OUTPUT · --color=WHEN"
)
_GRADLE = (
    "-q · --quiet · -i · --info · -w · --warn · -s · --stacktrace · --offline · --continue · --no-daemon"
    " · --parallel · --console=plain · --tests NAMES"
)
_MAVEN = (
    "-q · --quiet · -B · --batch-mode · -e · --errors · -o · --offline · -X · --debug · -ntp"
    " · --no-transfer-progress · -T NUMBER"
)
_DOTNET = "--no-restore · --nologo · -v VERBOSITY · --verbosity VERBOSITY"


class Follows(StrEnum):
    """The words that may follow a command; the values are the texts of the table in the documents."""

    NOTHING = "nothing"
    NAME = "the name of a test"
    PATHS = "paths"
    TESTS = "test names and paths"
    PACKAGES = "packages, such as `./parser/...`"
    MODULES = "names of test modules"


@dataclass(frozen=True, slots=True)
class KnownCommand:
    """One command: the words that it begins with, and what may follow them."""

    words: str
    """The words that it begins with, such as "go test"."""
    options: str
    """The options that a call may have, joined by `_SEPARATOR`. A name in capitals is a value (`VALUES`)."""
    follows: Follows = Follows.NOTHING
    targets: str = ""
    """A pattern of the plain words that a grant fixes, such as a target of make; empty if it has none."""
    max_targets: int = 0
    min_targets: int = 0
    fixed_options: str = ""
    """Options that change what a command does, joined by spaces; they have no values.

    A grant only covers calls that have the same of these options as the approved call.
    """
    settings: tuple[str, ...] = ()
    """Names of files that decide what runs for the paths in and below their folder."""

    @property
    def shown_options(self) -> list[str]:
        """The first few names of its options, as a card says them: without values."""
        options = self.options.split(_SEPARATOR)
        names = [_OPTION_VALUE.split(option)[0] for option in options]
        return list(dict.fromkeys(names))[:_MAX_SHOWN_OPTIONS]


COMMANDS = (
    KnownCommand(
        "make",
        "-j · -jNUMBER · -j NUMBER · --jobs=NUMBER · -k · --keep-going · -s · --silent · --quiet · -w"
        " · --no-print-directory · -Otarget · --output-sync=target",
        targets=_TARGET,
        max_targets=5,
        fixed_options="-n --dry-run --just-print",
    ),
    KnownCommand(
        "ninja", "-jNUMBER · -j NUMBER · -kNUMBER · -k NUMBER · -v · --verbose · --quiet", targets=_TARGET,
        max_targets=5, fixed_options="-n",
    ),
    KnownCommand(
        "cmake --build", "-j · -jNUMBER · -j NUMBER · --parallel NUMBER · -v · --verbose", targets=FOLDER,
        max_targets=1, min_targets=1,
    ),
    KnownCommand(
        "ctest",
        "-jNUMBER · -j NUMBER · --parallel NUMBER · -R PATTERN · -E PATTERN · -L NAME · -V · -VV · -Q"
        " · --verbose · --quiet · --output-on-failure · --rerun-failed · --stop-on-failure · --progress"
        " · --timeout NUMBER",
        fixed_options="-N --show-only",
    ),
    KnownCommand("npm test", "--silent · -s · --if-present"),
    KnownCommand(
        "npm run", "--silent · -s · --if-present", targets=_SCRIPT, max_targets=1, min_targets=1
    ),
    *(
        KnownCommand(
            words, _PYTEST, Follows.TESTS, fixed_options="--co --collect-only", settings=_PYTEST_SETTINGS
        )
        for words in ("pytest", "python3 -m pytest", "python -m pytest")
    ),
    *(
        KnownCommand(words, _UNITTEST, Follows.MODULES)
        for words in ("python3 -m unittest", "python -m unittest")
    ),
    KnownCommand("python3 -m unittest discover", _UNITTEST),
    *(KnownCommand(words, _MYPY, Follows.PATHS) for words in ("mypy", "python3 -m mypy")),
    KnownCommand("ruff check", _RUFF, Follows.PATHS, fixed_options="--diff --fix"),
    KnownCommand(
        "ruff format", "-q · --quiet · -v · --no-cache", Follows.PATHS, fixed_options="--check --diff"
    ),
    KnownCommand("black", "-q · --quiet · -v · --verbose", Follows.PATHS, fixed_options="--check --diff"),
    KnownCommand(
        "eslint",
        "--quiet · --max-warnings=NUMBER · --max-warnings NUMBER · --ext ENDINGS · --color · --no-color",
        Follows.PATHS,
        fixed_options="--fix-dry-run --fix",
        settings=(
            "package.json", ".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml",
            ".eslintrc.yaml", "eslint.config.js", "eslint.config.mjs", "eslint.config.cjs",
            "eslint.config.ts", "eslint.config.mts", "eslint.config.cts",
        ),
    ),
    KnownCommand("tsc", "--pretty · --strict · --skipLibCheck · --noUnusedLocals", fixed_options="--noEmit"),
    KnownCommand("go test", _GO_TEST, Follows.PACKAGES, settings=("go.mod",)),
    KnownCommand("go build", "-v · -race", targets=_ALL_PACKAGES, max_targets=1),
    KnownCommand("go vet", "-v · -json", Follows.PACKAGES, settings=("go.mod",)),
    KnownCommand(
        "cargo test", f"{_CARGO} · --doc · --no-fail-fast", Follows.NAME, fixed_options="--no-run"
    ),
    *(KnownCommand(words, _CARGO) for words in ("cargo build", "cargo check", "cargo clippy")),
    KnownCommand("cargo fmt", "-q · --quiet · -v · --verbose", fixed_options="--check"),
    *(
        KnownCommand(words, _GRADLE, targets=_GRADLE_TASKS, max_targets=3, min_targets=1)
        for words in ("gradle", "./gradlew")
    ),
    *(
        KnownCommand(words, _MAVEN, targets=_MAVEN_PHASES, max_targets=2, min_targets=1)
        for words in ("mvn", "./mvnw")
    ),
    KnownCommand("dotnet test", f"{_DOTNET} · --no-build · --filter FILTER"),
    KnownCommand("dotnet build", f"{_DOTNET} · --no-incremental"),
    KnownCommand(
        "git add", "-A · --all · -u · --update · -v · --verbose", Follows.PATHS, fixed_options="-n --dry-run",
        settings=(".git",),
    ),
    KnownCommand(
        "git commit",
        "-m MESSAGE · --message=MESSAGE · -a · --all · -am MESSAGE · -q · --quiet · -v · --verbose · -s"
        " · --signoff",
        Follows.PATHS,
        fixed_options="--dry-run",
        settings=(".git",),
    ),
    KnownCommand(
        "git fetch", "-q · --quiet · -v · --verbose · --progress", targets=_REMOTE, max_targets=2,
        fixed_options="--dry-run",
    ),
)  # fmt: skip
"""All known commands. If several commands match, the command with the most words counts."""


@dataclass(frozen=True, slots=True)
class Option:
    """One spelling of an option, such as "-k WORDS" or "--jobs=NUMBER"."""

    word: re.Pattern[str]  # matches the option's word, with its value if that is in the same word
    value: re.Pattern[str] | None  # matches the value in the next word; None if no value is there


def read_options(text: str) -> tuple[Option, ...]:
    """Parse `KnownCommand.options`. Options with a value in the next word come first."""
    options = [_read_option(spelling) for spelling in text.split(_SEPARATOR)]
    return tuple(sorted(options, key=lambda option: option.value is None))


def format_table_rows() -> list[str]:
    """Return the rows of the table in the documents. Commands that differ only in their words share a row."""
    words_by_command: dict[KnownCommand, list[str]] = {}  # by the command without its words
    for known in COMMANDS:
        without_words = replace(known, words="")
        words_by_command.setdefault(without_words, []).append(f"`{known.words}`")
    return [_format_row(known, ", ".join(words)) for known, words in words_by_command.items()]


def _format_row(known: KnownCommand, text: str) -> str:
    targets = _TARGET_TEXTS.get(known.targets, "")
    options = " ".join(f"`{option}`" for option in known.options.split(_SEPARATOR))
    fixed_options = " ".join(f"`{option}`" for option in known.fixed_options.split()) or "none"
    return f"| {text}{targets} | {known.follows} | {options} | {fixed_options} |"


def _read_option(spelling: str) -> Option:
    word, _, value = spelling.partition(" ")
    return Option(_compile(word), _compile(value) if value else None)


def _compile(spelling: str) -> re.Pattern[str]:
    """Compile the spelling of a word, whose end may be the name of a value (`_VALUE_NAME`)."""
    name = _VALUE_NAME.search(spelling)
    if name is None:
        return re.compile(re.escape(spelling))
    return re.compile(f"{re.escape(spelling[: name.start()])}({VALUES[name[0]]})", re.ASCII)
