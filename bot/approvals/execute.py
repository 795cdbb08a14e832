"""Execution of approved proposals: check again, claim, run, read again, store the outcome. At most once."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from bot.approvals import lifecycle, ownership, readings
from bot.approvals.afterwards import look_after
from bot.approvals.drafts import preview_of
from bot.approvals.run_progress import ON_CARDS, Progress
from bot.approvals.tool_code import await_tool, context_of, describe_and_log, run_tool
from bot.approvals.trials import Shown, Trials, outcome_of
from bot.domain.chat import Clock
from bot.domain.jobs import Job, OwnWork, Wake, Work
from bot.domain.proposals import Cause, Inverse, Proposal, State, old_values
from bot.domain.redaction import secrets_in, veil
from bot.errors import Disconnected, Hopeless, LostRace, Refused, ToolError, ToolTimedOut
from bot.store import agent_calls, proposals, teams
from bot.store.database import Database
from bot.store.locks.resource_lock import ResourceLock
from bot.store.rules import Policies
from bot.telemetry import tracing
from bot.telemetry.logs import hiding, logger
from bot.tools.registry import AvailableTools, Registry
from bot.tools.tool import CallContext, Tool, ToolOutput

log = logger(__name__)

_HIDDEN_ANSWER = "{server} answered. {owner} alone sees it, since they allowed no one else to."
_HIDDEN_ERROR = "{server} refused it. {owner} alone sees why, since they allowed no one else to."
_NO_INVERSE = "{owner} alone saw what {server} answered, so Nod knows no call that undoes it."
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between tries to write how a tool ended
_MOST_CLAIMED_EARLY = 50  # runs under way: one more need not wait for a slot
_PREPARE_SECONDS = 0.5  # for the toolsets to say which tools there are
_SHOW_SECONDS = 0.1  # after which cards are redrawn while a tool still runs


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """The run of an open proposal, checked as far as it goes before people approve it."""

    proposal: Proposal
    available: AvailableTools
    tool: Tool


class _ClaimedRun(NamedTuple):
    """A run that was claimed together with the approval; with the job that shows it, if it has cards."""

    prepared: PreparedRun
    claimed: Proposal
    shows: Job | None


@dataclass(eq=False)
class Execution:
    """The runner of approved proposals; rows are its only state."""

    registry: Registry
    policies: Policies
    database: Database
    clock: Clock
    process: str  # the id of this one
    own: OwnWork

    def __post_init__(self) -> None:
        self._resource_lock = ResourceLock(self.database)
        self._trials = Trials(self.database, self.clock, self.process)
        self._running: dict[str, asyncio.Task[Any]] = {}  # what its tool does, by proposal id
        self._started: Counter[str] = Counter()  # by proposal id
        self._prepared: set[str] = set()  # of runs that may be claimed at this moment
        self._claimed: dict[str, _ClaimedRun] = {}  # by proposal id, until they are started

    @property
    def under_way(self) -> frozenset[str]:
        """The ids of the proposals that this process has under way, or claims at this moment."""
        return frozenset().union(self._started, self._prepared, self._claimed)

    @property
    def unstarted(self) -> Sequence[str]:
        """The ids of the proposals that are claimed and wait to be started."""
        return list(self._claimed)

    async def prepare(self, proposal_id: str) -> PreparedRun | None:
        """Check an open proposal, so that its run can be claimed in the transaction that approves it.

        None where the run needs more than that: a lock, a look at old values, a connection, a place among
        others. Then it is claimed when it is started. `keep_claimed` or `drop` must follow.
        """
        opened = self.own.take_opened(proposal_id)
        if opened is None or not opened.kind.may_claim_early or len(self.under_way) >= _MOST_CLAIMED_EARLY:
            return None
        if opened.connection or opened.teammate or opened.batch or opened.trial:
            return None
        try:
            async with asyncio.timeout(_PREPARE_SECONDS):
                available = await self.registry.available(context_of(opened))
            tool = available.get(opened.tool_name)
            fits = tool.changes_alone and _shows_no_old_values(opened) and _is_as_shown(tool, opened)
        except Exception:  # noqa: BLE001 - what is wrong with it is told when it runs
            return None
        if not fits:
            return None
        self._prepared.add(proposal_id)
        return PreparedRun(opened, available, tool)

    def keep_claimed(self, prepared: PreparedRun, claimed: Proposal, shows: Job | None) -> None:
        """Keep a run that was claimed until it is started; ``shows`` redraws its cards if it takes long."""
        self._claimed[claimed.id] = _ClaimedRun(prepared, claimed, shows)
        self._prepared.discard(claimed.id)

    def drop(self, prepared: PreparedRun) -> None:
        """Forget a run that was not claimed after all."""
        self._prepared.discard(prepared.proposal.id)

    def stop(self, proposal_id: str) -> None:
        """Cancel the tool's work if it runs in this process; the outcome is stored as usual.

        Only once: a tool that ends in order after that is not interrupted again.
        """
        running = self._running.get(proposal_id)
        if running is not None and not running.cancelling():
            running.cancel()

    def close(self) -> None:
        self._resource_lock.close()

    async def start(self, proposal_id: str, wake: Wake | None = None) -> tuple[Job, ...]:
        """Run an approved proposal, and return the jobs that follow.

        A caller that loses the claim does nothing. ``wake`` starts the jobs that show progress.

        Checking the old values, claiming and running are one step, which no other change to the same resource
        can interrupt. Where another one is under way, this one is started again when that ends.
        """
        self._started[proposal_id] += 1
        approved = self.own.take_approved(proposal_id)
        run = self._claimed.pop(proposal_id, None)
        try:
            if run is not None:
                return await self._run_claimed(run, wake)
            return await self._start(proposal_id, approved, wake)
        finally:
            self._started -= Counter([proposal_id])

    async def _run_claimed(self, run: _ClaimedRun, wake: Wake | None) -> tuple[Job, ...]:
        """Run what was claimed together with its approval; its cards are redrawn early if it takes long."""
        prepared, claimed, shows = run

        async def show() -> None:
            await asyncio.sleep(_SHOW_SECONDS)
            if shows is not None and wake is not None:
                await wake(shows)

        showing = asyncio.create_task(show(), name=f"show:{claimed.id}")
        try:
            with tracing.executing(claimed.id, claimed.tool_name, claimed.call_id) as noted:
                return await self._run(prepared.available, prepared.tool, claimed, wake, noted)
        finally:
            showing.cancel()

    async def _start(self, proposal_id: str, approved: Proposal | None, wake: Wake | None) -> tuple[Job, ...]:
        """Run a proposal that is not claimed yet; ``approved`` None reads it."""
        proposal = approved or await self.database.read(proposals.get, proposal_id)
        made: tuple[Job, ...] = ()
        following: tuple[str, ...] = ()
        if proposal is None or proposal.state is not State.APPROVED:
            following = self._resource_lock.forget(proposal_id)
        elif not (name := await self._name_resource(proposal)):
            made = await self._execute(proposal, "", wake)
        elif await self._enter(proposal_id, name):
            try:
                made = await self._execute(proposal, name, wake)
            finally:
                following = await self._resource_lock.leave(proposal_id, name)
        return (*made, *(Job(Work.EXECUTE, each) for each in following))

    async def _enter(self, proposal_id: str, name: str) -> bool:
        """Lock the resource and return True, or queue for it.

        Proposals ahead in the queue that another process has run lose their place.
        """
        while not await self._resource_lock.enter(proposal_id, name):
            ahead = self._resource_lock.ahead(name)
            if ahead is None:
                return False
            found = await self.database.read(proposals.get, ahead)
            if found is not None and found.state is State.APPROVED:
                return False
            self._resource_lock.forget(ahead)
        return True

    async def _name_resource(self, proposal: Proposal) -> str:
        """Return the name of the resource that the call changes, by default the tool's own name."""
        try:
            available = await self.registry.available(context_of(proposal))
            tool = available.get(proposal.tool_name)
            if proposal.applies and tool.trying is not None and tool.trying.touches:
                return tool.trying.touches
            return await await_tool(tool.name, tool.name_touched(proposal.arguments), tool.timeout)  # type: ignore[no-any-return]
        except Exception:  # noqa: BLE001 - a tool's own code; what is wrong with it is told when it runs
            return proposal.tool_name

    async def _execute(self, proposal: Proposal, name: str, wake: Wake | None) -> tuple[Job, ...]:
        """Check, claim and run the proposal; nothing if another caller has claimed it.

        Nothing either while another process changes the resource ``name``: `Recovery` starts it again later.
        """
        try:
            if why := await ownership.read_connection_fault(self.database, proposal):
                return await self._fail(proposal, Cause.DISCONNECTED, why)
            available = await self.registry.available(context_of(proposal))
            tool = readings.as_asked(available.get(proposal.tool_name), proposal)
            if proposal.teammate and not proposal.kind.runs_locked:
                barred = await self.database.read(teams.find_bar, proposal.conversation_id)
                if barred:  # its teammate is locked, or was stopped
                    raise ToolError(barred)
            if not _is_as_shown(tool, proposal):
                return await self._fail(proposal, Cause.TOOL_CHANGED, "It is not the tool that was shown.")
            if proposal.kind.shows_itself:
                changed = None
            else:
                changed = await self._find_change(tool, proposal)
        except Exception as error:  # noqa: BLE001 - a tool's own code; people and the model are told
            return await self._fail(proposal, _cause(error), describe_and_log(error, proposal.tool_name))
        now = self.clock()
        if changed is not None:
            preview, trial = changed
            again = partial(lifecycle.ask_again, trial=trial)
            return await self.database.write(again, proposal, preview, now, first=True)
        try:
            claimed = await self.database.write(
                lifecycle.claim, self.policies, proposal, self.process, now, name, first=True
            )
        except Refused as error:
            return await self._fail(proposal, Cause.FORBIDDEN, error.message)
        except Disconnected as error:
            return await self._fail(proposal, Cause.DISCONNECTED, error.message)
        if claimed is None:
            return ()
        with tracing.executing(claimed.id, claimed.tool_name, claimed.call_id) as noted:
            return await self._run(available, tool, claimed, wake, noted)

    async def _find_change(self, tool: Tool, proposal: Proposal) -> Shown | None:
        """Return the new preview if it differs from what people saw, else None."""
        if proposal.applies:
            if await self._trials.unchanged(tool, proposal):
                return None
        elif tool.preview is None and _shows_no_old_values(proposal):
            return None  # the arguments were shown, and the digest says that they are the same
        else:
            now, seen = old_values(await preview_of(tool, proposal.arguments)), old_values(proposal.preview)
            # what a trial showed is not asked for when the call itself runs
            if now == seen or (proposal.trial and all(old is None or (f, old) in seen for f, old in now)):
                return None
        return await self._trials.make_preview(tool, proposal.arguments, proposal.requester)

    async def _run(
        self,
        available: AvailableTools,
        tool: Tool,
        claimed: Proposal,
        wake: Wake | None,
        noted: tracing.Noted,
    ) -> tuple[Job, ...]:
        secrets = secrets_in(claimed.arguments, tool.parameters)
        is_hidden = await self._hides_answer(claimed)

        async def show(words: str) -> None:
            if is_hidden or claimed.agent:  # an agent's answer is not for those who decide, nor its beginning
                return
            jobs = await self.database.write(lifecycle.store_progress, claimed, words)
            if wake is not None:
                await wake(*jobs)

        progress = Progress(self.clock, ON_CARDS, show, secrets)
        context = CallContext(
            claimed.conversation_id,
            str(claimed.requester),
            claimed.idempotency_key,
            claimed.preview,
            progress,
            progress.tail,
            depth=await self.database.read(agent_calls.find_depth, claimed) if claimed.agent else 0,
            agent=claimed.agent or "",
        )
        with hiding(secrets):
            work = self._work(tool, claimed, context)  # a task of its own: it alone can be stopped
            self._running[claimed.id] = running = asyncio.create_task(work, name=f"run:{claimed.id}")
            try:
                output = await running
            except asyncio.CancelledError:
                stopped = await self._find_who_stopped(claimed)
                if stopped is None:
                    raise
                noted.fail("stopped")
                return await self._fail(claimed, Cause.STOPPED, stopped)
            except ToolTimedOut as error:
                noted.fail("timeout")
                return await self._fail(claimed, Cause.OUTCOME_UNKNOWN, veil(error.message, secrets))
            except Exception as error:  # noqa: BLE001 - a tool's own code; people and the model are told
                noted.fail(type(error).__name__)
                words = veil(describe_and_log(error, tool.name), secrets)
                if is_hidden or await self._hides_answer(claimed):
                    return await self._finish(claimed, State.FAILED, **_hide_error(claimed, error, words))
                return await self._fail(claimed, _cause(error), words)
            finally:
                del self._running[claimed.id]
            if is_hidden or await self._hides_answer(claimed):
                return await self._finish(claimed, State.SUCCEEDED, **_hide_answer(claimed, output))
            try:
                after = await look_after(available, tool, claimed, output)
            except asyncio.CancelledError:  # this process ends: what is known is stored first
                after = {}
            return await self._finish(claimed, State.SUCCEEDED, **outcome_of(output), **after)

    async def _hides_answer(self, claimed: Proposal) -> bool:
        """Tell if what it answers is for the person alone in whose name it runs; else it costs nothing.

        What an agent's call answers is kept apart for the agent and its person, whatever its name.
        """
        if claimed.agent or claimed.connection is None or not claimed.connection.is_personal:
            return False
        return await self.database.read(readings.hides_answer, claimed)

    async def _work(self, tool: Tool, claimed: Proposal, context: CallContext) -> ToolOutput:
        """Run the tool, apply the trial, or conclude a call without a run. Raises what the tool raises."""
        if tool.conclude is not None:
            return tool.conclude(claimed.arguments)
        if claimed.applies:
            return await self._trials.apply(tool, claimed, context)
        return await run_tool(tool, claimed.arguments, context)

    async def _find_who_stopped(self, claimed: Proposal) -> str | None:
        """Return the person who stopped the run, in words; None where this process is shutting down."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            return None
        now_is = await self.database.read(lifecycle.find_stopped_run, claimed)
        return now_is.error if now_is else None

    async def _fail(self, proposal: Proposal, cause: Cause, error: str) -> tuple[Job, ...]:
        return await self._finish(proposal, State.FAILED, cause=cause, error=error)

    async def _finish(self, proposal: Proposal, state: State, **changes: Any) -> tuple[Job, ...]:
        """Store the outcome, and repeat that until it is written: only this process knows it."""
        pause = _FIRST_PAUSE
        policies = self.policies if proposal.batch and state is State.FAILED else None
        while True:
            owner = self.own.owner(proposal.requester)
            try:
                done = await self.database.write(
                    partial(lifecycle.finish, owner=owner, policies=policies, **changes),
                    proposal,
                    state,
                    self.clock(),
                    first=True,
                )
            except (SQLAlchemyError, LostRace) as error:
                log.error("the end of a tool is not written yet", proposal=proposal.id, exc_info=error)
            else:
                jobs = done[1] if done else ()
                if owner and Job(Work.TURN, proposal.conversation_id) in jobs:
                    self.own.begins(proposal.conversation_id, proposal.requester)
                return jobs
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _shows_no_old_values(proposal: Proposal) -> bool:
    return all(each.old_value is None for each in proposal.preview)


def _is_as_shown(tool: Tool, proposal: Proposal) -> bool:
    return tool.kind is proposal.kind and tool.digest(proposal.arguments) == proposal.digest


def _cause(error: Exception) -> Cause:
    if isinstance(error, Hopeless):
        return Cause.REFUSED
    return Cause.ERROR


def _hide_answer(p: Proposal, output: ToolOutput) -> dict[str, Any]:
    """Return the columns of a run whose answer others don't see, and the answer for its owner."""
    answer = "\n".join(part for part in (output.told, output.text, output.url) if part)
    if output.files:
        answer += f"\n{len(output.files)} files came with it, which Nod did not keep."
    unseen = dict.fromkeys(("told", "ended_badly", "result_url"))
    hidden: dict[str, Any] = {"result": _say(_HIDDEN_ANSWER, p), **unseen}
    if output.ended_badly:
        hidden["ended_badly"] = "The call did not end well"
    if p.undo_seconds:
        hidden["inverse"] = Inverse(_say(_NO_INVERSE, p))
    return {**hidden, "for_owner": answer}


def _hide_error(p: Proposal, error: Exception, words: str) -> dict[str, Any]:
    return {"cause": _cause(error), "error": _say(_HIDDEN_ERROR, p), "for_owner": words}


def _say(template: str, p: Proposal) -> str:
    if p.connection is None:
        raise ValueError(f"{p.id} runs in no one's name")
    return template.format(server=p.connection.server, owner=p.connection.owner_label)
