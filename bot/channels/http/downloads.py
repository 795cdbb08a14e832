"""Texts of tools as files to save, never as pages to show: what tools say is hostile."""

import asyncio

from starlette.responses import PlainTextResponse, Response

from bot.channels.http.errors import problem
from bot.domain.files import File, for_people, safe_name


async def download(file: File | None) -> Response:
    """The file as an attachment, without secrets; 404 for None."""
    if file is None:
        return problem(404, "There is no such file; it may have been kept its time (NOD_RETENTION).")
    text = await asyncio.to_thread(for_people, file.text)
    attached = f'attachment; filename="{safe_name(file.name)}"'
    return PlainTextResponse(text, headers={"Content-Disposition": attached})
