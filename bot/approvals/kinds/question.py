"""A press on a server's question: an edit fills it in, an approval sends the answer."""

from sqlmodel import Session

from bot.approvals.kinds import change
from bot.approvals.votes import Decided, Pressed, as_edited, edit, vote
from bot.domain.chat import Answer, Reply
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import proposals


def decide(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """What has been pressed, done."""
    match pressed.press.verb:
        case Verb.APPROVE:
            filled = as_edited(session, pressed, p)
            return filled if isinstance(filled, Decided) else _send(session, pressed, filled)
        case Verb.EDIT:
            return edit(session, pressed, p, "Filled in, not sent yet. Press Send answer on its card.")
        case _:
            return change.decide(session, pressed, p)


def _send(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    if missing := _unanswered(session, p):
        text = f"It can't be sent yet. Fill in first: {', '.join(missing)}."
        return Decided(Reply(Answer.INVALID, text, (p,), missing))
    return vote(session, pressed, p, "Sent.")


def _unanswered(session: Session, p: Proposal) -> dict[str, str]:
    """What it must be told before it can be sent, by field."""
    schema = proposals.schema(session, p.tool_name, p.tool_version) or {}
    return {name: "fill this in first" for name in schema.get("required", ()) if name not in p.arguments}
