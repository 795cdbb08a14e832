"""``nod secrets``: a new key for what Nod keeps encrypted, and encrypting everything with the newest one."""

from bot.cli.shared import existing, load_settings, log_at
from bot.errors import SettingsError
from bot.store import secrets


def new() -> None:
    """Print a new key."""
    print(secrets.new_key())


def rotate() -> None:
    """Encrypt what is kept with the newest key of NOD_SECRET_KEY."""
    settings = load_settings()
    log_at("error")
    if not settings.secret_key:
        raise SettingsError("NOD_SECRET_KEY: needed to encrypt with. Make one: nod secrets new")
    with existing(settings) as database:
        done = database.write_now(secrets.rotate)
    print(f"Encrypted with the newest key: {done.encrypted}.")
    if done.lost:
        print(f"No key opens: {len(done.lost)}. Keep the older keys, or sign in there again.")
    else:
        print("The older keys are needed no longer, once every process has the newest.")
