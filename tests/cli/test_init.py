"""``nod init`` and ``nod open``: from an empty folder to a Nod that runs, with every answer tried out."""

import asyncio
import base64
import socket
import stat
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from dotenv import dotenv_values

from tests.cli.conftest import Shell
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.telegram_server import TOKEN, FakeTelegram

pytestmark = pytest.mark.slow


async def init(shell: Shell, *answers: str, **more: str) -> Result:
    """Answer its questions, a line each."""
    given = "".join(f"{answer}\n" for answer in answers)
    return await asyncio.to_thread(shell.nod, "init", input=given, **more)


def written(shell: Shell) -> dict[str, str | None]:
    return dict(dotenv_values(shell.folder / ".env"))


async def test_with_enter_alone_it_writes_what_runs_here(shell: Shell):
    done = await init(shell, "", "", "", "", "0")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "5 of 5" in done.stdout
    made = written(shell)
    secret = made.pop("NOD_WEBHOOK_SECRET") or ""
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert secret.startswith("whsec_")
    assert made == {
        "NOD_DATABASE_URL": "sqlite:///nod.db",
        "NOD_ADMINS": "http:local",
        "NOD_TIMEZONE": "UTC",
        "NOD_PORT": "0",
    }
    assert stat.S_IMODE((shell.folder / ".env").stat().st_mode) == 0o600
    running = shell.start("run")
    port = running.url.rpartition(":")[2]
    assert shell.nod("open", "--print", NOD_PORT=port).stdout == f"{running.url}\n"
    assert running.end() == 0


async def test_each_answer_is_tried_out_and_asked_for_again_until_it_works(shell: Shell):
    telegram = FakeTelegram()
    await telegram.start()
    try:
        async with OpenAIServer() as server:
            done = await init(
                shell,
                "/nowhere/nod.db", "n", "nod.db",
                "ftp://models", server.url, server.url, server.key, "gpt-5-mini",
                "telegrm", "telegram", "12:wrong", "telegram:991", "n", "telegram", TOKEN, "ana", "n",
                "telegram", TOKEN, "telegram:991",
                "Mars/Olympus", "n", "Europe/London",
                "http", "n", "0",
                TELEGRAM_API_URL=telegram.url,
            )  # fmt: skip
    finally:
        await telegram.stop()
    assert done.exit_code == 0, done.stdout + done.stderr
    values = written(shell)
    assert (values["OPENAI_BASE_URL"], values["OPENAI_API_KEY"]) == (server.url, server.key)
    assert done.stdout.count("FAIL") == 6
    assert "Nod doesn't know telegrm." in done.stdout
    for fix in (
        "choose a writable folder",
        "OPENAI_BASE_URL: write an address",
        "NOD_ADMINS: 'ana' is not an account",
        "'Mars/Olympus' is not a time zone",
        "NOD_PORT: 'http' is not a number",
    ):
        assert fix in done.stdout
    assert (values["TELEGRAM_BOT_TOKEN"], values["NOD_ADMINS"]) == (TOKEN, "telegram:991")


async def test_a_file_that_is_there_is_replaced_only_after_a_yes(shell: Shell):
    kept = shell.folder / ".env"
    kept.write_text("NOD_MODEL=mine\n")
    for answers in ((), ("",), ("n",)):
        done = await init(shell, *answers)
        assert done.exit_code == 1
        assert kept.read_text() == "NOD_MODEL=mine\n"
    done = await init(shell, "y", "other file's.db", "", "", "", "0")
    assert done.exit_code == 0, done.stdout
    assert written(shell)["NOD_DATABASE_URL"] == "sqlite:///other file's.db"
    assert "NOD_MODEL" not in written(shell)


async def test_ended_half_way_it_writes_nothing(shell: Shell):
    done = await init(shell, "nod.db", "")
    assert done.exit_code == 1
    assert list(shell.folder.iterdir()) == []


async def test_a_file_that_can_not_be_written_leaves_no_secret_behind(shell: Shell):
    (shell.folder / ".env").mkdir()
    done = await init(shell, "y", "", "", "", "", "0")
    assert done.exit_code == 1
    assert [file.name for file in shell.folder.iterdir() if file.name.startswith(".env")] == [".env"]


def test_open_signs_in_where_nod_asks_who_comes(shell: Shell):
    page = Path(shell.folder / "page")
    browser = shell.folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {page}\n')
    browser.chmod(0o755)
    shell.environment |= {"NOD_HTTP_TOKENS": "ci:0123456789abcdef", "NOD_ADMINS": "cli:operator"}
    running = shell.start("run", NOD_PORT="0")
    given = {"NOD_PORT": running.url.rpartition(":")[2], "BROWSER": f"{browser} %s"}
    opened = shell.process("open", **given)
    assert (opened.stdout, opened.stderr) == ("Opened the console in your browser.\n", "")
    address, _, code = page.read_text().strip().partition("/#/sign-in/")
    assert address == running.url
    with httpx.Client(base_url=running.url, headers={"Origin": running.url}) as browsing:
        assert browsing.get("/api/me").status_code == httpx.codes.UNAUTHORIZED
        assert browsing.post("/api/session", json={"code": code}).is_success
        assert browsing.get("/api/me").json()["account"].startswith("http:console-")
    assert running.end() == 0


def test_open_says_where_no_nod_runs(shell: Shell):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = str(silent.getsockname()[1])
        said = shell.nod("open", NOD_PORT=port)
    assert said.exit_code == 1
    assert said.stderr == f"nod: no nod can be reached at http://127.0.0.1:{port}. Start it: nod run\n"
