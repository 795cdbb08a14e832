"""Slack, as the table of channels knows it."""

from bot.channels.kind import ChannelKind
from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.doctor import check, wanted
from bot.channels.slack.places import NAME

KIND = ChannelKind(NAME, "Slack", "slack:T0123/U0456", wanted, SlackChannel, check)
