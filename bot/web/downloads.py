"""Texts of tools as files to save, and a page of a few words; never a page that tools made."""

import asyncio
import html

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from bot.domain.files import File, for_people, safe_name
from bot.domain.text import escaped, made_visible
from bot.web.errors import Missing


async def download(file: File | None) -> Response:
    """The file as an attachment, without secrets; 404 for None."""
    if file is None:
        raise Missing("There is no such file. It may have expired (NOD_RETENTION).")
    text = made_visible((await asyncio.to_thread(for_people, file.text)).replace("\r\n", "\n"), escaped)
    attached = f'attachment; filename="{safe_name(file.name)}"'
    return PlainTextResponse(text, headers={"Content-Disposition": attached})


def plain_page(words: str, status: int, base: str) -> HTMLResponse:
    """A line is a paragraph; ``base`` is the path at which people reach Nod."""
    paragraphs = "".join(f"<p>{html.escape(line)}</p>" for line in words.splitlines())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Nod</title>'
        f'<link rel="stylesheet" href="{html.escape(base)}/static/console.css">'
        f'<main class="plain-page"><h1>Nod</h1>{paragraphs}'
        f'<p><a href="{html.escape(base)}/">Go to Nod</a></p></main></html>'
    )
    return HTMLResponse(page, status, headers={"Cache-Control": "no-store"})
