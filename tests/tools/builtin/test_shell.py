"""The shell tool: real processes, bounded and with nothing left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.risks import Level
from bot.errors import BadArguments, SettingsError
from bot.tools.builtin.shell.process import run_process
from bot.tools.builtin.shell.tools import shell_tools
from bot.tools.call import CallContext
from tests.tools.calls import Hands

NOD = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "LD_PRELOAD": "x.so",
    "BASH_ENV": "evil",
    "LANG": "C.UTF-8",
    "TEAM_SETTING": "seven",
}


def shell(workspace: Path, **more) -> Hands:
    return Hands(shell_tools(workspace, environment=NOD, **more))


@pytest.fixture
def hands(tmp_path):
    return shell(tmp_path)


def alive(mark: str) -> list[str]:
    """Command lines of living processes with the mark in them."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in text and f"/{os.getpid()}/" not in str(each):
            found.append(text)
    return found


async def git(*arguments: str) -> None:
    assert await (await asyncio.create_subprocess_exec("git", *arguments)).wait() == 0


async def test_a_program_runs_in_the_workspace_and_tells_how_it_ended(hands, tmp_path):
    assert await hands.run("shell_run", argv=["pwd"]) == {
        "exit_code": 0,
        "stdout": f"{tmp_path}\n",
        "stderr": "",
    }
    failed = await hands.run("shell_run", argv=["sh", "-c", "echo no >&2; exit 7"])
    assert failed == {"exit_code": 7, "stdout": "", "stderr": "no\n"}


async def test_there_is_no_shell_that_reads_the_arguments(hands, tmp_path):
    told = await hands.run("shell_run", argv=["echo", "$HOME", "*", "; touch made", "`id`", "> made"])
    assert told["stdout"] == "$HOME * ; touch made `id` > made\n"
    assert list(tmp_path.iterdir()) == []


async def test_a_program_that_is_not_there_says_so(hands):
    told = await hands.run("shell_run", argv=["no-such-program"])
    assert (told["exit_code"], told["stderr"]) == (127, "no-such-program: No such file or directory\n")


async def test_the_environment_has_no_tokens_and_nothing_that_was_not_allowed(tmp_path):
    told = await shell(tmp_path).run("shell_run", argv=["env"])
    names = {line.partition("=")[0] for line in told["stdout"].splitlines()}
    assert names == {
        "PATH", "HOME", "TERM", "LANG", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "GIT_EDITOR", "NO_COLOR",
    }  # fmt: skip
    assert "LANG=C.UTF-8\n" in told["stdout"]


async def test_a_program_that_reads_its_input_finds_the_end_of_it(hands):
    assert (await hands.run("shell_run", argv=["cat"]))["exit_code"] == 0


async def test_the_home_of_a_command_is_an_empty_folder_of_its_own(hands, tmp_path):
    (tmp_path / ".curlrc").write_text("fail")
    told = await hands.run("shell_run", argv=["sh", "-c", 'ls -la "$HOME"; stat -c %a "$HOME"; echo "$HOME"'])
    *listed, mode, home = told["stdout"].splitlines()
    assert [line.split()[-1] for line in listed[1:]] == [".", ".."]
    assert mode == "700"
    assert home not in map(str, Path(tempfile.gettempdir()).iterdir())  # noqa: ASYNC240 - a test
    assert not home.startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("x = bytearray(6 << 30)", "MemoryError"),
        ("import os; f = open('big', 'wb'); f.truncate(5 << 30)", "File too large"),
        ("import resource; print(resource.getrlimit(resource.RLIMIT_CPU)); raise SystemExit(3)", ""),
    ],
)
async def test_a_command_has_bounds_of_memory_files_and_processor(hands, script, why):
    told = await hands.run("shell_run", argv=["python3", "-c", script])
    assert told["exit_code"] not in (0, None)
    assert why in told["stderr"]
    assert why or "(60, 60)" in told["stdout"]


@pytest.mark.slow
async def test_what_runs_unasked_has_narrower_bounds(hands, tmp_path):
    (tmp_path / "much.json").write_text("[" + "[1]," * 20_000_000 + "1]")
    told = await hands.run("shell_run", argv=["jq", ".", "much.json"])
    assert told["exit_code"] != 0


async def test_an_exit_code_other_than_0_is_told_to_people(tmp_path):
    tool = shell(tmp_path, seconds=0.5).tools["shell_run"]
    bad = {"false": "Ended with code 1", "true": None, "sleep 9": "It was ended after 0.5 s"}
    for line, words in bad.items():
        output = await tool.run(tool.validate({"argv": line.split()}), CallContext("c1", "http:ana"))
        assert output.ended_badly == words


async def test_output_is_cut_in_the_middle(tmp_path):
    told = await shell(tmp_path, max_output=20).run("shell_run", argv=["seq", "100"])
    assert told["stdout"] == "1\n2\n3\n4\n5\n\n[272 bytes left out]\n98\n99\n100\n"


async def test_a_flood_of_output_is_ended_and_not_kept(tmp_path):
    told = await shell(tmp_path, max_output=1000).run("shell_run", argv=["yes"])
    assert told["exit_code"] is None
    assert "more than 64000 bytes" in told["ended"]
    assert len(told["stdout"]) < 1100


async def test_bytes_that_are_no_text_are_escaped(hands):
    assert (await hands.run("shell_run", argv=["printf", "\\377\\000"]))["stdout"] == "\\xff\\x00"


async def test_what_takes_too_long_is_ended(tmp_path):
    told = await shell(tmp_path, seconds=0.5).run("shell_run", argv=["sleep", "1000"])
    assert (told["exit_code"], told["ended"]) == (None, "it was ended after 0.5 s")


@pytest.mark.parametrize(
    "script",
    [
        "sleep 1000.{mark} & sleep 1000.{mark}",
        "setsid sleep 1000.{mark} & sleep 1000.{mark}",
        "setsid sh -c 'setsid sleep 1000.{mark} & sleep 1000.{mark}' & exec >&- 2>&-; sleep 1000.{mark}",
        "trap '' TERM INT HUP; while true; do sleep 1000.{mark}; done",
        "nohup setsid -f sleep 1000.{mark} >/dev/null 2>&1",
        "setsid -f sleep 1000.{mark}",
        "(setsid sh -c '(sleep 1000.{mark} &) ; exit' &) ; exit 3",
    ],
)
async def test_no_process_outlives_the_command(tmp_path, script):
    mark = str(uuid4().int)[:12]
    hands = shell(tmp_path, seconds=0.5)
    await hands.run("shell_run", argv=["bash", "-c", script.format(mark=mark)])
    assert alive(mark) == []


async def test_a_command_that_stops_its_warden_does_not_outlive_its_time(tmp_path):
    mark = str(uuid4().int)[:12]
    script = f"kill -STOP $PPID; exec sleep 1000.{mark}"
    told = await shell(tmp_path, seconds=0.5).run("shell_run", argv=["sh", "-c", script])
    assert (told["exit_code"], told["ended"]) == (None, "it was ended after 0.5 s")
    assert alive(mark) == []


async def test_a_command_whose_output_cannot_be_read_is_ended(hands, monkeypatch):
    async def fail(*_: object) -> bytes:
        raise OSError("the pipe is broken")

    monkeypatch.setattr(asyncio.StreamReader, "read", fail)
    mark = str(uuid4().int)[:12]
    with pytest.raises(OSError, match="the pipe is broken"):
        await hands.run("shell_run", argv=["sleep", f"1000.{mark}"])
    assert alive(mark) == []


async def test_a_call_that_is_given_up_takes_its_processes_along(hands, tmp_path):
    mark = str(uuid4().int)[:12]
    os.mkfifo(tmp_path / "started")
    script = f"setsid sleep 1000.{mark} & echo > started; sleep 1000.{mark}"
    call = asyncio.create_task(hands.run("shell_run", argv=["sh", "-c", script]))
    await asyncio.to_thread((tmp_path / "started").read_text)
    assert alive(mark)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert alive(mark) == []


async def test_when_nod_is_killed_its_commands_die_too(tmp_path):
    mark = str(uuid4().int)[:12]
    for name in ("started", "held"):
        os.mkfifo(tmp_path / name)
    program = f"""
import asyncio, pathlib
from bot.tools.builtin.shell.process import run_process
script = "exec 3> held; setsid sleep 1000.{mark} & echo > started; sleep 1000.{mark}"
folder, environment = pathlib.Path({str(tmp_path)!r}), {{"PATH": "/usr/bin:/bin"}}
asyncio.run(run_process(["sh", "-c", script], folder, environment, seconds=900, max_output_bytes=9))
"""
    nod = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    # the pipe "held" is open in every process of the command; its end is the end of the last of them
    started, held = (
        asyncio.create_task(asyncio.to_thread((tmp_path / name).read_text)) for name in ("started", "held")
    )
    ended = asyncio.create_task(nod.wait())
    await asyncio.wait({started, ended}, return_when=asyncio.FIRST_COMPLETED)
    if ended.done():  # it never started the command: let go of the threads that wait for it
        for name in ("started", "held"):
            os.close(os.open(tmp_path / name, os.O_RDWR))
    assert await started
    nod.send_signal(signal.SIGKILL)
    await ended
    assert await asyncio.wait_for(held, 30) == ""
    assert [each for each in alive(mark) if each.startswith("sleep")] == []


async def test_a_reading_git_never_looks_above_the_workspace_nor_into_a_planted_repository(tmp_path):
    inside, made = tmp_path / "work", tmp_path / "made"
    inside.mkdir()
    await git("init", "-q", str(tmp_path))
    hands = shell(inside)
    assert hands.risk("shell_run", argv=["git", "status"]).level is Level.READ
    told = await hands.run("shell_run", argv=["git", "status"])
    assert told["exit_code"] == 128
    # a bare repository whose files could be written by anybody who may write files here
    await git("init", "-q", "--bare", str(inside))
    with (inside / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {made}; false"\n\tbare = false\n\tworktree = "."\n')
    (inside / ".gitconfig").write_text(f'[core]\n\tfsmonitor = "touch {made}; false"\n')
    told = await hands.run("shell_run", argv=["git", "status"])
    assert told["exit_code"] == 128
    assert not made.exists()


async def test_the_card_shows_the_command_as_it_would_be_typed(hands, tmp_path):
    shown = await hands.preview("shell_run", argv=["rm", "-r", "a b", "it's", "x\u202ey", ""])
    assert shown == [
        ("command", None, "rm -r 'a b' 'it'\"'\"'s' $'x\\U0000202ey' ''"),
        ("folder", None, str(tmp_path)),
    ]


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), min_size=1)
)
def test_the_command_on_the_card_means_the_same_argv_to_a_shell(argv):
    hands = shell(Path.cwd())
    line = hands.tools["shell_run"].summary({"argv": argv}).removeprefix("Run “").removesuffix("”")
    said = subprocess.run(  # noqa: S603 - words of this test
        ["/bin/bash", "-c", f"printf '%s\\0' {line}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert said.stdout.decode().split("\0")[:-1] == argv


async def test_an_empty_argv_and_one_with_nul_are_refused(hands):
    for argv in ([], ["ls", "a\0b"]):
        with pytest.raises(BadArguments):
            await hands.run("shell_run", argv=argv)


def test_a_workspace_that_is_no_folder_stops_the_start(tmp_path):
    with pytest.raises(SettingsError, match="not a folder"):
        shell(tmp_path / "nowhere")


async def test_what_a_command_prints_is_told_while_it_runs(tmp_path):
    heard: list[str] = []

    async def printed(text: str) -> None:
        heard.append(text)
        if "one" in text and "two" in text:
            (tmp_path / "go").touch()

    script = "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; echo three"
    around = {"PATH": os.environ["PATH"]}
    ended = await run_process(
        ["sh", "-c", script], tmp_path, around, seconds=30, max_output_bytes=1000, on_output=printed
    )
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "one\nthree\n", "two\n")
    assert "three" not in "".join(heard)


async def test_a_command_may_ask_for_more_time_and_its_card_says_so(tmp_path):
    hands = shell(tmp_path, seconds=0.2)
    told = await hands.run("shell_run", argv=["sleep", "0.5"], seconds=30)
    assert told["exit_code"] == 0
    shown = await hands.preview("shell_run", argv=["sleep", "0.5"], seconds=30)
    assert shown[2:] == [("time limit", None, "30 s")]
    for seconds in (0, 601):
        with pytest.raises(BadArguments):
            await hands.run("shell_run", argv=["true"], seconds=seconds)
