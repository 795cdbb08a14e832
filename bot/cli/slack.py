"""``nod slack``: what Slack needs to know about Nod."""

import re

from bot.channels.slack.manifest import manifest_yaml
from bot.cli.shared import told
from bot.errors import SettingsError


def manifest(http: str | None) -> None:
    """Print the manifest to paste where Slack creates an app."""
    with told():
        if http is not None and not re.fullmatch(r"https://[^\s/]+(/\S*)?", http):
            raise SettingsError("--http: Slack calls https addresses only, such as https://nod.example.com")
        print(manifest_yaml(http), end="")
