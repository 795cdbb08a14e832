"""Discord's refusals as our errors, by its JSON error codes.

Source: https://docs.discord.com/developers/topics/opcodes-and-status-codes (JSON).
"""

from collections.abc import Mapping
from typing import Any

from bot.errors import ChannelError, CopyGone, NotDeliverable

_UNKNOWN_MESSAGE = 10008
UNKNOWN_WEBHOOK = 10015  # also: Discord has not seen our answer to the interaction yet
_NEVER = {
    10003: "the channel does not exist",
    10013: "there is no such person",
    40005: "the file is too large",
    50001: "Nod can't see the channel; give it View Channel there",
    50007: "this person takes no direct messages from Nod",
    50013: "Nod may not write there; give it Send Messages and Embed Links",
    50083: "the thread is archived",
    160005: "the thread is locked",
}


_PASSES = (401, 408, 429)
"""Statuses after which the same may be accepted later, as after Discord's own faults."""
_OWN_FAULT = 500


class DiscordRefusal(ChannelError):
    """Discord refused, and may accept the same later; ``status`` is HTTP's."""

    status = 0


class DiscordNever(DiscordRefusal, NotDeliverable):
    """Discord refused, and would refuse the same again."""


def refusal(status: int, told: Mapping[str, Any]) -> ChannelError:
    """The error for an answer that is no success."""
    code, words = told.get("code") or status, told.get("message") or "no reason given"
    if code == _UNKNOWN_MESSAGE or "REPLIES_UNKNOWN_MESSAGE" in str(told.get("errors")):
        return CopyGone(f"Discord: {words}")
    if code in _NEVER:
        return NotDeliverable(f"Discord refused ({code}): {_NEVER[code]}.")
    kind = DiscordRefusal if status in _PASSES or status >= _OWN_FAULT else DiscordNever
    error = kind(f"Discord refused ({code}): {words}")
    error.status = status
    return error
