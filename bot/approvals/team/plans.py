"""Plans of agents: how they are opened, replaced, reviewed and ticked off.

A plan lists steps, and is a proposal. The lead agent of a conversation may plan a longer job. A teammate,
which is an agent that the lead agent has started, may have to plan first: it may change nothing until its
plan is approved, by people, by the lead agent (a *review*), or by both, as a rule says. Each version of a
plan is a proposal of its own, which replaces the one before. Done steps are ticked off on the card. Each
function is part of one transaction. Those that change something return the jobs that follow.
"""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import update
from sqlmodel import Session, col

from bot.approvals import grants, rights
from bot.approvals.lifecycle import end_proposal, move_or_raise, request_redraw
from bot.approvals.team import teammates
from bot.domain.audit import Act
from bot.domain.jobs import Job, Work
from bot.domain.people import NOD, Actor
from bot.domain.plans import Approver, Plan, find_current_plan
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, Vote
from bot.domain.teams import Teammate
from bot.domain.verbs import Verb
from bot.errors import ToolError
from bot.store import conversations, people, proposals, teams, transitions
from bot.store.audit.log import Author
from bot.store.rules import Policies
from bot.store.tables.conversations import TeammateRow

LEAD = Actor(NOD, "lead", "the lead agent")
"""The voter that stands for the lead agent. Its vote never counts as a person's."""


def make_lead_author(verb: Verb | Act, reason: str | None = None) -> Author:
    """Return the lead agent as the author of a change, for the audit log."""
    return Author(verb, str(LEAD), str(LEAD), LEAD.channel, reason)


def open_plan(session: Session, policies: Policies, plan: Proposal, now: datetime) -> tuple[Job, ...]:
    """Make a plan the current plan of its agent, before it is stored. An earlier open plan is cancelled.

    The grants of an earlier plan end, so calls that it allowed and that have not run ask again.
    """
    teammate = teams.get(session, plan.conversation_id)
    # a teammate's ``rounds``: the number of plans that it has submitted
    version = f"version {teammate.rounds + 1}" if teammate else "a newer version"
    author = Author.of_nod(Act.SUPERSEDED, f"{version} took its place")
    jobs: list[Job] = []
    for earlier in proposals.list_open_in(session, plan.conversation_id):
        if earlier.kind.has_steps:
            cancelled = transitions.change_proposal(
                session, earlier, author, now, State.CANCELLED, cause=Cause.SUPERSEDED
            )
            if cancelled:  # None if it has ended in the meantime
                jobs.append(request_redraw(session, cancelled))
    grants.end_with_plan(session, plan.conversation_id, author, now)
    if teammate is None:  # it is a plan of the lead agent itself
        return tuple(jobs)
    session.execute(
        update(TeammateRow)
        .where(col(TeammateRow.id) == teammate.id)
        .values(plan_id=plan.id, rounds=TeammateRow.rounds + 1)
    )
    teammate = replace(teammate, rounds=teammate.rounds + 1)
    is_for_people_alone = _find_approver(session, policies, plan) is Approver.HUMAN
    event = "was submitted"
    if is_for_people_alone:
        event += ". People approve it; you may reject it or ask for changes"
    # a lead agent without a vote gets no turn for this: it reads of the plan in its next turn
    jobs += teammates.request_review(session, teammate, plan, event, now, wake_lead=not is_for_people_alone)
    return tuple(jobs)


def lacks_lead(session: Session, policies: Policies, plan: Proposal) -> bool:
    """Tell if a plan needs the approval of the lead agent as well as people's, and lacks the agent's."""
    return _find_approver(session, policies, plan) is Approver.BOTH and not was_reviewed(plan)


def ask_lead(session: Session, plan: Proposal, now: datetime) -> tuple[Job, ...]:
    """Ask the lead agent again to review a plan, now that people have approved it."""
    teammate = teams.get(session, plan.conversation_id)
    if teammate is None:
        return ()
    event = "was approved by people and needs your approval as well"
    return teammates.request_review(session, teammate, plan, event, now)


def review(
    session: Session,
    policies: Policies,
    teammate: Teammate,
    verdict: Verb | Act,
    feedback: str,
    now: datetime,
) -> tuple[str, tuple[Job, ...]]:
    """Apply the lead agent's verdict on a plan: ``Verb.APPROVE``, ``Verb.REVISE`` or ``Act.REJECT``.

    Returns a text for the lead agent, and the jobs. Raises ToolError if the lead agent may not give that
    verdict.
    """
    plan = teammate.plan
    if plan is None or plan.state is not State.PROPOSED:
        raise ToolError(f"{teammate.name} has no plan waiting for review.")
    if verdict is Verb.APPROVE:
        return _approve(session, policies, plan, now)
    if verdict is Verb.REVISE and not feedback.strip():
        raise ToolError("Say in feedback what should change.")
    author = make_lead_author(verdict, feedback)
    cause = Cause.REVISE if verdict is Verb.REVISE else None
    _, jobs = end_proposal(
        session, plan, author, now, State.DECLINED, LEAD.name, cause=cause, decline_reason=feedback
    )
    return describe_stop(session, plan) or f"{teammate.name} has been told and will continue.", jobs


def describe_stop(session: Session, plan: Proposal) -> str:
    """Return a sentence if the end of a plan has ended its teammate's work, else an empty text."""
    if not plan.teammate:
        return ""
    teammate = teams.get(session, plan.conversation_id)
    if teammate and not teammate.has_ended:
        return ""
    return f"{plan.teammate} has stopped: that was its last version."


def _approve(
    session: Session, policies: Policies, plan: Proposal, now: datetime
) -> tuple[str, tuple[Job, ...]]:
    """Vote for a plan as the lead agent. The vote approves the plan if no more approvals are needed."""
    approver = _find_approver(session, policies, plan)
    if approver is Approver.HUMAN:
        raise ToolError("Only a person can approve plans here. You may reject it or ask for changes.")
    if was_reviewed(plan):
        raise ToolError("You have already approved it. People must decide as well.")
    plan = rights.without_void_votes(session, policies, plan)
    author = make_lead_author(Act.REVIEWED)
    review_vote = Vote(str(LEAD), LEAD, Act.REVIEWED, None, now)
    votes = (*plan.votes, review_vote)
    if approver is Approver.BOTH and len(people.list_voters(session, plan, Verb.APPROVE)) < plan.quorum:
        plan = move_or_raise(session, plan, author, now, votes=votes)
        return "Your approval counts. A person must approve it as well.", (request_redraw(session, plan),)
    approvals = [vote for vote in plan.votes if vote.verb == Verb.APPROVE]
    if approvals:
        who = f"{approvals[-1].actor.label} and {LEAD.name}"
    else:
        who = f"{LEAD.name} ({plan.rule_text})"  # the rule says that the lead agent alone approves
    plan = move_or_raise(
        session, plan, author, now, State.APPROVED, votes=votes, decided_by=who, decided_at=now
    )
    return "Approved.", (request_redraw(session, plan), Job(Work.EXECUTE, plan.id))


def _find_approver(session: Session, policies: Policies, plan: Proposal) -> Approver:
    """Return who approves a plan by the rules: people, the lead agent, or both."""
    place = conversations.load_place(session, plan.conversation_id)
    return policies.load(session).plan_rule(place.address).value


def store_ticked_steps(
    session: Session, plan: Proposal, ticked: tuple[int, ...], now: datetime
) -> tuple[Job, ...]:
    """Store the numbers of all done steps of an approved plan, and return the job that redraws its card."""
    new_steps = sorted(set(ticked) - set(plan.ticked))
    author = Author.of_nod(Act.TICK, f"step {', '.join(map(str, new_steps))} is done")
    proposal = transitions.change_proposal(session, plan, author, now, ticked=ticked)
    if proposal is None:
        return ()
    return (request_redraw(session, proposal),)


def tick_step(session: Session, conversation_id: str, number: int, now: datetime) -> tuple[Job, ...]:
    """Tick off a step of a conversation's approved plan by its number, counted from 1.

    Raises ToolError without such a step, and for a step that lists calls, which is ticked off by itself.
    """
    plan = find_current_plan(proposals.list_of_conversation(session, conversation_id))
    if plan is None:
        raise ToolError("You have no approved plan.")
    steps = Plan.of(plan.arguments).steps
    if not 1 <= number <= len(steps):
        raise ToolError(f"Your plan has steps 1 to {len(steps)}.")
    if steps[number - 1].calls:
        raise ToolError(f"Step {number} is ticked off by itself, once all its calls have run.")
    if number in plan.ticked:
        return ()
    return store_ticked_steps(session, plan, tuple(sorted((*plan.ticked, number))), now)


def was_reviewed(plan: Proposal) -> bool:
    """Tell if the lead agent approved a plan."""
    return any(vote.verb == Act.REVIEWED for vote in plan.votes)
