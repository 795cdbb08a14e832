"""Discord, as the table of channels knows it."""

from bot.channels.discord.channel import DiscordChannel
from bot.channels.discord.doctor import check, wanted
from bot.channels.discord.places import NAME
from bot.channels.kind import ChannelKind

KIND = ChannelKind(NAME, "Discord", "discord:80351110224678912", wanted, DiscordChannel, check)
