"""Rendering of a proposal, pending or ended, as a `Card`; and the copy of a card for one place. Pure.

`render_card` makes the card as it is now. `place_card` fits a card to one place, since the people there may
have fewer rights. The sentence on the state is written in ``card_states.py``, the notes in ``card_notes.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from bot.domain.agents import describe_agent
from bot.domain.annotations import Annotation
from bot.domain.card_notes import describe_checks, describe_undo, is_asker_enough, list_notes
from bot.domain.card_states import describe_state, find_printed_lines
from bot.domain.cards import Card, Group, OriginChat
from bot.domain.files import format_json_as_lines, read_json_fields
from bot.domain.forms import Shape, fields_of
from bot.domain.people import NO_NAMES, Names, find_accounts_in
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, Sibling, Vote
from bot.domain.redaction import redact, redact_text, secrets_in
from bot.domain.risks import Level
from bot.domain.text import one_line
from bot.domain.value_text import label_of
from bot.domain.verbs import Verb

_MIN_SHARED_BUTTON = 2  # the least number of open proposals for a button that decides them together
_APPROVING_VERBS = frozenset(
    {Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL, Verb.FOR_REAL}
)


def render_card(
    proposal: Proposal,
    schema: Mapping[str, Any],
    siblings: Sequence[Proposal | Sibling] = (),
    *,
    grantable: bool = True,
    pause_words: str = "",
    declined_before: Proposal | None = None,
    names: Names = NO_NAMES,
    zone: tzinfo = UTC,
    stand_ins: Sequence[str] = (),
) -> Card:
    """Render a proposal as it is now.

    - ``schema``: the JSON schema of the tool's arguments; may be empty
    - ``siblings``: all proposals of the same answer, if this one is the first of them: its card has the
      buttons for all. Otherwise empty
    - ``grantable``: the rules let people allow calls like this one from the card
    - ``pause_words``: who paused Nod and since when; empty while Nod runs
    - ``declined_before``: an earlier proposal of the same call that was declined, if there is one
    - ``names``: the names of the accounts and places that the card mentions
    - ``stand_ins``: the people who decide for others, in words
    """
    group = _make_group(siblings) if len(siblings) > 1 else None
    secrets = secrets_in(proposal.arguments, schema)
    tone, outcome = describe_state(proposal)
    notes = list_notes(proposal, secrets, names, pause_words=pause_words, declined_before=declined_before)
    circle = proposal.deciders.make_names(one_line(proposal.requester.label), names=names)

    def clean(text: str) -> str:
        return redact_text(text, secrets)

    result_fields = read_json_fields(clean(proposal.result)) if proposal.result else ()
    annotations = [
        Annotation(one_line(clean(line.name)), one_line(clean(line.text)), line.is_late)
        for line in proposal.annotations
    ]
    return Card(
        proposal_id=proposal.id,
        round=proposal.round,
        version=proposal.version,
        kind=proposal.kind,
        title=one_line(clean(proposal.description)),
        tool_name=proposal.tool_name,
        level=proposal.risk.level,
        risk_reason=proposal.kind.risk_text or one_line(proposal.risk.reason),
        reason=one_line(clean(proposal.reason)),
        program=one_line(proposal.agent.partition("/")[0]) if proposal.agent else "",  # of "NAME/LABEL"
        fields=_name_accounts(
            redact_fields(proposal.preview, schema, secrets), schema, proposal.arguments, names
        ),
        arguments=redact(proposal.arguments, schema, secrets),
        schema=schema,
        asked_by=one_line(_name_asker(proposal)),
        decider_names=replace(circle, stand_ins=tuple(map(one_line, stand_ins))),
        votes=tuple(clean(_format_vote(v)) for v in proposal.votes),
        quorum=proposal.quorum,
        expires_at=proposal.expires_at,
        zone=zone,
        state=proposal.state,
        tone=tone,
        outcome=one_line(clean(outcome)),
        # after an undo, the time of the undo
        decided_at=proposal.updated_at if proposal.undone_by_name else proposal.decided_at,
        result=_show_result(_find_tool_words(proposal), secrets),
        result_url=proposal.result_url,
        result_fields=tuple((clean(label), clean(value)) for label, value in result_fields),
        notes=tuple(notes),
        verbs=_list_verbs(proposal, schema, group, grantable=grantable),
        group=group,
        result_sentence=one_line(clean(proposal.result_sentence))
        if proposal.result_sentence and proposal.state is State.SUCCEEDED
        else "",
        full_output=_show_result(proposal.result, secrets) if proposal.result_sentence else "",
        asker_decides=is_asker_enough(proposal),
        extension=proposal.ttl,
        teammate=proposal.teammate,
        asked_at=proposal.created_at,
        running_since=proposal.updated_at if proposal.state is State.EXECUTING else None,
        undo_sentence=clean(one_line(describe_undo(proposal))),
        check_text=clean(describe_checks(proposal)),
        undo_effect=one_line(proposal.inverse.description)
        if proposal.inverse and proposal.undo_until
        else "",
        ticked=proposal.ticked,
        may_have_happened=proposal.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED),
        annotations=tuple(annotations),
        acts_as=one_line(clean(proposal.connection.acts_as)) if proposal.connection else "",
        choices=proposal.choices and tuple(one_line(clean(choice)) for choice in proposal.choices),
    )


def place_card(
    card: Card,
    proposal: Proposal,
    *,
    origin_chat: OriginChat | None,
    may_approve: bool,
    deciders_have_copies: bool,
    escalated: bool = False,
    names: Names = NO_NAMES,
) -> Card:
    """Return the copy of a pending card for one place, with the deciders and the buttons of that place.

    - ``origin_chat``: the chat in which the call was proposed, if that is another chat
    - ``may_approve``: someone who reads the copy in this place may approve the call
    - ``deciders_have_copies``: the people who may approve the call have a copy elsewhere
    - ``escalated``: the card was posted there for a decision, because no one decided in time
    """
    if not card.pending:
        return card

    # the buttons and the notes
    verbs, notes = card.verbs, card.notes
    has_other_deciders = bool(proposal.deciders.roles or proposal.deciders.people)
    # no one may decide but people in the chat where it was asked
    only_members_decide = bool(proposal.deciders.members) and not has_other_deciders
    if escalated:
        notes = (*notes, "No one decided in time, so anyone in this chat may decide.")
    elif origin_chat and only_members_decide:
        verbs = ()
        notes = (*notes, "Decide in the chat where it was asked.")
    elif not may_approve:
        verbs = tuple(verb for verb in verbs if verb not in _APPROVING_VERBS)
        if deciders_have_copies:
            notes = (*notes, "Sent to those who may approve it.")

    # the deciders, as people in this place read them
    circle = card.decider_names
    if origin_chat:
        if origin_chat.has_own_name:
            chat = one_line(origin_chat.label)
        else:
            chat = "the chat where it was asked"
        circle = proposal.deciders.make_names(one_line(proposal.requester.label), chat=chat, names=names)
        circle = replace(circle, stand_ins=card.decider_names.stand_ins)
    return replace(
        card,
        verbs=verbs,
        notes=notes,
        decider_names=circle,
        asker_decides=card.asker_decides and origin_chat is None,
        asked_in=one_line(origin_chat.label) if origin_chat else "",
        origin=origin_chat.address if origin_chat else None,
    )


def find_accounts_on_card(proposal: Proposal, schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the accounts and places that a card names: deciders, people in arguments, a rule's place."""
    accounts_in_arguments = _find_accounts(schema, proposal.arguments).values()
    return find_accounts_in(proposal.rule_text).union(proposal.deciders.people, accounts_in_arguments)


def redact_fields(
    fields: Sequence[PreviewField], schema: Mapping[str, Any], secrets: Sequence[str]
) -> tuple[PreviewField, ...]:
    """Return the fields for people: labelled, without secrets."""

    def hide_secrets(name: str, value: str | None) -> str | None:
        if value is None:
            return None
        # the name may be about a file, as "content of secrets.md": then the value need not be a secret
        if " of " in name:
            return redact_text(value, secrets)
        hidden: str | None = redact({name: value}, schema, secrets)[name]
        return hidden

    shown = []
    for field in fields:
        old = hide_secrets(field.field, field.old_value)
        new = hide_secrets(field.field, field.new_value)
        shown.append(PreviewField(one_line(label_of(field.field)), old, new, field.titled))
    return tuple(shown)


def _make_group(siblings: Sequence[Proposal | Sibling]) -> Group:
    waiting = [proposal for proposal in siblings if proposal.state is State.PROPOSED]
    members = [proposal.id for proposal in waiting if proposal.risk.level is not Level.DESTRUCTIVE]
    return Group(
        size=len(siblings),
        open_count=len(waiting),
        round=sum(proposal.round for proposal in siblings),
        approvable_ids=tuple(members),
        irreversible_count=len(waiting) - len(members),
    )


def _list_verbs(
    proposal: Proposal, schema: Mapping[str, Any], group: Group | None, *, grantable: bool
) -> tuple[Verb, ...]:
    """Return the verbs of a card's buttons: those for the proposal, then those for its group."""
    own: tuple[Verb, ...] = ()
    if proposal.state is State.PROPOSED:
        own = proposal.kind.list_buttons(
            proposal, fillable=bool(schema.get("properties")), grantable=grantable
        )
    elif (
        proposal.state is State.EXECUTING
        and Verb.STOP in proposal.kind.extra_verbs
        and proposal.cause is not Cause.STOPPED
    ):
        own = (Verb.STOP,)
    elif proposal.state is State.SUCCEEDED and proposal.undo_until and not proposal.undo_proposal_id:
        own = (Verb.UNDO,)
    elif proposal.state is State.FAILED and proposal.cause not in (Cause.TOOL_CHANGED, Cause.REFUSED):
        own = (Verb.RETRY,)
    if group is None or group.open_count < _MIN_SHARED_BUTTON:
        return own
    approve_all = (
        (Verb.APPROVE_ALL,) if group.open_count - group.irreversible_count >= _MIN_SHARED_BUTTON else ()
    )
    return (*own, *approve_all, Verb.DECLINE_ALL)


def _find_tool_words(proposal: Proposal) -> str:
    """Return the tool's output: its last printed lines while it runs, then its answer or error."""
    if proposal.state is State.EXECUTING:
        return find_printed_lines(proposal)
    if proposal.error:
        return proposal.error
    if proposal.result_sentence:  # the card's first line has the tool's own sentence in its place
        return ""
    return proposal.result or ""


def _show_result(result: str | None, secrets: Sequence[str]) -> str:
    """Return a result for people, a JSON object line by line, and all without secrets.

    Secrets are hidden twice, since the lines of an object may reveal another one.
    """
    if not result:
        return ""
    return redact_text(format_json_as_lines(redact_text(result, secrets)), secrets)


def _name_asker(proposal: Proposal) -> str:
    if proposal.agent:
        return describe_agent(proposal.agent, proposal.requester)
    if proposal.teammate:
        return f"{proposal.teammate}, a teammate, for {proposal.requester.label}"
    return proposal.requester.label


def _name_accounts(
    fields: tuple[PreviewField, ...], schema: Mapping[str, Any], arguments: Mapping[str, Any], names: Names
) -> tuple[PreviewField, ...]:
    """Return the fields with people's names instead of accounts that the arguments name."""
    accounts = _find_accounts(schema, arguments) if names else {}
    named = []
    for field in fields:
        account = field.new_value
        if account is not None and accounts.get(field.field) == account:
            named.append(replace(field, new_value=names.get(account, account)))
        else:
            named.append(field)
    return tuple(named)


def _find_accounts(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the accounts that arguments name, by the labels of their fields."""
    accounts = {}
    for field in fields_of(schema, arguments):
        if field.shape is Shape.USER and isinstance(field.value, str):
            accounts[one_line(field.label)] = field.value
    return accounts


def _format_vote(vote: Vote) -> str:
    reason = f" ({vote.reason})" if vote.reason else ""
    return one_line(f"{vote.voter_label}: {vote.verb}{reason}")
