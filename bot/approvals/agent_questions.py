"""Questions of the agent: a person answers with a choice or in words, which becomes the call's result.

A question is a proposal of kind ``question``, which the model's call of the tool ``ask_person`` led to. The
person's answer is put into its arguments, and the call then "runs" by returning it. So a question is
recorded, expires and survives a restart as any other proposal. An answer approves nothing. A message that a
person writes instead ends the question. Questions of MCP servers are in ``bot/approvals/elicitation.py``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from sqlmodel import Session

from bot.approvals.lifecycle import end_proposal
from bot.approvals.press_values import PressContext, PressOutcome, accept, refuse
from bot.domain import kinds
from bot.domain.audit import Act
from bot.domain.chat import Answer, Clock
from bot.domain.conversations import LineRole, Transcript
from bot.domain.deciders import Deciders
from bot.domain.digests import make_digest
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.text import one_line, replace_unstorable
from bot.domain.verbs import CHOICES, Verb
from bot.errors import ModelTooManyQuestions, ToolError
from bot.store import people, proposals
from bot.store.audit.log import Author
from bot.tools.call import CallContext, ToolOutput
from bot.tools.decorator import tool
from bot.tools.signature import Storable
from bot.tools.toolset import FixedToolset

ASK = "ask_person"
MAX_QUESTIONS = 5
"""The most questions for one request of a person."""

_MAX_ANSWER_CHARS = 1000

# words for secrets, such as "password", "API key", "your PIN"
_SECRET = re.compile(
    r"\b(pass(word|wd|phrase|code|wort)s?|pwd|secrets?|credentials?|t?otp|cvv|jwt|kennwort"
    r"|mot de passe|contraseña|senha|(your|the) pin|pin (code|number)"
    r"|(api|access|auth|private|secret|signing|recovery|security)[ _-]?(key|token|code)s?)\b",
    re.IGNORECASE,
)
_NO_SECRETS_TEXT = (
    "Never ask for a secret, such as a password or a key. Say where people should put it instead."
)
_STILL_OPEN_TEXT = "Your question “{question}” is still open. One at a time: wait for its answer."
_ENOUGH_TEXT = (
    f"You asked {MAX_QUESTIONS} questions for this request, which is all. Say what you have, and end."
)

Question = Annotated[Storable, Field(min_length=1, max_length=500)]
Choice = Annotated[Storable, Field(min_length=1, max_length=60)]
Name = Annotated[Storable, Field(min_length=1, max_length=200)]


def ask_tools() -> FixedToolset:
    """Return the tool `ask_person`."""

    async def preview_nothing(_: Mapping[str, Any]) -> Sequence[PreviewField]:
        return ()

    async def return_answer(arguments: Mapping[str, Any], _: CallContext) -> ToolOutput:
        return ToolOutput(arguments["answer"])

    @tool(group="questions", summary="{question}", preview=preview_nothing, idempotent=True)
    async def ask_person(
        question: Question,
        choices: Annotated[list[Choice], Field(max_length=len(CHOICES))] | None = None,
        who: Annotated[list[Name], Field(min_length=1, max_length=10)] | None = None,
    ) -> None:
        """Ask a person, one question at a time, what you can't look up. An answer approves nothing.

        Args:
            question: in one or two sentences; never for permission, and never for a secret
            choices: up to five likely answers, a few words each; people can always answer in their own
            who: names of people who wrote here and may answer; left out: the person whose request this is

        """

    return FixedToolset("questions", (replace(ask_person, kind=kinds.QUESTION, run=return_answer),))


def check_question_count(transcript: Transcript) -> None:
    """Raise ModelTooManyQuestions if the model has asked more than `MAX_QUESTIONS` questions.

    `choose_answerers` has told it by then that it may not.
    """
    if _count_asked(transcript) > MAX_QUESTIONS:
        raise ModelTooManyQuestions


def choose_answerers(session: Session, transcript: Transcript, arguments: Mapping[str, Any]) -> Deciders:
    """Return the people who may answer a question. Raises ToolError, for the model, if it can't be asked."""
    choices = arguments.get("choices") or ()
    if any(_SECRET.search(text) for text in (arguments["question"], *choices)):
        raise ToolError(_NO_SECRETS_TEXT)
    if _count_asked(transcript) >= MAX_QUESTIONS:
        raise ToolError(_ENOUGH_TEXT)
    waiting = _list_open(transcript)
    if waiting:
        raise ToolError(_STILL_OPEN_TEXT.format(question=one_line(waiting[0].description)))
    names = arguments.get("who")
    if not names:
        return Deciders(requester=True)
    actors = [line.actor for line in transcript.lines if line.role is LineRole.USER and line.actor]
    authors = list(dict.fromkeys(actors))
    answerers = [_find_by_name(session, authors, name) for name in names]
    return Deciders(requester=False, people=tuple(map(str, answerers)))


def _find_by_name(session: Session, authors: Sequence[Actor], name: str) -> Actor:
    """Return the only author with that name.

    Raises ToolError if no author or several authors have the name, and for someone from outside of the team.
    """
    wanted = name.strip().lstrip("@").casefold()
    matching: dict[str, Actor] = {}
    for author in authors:
        if wanted in (author.label.casefold(), str(author).casefold()):
            matching[str(author)] = author
    if len(matching) != 1:
        known = ", ".join(dict.fromkeys(author.label for author in authors))
        if matching:
            why = "Several people here have the name"
        else:
            why = "No one who wrote here has the name"
        raise ToolError(f"{why} {name}. Who wrote here: {known or 'no one'}.")
    [actor] = matching.values()
    if people.load_person(session, actor).is_outsider:
        raise ToolError(f"{name} is not part of this team, so only the person you work for can be asked.")
    return actor


def take_answer(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Apply a press that answers a question: by the button of a choice, or by a text.

    Apparent secrets in the text are hidden.
    """
    press = context.press
    if press.verb is Verb.ANSWER:
        text = press.reason or ""
    else:
        text = _find_choice(proposal.choices or (), press.verb)
    answer = redact_text(replace_unstorable(one_line(text)))
    if not answer:
        return refuse(Answer.INVALID, proposal, "Write your answer.", {"reason": "This is needed."})
    if len(answer) > _MAX_ANSWER_CHARS:
        fault = f"That is {len(answer):,} characters. An answer has at most {_MAX_ANSWER_CHARS:,}."
        return refuse(Answer.INVALID, proposal, fault, {"reason": fault})
    context = replace(context, press=replace(press, verb=Verb.ANSWER, reason=answer))
    arguments = {**proposal.arguments, "answer": answer}
    proposal = context.move(
        session,
        proposal,
        State.APPROVED,
        arguments=arguments,
        digest=make_digest(proposal.tool_name, proposal.tool_version, arguments),
        votes=(*proposal.votes, context.make_vote(Verb.ANSWER)),
        **context.decision_columns,  # the columns on who decided
    )
    reply = "Answered."
    if context.is_paused:
        reply += " Everything is paused, so the agent is told after /approvals resume."
    return accept(session, proposal, reply, Job(Work.EXECUTE, proposal.id))


def _find_choice(choices: Sequence[str], verb: Verb) -> str:
    """Return the choice that a button's verb stands for; empty if there are fewer choices."""
    position = CHOICES.index(verb)
    if position < len(choices):
        return choices[position]
    return ""


def list_answered_by_message(transcript: Transcript) -> list[tuple[Proposal, Actor]]:
    """Return the open questions that a later message answers, each with the message's author.

    The author is someone who may answer. Of several such messages, the last counts.
    """
    answered: list[tuple[Proposal, Actor]] = []
    for question in _list_open(transcript):
        for line in reversed(transcript.lines):
            if line.id <= question.message_id or line.role is not LineRole.USER or line.actor is None:
                continue
            if _may_answer(question, line.actor):
                answered.append((question, line.actor))
                break
    return answered


def _may_answer(proposal: Proposal, actor: Actor) -> bool:
    if proposal.deciders.requester and actor == proposal.requester:
        return True
    return str(actor) in proposal.deciders.people


def withdraw(session: Session, answered: Sequence[tuple[Proposal, Actor]], clock: Clock) -> tuple[Job, ...]:
    """End questions after which someone wrote a message instead: the message is the answer.

    A question that was answered by a press since stays answered. Returns the jobs.
    """
    jobs: list[Job] = []
    for question, author in answered:
        proposal = proposals.get(session, question.id)
        if proposal is None or proposal.state is not State.PROPOSED:
            continue
        ended_by = Author.of_nod(Act.NO_LONGER_ASKED, f"{author} wrote in the conversation")
        _, end_jobs = end_proposal(
            session, proposal, ended_by, clock(), State.CANCELLED, author.label, cause=Cause.WRITTEN
        )
        jobs += end_jobs
    return tuple(jobs)


def _list_open(transcript: Transcript) -> list[Proposal]:
    return [
        proposal
        for proposal in transcript.proposals.values()
        if Verb.ANSWER in proposal.kind.extra_verbs and proposal.state is State.PROPOSED
    ]


def _count_asked(transcript: Transcript) -> int:
    """Return how many of the model's answers asked a question, for one request of a person.

    They are counted since the person's request, for a teammate over all its work.
    """
    first_line_id = 0 if transcript.teammate else transcript.request_line_id
    count = 0
    for line in transcript.lines:
        if line.id > first_line_id and any(call.tool_name == ASK for call in line.calls):
            count += 1
    return count
