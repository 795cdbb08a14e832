"""Texts of tools as files to save, never as pages to show: what tools say is hostile."""

import asyncio

from starlette.responses import PlainTextResponse, Response

from bot.domain.files import File, for_people, safe_name
from bot.domain.unseen import escaped, made_visible
from bot.web.errors import Missing


async def download(file: File | None) -> Response:
    """The file as an attachment, without secrets; 404 for None."""
    if file is None:
        raise Missing("There is no such file. It may have expired (NOD_RETENTION).")
    text = made_visible((await asyncio.to_thread(for_people, file.text)).replace("\r\n", "\n"), escaped)
    attached = f'attachment; filename="{safe_name(file.name)}"'
    return PlainTextResponse(text, headers={"Content-Disposition": attached})
