"""Containers of a daemon on a unix socket."""

import pytest

from bot.domain.risks import Level
from bot.errors import BadArguments, ToolError, ToolTimedOut
from bot.tools.builtin.docker import docker_tools
from tests.fakes.docker_daemon import FakeDocker
from tests.tools.calls import Hands


@pytest.fixture
async def daemon(tmp_path):
    fake = FakeDocker()
    await fake.start(tmp_path / "docker.sock")
    yield fake
    await fake.stop()


@pytest.fixture
def hands(daemon):
    return Hands(docker_tools(daemon.url, seconds=5))


async def test_containers_are_listed_with_their_state(hands, daemon):
    web = daemon.run("web")
    daemon.run("old", status="exited")
    told = await hands.run("docker_list")
    assert told["containers"][0] == {
        "id": web.id[:12],
        "name": "web",
        "image": "nginx:1",
        "state": "running",
        "status": "Up 2 hours",
    }
    assert [each["name"] for each in told["containers"]] == ["web", "old"]
    running = await hands.run("docker_list", stopped=False)
    assert [each["name"] for each in running["containers"]] == ["web"]


async def test_an_inspection_names_the_environment_and_keeps_its_values(hands, daemon):
    daemon.run("web")
    told = await hands.run("docker_inspect", container="web")
    assert (told["state"], told["environment"], told["mounts"]) == ("running", ["PASSWORD"], ["/srv:/data"])
    assert "hunter2" not in str(told)


async def test_a_log_is_read_from_its_end(hands, daemon):
    daemon.run("web", log=[f"line {n}" for n in range(50)])
    told = await hands.run("docker_logs", container="web", lines=2)
    assert told == {"container": "web", "log": "line 48\nline 49\n"}


async def test_the_log_of_a_container_with_a_terminal_has_no_frames(hands, daemon):
    daemon.run("web", log=["one", "two"], tty=True)
    assert (await hands.run("docker_logs", container="web"))["log"] == "one\ntwo\n"


@pytest.mark.parametrize("tty", [False, True])
async def test_of_a_log_with_long_lines_the_end_is_told(hands, daemon, tty):
    daemon.run("web", log=["x" * 50_000] * 10 + ["the end"], tty=tty)
    told = await hands.run("docker_logs", container="web")
    assert (len(told["log"]), told["cut"]) == (200_000, "the log is longer")
    assert told["log"].endswith("x\nthe end\n")


async def test_a_change_shows_the_state_that_is_and_the_one_that_will_be(hands, daemon):
    web = daemon.run("web", status="exited")
    known = f"web, id {web.id[:12]}"
    assert await hands.preview("docker_start", container="web") == [
        ("container", known, known),
        ("image", "nginx:1", "nginx:1"),
        ("state", "exited", "running"),
        ("started", "2026-03-01T10:00:01Z", "now"),
    ]
    assert (await hands.preview("docker_remove", container="web"))[2] == ("state", "exited", None)
    web.status = "running"
    assert (await hands.preview("docker_stop", container="web"))[2] == ("state", "running", "exited")
    assert (await hands.preview("docker_restart", container="web"))[2] == ("state", "running", "restarted")


async def test_a_container_made_again_under_the_same_name_has_other_old_values(hands, daemon):
    first = daemon.run("web", status="exited")
    before = await hands.preview("docker_remove", container="web")
    del daemon.containers[first.id]
    daemon.run("web", status="exited")
    after = await hands.preview("docker_remove", container="web")
    assert before[0][1] != after[0][1]
    assert before[1:] == after[1:]


async def test_a_container_that_was_restarted_since_has_other_old_values(hands, daemon):
    web = daemon.run("web")
    before = await hands.preview("docker_restart", container="web")
    web.started += 1
    assert await hands.preview("docker_restart", container="web") != before


async def test_containers_are_started_stopped_restarted_and_removed_by_their_id(hands, daemon):
    web = daemon.run("web", status="exited")
    known = web.id[:12]
    assert await hands.run("docker_start", container="web") == {
        "container": "web",
        "id": known,
        "was": "exited",
        "is": "running",
    }
    await hands.run("docker_restart", container="web")
    await hands.run("docker_stop", container="web")
    assert await hands.run("docker_remove", container="web") == {"removed": "web", "id": known}
    assert daemon.calls == [f"{verb} {known}" for verb in ("start", "restart", "stop", "remove")]
    assert daemon.containers == {}


async def test_what_would_change_nothing_or_cannot_be_done_is_told_before_anybody_is_asked(hands, daemon):
    daemon.run("web")
    daemon.run("old", status="exited")
    for tool, name, words in [
        ("docker_start", "web", "web is running already"),
        ("docker_stop", "old", "old is exited already"),
        ("docker_remove", "web", "stop it before"),
        ("docker_stop", "nobody", "No such container: nobody"),
    ]:
        with pytest.raises(ToolError, match=words):
            await hands.preview(tool, container=name)


async def test_a_refusal_of_the_daemon_is_told_in_its_words(hands, daemon):
    daemon.run("web")
    with pytest.raises(ToolError, match="container is running"):
        await hands.run("docker_remove", container="web")


@pytest.mark.parametrize("name", ["../images/x", "a/b", "", "-f", "web?force=1", "web\n", "a" * 200, "ünï"])
async def test_a_name_that_is_no_name_never_reaches_the_daemon(hands, daemon, name):
    with pytest.raises(BadArguments):
        await hands.run("docker_inspect", container=name)


async def test_a_daemon_that_is_not_there_is_named(tmp_path):
    hands = Hands(docker_tools(f"unix://{tmp_path}/nothing.sock", seconds=5))
    with pytest.raises(ToolError, match=r"nothing\.sock cannot be reached"):
        await hands.run("docker_list")


async def test_a_change_that_the_daemon_never_confirms_has_an_unknown_outcome(daemon):
    web = daemon.run("web", status="exited")
    daemon.mute = True
    with pytest.raises(ToolTimedOut):
        await Hands(docker_tools(daemon.url, seconds=0.5)).run("docker_start", container="web")
    assert web.status == "running"


async def test_a_change_whose_connection_breaks_has_an_unknown_outcome(hands, daemon):
    web = daemon.run("web", status="exited")
    daemon.rude = True
    with pytest.raises(ToolTimedOut, match="ended the connection"):
        await hands.run("docker_start", container="web")
    assert web.status == "running"


async def test_an_answer_without_end_is_refused(hands, daemon):
    daemon.run("web", environment=["X" * 1000] * 10_000)
    with pytest.raises(ToolError, match="not a Docker daemon, or says too much"):
        await hands.run("docker_inspect", container="web")


def test_reading_writing_and_ending_are_told_apart():
    levels = {each.name: each.classify({}).level for each in docker_tools("unix:///nowhere").fixed}
    assert levels == {
        "docker_list": Level.READ,
        "docker_inspect": Level.READ,
        "docker_logs": Level.READ,
        "docker_start": Level.WRITE,
        "docker_restart": Level.WRITE,
        "docker_stop": Level.DESTRUCTIVE,
        "docker_remove": Level.DESTRUCTIVE,
    }
