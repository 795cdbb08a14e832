"""``nod token``: tokens of the HTTP interface, made, listed and revoked."""

import sys
from typing import Annotated

import typer

from bot.cli.command import command, shared_options
from bot.cli.shared import Json, existing, load_settings, looking, operator, plain, print_json
from bot.domain.times import format_relative, now
from bot.errors import NodError
from bot.store import tokens
from bot.store.locks.process_lock import notify
from bot.store.tokens import IssuedToken

app = typer.Typer(
    callback=shared_options,
    no_args_is_help=True,
    help="Make, list and revoke tokens for the HTTP interface.",
)


@command(app)
def new(name: Annotated[str, typer.Argument(help="Who uses it, such as ci (account http:ci).")]) -> None:
    """Make a token and print it, once: only its hash is kept."""
    with existing(load_settings()) as database:
        token = database.write_now(tokens.issue, name, operator(), now())
        print(token)
        label = token.split("_")[1]
        words = f"Copy it now. It is not shown again. It is http:{name}. To end it: nod token revoke {label}"
        print(words, file=sys.stderr)


@command(app, "list")
def list_(*, as_json: Json = False) -> None:
    """List the tokens that work: label, account, who made it, when."""
    settings = load_settings()
    with looking(settings) as database:
        found = database.read_now(tokens.working)
    if as_json:
        print_json(
            [
                *(_token_to_json(t.name, t) for t in found),
                *map(_token_to_json, sorted(settings.tokens.values())),
            ]
        )
        return
    for t in found:
        print(plain(f"{t.label}  http:{t.name}  by {t.made_by}, {format_relative(t.made_at, now())}"))
    for name in sorted(settings.tokens.values()):
        print(f"{'-':<8}  http:{name}  in NOD_HTTP_TOKENS")
    if not found and not settings.tokens:
        print("There are no tokens. To make one: nod token new NAME")


def _token_to_json(name: str, token: IssuedToken | None = None) -> dict[str, str | None]:
    """Return a token as JSON. Tokens of NOD_HTTP_TOKENS have nothing but an account."""
    label, made_by, at = (token.label, token.made_by, token.made_at.isoformat()) if token else (None,) * 3
    return {"label": label, "account": f"http:{name}", "made_by": made_by, "made_at": at}


@command(app, "revoke")
def revoke_token(
    which: Annotated[str, typer.Argument(metavar="LABEL", help="Its label, or the name of several.")],
) -> None:
    """Revoke a token: the running nod refuses it from then on, and ends its streams."""
    settings = load_settings()
    with existing(settings) as database:
        ended = database.write_now(tokens.revoke_token, which, operator(), now())
        notify(database.engine)
    if not ended:
        if which in settings.tokens.values():
            more = " It is in NOD_HTTP_TOKENS: remove it there."
        else:
            more = ""
        raise NodError(f"there is no token {which}.{more} See: nod token list")
    for t in ended:
        print(f"Revoked {t.label} of http:{t.name}.")
