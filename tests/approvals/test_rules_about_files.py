"""Rules about files, with the tools that open them: what is compared is what they open."""

from pathlib import Path

import pytest

from bot.domain.chat import Answer
from bot.domain.model import ToolCall
from bot.domain.proposal_states import State
from bot.tools.builtin.files.tools import file_tools
from bot.tools.builtin.shell.tools import shell_tools
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, MakeNod, Nod, call

SECRET = "the word is swordfish"


@pytest.fixture
def nod(make_nod: MakeNod, tmp_path: Path) -> Nod:
    """Ada is an admin; the agent has the files of a workspace, and a shell there."""
    workspace = tmp_path / "ws"
    for folder in ("infra", "docs"):
        (workspace / folder).mkdir(parents=True)
    (workspace / "secrets.txt").write_text(SECRET)
    (workspace / "notes.txt").write_text("nothing of note")
    (workspace / "infra" / "main.tf").write_text("x")
    (workspace / "link.txt").symlink_to("secrets.txt")
    nod = make_nod(admins=[ADA])
    shell = shell_tools(workspace, environment={"LANG": "C.UTF-8"})
    nod.toolset = FixedToolset("files", (*file_tools(workspace).fixed, *shell.fixed))
    nod.rebuild()
    return nod


async def rule(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return reply.text


async def told(nod: Nod, *calls: ToolCall) -> str:
    """What the model is told of its calls, next."""
    await nod.asked(*calls)
    return nod.model.results[-1]


@pytest.mark.parametrize(
    "condition",
    ["path = secrets.txt", "path in (a, secrets.txt)", 'path matches "secret*"', "not (path != secrets.txt)"],
)
async def test_no_spelling_of_a_file_is_read_that_a_rule_forbids(nod: Nod, condition: str) -> None:
    await rule(nod, f"policy forbid for file_* where {condition}")
    for path in (
        "secrets.txt",
        "./secrets.txt",
        ".//secrets.txt",
        "secrets.txt/",
        "docs/../secrets.txt",
        "link.txt",
    ):
        assert SECRET not in await told(nod, call("file_read", path=path)), path
    assert SECRET not in await told(nod, call("file_search", text="swordfish"))
    assert "nothing of note" in await told(nod, call("file_read", path="./notes.txt"))


async def test_no_command_reads_through_a_link_what_a_rule_forbids(nod: Nod) -> None:
    await rule(nod, "policy forbid for shell_run where argv.1 = secrets.txt")
    for argv in (["cat", "./secrets.txt"], ["cat", "link.txt"], ["cat", "-n", "secrets.txt"]):
        assert SECRET not in await told(nod, call("shell_run", argv=argv)), argv
    assert "nothing of note" in await told(nod, call("shell_run", argv=["cat", "notes.txt"]))


async def test_a_folder_is_not_moved_away_from_the_rule_about_what_is_in_it(nod: Nod) -> None:
    await rule(nod, 'policy forbid for file_* where path matches "infra/**"')
    for ends in ({"path": "infra", "to": "old"}, {"path": "notes.txt", "to": "infra/notes.txt"}):
        assert await nod.asked(call("file_move", **ends)) == [], ends
    [moved] = await nod.asked(call("file_move", path="notes.txt", to="docs/notes.txt"))
    assert moved.state is State.PROPOSED


async def test_a_rule_that_spares_the_question_spares_it_for_both_ends_of_a_move(nod: Nod) -> None:
    await rule(nod, 'policy never for file_move where path matches "*.txt"')
    [moved] = await nod.asked(call("file_move", path="notes.txt", to="infra/notes.tf"))
    assert moved.state is State.PROPOSED
    [renamed] = await nod.asked(call("file_move", path="secrets.txt", to="old.txt"))
    assert (await nod.now(renamed)).state is State.SUCCEEDED
