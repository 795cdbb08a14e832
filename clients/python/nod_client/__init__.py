"""Ask a human through Nod: a question in your code, a button in their chat, an answer.

::

    from nod_client import ask

    ask("Deploy 1.4 to production?", fields={"version": "1.4"})  # raises unless a person approves
"""

from nod_client.approval import needs_approval
from nod_client.client import AsyncNod, Nod, ask, ask_async
from nod_client.errors import (
    Cancelled,
    CouldNotAsk,
    Declined,
    EditDoesNotFit,
    Expired,
    Failed,
    NodError,
    NotApproved,
    OutcomeUnknown,
    Refused,
    StillWaiting,
    Undeliverable,
    Unreachable,
    Unsendable,
)
from nod_client.request import End, Request
from nod_client.tool_call import ToolCall

__all__ = [
    "AsyncNod",
    "Cancelled",
    "CouldNotAsk",
    "Declined",
    "EditDoesNotFit",
    "End",
    "Expired",
    "Failed",
    "Nod",
    "NodError",
    "NotApproved",
    "OutcomeUnknown",
    "Refused",
    "Request",
    "StillWaiting",
    "ToolCall",
    "Undeliverable",
    "Unreachable",
    "Unsendable",
    "ask",
    "ask_async",
    "needs_approval",
]
