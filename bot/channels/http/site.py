"""The web application as an object, and what its routes ask it for: who calls, and the channel."""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.security import HTTPBearer
from starlette.responses import JSONResponse

from bot.callbacks import Callbacks
from bot.channels.http.auth import Doorkeeper
from bot.channels.http.channel import HttpChannel
from bot.domain.chat import Desk, Incoming, Reply
from bot.domain.people import Actor


class Site(FastAPI):
    """One channel on the web; ``model_name`` and ``demo`` are what ``/api/me`` tells."""

    def __init__(
        self,
        channel: HttpChannel,
        doorkeeper: Doorkeeper,
        callbacks: Callbacks,
        *,
        model_name: str,
        demo: bool,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.channel = channel
        self.doorkeeper = doorkeeper
        self.callbacks = callbacks
        self.model_name = model_name
        self.demo = demo

    @property
    def desk(self) -> Desk:
        """What may be looked up. Raises RuntimeError before the channel is started."""
        if self.channel.desk is None:
            raise RuntimeError("the channel was not started")
        return self.channel.desk

    async def take_in(self, incoming: Incoming) -> Reply:
        if self.channel.inbox is None:
            raise RuntimeError("the channel was not started")
        return await self.channel.inbox(incoming)


async def _site(request: Request) -> Site:
    site: Site = request.app
    return site


Here = Annotated[Site, Depends(_site)]


async def _caller(
    request: Request, site: Here, _: Annotated[object, Depends(HTTPBearer(auto_error=False))]
) -> Actor:
    return site.doorkeeper(request)


Caller = Annotated[Actor, Depends(_caller)]
"""Who calls; everybody else got 401 or 403."""


def ok(**more: Any) -> JSONResponse:
    return JSONResponse({"ok": True, **more})
