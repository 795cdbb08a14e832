"""``nod push``: a new key for notifications on devices."""

import typer

from bot.cli.command import command, shared_options
from bot.features.push.vapid import PushKey

app = typer.Typer(
    callback=shared_options, no_args_is_help=True, help="Make the key for notifications on devices."
)


@command(app)
def keys() -> None:
    """Print a new key for NOD_PUSH_KEY. Browsers get its public half from the console."""
    print(PushKey.generate().private)
