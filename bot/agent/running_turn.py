"""A running turn: its state, which exists only while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.conversations import Turn, Usage
from bot.domain.events import Ending
from bot.domain.jobs import Job
from bot.domain.model import Finished
from bot.domain.prices import Prices

PARAGRAPH_BREAK = "\n\n"  # between two answers of one turn


@dataclass(frozen=True, slots=True)
class FollowUpJobs:
    """Jobs that a turn yields among its events. The caller starts them immediately, and shows nothing."""

    jobs: tuple[Job, ...]


@dataclass(slots=True)
class RunningTurn:
    """The state of a running turn: its transcript, what it has said so far, and how it ended."""

    turn: Turn
    is_streamed: bool  # the text is displayed while it is written, so it is not posted later
    texts: list[str] = field(default_factory=list)  # the texts of the turn's answers so far
    ending: Ending | None = None
    message_id: int | None = None  # the id of the turn's last stored answer
    tried_summary: bool = False  # a summary was asked for in this turn, and maybe not written


def add_usage(prices: Prices, usage: Usage, model: str, finished: Finished) -> Usage:
    """Return the turn's usage with the tokens and the cost of one more answer."""
    cost = prices.cost(model, finished.prompt_tokens, finished.completion_tokens, finished.cached_tokens)
    total_cost = usage.cost
    if cost is not None:  # None: the model has no price
        total_cost = (usage.cost or 0.0) + cost
    return Usage(
        model_calls=usage.model_calls + 1,
        prompt_tokens=usage.prompt_tokens + finished.prompt_tokens,
        completion_tokens=usage.completion_tokens + finished.completion_tokens,
        cost=total_cost,
        model=model,
    )


def join_paragraphs(texts: Sequence[str]) -> str:
    return PARAGRAPH_BREAK.join(text for text in texts if text.strip())
