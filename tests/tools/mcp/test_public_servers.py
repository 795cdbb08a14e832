"""Public servers of other people, run for real: one from PyPI and, where npm can fetch it, one from npm."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.domain.proposal_states import State
from bot.domain.risks import Level
from bot.errors import ToolError
from bot.tools.mcp.config import ServerConfig, Stdio, Trust
from tests.kit import call

pytestmark = pytest.mark.slow

FILESYSTEM = "@modelcontextprotocol/server-filesystem@2026.8.31"


def git(folder: Path, *arguments: str) -> str:
    """Run git without anybody's own settings."""
    identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
    done = subprocess.run(  # noqa: S603 - words of this test
        ["git", *identity, *arguments],  # noqa: S607
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit, and one change since."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-b", "main")
    git(folder, "config", "user.name", "Ana")
    git(folder, "config", "user.email", "ana@example.com")
    (folder / "lamp.txt").write_text("white\n")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "First")
    (folder / "lamp.txt").write_text("red\n")
    return folder


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_the_public_git_server_reads_immediately_and_commits_after_the_press(
    connect, make_nod, repository
):
    """`mcp-server-git`, the reference server of the protocol's own project."""
    launch = Stdio(sys.executable, ("-m", "mcp_server_git", "--repository", str(repository)))
    served = connect(ServerConfig("git", launch, Trust.TRUSTED, prefix="git_"))
    levels = {tool.name: tool.classify({}).level for tool in await served.toolset.tools()}
    assert levels["git_status"] is Level.READ
    assert levels["git_commit"] is Level.WRITE
    assert levels["git_reset"] is Level.DESTRUCTIVE

    nod = make_nod(served)
    where = {"repo_path": str(repository)}
    assert await nod.asked(call("git_diff_unstaged", where)) == []
    assert "-white\n+red" in nod.model.results[-1]

    [add, commit] = await nod.asked(
        call("git_add", where, files=["lamp.txt"]), call("git_commit", where, message="Paint the lamp")
    )
    assert git(repository, "log", "--format=%s").split("\n")[0] == "First"
    assert (await nod.approve(add)).state is State.SUCCEEDED
    assert (await nod.approve(commit)).state is State.SUCCEEDED
    assert git(repository, "log", "--format=%s").split("\n")[0] == "Paint the lamp"

    with pytest.raises(ToolError):
        await served.run("git_log", repo_path="/")


@pytest.fixture(scope="session")
def filesystem_server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public filesystem server, fetched by npm into a folder of its own."""
    if not (shutil.which("npm") and shutil.which("node")):
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("npm")
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--fetch-retries=0"]
    got = subprocess.run(  # noqa: S603 - words of this test
        ["npm", "install", *options, "--prefix", str(folder), FILESYSTEM],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    if got.returncode:
        pytest.skip(f"npm cannot fetch {FILESYSTEM}: {got.stderr.strip()[:200]}")
    return folder / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"


async def test_the_public_filesystem_server_reads_immediately_and_writes_after_the_press(
    connect, make_nod, filesystem_server, tmp_path
):
    """Written with another SDK, in another language, speaking the protocol of before 2026."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "lamp.txt").write_text("white")
    launch = Stdio("node", (str(filesystem_server), str(shared)))
    served = connect(ServerConfig("files", launch, Trust.TRUSTED, prefix="files_", deny=("move_file",)))
    levels = {tool.name: tool.classify({}).level for tool in await served.toolset.tools()}
    assert levels["files_read_text_file"] is Level.READ
    assert levels["files_write_file"] is Level.DESTRUCTIVE
    assert "files_move_file" not in levels

    nod = make_nod(served)
    assert await nod.asked(call("files_read_text_file", path=str(shared / "lamp.txt"))) == []
    assert "white" in nod.model.results[-1]
    assert await nod.asked(call("files_write_file", path=1)) == []
    assert "content: this is required" in nod.model.results[-1]

    [write] = await nod.asked(call("files_write_file", path=str(shared / "lamp.txt"), content="red"))
    assert (shared / "lamp.txt").read_text() == "white"
    assert (await nod.approve(write)).state is State.SUCCEEDED
    assert (shared / "lamp.txt").read_text() == "red"

    [outside] = await nod.asked(call("files_write_file", path=str(tmp_path / "x"), content="red"))
    ended = await nod.approve(outside)
    assert (ended.state, (tmp_path / "x").exists()) == (State.FAILED, False)
