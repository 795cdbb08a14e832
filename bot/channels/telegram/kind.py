"""Telegram, as the table of channels knows it."""

from bot.channels.kind import ChannelKind
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.doctor import check, wanted
from bot.channels.telegram.places import NAME

KIND = ChannelKind(NAME, "Telegram", "telegram:991", wanted, TelegramChannel, check)
