"""Nod: an AI teammate that asks, with buttons, before it changes anything.

What those who write tools import is here: ``from bot import tool``. Everything below this is inside, and may
change. The names are looked up when they are first used, so importing `bot` loads nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"  # the only place that says it

_PUBLIC = {
    "CallContext": "bot.tools.tool",
    "File": "bot.domain.files",
    "Level": "bot.domain.risk",
    "PreviewField": "bot.domain.proposals",
    "Risk": "bot.domain.risk",
    "ToolError": "bot.errors",
    "ToolOutput": "bot.tools.tool",
    "tool": "bot.tools.tool",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
