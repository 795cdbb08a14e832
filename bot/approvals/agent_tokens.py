"""The tokens of agents: the consent of the agent's person, and the end of an agent's work with its token.

An agent is a program that calls Nod's tools with a token of a person. The person *consents* by a proposal.
The token's *label* is its name in the list of tokens.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants, lifecycle
from bot.approvals.private_requests import make_private_request
from bot.domain.agents import Agent
from bot.domain.audit import Act
from bot.domain.chat import Request
from bot.domain.digests import to_canonical_json
from bot.domain.jobs import Job
from bot.domain.people import Actor
from bot.domain.proposal_states import Cause, State
from bot.domain.text import escape_markdown, hash_text
from bot.store import agent_calls, tokens
from bot.store.audit.log import Author

ALLOW = "allow_agent"
"""The tool whose proposal asks a person whether an agent may call tools for them."""
_TOKEN_ENDED_REASON = "its token has ended"  # noqa: S105 - a text


def make_consent_request(
    agent: Agent, names: Collection[str], servers: Collection[str], made_by: Actor, until: datetime | None
) -> Request:
    """Return the request that asks an agent's person to let the agent call tools for them.

    ``names``: of the tools. ``servers``: where the agent may then act in the person's name. ``made_by``: who
    made the token. ``until``: when the token ends. The request's event id depends on the agent and the
    servers alone, so the same question is asked only once.
    """
    arguments = {
        "label": agent.label,
        "agent": agent.name,
        "patterns": list(agent.tools),
        "tools": sorted(names),
        "made_by": made_by.label,
        "servers": sorted(servers),
    }
    if until is not None:
        arguments["until"] = f"{until:%Y-%m-%d}"
    question_id = hash_text(to_canonical_json([agent.label, sorted(servers)]))[:32]
    text = f"The program {escape_markdown(agent.name)} asks to call tools for you."
    request = make_private_request(agent.person, text)
    return replace(request, tool_name=ALLOW, arguments=arguments, event_id=f"agent {question_id}")


def end_work_of_tokens(
    session: Session, ended: Collection[tokens.IssuedToken], now: datetime
) -> tuple[Job, ...]:
    """End the grants for agents whose tokens have ended, and withdraw their open proposals.

    Approved calls still run, since people wanted them. Returns the jobs that follow.
    """
    jobs: list[Job] = []
    author = Author.of_nod(Act.REVOKE, _TOKEN_ENDED_REASON)
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": _TOKEN_ENDED_REASON}
    for token in ended:
        agent_key = f"{token.name}/{token.label}"  # as in `Agent.key`
        # a call that is being opened now is either stored before this lock is taken, or refused after it
        agent_calls.lock_calls(session, agent_key)
        grants.end_with_agent(session, agent_key, author, now)
        if not token.is_agent:  # the token of a person or a script, with no calls of an agent
            continue
        for proposal in agent_calls.list_open(session, agent_key):
            _, end_jobs = lifecycle.end_proposal(
                session, proposal, author, now, State.CANCELLED, "Nod", **changes
            )
            jobs += end_jobs
    return tuple(jobs)
