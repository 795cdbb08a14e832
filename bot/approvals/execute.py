"""Execution of approved proposals, each at most once.

A run checks that the call is still the one that people approved, and claims the proposal. Then it calls the
tool, reads again what the tool changed, and stores the outcome. To claim is to set the proposal to EXECUTING
in the name of this process, which only one process can. If that process ends before it has stored an outcome,
the run was cut off, and `Recovery` decides what becomes of it.

`Execution.start` does a run, for the dispatcher of jobs. A press that approves a simple call may claim it in
the same transaction: `prepare` checks the call before, and `start` then only runs it.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from bot.approvals import lifecycle, ownership, read_consents, runs
from bot.approvals.after_run import collect_after_run, make_outcome_columns
from bot.approvals.drafts import preview_of
from bot.approvals.run_progress import ON_CARDS, Progress
from bot.approvals.tool_code import await_tool, context_of, describe_and_log, run_tool
from bot.approvals.trials import PreviewAndTrial, Trials
from bot.domain.chat import Clock
from bot.domain.jobs import Job, Wake, Work, WorkCache
from bot.domain.preview import Inverse, PreviewField, old_values
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import hide_values, secrets_in
from bot.errors import CallRefused, Disconnected, LostRace, PermanentRefusal, ToolError, ToolTimedOut
from bot.store import agent_calls, proposals, teams
from bot.store.database import Database
from bot.store.locks.resource_lock import ResourceLock
from bot.store.rules import Policies
from bot.telemetry import tracing
from bot.telemetry.logs import logger, redact_in_logs
from bot.tools.call import CallContext, ToolOutput
from bot.tools.registry import AvailableTools, Registry
from bot.tools.tool import Tool

log = logger(__name__)

# a call in a person's name: what people read in place of an answer that only this person (the owner) may see
_HIDDEN_ANSWER = "{server} answered. {owner} alone sees it, since they allowed no one else to."
_HIDDEN_ERROR = "{server} refused it. {owner} alone sees why, since they allowed no one else to."
_NO_INVERSE = "{owner} alone saw what {server} answered, so Nod knows no call that undoes it."
# the pause between two tries to store a tool's outcome grows from the first to the longest
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_MAX_CLAIMED_EARLY = 50  # further runs wait like any job
_PREPARE_SECONDS = 0.5  # the time that the toolsets have to list their tools
_REDRAW_SECONDS = 0.1  # the time after which cards are redrawn while a tool still runs


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """The run of an open proposal, checked before people approve it."""

    proposal: Proposal
    available: AvailableTools
    tool: Tool


class _ClaimedRun(NamedTuple):
    """A run that was claimed together with the approval."""

    prepared: PreparedRun
    claimed: Proposal
    redraw: Job | None  # the job that redraws the proposal's cards, if there are any


@dataclass(eq=False)
class Execution:
    """The runner of approved proposals.

    All that must survive a restart is stored in the database; the private fields are for this process alone.
    """

    registry: Registry
    policies: Policies
    database: Database
    clock: Clock
    process: str  # the id of this process
    work_cache: WorkCache  # a cache of the turns and proposals that this process has just made

    def __post_init__(self) -> None:
        self._resource_lock = ResourceLock(self.database)
        self._trials = Trials(self.database, self.clock, self.process)
        # the keys, or the members, of the next four are ids of proposals
        self._running: dict[str, asyncio.Task[Any]] = {}  # the tasks of tools
        self._started: Counter[str] = Counter()  # the number of calls of `start` under way
        self._prepared: set[str] = set()  # prepared runs, until they are claimed or dropped
        self._claimed: dict[str, _ClaimedRun] = {}  # runs claimed early, until they are started

    @property
    def under_way(self) -> frozenset[str]:
        """The ids of the proposals that this process runs, will start, or is about to claim."""
        return frozenset().union(self._started, self._prepared, self._claimed)

    @property
    def unstarted(self) -> Sequence[str]:
        """The ids of the proposals that were claimed early and wait to be started."""
        return list(self._claimed)

    async def prepare(self, proposal_id: str) -> PreparedRun | None:
        """Check an open proposal, so that the run can be claimed in the transaction of the approval.

        Returns None if the run needs more: a lock, a check of old values, a connection, a trial, or its turn
        in a batch or a teammate's work. Such a run is claimed when it is started. If a run is returned,
        `keep_claimed` or `drop` must follow.
        """
        opened = self.work_cache.take_opened(proposal_id)
        if opened is None or not opened.kind.may_claim_early or len(self.under_way) >= _MAX_CLAIMED_EARLY:
            return None
        if opened.connection or opened.teammate or opened.batch or opened.trial:
            return None
        try:
            async with asyncio.timeout(_PREPARE_SECONDS):
                available = await self.registry.load_tools(context_of(opened))
            tool = available.get(opened.tool_name)
            needs_no_lock = tool.may_run_side_by_side
            needs_no_check = _shows_no_old_values(opened) and _is_as_shown(tool, opened)
        except Exception:  # noqa: BLE001 - the run meets the same error, and tells people
            return None
        if not (needs_no_lock and needs_no_check):
            return None
        self._prepared.add(proposal_id)
        return PreparedRun(opened, available, tool)

    def keep_claimed(self, prepared: PreparedRun, claimed: Proposal, redraw: Job | None) -> None:
        """Keep a run that was claimed until it is started. ``redraw``: the job that redraws its cards."""
        self._claimed[claimed.id] = _ClaimedRun(prepared, claimed, redraw)
        self._prepared.discard(claimed.id)

    def drop(self, prepared: PreparedRun) -> None:
        """Forget a run that was not claimed after all."""
        self._prepared.discard(prepared.proposal.id)

    def stop(self, proposal_id: str) -> None:
        """Cancel the tool's work if it runs in this process; the outcome is stored as usual.

        The work is cancelled only once, so that a tool is not interrupted while it cleans up.
        """
        running = self._running.get(proposal_id)
        if running is not None and not running.cancelling():
            running.cancel()

    def close(self) -> None:
        """Give up all locks of resources."""
        self._resource_lock.close()

    async def start(self, proposal_id: str, wake: Wake | None = None) -> tuple[Job, ...]:
        """Run an approved proposal, and return the jobs that follow.

        Nothing is done if another caller has claimed it. ``wake`` starts the jobs that show progress while
        the tool runs.

        The resource that the call changes, such as a file, is locked from the check of its old values until
        the end of the run. If another run has the lock, this method returns; the end of that run returns a
        job that starts this run.
        """
        self._started[proposal_id] += 1
        approved = self.work_cache.take_approved(proposal_id)
        run = self._claimed.pop(proposal_id, None)
        try:
            if run is not None:
                return await self._run_claimed(run, wake)
            return await self._lock_and_execute(proposal_id, approved, wake)
        finally:
            self._started -= Counter([proposal_id])  # also drops a count of 0, on which `under_way` relies

    async def _run_claimed(self, run: _ClaimedRun, wake: Wake | None) -> tuple[Job, ...]:
        """Do a run that was claimed with the approval. The cards of a slow run are redrawn before its end."""
        prepared, claimed, redraw = run

        async def redraw_later() -> None:
            await asyncio.sleep(_REDRAW_SECONDS)
            if redraw is not None and wake is not None:
                await wake(redraw)

        redrawing = asyncio.create_task(redraw_later(), name=f"show:{claimed.id}")
        try:
            with tracing.trace_execution(claimed.id, claimed.tool_name, claimed.call_id) as span:
                return await self._run(prepared.available, prepared.tool, claimed, wake, span)
        finally:
            redrawing.cancel()

    async def _lock_and_execute(
        self, proposal_id: str, approved: Proposal | None, wake: Wake | None
    ) -> tuple[Job, ...]:
        """Run a proposal that is not claimed yet. ``approved``: the proposal, if it need not be read."""
        proposal = approved or await self.database.read(proposals.get, proposal_id)
        if proposal is None or proposal.state is not State.APPROVED:
            next_ids = self._resource_lock.stop_waiting(proposal_id)
            return _make_execute_jobs(next_ids)
        resource = await self._name_resource(proposal)
        if not resource:
            return await self._execute(proposal, "", wake)
        if not await self._lock_or_queue(proposal_id, resource):
            return ()
        try:
            jobs = await self._execute(proposal, resource, wake)
        finally:
            next_ids = await self._resource_lock.leave(proposal_id, resource)
        return (*jobs, *_make_execute_jobs(next_ids))

    async def _lock_or_queue(self, proposal_id: str, resource: str) -> bool:
        """Lock the resource and return True, or join the queue for it and return False.

        Proposals ahead in the queue that are no longer approved, since another process has run them, are
        removed.
        """
        while not await self._resource_lock.enter(proposal_id, resource):
            # either this proposal must wait, or the one ahead is removed and the lock is tried again
            ahead_id = self._resource_lock.find_next(resource)
            if ahead_id is None:
                return False
            ahead = await self.database.read(proposals.get, ahead_id)
            if ahead is not None and ahead.state is State.APPROVED:
                return False
            self._resource_lock.stop_waiting(ahead_id)  # no job for the next: that may be this proposal
        return True

    async def _name_resource(self, proposal: Proposal) -> str:
        """Return the name of the resource that the call changes; empty if it needs no lock.

        If the tool's code fails, it is the tool's own name, so that the tool runs one call at a time.
        """
        try:
            available = await self.registry.load_tools(context_of(proposal))
            tool = available.get(proposal.tool_name)
            if proposal.applies_trial and tool.trial_functions is not None and tool.trial_functions.touches:
                return tool.trial_functions.touches
            return await await_tool(tool.name, tool.name_touched(proposal.arguments), tool.timeout)  # type: ignore[no-any-return]
        except Exception:  # noqa: BLE001 - a tool's own code; the run meets the same error, and tells people
            return proposal.tool_name

    async def _execute(self, proposal: Proposal, resource: str, wake: Wake | None) -> tuple[Job, ...]:
        """Check, claim and run the proposal.

        ``resource``: the name of the locked resource, or empty. Nothing is done if another caller has claimed
        the proposal, or while another process changes the same resource. In the second case `Recovery`
        (``bot/jobs/recovery.py``) starts the run later.
        """
        # check that the call is still the call that people approved
        try:
            why = await ownership.read_connection_fault(self.database, proposal)
            if why:
                return await self._fail(proposal, Cause.DISCONNECTED, why)
            available = await self.registry.load_tools(context_of(proposal))
            tool = read_consents.restore_reading_kind(available.get(proposal.tool_name), proposal)
            if proposal.teammate and not proposal.kind.runs_locked:
                hindrance = await self.database.read(teams.find_run_hindrance, proposal.conversation_id)
                if hindrance:  # its teammate is locked, or was stopped
                    raise ToolError(hindrance)
            if not _is_as_shown(tool, proposal):
                return await self._fail(proposal, Cause.TOOL_CHANGED, "It is not the tool that was shown.")
            new_preview = None
            if not proposal.kind.has_no_current_values:
                new_preview = await self._find_new_preview(tool, proposal)
        except Exception as error:  # noqa: BLE001 - a tool's own code; people and the model are told
            return await self._fail(proposal, _find_cause(error), describe_and_log(error, proposal.tool_name))
        now = self.clock()
        if new_preview is not None:  # people are asked again, with the values of now
            preview, trial = new_preview
            ask_again = partial(lifecycle.ask_again, trial=trial)
            return await self.database.write(ask_again, proposal, preview, now, urgent=True)

        # claim the proposal, so that no other process runs it, too
        try:
            claimed = await self.database.write(
                runs.claim, self.policies, proposal, self.process, now, resource, urgent=True
            )
        except CallRefused as error:
            return await self._fail(proposal, Cause.FORBIDDEN, error.message)
        except Disconnected as error:
            return await self._fail(proposal, Cause.DISCONNECTED, error.message)
        if claimed is None:
            return ()
        with tracing.trace_execution(claimed.id, claimed.tool_name, claimed.call_id) as span:
            return await self._run(available, tool, claimed, wake, span)

    async def _find_new_preview(self, tool: Tool, proposal: Proposal) -> PreviewAndTrial | None:
        """Return the new preview if the call's changes are no longer those that people saw, else None."""
        if proposal.applies_trial:  # the run applies the trial's changes
            is_unchanged = await self._trials.is_unchanged(tool, proposal)
        elif tool.preview is None and _shows_no_old_values(proposal):
            is_unchanged = True  # the arguments were shown, and the digest says that they are the same
        else:
            is_unchanged = _has_same_old_values(proposal, await preview_of(tool, proposal.arguments))
        if is_unchanged:
            return None
        return await self._trials.make_preview(tool, proposal.arguments, proposal.requester)

    async def _run(
        self,
        available: AvailableTools,
        tool: Tool,
        claimed: Proposal,
        wake: Wake | None,
        span: tracing.TracedSpan,
    ) -> tuple[Job, ...]:
        """Run a claimed proposal, and store how it ended."""
        secrets = secrets_in(claimed.arguments, tool.parameters)
        is_hidden = await self._hides_answer(claimed)  # checked again after the run: it may take long

        async def show(progress_text: str) -> None:
            if is_hidden or claimed.agent:  # people may not see any part of an answer that is for an agent
                return
            jobs = await self.database.write(runs.store_progress, claimed, progress_text)
            if wake is not None:
                await wake(*jobs)

        context = await self._make_context(claimed, Progress(self.clock, ON_CARDS, show, secrets))
        with redact_in_logs(secrets):
            work = self._call_tool(tool, claimed, context)
            running = asyncio.create_task(work, name=f"run:{claimed.id}")  # so that the tool can be stopped
            self._running[claimed.id] = running
            try:
                output = await running
            except asyncio.CancelledError:
                stop_text = await self._find_stop_text(claimed)
                if stop_text is None:
                    raise
                span.fail("stopped")
                return await self._fail(claimed, Cause.STOPPED, stop_text)
            except ToolTimedOut as error:
                span.fail("timeout")
                return await self._fail(claimed, Cause.OUTCOME_UNKNOWN, hide_values(error.message, secrets))
            except Exception as error:  # noqa: BLE001 - a tool's own code; people and the model are told
                span.fail(type(error).__name__)
                error_text = hide_values(describe_and_log(error, tool.name), secrets)
                if is_hidden or await self._hides_answer(claimed):
                    return await self._finish(
                        claimed, State.FAILED, **_hide_error(claimed, error, error_text)
                    )
                return await self._fail(claimed, _find_cause(error), error_text)
            finally:
                del self._running[claimed.id]
            if is_hidden or await self._hides_answer(claimed):
                return await self._finish(claimed, State.SUCCEEDED, **_hide_answer(claimed, output))
            try:
                after = await collect_after_run(available, tool, claimed, output)
            except asyncio.CancelledError:  # this process ends: the known outcome is stored first
                after = {}
            return await self._finish(claimed, State.SUCCEEDED, **make_outcome_columns(output), **after)

    async def _make_context(self, claimed: Proposal, progress: Progress) -> CallContext:
        depth = 0  # the number of agents' calls that led to this call
        if claimed.agent:
            depth = await self.database.read(agent_calls.find_depth, claimed)
        return CallContext(
            claimed.conversation_id,
            str(claimed.requester),
            claimed.idempotency_key,
            claimed.preview,
            progress,
            progress.tail,
            depth=depth,
            agent=claimed.agent or "",
        )

    async def _hides_answer(self, claimed: Proposal) -> bool:
        """Tell if the tool's answer is only for the owner of the call, in whose name it runs.

        False for an agent's call, whose answer is kept apart for the agent and its person.
        """
        if claimed.agent or claimed.connection is None or not claimed.connection.is_personal:
            return False
        return await self.database.read(read_consents.hides_answer, claimed)

    async def _call_tool(self, tool: Tool, claimed: Proposal, context: CallContext) -> ToolOutput:
        """Run the tool, apply the trial, or conclude a call that has no run. Raises the tool's errors."""
        if tool.conclude is not None:
            return tool.conclude(claimed.arguments)
        if claimed.applies_trial:
            return await self._trials.apply(tool, claimed, context)
        return await run_tool(tool, claimed.arguments, context)

    async def _find_stop_text(self, claimed: Proposal) -> str | None:
        """Return the text on the person who stopped the run; None if this process is shutting down."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            return None
        stopped = await self.database.read(runs.find_stopped_run, claimed)
        return stopped.error if stopped else None

    async def _fail(self, proposal: Proposal, cause: Cause, error: str) -> tuple[Job, ...]:
        return await self._finish(proposal, State.FAILED, cause=cause, error=error)

    async def _finish(self, proposal: Proposal, state: State, **changes: Any) -> tuple[Job, ...]:
        """Store the outcome, and retry until it is stored: only this process knows it. Returns the jobs."""
        pause = _FIRST_PAUSE_SECONDS
        # a rule may stop the rest of a batch after a row that failed
        policies = self.policies if proposal.batch and state is State.FAILED else None
        while True:
            turn_process = self.work_cache.find_turn_owner(proposal.requester)
            try:
                stored = await self.database.write(
                    partial(runs.finish, turn_process=turn_process, policies=policies, **changes),
                    proposal,
                    state,
                    self.clock(),
                    urgent=True,
                )
            except (SQLAlchemyError, LostRace) as error:
                log.error("the end of a tool is not written yet", proposal=proposal.id, exc_info=error)
            else:
                jobs: tuple[Job, ...] = ()
                if stored:
                    _, jobs = stored
                if turn_process and Job(Work.TURN, proposal.conversation_id) in jobs:
                    self.work_cache.note_turn_begun(proposal.conversation_id, proposal.requester)
                return jobs
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _make_execute_jobs(proposal_ids: Sequence[str]) -> tuple[Job, ...]:
    return tuple(Job(Work.EXECUTE, proposal_id) for proposal_id in proposal_ids)


def _shows_no_old_values(proposal: Proposal) -> bool:
    return all(field.old_value is None for field in proposal.preview)


def _has_same_old_values(proposal: Proposal, preview: Sequence[PreviewField]) -> bool:
    """Tell if a preview made now has the old values that people saw.

    After a trial, people saw more values than the call's own preview has. Then it is enough if each current
    value is among those that they saw.
    """
    current = old_values(preview)
    shown = old_values(proposal.preview)
    if current == shown:
        return True
    if proposal.trial is None:
        return False
    return all(value is None or (field, value) in shown for field, value in current)


def _is_as_shown(tool: Tool, proposal: Proposal) -> bool:
    """Tell if the tool and the arguments are still those that the card shows."""
    return tool.kind is proposal.kind and tool.make_digest(proposal.arguments) == proposal.digest


def _find_cause(error: Exception) -> Cause:
    if isinstance(error, PermanentRefusal):
        return Cause.REFUSED
    return Cause.ERROR


def _hide_answer(proposal: Proposal, output: ToolOutput) -> dict[str, Any]:
    """Return the columns to store for a run whose answer only its owner sees, in the key ``for_owner``."""
    answer = "\n".join(part for part in (output.told, output.text, output.url) if part)
    if output.files:
        answer += f"\n{len(output.files)} files came with it, which Nod did not keep."
    columns: dict[str, Any] = {"result": _fill(_HIDDEN_ANSWER, proposal), "for_owner": answer}
    columns |= dict.fromkeys(("result_sentence", "ended_badly", "result_url"))
    if output.ended_badly:
        columns["ended_badly"] = "The call did not end well"
    if proposal.undo_seconds:
        columns["inverse"] = Inverse(_fill(_NO_INVERSE, proposal))
    return columns


def _hide_error(proposal: Proposal, error: Exception, error_text: str) -> dict[str, Any]:
    """Return the columns to store for a run whose error only its owner sees, in the key ``for_owner``."""
    return {"cause": _find_cause(error), "error": _fill(_HIDDEN_ERROR, proposal), "for_owner": error_text}


def _fill(template: str, proposal: Proposal) -> str:
    """Put the names of a call's server and owner into a text."""
    if proposal.connection is None:
        raise ValueError(f"{proposal.id} runs in no one's name")
    return template.format(server=proposal.connection.server, owner=proposal.connection.owner_label)
