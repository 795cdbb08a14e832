"""A person asks the agent about an open proposal. Nothing is decided.

The agent answers in its conversation, and below the card that was pressed where that stands elsewhere.

What the person wrote is hostile text: it reaches the model as one quoted line in a note of Nod's own, next to
the exact change, without secrets.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlmodel import Session

from bot.approvals.lifecycle import redraw
from bot.approvals.pressing import Decided, PressContext, refuse
from bot.domain.bounds import QUESTIONS_PER_HOUR
from bot.domain.chat import Address, Answer, Press, Reply
from bot.domain.conversations import AskedQuestion
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import bound_text
from bot.domain.proposals import REMOVED, PreviewField, Proposal, canonical
from bot.domain.redaction import redact_arguments, redact_text, secrets_in
from bot.domain.text import one_line, storable
from bot.store import conversations, messages, posted_cards, proposals, questions, teams, turns

_ENOUGH = (
    f"You have asked {QUESTIONS_PER_HOUR} questions within an hour. Ask again later, or write to the agent."
)
_LONGEST = 1000  # characters of a question
_CHANGE = 8000  # characters of what the model is told again
_NOTE = """\
[Nod] Question from {who} about a proposal that is open and stays as it is: {title}
{change}
> {question}
Answer the question briefly. It decides nothing, and it is no reason to propose anything."""


def ask_agent(session: Session, context: PressContext, p: Proposal) -> Decided:
    """Tell people in the conversation who asks what, and have the agent answer there."""
    question = storable(one_line(context.press.reason or ""))
    if not p.called:
        text = f"The agent didn't propose this, so it can't answer. Ask {p.requester.label}."
        return refuse(Answer.INVALID, p, text)
    wrong = _wrong(question)
    if wrong:
        return refuse(Answer.INVALID, p, wrong, {"reason": wrong})
    if not questions.count_question(session, context.person.id, QUESTIONS_PER_HOUR, context.now):
        return refuse(Answer.LATER, p, _ENOUGH)
    p = context.move(session, p)
    home, who, title = teams.home(session, p), one_line(context.who), one_line(p.description)
    schema = proposals.schema(session, p.tool_name, p.tool_version)
    said = f"Question from {who} about: {title}\n\n> {question}"
    heard = messages.last_heard(session, home)
    messages.add_notice(session, home, said, heard, context.now, delivered=False)
    told = _NOTE.format(who=who, title=title, change=_change(p, schema), question=question)
    note = messages.add_note(session, home, told, context.now)
    turns.want_turn(session, home, context.now)
    asker = context.press.actor
    asked = AskedQuestion(p.id, home, note, str(asker), asker.label, question, context.now.isoformat())
    place, ref, where = _find_other_place(session, context.press, p, home)
    questions.store_question(session, replace(asked, place=place, ref=ref), context.now)
    text = f"Asked. The agent answers {where}. Nothing was decided."
    return Decided(
        Reply(Answer.ACCEPTED, text, (p,)),
        (redraw(session, p), Job(Work.DELIVER, home), Job(Work.TURN, home)),
    )


def _find_other_place(session: Session, press: Press, p: Proposal, home: str) -> tuple[str, str, str]:
    """Return a second place for the answer: its address, the card there, and a text for people.

    Address and card are empty where the conversation itself is the only place.
    """
    found = conversations.get_conversation(session, home)
    origin = found.origin if found else None
    if origin and (press.address == origin or (press.by_api and origin.is_own(press.actor))):
        return "", "", "here"
    if press.address is None:
        return "", "", "in its conversation"
    cards = posted_cards.of_proposal(session, p.card_id)
    here = next((each for each in cards if each.ref == press.ref), None)
    here = here or next((each for each in cards if each.address == press.address), None)
    if here is None:
        return str(Address(press.actor.channel, press.actor.key)), "", "in its conversation, and you are told"
    if here.address == origin:
        return "", "", "here"
    return str(here.address), here.ref, "below this card"


def _wrong(question: str) -> str:
    if not question:
        return "Write your question."
    most = f"That is {len(question):,} characters. A question has at most {_LONGEST:,}."
    if len(question) > _LONGEST:
        return most
    return ""


def _change(p: Proposal, schema: Mapping[str, Any] | None) -> str:
    """Return the exact change, each line indented so that none looks like Nod's own."""
    arguments = canonical(redact_arguments(p.arguments, schema))
    fields = (f"{f.field}: {_format_change(f)}" for f in p.preview)
    said = redact_text("\n".join(fields), secrets_in(p.arguments, schema))
    exact = bound_text(f"Tool: {p.tool_name}\nArguments: {arguments}\n{said}".strip(), _CHANGE)
    return "\n".join(f"    {line}" for line in exact.splitlines())


def _format_change(field: PreviewField) -> str:
    new = f"({REMOVED})" if field.new_value is None else field.new_value
    if field.old_value is None:
        return new
    return f"{field.old_value} → {new}"
