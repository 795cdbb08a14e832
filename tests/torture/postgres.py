"""A PostgreSQL of the torture's own, so that it may be restarted."""

import asyncio
import os
import pwd
from pathlib import Path
from typing import Self

from tests.torture.nods import PAUSE, free_port


class Postgres:
    """``programs``: the folder with initdb and pg_ctl. As root it runs as the user postgres, as it must."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._data = folder / "postgres"
        self._port = free_port()
        self._user = "postgres" if os.geteuid() == 0 else None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://nod@127.0.0.1:{self._port}/postgres"

    async def __aenter__(self) -> Self:
        self._data.mkdir()
        if self._user:
            found = pwd.getpwnam(self._user)
            os.chown(self._data, found.pw_uid, found.pw_gid)
            self._data.parent.chmod(0o711)
        data = str(self._data)
        await self._run("initdb", "-D", data, "-U", "nod", "-A", "trust", "--no-sync")
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        data = str(self._data)
        settings = f"-p {self._port} -k {data} -c listen_addresses=127.0.0.1"
        await self._run("pg_ctl", "-D", data, "-l", f"{data}/log", "-o", settings, "-w", "start")

    async def stop(self) -> None:
        """As in a crash: what was not committed is gone, and all connections break."""
        await self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    async def restart(self) -> None:
        """As after a crash: what was not committed is gone, and all connections break."""
        await self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "restart")
        await asyncio.sleep(PAUSE)

    async def _run(self, program: str, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            str(self._programs / program),
            *arguments,
            cwd="/",
            user=self._user,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        if code := await process.wait():
            raise AssertionError(f"{program} ended with {code}")
