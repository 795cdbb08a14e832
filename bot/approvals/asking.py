"""Questions of the agent: a person answers with a choice or in words, and that is the call's result.

A question is a proposal of kind ``question`` that the model's call of ``ask_person`` led to. Answering it
puts the answer into its arguments and lets it run, so it is recorded, expires and survives a restart as any
other. An answer approves nothing. Questions of MCP servers are in ``bot/approvals/elicitation.py``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from sqlmodel import Session

from bot.approvals.lifecycle import end
from bot.approvals.pressing import Decided, PressContext, accept, refuse
from bot.domain import kinds
from bot.domain.chat import Answer, Clock
from bot.domain.conversations import LineRole, Transcript
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor
from bot.domain.proposals import Cause, Deciders, PreviewField, Proposal, State, digest
from bot.domain.record import Act
from bot.domain.redaction import redact_text
from bot.domain.text import one_line, storable
from bot.domain.verbs import CHOICES, Verb
from bot.errors import ModelTooManyQuestions, ToolError
from bot.store import people, proposals
from bot.store.audit.log import By
from bot.tools.signature import Storable
from bot.tools.tool import CallContext, FixedToolset, ToolOutput, tool

ASK = "ask_person"
IN_A_ROW = 5
"""How often one request of a person may lead to a question."""

_LONGEST = 1000  # characters of an answer
_SECRET = re.compile(
    r"\b(pass(word|wd|phrase|code|wort)s?|pwd|secrets?|credentials?|t?otp|cvv|jwt|kennwort"
    r"|mot de passe|contraseña|senha|(your|the) pin|pin (code|number)"
    r"|(api|access|auth|private|secret|signing|recovery|security)[ _-]?(key|token|code)s?)\b",
    re.IGNORECASE,
)
_NO_SECRETS = "Never ask for a secret, such as a password or a key. Say where people should put it instead."
_OPEN = "Your question “{question}” is still open. One at a time: wait for its answer."
_ENOUGH = f"You asked {IN_A_ROW} questions for this request, which is all. Say what you have, and end."

Question = Annotated[Storable, Field(min_length=1, max_length=500)]
Choice = Annotated[Storable, Field(min_length=1, max_length=60)]
Name = Annotated[Storable, Field(min_length=1, max_length=200)]


def ask_tools() -> FixedToolset:
    """Return the tool `ask_person`."""

    async def nothing(_: Mapping[str, Any]) -> Sequence[PreviewField]:
        return ()

    async def answered(arguments: Mapping[str, Any], _: CallContext) -> ToolOutput:
        return ToolOutput(arguments["answer"])

    @tool(group="questions", summary="{question}", preview=nothing, idempotent=True)
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

    return FixedToolset("questions", (replace(ask_person, kind=kinds.QUESTION, run=answered),))


def check_in_a_row(transcript: Transcript) -> None:
    """Raise ModelTooManyQuestions where the model asks again although it was told that it may not."""
    if _count_asked(transcript) > IN_A_ROW:
        raise ModelTooManyQuestions


def choose_answerers(session: Session, transcript: Transcript, arguments: Mapping[str, Any]) -> Deciders:
    """Return the people who may answer a question. Raises ToolError where it can't be asked."""
    if any(_SECRET.search(text) for text in (arguments["question"], *(arguments.get("choices") or ()))):
        raise ToolError(_NO_SECRETS)
    if _count_asked(transcript) >= IN_A_ROW:
        raise ToolError(_ENOUGH)
    waiting = _open(transcript)
    if waiting:
        raise ToolError(_OPEN.format(question=one_line(waiting[0].description)))
    names = arguments.get("who")
    if not names:
        return Deciders(requester=True)
    here = {line.actor: None for line in transcript.lines if line.role is LineRole.USER and line.actor}
    return Deciders(
        requester=False, people=tuple(str(_find_by_name(session, list(here), name)) for name in names)
    )


def _find_by_name(session: Session, here: Sequence[Actor], name: str) -> Actor:
    """Return the person of that name among those who wrote there.

    Raises ToolError where none of the team is.
    """
    wanted = name.strip().lstrip("@").casefold()
    found = {str(each): each for each in here if wanted in (each.label.casefold(), str(each).casefold())}
    if len(found) != 1:
        known = ", ".join(dict.fromkeys(each.label for each in here))
        if found:
            why = "Several people here have the name"
        else:
            why = "No one who wrote here has the name"
        raise ToolError(f"{why} {name}. Who wrote here: {known or 'no one'}.")
    [actor] = found.values()
    if people.person_of(session, actor).outside:
        raise ToolError(f"{name} is not part of this team, so only the person you work for can be asked.")
    return actor


def take_answer(session: Session, context: PressContext, p: Proposal) -> Decided:
    """Take an answer: one of the choices, or words. What looks like a secret in it is hidden."""
    press = context.press
    if press.verb is Verb.ANSWER:
        said = press.reason or ""
    else:
        said = _choice(p.choices or (), press.verb)
    said = redact_text(storable(one_line(said)))
    if not said:
        return refuse(Answer.INVALID, p, "Write your answer.", {"reason": "This is needed."})
    if len(said) > _LONGEST:
        most = f"That is {len(said):,} characters. An answer has at most {_LONGEST:,}."
        return refuse(Answer.INVALID, p, most, {"reason": most})
    context = replace(context, press=replace(press, verb=Verb.ANSWER, reason=said))
    given = {**p.arguments, "answer": said}
    p = context.move(
        session,
        p,
        State.APPROVED,
        arguments=given,
        digest=digest(p.tool_name, p.tool_version, given),
        votes=(*p.votes, context.vote(Verb.ANSWER)),
        **context.decided,
    )
    if context.paused:
        later = " Everything is paused, so the agent is told after /approvals resume."
    else:
        later = ""
    return accept(session, p, f"Answered.{later}", Job(Work.EXECUTE, p.id))


def _choice(choices: Sequence[str], verb: Verb) -> str:
    at = CHOICES.index(verb)
    if at < len(choices):
        return choices[at]
    return ""


def overtaken(transcript: Transcript) -> list[tuple[Proposal, Actor]]:
    """Return the open questions after which someone who may answer wrote instead, and who did."""
    wrote = [line for line in transcript.lines if line.role is LineRole.USER and line.actor]
    return [
        (p, line.actor)
        for p in _open(transcript)
        for line in [x for x in wrote if x.id > p.message_id and _may_answer(p, x.actor)][-1:]
        if line.actor
    ]


def _may_answer(p: Proposal, actor: Actor | None) -> bool:
    return (p.deciders.requester and actor == p.requester) or str(actor) in p.deciders.people


def withdraw(session: Session, found: Sequence[tuple[Proposal, Actor]], clock: Clock) -> tuple[Job, ...]:
    """End questions after which someone wrote instead of answering: what they wrote is the answer.

    One that was answered by a press since stays answered.
    """
    jobs: list[Job] = []
    for read, actor in found:
        p = proposals.get(session, read.id)
        if p is None or p.state is not State.PROPOSED:
            continue
        by = By.nod(Act.UNASKED, f"{actor} wrote in the conversation")
        jobs += end(session, p, by, clock(), State.CANCELLED, actor.label, cause=Cause.WRITTEN)[1]
    return tuple(jobs)


def _open(transcript: Transcript) -> list[Proposal]:
    return [
        p for p in transcript.proposals.values() if Verb.ANSWER in p.kind.takes and p.state is State.PROPOSED
    ]


def _count_asked(transcript: Transcript) -> int:
    since = 0 if transcript.teammate else transcript.order
    answers = (line for line in transcript.lines if line.id > since)
    return sum(any(call.tool_name == ASK for call in line.calls) for line in answers)
