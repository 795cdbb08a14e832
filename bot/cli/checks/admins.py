"""The check of the admins: that there is one, and that someone can act as each."""

from bot.channels.kinds import channels_of, require_admin
from bot.cli.checks.database import list_token_names
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.errors import SettingsError
from bot.settings import Settings


def check_admins(settings: Settings) -> Finding:
    """Check that there is an admin, and that someone can act as each of them."""
    try:
        require_admin(settings)
    except SettingsError as error:
        return fail("admins", error.message)
    if not settings.admins:
        return warn("admins", "no one; NOD_ADMINS names those who may decide everything")
    if "slack:TEAM/USER" in settings.admins:
        return fail("admins", "NOD_ADMINS: slack:TEAM/USER is a placeholder. Write your own there")
    token_names = {*settings.names_by_token.values(), *list_token_names(settings), "local"}
    # the labels of the channels that are not set up, where no one can act as an admin
    unconfigured_labels = {
        kind.name: kind.label for kind in channels_of(settings) if not kind.configured(settings)
    }
    without_token = []
    without_channel = []
    for account in settings.admins:
        channel, _, key = account.partition(":")
        if channel == "http" and key not in token_names:
            without_token.append(account)
        if channel in unconfigured_labels:
            without_channel.append(account)
    if without_token:
        names = ", ".join(without_token)
        return warn(f"admins {names}", "no token has that name; nod token new NAME makes one")
    if without_channel:
        channels = dict.fromkeys(account.partition(":")[0] for account in without_channel)
        labels = " and ".join(unconfigured_labels[channel] for channel in channels)
        names = ", ".join(without_channel)
        return warn(f"admins {names}", f"{labels} is not set up, so no one can act as them")
    return ok("admins", ", ".join(settings.admins))
