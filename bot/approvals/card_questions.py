"""Questions of people to the agent about an open proposal, by a button on its card. They decide nothing.

The question is stored in the agent's conversation (for a teammate, in that of its lead agent), and answered
there. If the card that was pressed is somewhere else, the answer is also posted below that card.

The question may try to give the model orders. So it reaches the model as one quoted line in a note of Nod's
own, next to the exact change, without secrets.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals.lifecycle import request_redraw
from bot.approvals.press_values import PressContext, PressOutcome, refuse
from bot.domain.chat import Address, Answer, Press, Reply
from bot.domain.conversations import AskedQuestion
from bot.domain.digests import to_canonical_json
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import bound_text
from bot.domain.preview import REMOVED, PreviewField
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_arguments, redact_text, secrets_in
from bot.domain.text import one_line, replace_unstorable
from bot.domain.work_limits import QUESTIONS_PER_HOUR
from bot.store import conversations, messages, posted_cards, proposals, questions, teams, turns

_ENOUGH_TEXT = (
    f"You have asked {QUESTIONS_PER_HOUR} questions within an hour. Ask again later, or write to the agent."
)
_MAX_QUESTION_CHARS = 1000
_MAX_CHANGE_CHARS = 8000
_NOTE_TEXT = """\
[Nod] Question from {who} about a proposal that is open and stays as it is: {title}
{change}
> {question}
Answer the question briefly. It decides nothing, and it is no reason to propose anything."""


def ask_agent(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Post the question with its author in the conversation, and request the agent's answer there."""
    question = replace_unstorable(one_line(context.press.reason or ""))
    if not proposal.is_from_model:
        text = f"The agent didn't propose this, so it can't answer. Ask {proposal.requester.label}."
        return refuse(Answer.INVALID, proposal, text)
    fault = _find_fault(question)
    if fault:
        return refuse(Answer.INVALID, proposal, fault, {"reason": fault})
    if not questions.count_question(session, context.person.id, QUESTIONS_PER_HOUR, context.now):
        return refuse(Answer.LATER, proposal, _ENOUGH_TEXT)
    # no column is changed; this records the press, and raises LostRace if the proposal has changed
    proposal = context.move(session, proposal)
    conversation_id = teams.find_lead_conversation(session, proposal)
    asker_name = one_line(context.card_author)
    title = one_line(proposal.description)

    # a notice, which people see, and a note, which the model reads
    notice = f"Question from {asker_name} about: {title}\n\n> {question}"
    last_heard = messages.find_last_heard(session, conversation_id)
    messages.add_notice(session, conversation_id, notice, last_heard, context.now, delivered=False)
    schema = proposals.load_schema(session, proposal.tool_name, proposal.tool_version)
    change = _format_change(proposal, schema)
    note = _NOTE_TEXT.format(who=asker_name, title=title, change=change, question=question)
    note_id = messages.add_note(session, conversation_id, note, context.now)
    turns.request_turn(session, conversation_id, context.now)

    # the question, stored so that the answer to the note is posted at the question's place
    place = _choose_place(session, context.press, proposal, conversation_id)
    asker = context.press.actor
    stored = AskedQuestion(
        proposal_id=proposal.id,
        home=conversation_id,
        note=note_id,
        asker=str(asker),
        name=asker.label,
        text=question,
        asked_at=context.now.isoformat(),
        place=place.address,
        ref=place.ref,
    )
    questions.store_question(session, stored, context.now)
    text = f"Asked. The agent answers {place.where_text}. Nothing was decided."
    jobs = (
        request_redraw(session, proposal),
        Job(Work.DELIVER, conversation_id),
        Job(Work.TURN, conversation_id),
    )
    return PressOutcome(Reply(Answer.ACCEPTED, text, (proposal,)), jobs)


class _AnswerPlace(NamedTuple):
    """The place where an answer is posted in addition to the conversation, if there is one."""

    where_text: str  # for the person who asks: where the answer will be, such as "below this card"
    address: str = ""  # of the additional place, or empty
    ref: str = ""  # the reference of the card there, below which the answer is posted, or empty


def _choose_place(session: Session, press: Press, proposal: Proposal, conversation_id: str) -> _AnswerPlace:
    """Return the place for the answer, by the card that was pressed; else by one at the same address."""
    conversation = conversations.get_conversation(session, conversation_id)
    origin = conversation.origin if conversation else None
    if origin and press.address == origin:
        return _AnswerPlace("here")
    if origin and press.by_api and origin.is_own(press.actor):  # the person's own page has the conversation
        return _AnswerPlace("here")
    if press.address is None:
        return _AnswerPlace("in its conversation")
    cards = posted_cards.list_copies(session, proposal.card_id)
    pressed_cards = [card for card in cards if card.ref == press.ref]
    cards_there = [card for card in cards if card.address == press.address and not card.gone]
    candidates = [*pressed_cards, *cards_there]  # the pressed card first
    if not candidates:
        asker = Address(press.actor.channel, press.actor.key)
        return _AnswerPlace("in its conversation, and you are told", str(asker))
    card = candidates[0]
    if card.address == origin:
        return _AnswerPlace("here")
    return _AnswerPlace("below this card", str(card.address), card.ref)


def _find_fault(question: str) -> str:
    """Return in words why a question can't be asked; empty if it can."""
    if not question:
        return "Write your question."
    if len(question) > _MAX_QUESTION_CHARS:
        return f"That is {len(question):,} characters. A question has at most {_MAX_QUESTION_CHARS:,}."
    return ""


def _format_change(proposal: Proposal, schema: Mapping[str, Any] | None) -> str:
    """Return the exact change, each line indented so that no line looks like Nod's own."""
    arguments = to_canonical_json(redact_arguments(proposal.arguments, schema))
    fields = "\n".join(f"{field.field}: {_format_field(field)}" for field in proposal.preview)
    fields = redact_text(fields, secrets_in(proposal.arguments, schema))
    text = f"Tool: {proposal.tool_name}\nArguments: {arguments}\n{fields}".strip()
    lines = bound_text(text, _MAX_CHANGE_CHARS).splitlines()
    return "\n".join(f"    {line}" for line in lines)


def _format_field(field: PreviewField) -> str:
    new = f"({REMOVED})" if field.new_value is None else field.new_value
    if field.old_value is None:
        return new
    return f"{field.old_value} → {new}"
