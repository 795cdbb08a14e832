"""What turns cost, told apart by day, conversation or account."""

from enum import StrEnum
from typing import NamedTuple


class Parts(StrEnum):
    """What usage is told apart by."""

    DAY = "day"  # in UTC
    CONVERSATION = "conversation"
    ACCOUNT = "account"  # of the person whose conversation it is


class Used(NamedTuple):
    """One part, or all of it. Tokens are as the model server told them; 0 where it did not."""

    key: str
    name: str
    turns: int
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
