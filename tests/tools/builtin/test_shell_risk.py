"""How much an argv can harm: what only reads runs immediately, so nothing else may be taken for it."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.domain.risks import Level
from bot.domain.rule_values import Mode
from bot.tools.builtin.shell.harm import program_name
from bot.tools.builtin.shell.risk import make_classifier
from bot.tools.builtin.shell.script import NotUnderstood, parse_script
from tests.kit.examples import examples
from tests.tools.builtin.corpora import lines


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    root = tmp_path_factory.mktemp("risk")
    (root / "outside").mkdir()
    (root / "outside" / "secret.txt").write_text("secret")
    work = root / "work"
    (work / "src").mkdir(parents=True)
    (work / "README.md").write_text("hello\n")
    (work / "link-outside").symlink_to(root / "outside" / "secret.txt")
    (work / "folder-link").symlink_to(root / "outside")
    return work


@pytest.fixture(scope="module")
def judge(workspace):
    return make_classifier(workspace)


# -- the written corpora


# each corpus in one test, which fails with all that is judged wrongly


def test_a_command_that_only_reads_is_a_read(judge):
    risks = [(argv, judge(json.loads(argv))) for argv in lines("reading")]
    assert [each for each in risks if each[1].level is not Level.READ] == []


def test_no_written_escape_is_a_read(judge):
    escapes = lines("not_reading")
    assert [argv for argv in escapes if judge(json.loads(argv)).level is Level.READ] == []


def test_a_command_that_runs_code_asks_one_person_and_is_never_vouched_for(judge):
    for argv in lines("running"):
        risk = judge(json.loads(argv))
        assert (risk.level, risk.vouched) == (Level.WRITE, False), argv
        assert "inspect" in risk.reason or "“git -c”" in risk.reason, argv
        assert Mode.DESTRUCTIVE.asks(risk), argv


def test_a_command_that_can_lose_something_is_destructive(judge):
    risks = [(argv, judge(json.loads(argv))) for argv in lines("destructive")]
    assert [each for each in risks if each[1].level is not Level.DESTRUCTIVE] == []


LEVELS = {"d": Level.DESTRUCTIVE, "w": Level.WRITE, "r": Level.READ}


def test_a_command_is_judged_as_what_it_is(judge):
    judged = [(line, judge(line.split(" ")[1:])) for line in lines("judged")]
    assert [(line, risk) for line, risk in judged if risk.level is not LEVELS[line[0]]] == []


def test_the_judged_commands_are_more_than_two_hundred_and_fifty():
    assert len(set(lines("judged"))) >= 250


def test_a_script_around_an_escape_is_no_read_either(judge):
    for words in map(json.loads, lines("not_reading")):
        if "\0" in "".join(words):
            continue
        inner = shlex.join(words)
        for script in (
            inner,
            f"ls; {inner}",
            f"ls | {inner}",
            f"({inner})",
            f"! {inner}",
            f"ls && {inner} || true",
        ):
            assert judge(["sh", "-c", script]).level is not Level.READ, script


@pytest.mark.parametrize(
    "argv",
    [
        ["make", "test"],
        ["pytest", "-q"],
        ["npm", "test"],
        ["mkdir", "new"],
        ["cp", "a", "b"],
        ["git", "add", "."],
        ["git", "commit", "-m", "words"],
        ["git", "push", "origin", "main"],
        ["git", "push", "-u", "origin", "main"],
        ["git", "checkout", "-b", "topic"],
        ["git", "clone", "https://example.com/x"],
        ["docker", "ps"],
        ["kubectl", "get", "pods"],
        ["curl", "-sSL", "https://example.com"],
        ["tar", "-xzf", "x.tgz"],
        ["sh", "-c", "make && make test"],
        ["sh", "-c", "cd src && ls"],
        ["sh", "-c", "echo hi >> notes.txt"],
        ["sh", "-c", "wc -l src/*.py"],
    ],
)
def test_other_commands_write(judge, argv):
    risk = judge(argv)
    assert risk.level is Level.WRITE, risk.reason


@pytest.mark.parametrize(
    "line",
    [
        "make", "nod approve x", "cp Makefile .git/config", "split --filter=id", "curl https://x.example",
        "zip -TT id a b", "pytest", "cargo run", "npm test", "uv run x", "rbash -c id", "vim.basic",
        "date -s now",
        "chmod 777 a", "sh -c 'mkdir a && make'", "mkdir ../a", "touch .git/config", "mkdir .GIT/hooks",
        "touch /etc/x", "git commit -m words", "git commit -n --amend", "git add ../x", "git -C x add .",
        "sh -c 'echo x >> .git/config'", "sh -c 'echo x >> ../x'", "sh -c 'touch *'", "sh -c 'touch a &'",
        "sh -c 'cat < ../x >> y'", "touch --reference=/etc/x a", "mkdir -Z a",
    ],
)  # fmt: skip
def test_under_destructive_a_program_that_no_one_vouched_for_asks(judge, line):
    assert Mode.DESTRUCTIVE.asks(judge(shlex.split(line)))


@pytest.mark.parametrize(
    "line",
    [
        "mkdir -p a/b", "touch a b", "git add .", "git add -A", "git commit -n -m words", "ls",
        "sh -c 'mkdir a && touch a/b'", "sh -c 'echo hi >> notes.txt'",
    ],
)  # fmt: skip
def test_under_destructive_what_is_vouched_for_runs(judge, line):
    assert not Mode.DESTRUCTIVE.asks(judge(shlex.split(line)))


@pytest.mark.parametrize(
    ("flt", "reads"),
    [
        (".", True), (".a.b[0]", True), ('.["a b"]?', True), (".[] | .name, .id", True),
        ("keys | length", True), ("map(.name)", True), (".a | sort | unique", True),
        ('("x"*400000000) as $a | $a', False), ("[range(1e9)]", False), ("def f: f; f", False),
        ("env", False), ("input_filename", False), ("@sh", False), (".a | " * 30 + ".", False),
        (".[0]" * 4000 + "x", False),
    ],
)  # fmt: skip
def test_of_jq_only_plain_filters_read(judge, flt, reads):
    assert (judge(["jq", flt, "README.md"]).level is Level.READ) is reads


def test_the_reason_says_what_it_was(judge):
    assert (
        judge(["git", "push", "--force"]).reason == "“git push --force” can lose something or run a program"
    )
    assert (
        judge(["cat", "/etc/passwd"]).reason
        == "“cat” may change something: “/etc/passwd” is outside the workspace"
    )
    assert judge(["sh", "-c", "for f in a; do ls; done"]).reason == (
        "the script is not understood: it uses for statement"
    )


def test_one_program_has_one_name():
    names = ["/usr/bin/Python3.11", "python3", "PYTHON", "python.exe", "rm", "/bin/rm", "7"]
    assert [program_name(each) for each in names] == ["python"] * 4 + ["rm"] * 2 + ["7"]


# -- the parser


def test_a_script_is_read_as_its_commands_with_their_words_unquoted():
    found = parse_script('grep -n "a \\"b\\"" \'c d\'e | head -5 2>/dev/null; (pwd && ls) &')
    assert [[word.text for word in each.words] for each in found] == [
        ["grep", "-n", 'a "b"', "c de"],
        ["head", "-5"],
        ["pwd"],
        ["ls"],
    ]
    assert [each.reads_pipe for each in found] == [False, True, False, False]
    assert [each.background for each in found] == [False, False, True, True]
    assert [(each.operator, each.target.text) for each in found[1].redirects] == [(">", "/dev/null")]


TOKENS = st.sampled_from([
    "ls", "cat", "rm", "git push --force", "x", "-f", "-rf", "/etc", "../x", ";", "&&", "||", "|", "&",
    "\n", "(", ")",
    ">", ">>", "<", "2>&1", "<<EOF", "'", '"', "`", "$(", "${x}", "$x", "\\", "{", "}", "{a,b}", "*", "?",
    "~", "#",
    "!", "=", "A=1", "eval", "exec", "if", "then", "fi", "for", "do", "done", "case", "in", "esac",
    "function f",
    "f()", "[[", "]]", "[", "]", "((", "))", "<(", ">(", "\t", "\r", "\x00", "é", "\u2028", "\\\n", "sh",
    "sh -c",
])  # fmt: skip
SCRIPTS = st.lists(TOKENS, max_size=12).flatmap(
    lambda made: st.sampled_from(["", " "]).map(lambda between: between.join(made))
)
RAW = st.text(alphabet="lsrmcat .;&|<>'\"\\$(){}*~-=#!\n\t[]`/xEOF", max_size=40)


@examples(600)
@given(SCRIPTS | RAW)
@example("ls'\nrm x\n'")
@example('ls "a" "b"\\\n; rm x')
def test_words_that_the_parser_reads_are_the_words_that_a_shell_runs(script):
    """The program is replaced by one that prints its words, so nothing that is invented here does harm."""
    try:
        commands = parse_script(script)
    except NotUnderstood:
        return
    if any(each.redirects or any(word.expands for word in each.words) for each in commands):
        return
    plain = all(each.words[0].text.isalpha() for each in commands)
    if not plain or len(commands) != 1 or commands[0].background or "(" in script or "!" in script:
        return
    words = [word.text for word in commands[0].words]
    if words[0] in ("ls", "cat", "rm", "git"):
        shadow = f"{words[0]}() {{ printf '%s\\0' {words[0]} \"$@\"; }}\n"
        said = subprocess.run(  # noqa: S603 - words of this test
            ["/bin/bash", "--norc", "-c", shadow + script],
            env={"PATH": "/nonexistent"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert said.stdout.decode().split("\0")[:-1] == words


SAFE = frozenset({"ls", "cat", "pwd", "true", "echo"})
SAFE_TOKENS = st.sampled_from([
    "ls", "cat", "pwd", "true", "echo", "README.md", "src", "-l", ";", "&&", "|", "||", "(", ")", "'a b'",
    '"c"', "\n",
    "touch made", ">made", "> made", ">>made", "$(touch made)", "`touch made`", "<(touch made)", "&",
    "&>made", "{",
    "}", "eval 'touch made'", "touch${IFS}made", "2>made", ">|made", "<>made", "\\\n", "'", '"', "\\", "#",
    "made",
    "| tee made", "mkdir made", "A=$(touch made)", "if true; then touch made; fi", "f() { touch made; }; f",
    "exec >made",
])  # fmt: skip


@examples(400)
@given(script=st.lists(SAFE_TOKENS, min_size=1, max_size=8).map(" ".join))
def test_a_script_taken_for_a_read_makes_no_file_when_it_really_runs(judge, workspace, script):
    if judge(["sh", "-c", script]).level is not Level.READ:
        return
    before = snapshot(workspace)
    for shell in ("/bin/sh", "/bin/bash"):
        subprocess.run(  # noqa: S603 - words of this test
            [shell, "-c", script],
            cwd=workspace,
            env={"PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    assert snapshot(workspace) == before


ARGUMENTS = st.lists(
    st.sampled_from([
        "-o", "-i", "--output=made", "--out", "-f", "-e", "-n", "--", "made", "w made", "1p", "README.md",
        "-exec", "touch",
        "{}", ";", "-delete", "-fprint", "-print", ".", "-c", "-k", "1", "e touch made", "s/h/x/w made",
        "-s", "-r",
        "--in-place", "-name", "{print $1}", '{print > "made"}', 'BEGIN{system("touch made")}', "-v",
        "--files0-from=x",
    ])
    | st.text(alphabet="-abcefikmnoprsuvwz=/.1", min_size=1, max_size=4),
    max_size=5,
)  # fmt: skip
PROGRAMS = st.sampled_from(
    ["sort", "uniq", "sed", "awk", "find", "grep", "cat", "head", "cut", "tr", "wc", "date"]
)


@examples(500)
@given(program=PROGRAMS, arguments=ARGUMENTS)
@example("sed", ["--", "w made", "-e", "1p", "README.md"])
def test_an_argv_taken_for_a_read_changes_no_file_when_it_really_runs(judge, workspace, program, arguments):
    argv = [program, *arguments]
    if judge(argv).level is not Level.READ:
        return
    before = snapshot(workspace)
    subprocess.run(  # noqa: S603 - words of this test
        argv,
        cwd=workspace,
        env={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert snapshot(workspace) == before


def snapshot(workspace: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in workspace.rglob("*") if each.is_file()}


@pytest.mark.parametrize("flags", ["-f", "-fq", "-B y"])
def test_a_new_branch_that_throws_changes_away_is_destructive(judge, flags):
    assert judge(shlex.split(f"git checkout -b x {flags}")).level is Level.DESTRUCTIVE
