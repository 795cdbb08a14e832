"""Recovery: finds overdue and unfinished work in the rows, and expires, restarts or deletes it.

Each sweep is safe at any time and any number of times; ``bot/jobs/scheduler.py`` says when each is called.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from bot.approvals import lifecycle, runs
from bot.approvals.execute import Execution
from bot.approvals.gate import Gate
from bot.channels.delivery.turns import Turns
from bot.domain.jobs import Dispatcher, Job, Work
from bot.domain.proposals import Proposal
from bot.store import (
    abandoned_work,
    agent_calls,
    events,
    outputs,
    posted_cards,
    proposals,
    questions,
    teams,
    trials,
    turns,
    unrecorded_changes,
)
from bot.store.database import Database
from bot.telemetry import tracing

_BATCH = 25  # the most rows that one transaction of a sweep changes
_UNDO_BATCH = 200  # the most proposals whose Undo one sweep ends
_SWEEP_SECONDS = 1.0  # the time after which the sweep of expired proposals lets others work
_DELIVERY_PATIENCE = timedelta(seconds=60)  # the time after which `recover` posts what is still not posted
_EVENTS_KEPT = timedelta(days=3)  # the time for which the ids of handled events are kept


@dataclass(frozen=True, slots=True)
class Recovery:
    """The sweeps that expire what is due, and find work that was lost with a process or an outage."""

    database: Database
    gate: Gate
    execution: Execution
    delivery: Turns  # the delivery of turns to people
    dispatcher: Dispatcher
    process: str  # the id of this process
    retention: timedelta = timedelta(days=30)  # the time for which long output is kept

    async def expire_due(self, now: datetime) -> int:
        """Expire proposals that no one decided in time; return their number.

        After a long downtime thousands may be due. So this ends after about a second, and the next call
        continues. Other writes may come between two batches.
        """
        count = 0
        deadline = time.monotonic() + _SWEEP_SECONDS
        while True:
            expired = await self.database.write(lifecycle.expire_due, self.gate.policies, now, _BATCH)
            count += len(expired)
            jobs: list[Job] = []
            for proposal, next_jobs in expired:
                waited = (now - proposal.created_at).total_seconds()
                tracing.trace_decision(proposal.id, proposal.tool_name, proposal.state, waited)
                jobs += next_jobs
            await self.dispatcher.wake(*dict.fromkeys(jobs))
            if len(expired) < _BATCH or time.monotonic() >= deadline:
                return count

    async def take_over(self, now: datetime) -> list[Job]:
        """End the executions and questions of processes that are gone. Return the next jobs; wake none."""
        lost = await self.database.read(abandoned_work.list_abandoned_runs, self.process)
        jobs = await self._abandon(lost, now)
        if await self.database.read(abandoned_work.list_abandoned_questions, self.process):
            jobs += await self.database.write(lifecycle.cancel_left_questions, self.process, now)
        return jobs

    async def recover(self, now: datetime, *, starting: bool = False) -> None:
        """Find unfinished work in the rows and run its jobs.

        ``starting``: this process begins, so it posts immediately what was not posted yet.
        """
        jobs = await self.take_over(now)
        unposted_since = now if starting else now - _DELIVERY_PATIENCE  # or earlier
        read = self.database.read
        await self.database.write(turns.request_due_retries, now)
        no_longer_undoable = await read(proposals.list_undo_expired, now, _UNDO_BATCH)
        if no_longer_undoable:
            await self.database.write(unrecorded_changes.end_undo, no_longer_undoable)
        jobs += [Job(Work.EXECUTE, proposal_id) for proposal_id in await read(proposals.list_approved)]
        # approved here, but this process has not begun to run them
        jobs += [Job(Work.EXECUTE, proposal_id) for proposal_id in self.execution.unstarted]
        wanted_turns = await read(turns.list_wanted, self.process)
        jobs += [Job(Work.TURN, conversation_id) for conversation_id in wanted_turns]
        for list_ids in (
            turns.list_with_undelivered,
            outputs.list_conversations_with_unposted,
            questions.list_homes_with_untold,
        ):
            conversation_ids = await read(list_ids, unposted_since, now)
            jobs += [Job(Work.DELIVER, conversation_id) for conversation_id in conversation_ids]
        message_ids = await read(posted_cards.list_outdated_messages)
        jobs += [Job(Work.REDRAW, str(message_id)) for message_id in message_ids]
        jobs += [Job(Work.TEAM, lead_id) for lead_id in await read(teams.list_with_outdated_message)]
        await self.dispatcher.find(*dict.fromkeys(jobs))

    async def _abandon(self, lost: Sequence[Proposal], now: datetime) -> list[Job]:
        """End executions whose process is gone (``lost``), and return the next jobs.

        If the tool can tell how the run ended, that outcome is stored. Otherwise the outcome is unknown,
        since the call may or may not have happened. A call of an idempotent tool then runs again.
        """
        jobs: list[Job] = []
        if not lost:
            return jobs
        available = await self.gate.registry.load_tools()  # starts MCP servers, and waits for them
        for proposal in lost:
            if proposal.id in self.execution.under_way:
                continue  # this process runs it
            outcome = await self.gate.trials.settle(available, proposal)
            if outcome is not None:
                state, changes = outcome
                finish = partial(runs.finish, **changes)
                finished = await self.database.write(finish, proposal, state, now)
                if finished is not None:  # otherwise another process has ended the execution
                    _, next_jobs = finished
                    jobs += next_jobs
                continue
            tool = available.tools.get(proposal.tool_name)
            rerun = tool is not None and tool.idempotent
            jobs += await self.database.write(partial(runs.abandon, rerun=rerun), proposal, now)
        return jobs

    async def stop_requested_runs(self, _: datetime) -> None:
        """End the runs in this process that someone wants stopped, wherever they pressed Stop."""
        under_way = self.execution.under_way
        if under_way:
            for proposal_id in await self.database.read(proposals.list_stop_requested, under_way):
                self.execution.stop(proposal_id)

    async def retry_refused_posts(self, _: datetime) -> None:
        """Repeat posts that a platform refused for a moment; `recover` repeats all others later."""
        await self.dispatcher.wake(*self.delivery.due())

    async def purge(self, now: datetime) -> None:
        """Delete expired rows, such as old output and the ids of old events, `_BATCH` at a time."""
        await self.database.write(questions.purge, now)
        for delete_rows, period in (
            (events.forget_handled, _EVENTS_KEPT),
            (outputs.purge, self.retention),
            (trials.purge_tokens, self.retention),
            (proposals.purge_inverses, self.retention),
            (agent_calls.forget_outcomes, self.retention),
        ):
            while await self.database.write(delete_rows, now - period, _BATCH) == _BATCH:
                pass
