"""Submits of Slack's modals, authorised by the core.

A modal names its proposal in its metadata, a `ModalSubject`. A method that handles a submit returns Slack's
acknowledgement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.channels.base import Lookup
from bot.channels.slack import screens
from bot.channels.slack.blocks import VALUE
from bot.channels.slack.card_lookup import NOT_FOUND_TEXT, find_card
from bot.channels.slack.forms import find_block_ids, read_form
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.presses import FAILURE_TEXT
from bot.channels.slack.screens import ModalSubject
from bot.domain.batch_picks import Picked
from bot.domain.cards import Card
from bot.domain.chat import (
    Address,
    Answer,
    Inbox,
    Press,
    Reply,
)
from bot.domain.forms import Field, fields_of
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.telemetry.logs import logger

log = logger(__name__)

_BATCH_MODALS = frozenset({screens.REVIEW_ALL, screens.CHOOSE, screens.CONFIRM})
"""The modals about several proposals of one answer, such as the rows of a batch."""
_SUBMIT_VERBS = {
    screens.REVIEW: Verb.APPROVE,
    screens.REVIEW_STEPS: Verb.APPROVE_STEPS,
    screens.REVIEW_REAL: Verb.FOR_REAL,
    screens.REVIEW_ALL: Verb.APPROVE_ALL,
}
"""The verbs that the submits of modals press, for the modals without an input."""


@dataclass(frozen=True, slots=True)
class ModalSubmits:
    """The handler of submitted modals."""

    people: SlackPeople
    inbox: Inbox
    lookup: Lookup

    async def handle_submit(
        self, body: Mapping[str, Any], view: Mapping[str, Any], team: str
    ) -> dict[str, Any]:
        """Handle a modal's submit, and return Slack's acknowledgement; an empty one closes the modal."""
        try:
            return await self._take_submit(body, view, team)
        except ValueError:
            words = NOT_FOUND_TEXT
        except Exception:
            log.exception("modal failed")
            words = FAILURE_TEXT
        return _make_update("Not done", words)

    async def _take_submit(
        self, body: Mapping[str, Any], view: Mapping[str, Any], team: str
    ) -> dict[str, Any]:
        subject = ModalSubject.unpack(str(view.get("private_metadata") or ""))
        user = body.get("user") or {}
        name = str(user.get("name") or "")
        actor = await self.people.load_actor(team, user["id"], user.get("team_id"), name=name)
        address = Address(actor.channel, subject.address) if subject.address else None
        ref = subject.ref or None
        callback_id = str(view.get("callback_id"))
        as_batch = callback_id in _BATCH_MODALS
        card, address = await find_card(
            self.lookup, subject.proposal_id, actor, address, ref, as_batch=as_batch
        )
        # the place in the modal's metadata must belong to the installation that the submit came from
        is_of_other_team = address is not None and not subject.address.startswith(f"{team}/")
        if card is None or is_of_other_team:
            return _make_update("Not done", NOT_FOUND_TEXT)

        state = (view.get("state") or {}).get("values") or {}
        press = Press(actor, Verb.APPROVE, subject.proposal_id, subject.round, address=address, ref=ref)
        match callback_id:
            case screens.CHOOSE:
                return _confirm_rows(card, subject, state)
            case screens.CONFIRM:
                return await self._decide_rows(press, card, subject)
            case screens.EDIT:
                return await self._take_edit(press, card, state, team)
        press = _complete_press(press, callback_id, state)
        return _acknowledge(press, await self.inbox(press))

    async def _decide_rows(self, press: Press, card: Card, subject: ModalSubject) -> dict[str, Any]:
        """Decide the chosen rows, and return a modal with the core's reply."""
        picked = Picked.parse(subject.picked)
        choice = picked.make_decision(
            card, press.actor, press.round, press.address, declines=subject.declines, ref=press.ref
        )
        reply = await self.inbox(choice)
        return _make_update("Decided" if reply.answer is Answer.ACCEPTED else "Not done", reply.text)

    async def _take_edit(
        self, press: Press, card: Card, state: Mapping[str, Any], team: str
    ) -> dict[str, Any]:
        """Store a submitted edit, and approve it unless the person chose to ask again."""
        original = await self.lookup.arguments(press.proposal_id, press.actor, press.address)
        if original is None:
            return _make_update("Not done", NOT_FOUND_TEXT)
        if card.round != press.round:  # the inbox refuses it, and says why
            outdated = replace(press, verb=Verb.EDIT)
            return _acknowledge(outdated, await self.inbox(outdated))
        fields = fields_of(card.schema, original)
        arguments, faults = read_form(fields, state, original, team)
        if faults:
            return _report_faults(faults, fields)
        asks_again = _read_selected(state, screens.AFTERWARDS) == screens.ASK_AGAIN
        verb = Verb.EDIT if asks_again else Verb.APPROVE
        press = replace(press, verb=verb, arguments=arguments)
        reply = await self.inbox(press)
        if reply.answer is Answer.INVALID and reply.fields:
            return _report_faults(reply.fields, fields)
        return _acknowledge(press, reply)


def _confirm_rows(card: Card, subject: ModalSubject, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a modal that asks to confirm the choice, or an error if nothing was chosen."""
    ticked: set[int] = set()
    for block in state.values():
        options = (block.get(VALUE) or {}).get("selected_options") or ()
        ticked.update(int(option["value"]) for option in options)
    picked = Picked(frozenset(ticked))
    approve, others = picked.split_rows(card)
    declines_others = _read_selected(state, screens.OTHERS) == screens.DECLINE_OTHERS
    decline = others if declines_others else []
    if not (approve or decline):
        fault = "Tick what to approve, or decline the others."
        return {"response_action": "errors", "errors": {screens.OTHERS: fault}}
    confirmed = replace(subject, picked=picked.pack(), declines=bool(decline))
    return {
        "response_action": "update",
        "view": screens.make_row_confirmation(card, confirmed, approve, decline),
    }


def _complete_press(press: Press, callback_id: str, state: Mapping[str, Any]) -> Press:
    """Return the press with the verb of a modal, and with the choices or words that the person entered.

    Raises ValueError for an unknown modal.
    """
    if callback_id in _SUBMIT_VERBS:
        return replace(press, verb=_SUBMIT_VERBS[callback_id])
    if callback_id == screens.SIMILAR:
        scope = GrantScope(_read_selected(state, screens.SCOPE))
        duration = GrantDuration(_read_selected(state, screens.DURATION))
        audience = GrantAudience(_read_selected(state, screens.AUDIENCE) or GrantAudience.HERE)
        # `Press` calls a grant's scope ``rung``, its duration ``lasting``, its audience ``reach``
        return replace(press, verb=Verb.SIMILAR, rung=scope, lasting=duration, reach=audience)
    verb = screens.find_words_verb(callback_id)
    if verb is None:
        raise ValueError(f"unknown modal {callback_id!r}")
    reason = str((state.get(screens.REASON) or {}).get(VALUE, {}).get("value") or "").strip()
    return replace(press, verb=verb, reason=reason or None)


def _report_faults(faults: Mapping[str, str], fields: Sequence[Field]) -> dict[str, Any]:
    """Return an error for the input of each faulty field; fields without an input share the last input."""
    block_ids = find_block_ids(fields)
    errors: dict[str, str] = {}
    for name, problem in faults.items():
        words = problem
        outer_name = name.partition(".")[0]  # "address.city" is edited in the input of "address"
        block_id = block_ids.get(name) or block_ids.get(outer_name)
        if block_id is None:
            block_id = screens.AFTERWARDS  # the last input of the form
            words = f"{name}: {problem}"
        if block_id in errors:
            words = f"{errors[block_id]}; {words}"
        errors[block_id] = words
    return {"response_action": "errors", "errors": errors}


def _read_selected(state: Mapping[str, Any], block_id: str) -> str:
    option = (state.get(block_id) or {}).get(VALUE, {}).get("selected_option") or {}
    return str(option.get("value") or "")


def _acknowledge(press: Press, reply: Reply) -> dict[str, Any]:
    """Return the acknowledgement of a submit.

    It closes the modal if the card shows all of the reply. Otherwise the modal shows the reply.
    """
    if reply.answer is not Answer.ACCEPTED:
        return _make_update("Not done", reply.text)
    if press.verb in (Verb.SIMILAR, Verb.APPROVE_STEPS):
        return _make_update("Allowed", reply.text)
    if reply.on_cards or press.verb is Verb.EDIT:
        return {}
    return _make_update("Noted", reply.text)


def _make_update(title: str, text: str) -> dict[str, Any]:
    return {"response_action": "update", "view": screens.make_result(title, text)}
