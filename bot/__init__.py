"""Nod: an AI teammate that asks, with buttons, before it changes anything.

What those who write tools or channels import is here: ``from bot import tool``. Everything below, but for
`bot.testing`, is internal and may change. Names are looked up when first used: importing `bot` loads nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "1.0.0rc1"  # the only place that says it

_PUBLIC = {
    "Actor": "bot.domain.people",
    "Address": "bot.domain.chat",
    "CallContext": "bot.tools.call",
    "ChannelError": "bot.errors",
    "ChannelKind": "bot.channels.kinds",
    "Command": "bot.domain.chat",
    "CopyGone": "bot.errors",
    "File": "bot.domain.files",
    "GrantDuration": "bot.domain.similarity",
    "GrantScope": "bot.domain.similarity",
    "InverseCall": "bot.tools.call",
    "Level": "bot.domain.risks",
    "Message": "bot.domain.chat",
    "NotDeliverable": "bot.errors",
    "Platform": "bot.channels.kinds",
    "Press": "bot.domain.chat",
    "PreviewField": "bot.domain.preview",
    "Ran": "bot.tools.call",
    "Risk": "bot.domain.risks",
    "StreamedMessage": "bot.channels.streamed_message",
    "ToolError": "bot.errors",
    "ToolOutput": "bot.tools.call",
    "TrialOutput": "bot.tools.trial",
    "Verb": "bot.domain.verbs",
    "card_text": "bot.channels.card_text",
    "team_text": "bot.channels.card_text",
    "tool": "bot.tools.decorator",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
