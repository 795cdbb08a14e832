"""The HTML pages that a browser shows on the way to a connection (`connecting.py`).

Each page says in whose name Nod would act, and for whom. The pages use no script. Names of people and servers
may come from anyone, so each is bounded and escaped. ``base`` is the address of the console.
"""

import html
from collections.abc import Sequence

from starlette.responses import HTMLResponse

from bot.domain.connections import bound_name
from bot.domain.people import SHELL, Actor
from bot.features.connections.sign_in.pending import AccountSignIn

_RULES = ("default-src 'none'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "; ".join(_RULES),
    "Referrer-Policy": "same-origin",
}
"""The headers of every page: no other page can frame these pages, or learn their address.

The policy ``no-referrer`` would be stricter, but then browsers send the form with ``Origin: null``.
"""

_PRIVATE_CHAT_TEXT = "Nod has asked you in private for this number. Type it there:"
_TEXTS_BY_CHANNEL = {
    "http": "Type this number in the console, on the page <strong>Connections</strong>:",
    "discord": "Send this number in Discord, with <code>/nod connections confirm</code>:",
    SHELL: "Give this number to the command <code>nod connections confirm</code>:",
}
"""The sentences about where to send the digits, for the channels without a private chat that Nod reads."""


def ask_to_sign_in(sign_in: AccountSignIn, scopes: Sequence[str], base: str) -> HTMLResponse:
    """Return the page of a link: the question, and the button that leads to the server's sign-in."""
    server = _bold(sign_in.server)
    person = _bold(sign_in.person_name)
    who_may_ask = person if sign_in.owner == sign_in.person else f"anyone in {_bold(sign_in.owner_name)}"
    items = "".join(f"<li>{html.escape(bound_name(scope))}</li>" for scope in scopes)
    scope_list = f"<p>It asks for:</p><ul>{items}</ul>" if items else ""
    question = (
        f"<p>Let Nod act as <strong>you</strong> at {server} whenever {who_may_ask} asks?</p>{scope_list}"
        f"<p>If you are not {person}, close this page.</p>"
    )
    return _page(f"{question}{_button(f'Continue to {sign_in.server}')}", 200, base)


def show_digits(sign_in: AccountSignIn, digits: str, base: str) -> HTMLResponse:
    """Return the page after the sign-in: the account, the six digits, and where to send them."""
    where_to_send = _TEXTS_BY_CHANNEL.get(Actor.parse(sign_in.person).channel, _PRIVATE_CHAT_TEXT)
    return _page(
        f"<p>You signed in at {_bold(sign_in.server)} as {_name_account(sign_in)}, "
        f"for {_bold(sign_in.person_name)}.</p><p>{where_to_send}</p>"
        f'<p class="digits"><strong>{digits}</strong></p>'
        "<p>It counts for a few minutes. Give it to no one else.</p>",
        200,
        base,
    )


def ask_to_confirm(sign_in: AccountSignIn, base: str) -> HTMLResponse:
    """Return the page after the sign-in that asks for consent, with a button instead of digits.

    It is for a browser that is signed in with the organisation, so that Nod knows the person.
    """
    person = _bold(sign_in.person_name)
    question = (
        f"<p>You signed in at {_bold(sign_in.server)} as {_name_account(sign_in)}.</p>"
        f"<p>Let Nod act as this account whenever {person} asks?</p>"
    )
    return _page(f"{question}{_button('Connect', f'{base}/connect/confirm')}", 200, base)


def show_text(text: str, status: int, base: str) -> HTMLResponse:
    """Return a page with these words, a paragraph for each line."""
    return _page("".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines()), status, base)


def _page(body: str, status: int, base: str) -> HTMLResponse:
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Nod</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{html.escape(base)}/static/console.css">'
        f'<main class="plain-page"><h1>Nod</h1>{body}</main></html>'
    )
    return HTMLResponse(page, status, headers=HEADERS)


def _button(text: str, action: str = "") -> str:
    """Return a form with one button. It posts to ``action``, or without one to the address of the page."""
    attribute = f' action="{html.escape(action)}"' if action else ""
    button = f'<button type="submit" class="button primary">{html.escape(text)}</button>'
    return f'<form method="post"{attribute}>{button}</form>'


def _bold(text: str) -> str:
    """Return a text from anyone in bold: bounded, escaped, and isolated from the direction of other text."""
    return f"<strong><bdi>{html.escape(bound_name(text))}</bdi></strong>"


def _name_account(sign_in: AccountSignIn) -> str:
    if sign_in.name:
        return _bold(sign_in.name)
    return f"an account whose name {_bold(sign_in.server)} does not tell"
