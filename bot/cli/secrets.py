"""``nod secrets``: a new key for what Nod keeps encrypted, and encrypting everything with the newest one."""

import typer

from bot.cli.command import command, shared_options
from bot.cli.shared import load_settings, log_at, open_existing
from bot.errors import SettingsError
from bot.store import secrets

app = typer.Typer(
    callback=shared_options,
    no_args_is_help=True,
    help="Make a key for the secrets in the database; encrypt them again.",
)


@command(app)
def new() -> None:
    """Print a new key for NOD_SECRET_KEY, which encrypts tokens in the database."""
    print(secrets.new_key())


@command(app)
def rotate() -> None:
    """Encrypt everything with the newest key of NOD_SECRET_KEY. Every process needs that key first."""
    settings = load_settings()
    log_at("error")
    if not settings.secret_key:
        raise SettingsError("NOD_SECRET_KEY: needed to encrypt with. Make one: nod secrets new")
    with open_existing(settings) as database:
        done = database.write_now(secrets.rotate)
    print(f"Encrypted with the newest key: {done.encrypted}.")
    if done.lost:
        print(f"No key opens: {len(done.lost)}. Keep the older keys, or sign in there again.")
    else:
        print("Once every process has the newest key, you can remove the older ones.")
