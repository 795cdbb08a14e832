"""A page of a few words, for a browser that another site has sent here."""

import html

from starlette.responses import HTMLResponse


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
