"""What the demo says of a model that answers on this machine, and which servers it passes over."""

import asyncio
import os
import pty
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bot.cli.local_servers import LocalServer, find_local_servers
from tests.cli.conftest import Shell


@asynccontextmanager
async def answering(body: Any, status: int = 200) -> AsyncIterator[int]:
    """A server on loopback whose ``/v1/models`` answers like this; its port."""

    async def models(_: web.Request) -> web.StreamResponse:
        if isinstance(body, asyncio.Event):
            await body.wait()
            return web.Response()
        if isinstance(body, str):
            return web.Response(text=body, status=status)
        return web.json_response(body, status=status)

    application = web.Application()
    application.router.add_get("/v1/models", models)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        if isinstance(body, asyncio.Event):
            body.set()
        await runner.cleanup()


async def test_a_server_that_answers_is_found_with_the_first_model_that_talks() -> None:
    listed = {"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "llama3.2"}, {"id": "qwen3"}]}
    async with answering(listed) as port:
        assert await find_local_servers({"Ollama": port}) == [
            LocalServer("Ollama", f"http://127.0.0.1:{port}/v1", "llama3.2")
        ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"data": []}, 200),
        ({"data": None}, 200),
        ({"models": [{"id": "llama3.2"}]}, 200),
        ("<html>", 200),
        ("[" * 5000, 200),
        ("x" * (9 << 20), 200),
        ({"error": "no"}, 500),
    ],
)
async def test_a_server_without_a_model_to_talk_to_is_passed_over(body: Any, status: int) -> None:
    async with answering(body, status) as port:
        assert await find_local_servers({"Ollama": port}) == []


async def test_one_that_hangs_or_is_missing_keeps_no_other_from_being_found() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        async with answering(asyncio.Event()) as hanging, answering({"data": [{"id": "m"}]}) as port:
            ports = {"Jan": silent.getsockname()[1], "vLLM": hanging, "Ollama": port}
            assert [each.name for each in await find_local_servers(ports)] == ["Ollama"]


@pytest.mark.slow
def test_the_demo_opens_the_console_where_a_person_sits_at_a_screen(shell: Shell) -> None:
    page, browser = Path(shell.folder / "page"), shell.folder / "browser"
    os.mkfifo(page)
    browser.write_text(f'#!/bin/sh\necho "$1" > {page}\n')
    browser.chmod(0o755)
    screen = {"DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    person, terminal = pty.openpty()
    try:
        process = shell.begin("demo", stdout=terminal, PORT="0", **screen)
        assert page.read_text().startswith("http://127.0.0.1:")
        process.terminate()
        assert process.wait(30) == 0
    finally:
        os.close(terminal)
        os.close(person)
