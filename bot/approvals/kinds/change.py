"""A press on a change: a call of the model, or what a script asked for."""

from dataclasses import replace

from sqlmodel import Session

from bot.approvals import grants
from bot.approvals.votes import Decided, Pressed, Similar, approve, decline, edit
from bot.domain.chat import Answer, Reply
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantDuration
from bot.domain.verbs import Verb
from bot.store import conversations


def decide(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """What has been pressed, done."""
    match pressed.press.verb:
        case Verb.APPROVE:
            return approve(session, pressed, p)
        case Verb.DECLINE:
            return decline(session, pressed, p)
        case Verb.EDIT:
            return edit(session, pressed, p)
        case Verb.SIMILAR:
            return _similar(session, pressed, p)
        case _:
            return Decided(Reply(Answer.INVALID, "That only works on a teammate's plan.", (p,)))


def _similar(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """Approve, and allow what the chosen rung covers; both or neither."""
    similar = pressed.prepared
    if not isinstance(similar, Similar):
        return Decided(Reply(Answer.INVALID, "Choose what else to allow, and for how long.", (p,)))
    if why := grants.hindrance(session, pressed.policies, p):
        return Decided(Reply(Answer.REFUSED, why, (p,)))
    if similar.lasting is GrantDuration.CONVERSATION and conversations.has_ended(session, p.conversation_id):
        text = "Its conversation has ended, so nothing more can be allowed there. Choose a time, such as 1h."
        return Decided(Reply(Answer.INVALID, text, (p,)))
    if similar.reach not in grants.reaches(session, pressed.policies, p, pressed.person):
        text = f"Only an admin can allow that for {similar.reach.words(p.requester.label)}. It stays open."
        return Decided(Reply(Answer.REFUSED, text, (p,)))
    if similar.lasting is GrantDuration.CONVERSATION and similar.reach in (
        GrantAudience.REQUESTER,
        GrantAudience.EVERYONE,
    ):
        text = "This reaches beyond this conversation, so it can't end with it. Choose a time, such as 1h."
        return Decided(Reply(Answer.INVALID, text, (p,)))
    voted = approve(session, pressed, p)
    if voted.reply.answer is not Answer.ACCEPTED:
        return voted
    giver = (pressed.press.actor, pressed.person)
    scope, words, lasting = similar.scope, similar.words, similar.lasting
    grant = grants.give(session, p, *giver, scope, words, lasting, similar.reach, pressed.now)
    whose = similar.reach.words(p.requester.label)
    long = {GrantDuration.CONVERSATION: "until this conversation ends"}
    until = long.get(similar.lasting, f"for {similar.lasting}")
    text = (
        f"Approved. {grant.label} now allows {similar.words}, for {whose}, {until}. An admin can revoke it."
    )
    return replace(voted, reply=replace(voted.reply, text=text))
