"""Metrics for Prometheus: figures of the rows, read at each scrape, and of model calls in this process.

While Nod works, only model calls, and problems in the log, are counted. A scrape (`Metrics.render_metrics`)
reads what has changed in the rows since the last one. Figures of rows are the same in every process on one
database; events, such as ended turns, are counted from this process's start on.
"""

import asyncio
import collections
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from sqlmodel import Session

from bot import __version__
from bot.approvals.budgets import BudgetUse, list_uses
from bot.channels.base import Channel, posters
from bot.domain.chat import Clock
from bot.domain.model import Entry, Finished, Model, Part, ToolSpec
from bot.domain.prices import Prices
from bot.domain.proposal_states import State
from bot.store import counts
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import problems

# the upper bounds of the histograms' buckets
_TURN_SECONDS = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
_MODEL_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120)
_DECISION_SECONDS = (10, 60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800)


class Metrics:
    """The figures of one process; ``channels`` may be added later."""

    def __init__(
        self,
        database: Database,
        channels: Mapping[str, Channel],
        clock: Clock,
        prices: Prices,
        policies: Policies,
    ) -> None:
        self._prices = prices
        self._policies = policies
        self._database = database
        self._channels = channels
        self._clock = clock
        self._reading_lock = asyncio.Lock()
        # the proposals by state, as of the last scrape
        self._tally = counts.StateTally(last_id=0, proposals={}, unknown=0)
        self._last_turn = 0  # the id of the newest turn at the last scrape
        self._under_way: set[int] = set()  # ids of the turns that were under way at the last scrape
        self._counted: set[int] = set()  # ids of ended turns that were counted and may be read again
        disable_created_metrics()  # type: ignore[no-untyped-call]  # when a series began is of no use here
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        gauge("nod_info", "Which Nod this is; always 1.", ["version"]).labels(__version__).set(1)
        self._proposals = gauge("nod_proposals", "Proposals, by the state they are in.", ["state"])
        self._outcome_unknown = gauge(
            "nod_proposals_outcome_unknown", "Proposals that failed and may have happened."
        )
        self._moves = counter("nod_proposal_moves", "Proposals that came into a state.", ["state"])
        self._decisions = histogram(
            "nod_decision_seconds",
            "Time from a proposal's creation until a person decided it.",
            buckets=_DECISION_SECONDS,
        )
        self._turns = histogram(
            "nod_turn_seconds",
            "Time from a message until its turn ended or waits, by how it ended.",
            ["end"],
            buckets=_TURN_SECONDS,
        )
        self._waiting = gauge("nod_work_waiting", "Work that is requested and not done yet.", ["work"])
        self._oldest = gauge("nod_work_oldest_seconds", "How long the oldest of it has waited.", ["work"])
        self._channel_up = gauge(
            "nod_channel_up", "Whether what people send on a channel can arrive.", ["channel"]
        )
        # the part of `problems` that was reported, by level and part of Nod
        self._reported_problems = collections.Counter[tuple[str, str]]()
        self._problems = counter(
            "nod_problems",
            "Warnings and errors that this process logged, and lines that it dropped.",
            ["level", "part"],
        )
        self._model = histogram(
            "nod_model_seconds",
            "How long a call of a language model took, by its name and how the call ended.",
            ["model", "end"],
            buckets=_MODEL_SECONDS,
        )
        self._first_part = histogram(
            "nod_model_first_part_seconds",
            "Time until the first part of a language model's answer.",
            ["model"],
            buckets=_MODEL_SECONDS,
        )
        self._tokens = counter("nod_model_tokens", "Tokens, as the model server told.", ["model", "kind"])
        self._cost = counter(
            "nod_model_cost", "What they cost, by the price file or NOD_MODEL_PRICE.", ["model"]
        )
        self._budget_spent = gauge("nod_budget_spent", "How much of a budget is used, by its rule.", ["rule"])
        self._budget_limit = gauge("nod_budget_limit", "How much a budget allows, by its rule.", ["rule"])
        self._recorded = gauge("nod_audit_rows", "The number of the audit log's newest row.")
        self._sealed = gauge("nod_audit_sealed", "Whether the newest row is sealed with NOD_AUDIT_KEY.")

    async def begin(self) -> None:
        """Begin to count, from the current rows on."""
        self._tally = await self._database.read(counts.count_all)
        self._last_turn, self._under_way = await self._database.read(counts.find_turns_under_way)
        turns = await self._database.read(counts.list_turns, self._last_turn, self._under_way)
        self._counted = {turn.id for turn in turns if turn.seconds is not None}

    async def render_metrics(self) -> bytes:
        """Return all figures, in Prometheus's text format."""
        async with self._reading_lock:
            await self._read_rows()
            return generate_latest(self._registry)

    async def _read_rows(self) -> None:
        """Set the figures from the rows, and count what has happened since the last scrape."""
        read = self._database.read
        self._tally, moves = await read(counts.update_tally, self._tally)
        for state in State:
            self._proposals.labels(state).set(self._tally.proposals.get(state, 0))
        self._outcome_unknown.set(self._tally.unknown)
        for move in moves:
            self._moves.labels(move.state).inc()
            if move.decided_after_seconds is not None:
                self._decisions.observe(move.decided_after_seconds)
        current = await read(counts.count_waiting)
        self._recorded.set(current.recorded)
        self._sealed.set(current.sealed)
        for work, waiting in current.waiting.items():
            self._waiting.labels(work).set(waiting.row_count)
            since = waiting.since
            self._oldest.labels(work).set((self._clock() - since).total_seconds() if since else 0)
        for gauge in (self._budget_spent, self._budget_limit):
            gauge.clear()
        for budget in await read(self._list_budgets):
            self._budget_spent.labels(budget.rule.id).set(budget.spent)
            self._budget_limit.labels(budget.rule.id).set(budget.limit)
        self._count_turns(await read(counts.list_turns, self._last_turn, self._under_way))
        for name, poster in posters(self._channels).items():
            receives = not poster.hearing().fault
            self._channel_up.labels(name).set(receives)
        for (level, part), count in (problems - self._reported_problems).items():
            self._problems.labels(level, part).inc(count)
        self._reported_problems = problems.copy()

    def _list_budgets(self, session: Session) -> list[BudgetUse]:
        return list_uses(session, self._policies.load(session).rulebook, self._clock())

    def _count_turns(self, turns: Sequence[counts.TurnState]) -> None:
        """Count each ended turn once. ``turns``: the new turns, and those under way at the last scrape."""
        self._under_way = {turn.id for turn in turns if turn.seconds is None}
        for turn in turns:
            if turn.seconds is not None and turn.id not in self._counted:
                self._turns.labels(turn.state).observe(turn.seconds)
                self._counted.add(turn.id)
        self._last_turn = max([self._last_turn, *(turn.id for turn in turns)])
        # only the last `counts.REREAD_IDS` ids are read again, so turns with lower ids can't be counted twice
        first_read_again = self._last_turn - counts.REREAD_IDS
        self._counted = {turn_id for turn_id in self._counted if turn_id > first_read_again}

    def time_model(self, model: Model) -> Model:
        """Wrap a model so that its calls are timed."""
        return _TimedModel(model, self._model, self._first_part, partial(self._count_tokens, model.name))

    def _count_tokens(self, model: str, finished: Finished) -> None:
        prompt, completion = finished.prompt_tokens, finished.completion_tokens
        cost = self._prices.cost(model, prompt, completion, finished.cached_tokens)
        self._tokens.labels(model, "prompt").inc(prompt)
        self._tokens.labels(model, "completion").inc(completion)
        self._cost.labels(model).inc(cost or 0)


class _TimedModel:
    """Implements `Model` over another model, whose calls it times."""

    def __init__(
        self, model: Model, calls: Histogram, first_part: Histogram, note_end: Callable[[Finished], None]
    ) -> None:
        """``calls``: the histogram of the times to the end of a call; ``first_part``: to its first part.

        ``note_end`` is called with the end of each complete answer.
        """
        self._model = model
        self._calls = calls
        self._first_part = first_part
        self._note_end = note_end
        self.name = model.name

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        started_at = time.monotonic()
        has_first_part = False
        end = "failed"
        try:
            async for part in self._model.stream(transcript, tools):
                if not has_first_part:
                    has_first_part = True
                    self._first_part.labels(self.name).observe(time.monotonic() - started_at)
                if isinstance(part, Finished):
                    end = part.stop
                    self._note_end(part)
                yield part
        except (GeneratorExit, asyncio.CancelledError):
            end = "stopped"
            raise
        finally:
            self._calls.labels(self.name, end).observe(time.monotonic() - started_at)

    async def close(self) -> None:
        await self._model.close()
