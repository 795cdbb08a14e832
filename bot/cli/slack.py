"""``nod slack``: what Slack needs to know about Nod."""

import re
from typing import Annotated

import typer

from bot.channels.slack.manifest import manifest_yaml
from bot.cli.command import command, shared_options
from bot.errors import SettingsError

app = typer.Typer(
    callback=shared_options, no_args_is_help=True, help="Print what Slack needs to know about Nod."
)


@command(app)
def manifest(
    http: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The bot's public https address; without it Socket Mode."),
    ] = None,
) -> None:
    """Print the manifest to paste where Slack creates an app."""
    if http is not None and not re.fullmatch(r"https://[^\s/]+(/\S*)?", http):
        raise SettingsError("--http: Slack calls https addresses only, such as https://nod.example.com")
    print(manifest_yaml(http), end="")
