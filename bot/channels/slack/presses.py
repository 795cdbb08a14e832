"""Buttons, menus and modals of Slack: each is acknowledged in three seconds, and authorised by the core.

A click is a press of a button or of a menu's entry. It decides, or opens a modal: a window with a form that
the person submits (``screens.py``). A button only carries a verb, a proposal's id, and its round. An edit
raises the round, so that a press of an outdated button is noticed. The `Lookup` and the inbox say if this
person may see or decide the proposal, whatever the button says. Where a card does not show everything, the
modal "View all" has the button that approves.

A batch is several calls in one card, each of which is a row. A method that handles a click returns the reply
that only this person sees; it is empty where the card or a modal already says it. A method that handles a
submit returns Slack's acknowledgement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from bot.approvals.lookup.context import CONTEXT_NOT_YOURS_TEXT
from bot.channels.base import Lookup
from bot.channels.slack import blocks, buttons, screens
from bot.channels.slack import card as cards
from bot.channels.slack.blocks import VALUE
from bot.channels.slack.client import limit_time
from bot.channels.slack.errors import describe_for_presser, translate_errors
from bot.channels.slack.forms import find_block_ids, read_form
from bot.channels.slack.marks import find_channel_name
from bot.channels.slack.people import People
from bot.channels.slack.places import NAME, SlackPlace, SlackPosted
from bot.channels.slack.posting import tell_person, upload
from bot.channels.slack.screens import ModalSubject
from bot.channels.slack.text import escape
from bot.channels.slack.threads import MENTIONS_ACTION, FollowedThreads
from bot.channels.slack.workspaces import Workspaces
from bot.domain.batches import Picked
from bot.domain.cards import Card, Group
from bot.domain.chat import (
    Address,
    Answer,
    Command,
    Inbox,
    Press,
    Reply,
    act_on_choice,
    format_choice_reply,
    read_choice,
)
from bot.domain.forms import Field, fields_of
from bot.domain.people import Actor, Names
from bot.domain.proposals import Level
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import BUTTONS, Needs, Verb
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

_NOT_FOUND_TEXT = "There is nothing here for you to decide. The proposal is not affected."
FAILURE_TEXT = "Something went wrong on my side. Nothing was decided. Please try again."
_TRIGGER_SECONDS = 2.0  # a press can open a modal for 3 s
_OUTSIDER_TEXT = "I can't tell that you are of this team. Nothing was changed."
_NOT_AFFECTED_TEXT = "The proposal is not affected."
_BATCH_MODALS = frozenset({screens.REVIEW_ALL, screens.CHOOSE, screens.CONFIRM})
"""The modals about several proposals of one answer, such as the rows of a batch."""
# an action is a `Verb`, or an action id of ``buttons.py`` or ``screens.py`` without its ``nod:``
_ROW_ACTION = screens.ROW.removeprefix("nod:")
_CARD_REVIEW_ACTIONS = frozenset({buttons.REVIEW, buttons.REVIEW_STEPS, buttons.VIEW})
_REVIEW_ACTIONS = _CARD_REVIEW_ACTIONS | {buttons.CHOOSE_ROWS, _ROW_ACTION}
"""Actions that show everything of a card, a batch or a row to anyone who may see the card."""
_INPUT_VERBS = {verb for verb in Verb if BUTTONS[verb].needs in (Needs.FORM, Needs.GRANT_TERMS, Needs.TEXT)}
"""Verbs that ask for an edit, for the terms of a grant, or for words."""
_MODAL_ACTIONS = (
    _REVIEW_ACTIONS | _INPUT_VERBS | {buttons.DECLINE_REASON, buttons.SHOW_CONTEXT, Verb.FOR_REAL.value}
)
"""Actions that open a modal instead of deciding."""
_SUBMIT_VERBS = {
    screens.REVIEW: Verb.APPROVE,
    screens.REVIEW_STEPS: Verb.APPROVE_STEPS,
    screens.REVIEW_REAL: Verb.FOR_REAL,
    screens.REVIEW_ALL: Verb.APPROVE_ALL,
}
"""The verbs that the submits of modals press, for the modals without an input."""


@dataclass(frozen=True, slots=True)
class Click:
    """A press, parsed from a ``block_actions`` body.

    The pressed message has the card. A pressed modal names the card in its metadata, a `ModalSubject`.
    """

    team: str
    user: str
    account_team: str  # the team of the person's account, as Slack names it; empty where it does not
    name: str
    place: SlackPlace | None  # the place of the card; None in App Home
    names: Names  # the name of the channel of that place, by its address
    ref: str | None  # the message with the card, as `post_card` named it
    trigger_id: str  # the key to open a modal
    action: str  # a `Verb`, or another action id without its ``nod:``
    value: str  # the value of the button: in most cases a proposal's id and round
    in_modal: bool = False  # True if the press came from a modal, which stays open below the next modal

    @classmethod
    def of(cls, body: Mapping[str, Any], element: Mapping[str, Any], team: str) -> Self:
        """Parse a press of a button or menu. ``team``: the installation that the press is for."""
        action, value = _read_element(element)
        channel = body.get("channel") or {}
        message = body.get("message") or {}
        container = body.get("container") or {}
        channel_id = str(channel.get("id") or "")
        ts = message.get("ts") or container.get("message_ts")
        thread = message.get("thread_ts") or container.get("thread_ts")
        if thread == ts:
            thread = None  # the root of a thread is itself in the channel
        place = SlackPlace(team, channel_id, thread) if channel_id else None
        ref = str(SlackPosted(team, channel_id, str(ts))) if channel_id and ts else None
        view = body.get("view") or {}
        is_modal = view.get("type") == "modal"
        if is_modal:
            subject = ModalSubject.unpack(str(view.get("private_metadata") or ""))
            ref = subject.ref or None
            if subject.address.startswith(f"{team}/"):
                place = SlackPlace.of(Address(NAME, subject.address))
        user = body.get("user") or {}
        return cls(
            team=team,
            user=str(user.get("id") or ""),
            account_team=str(user.get("team_id") or ""),
            name=str(user.get("name") or user.get("username") or ""),
            place=place,
            names=find_channel_name(team, channel_id, str(channel.get("name") or "")),
            ref=ref,
            trigger_id=str(body.get("trigger_id") or ""),
            action=action,
            value=value,
            in_modal=is_modal,
        )

    @property
    def address(self) -> Address | None:
        if self.place:
            return self.place.address
        return None

    def make_subject(self, proposal_id: str, round_: int) -> ModalSubject:
        """Return the subject of a modal that this press opens."""
        address = self.place.address.key if self.place else ""
        return ModalSubject(proposal_id, round_, address, self.ref or "")


def _read_element(element: Mapping[str, Any]) -> tuple[str, str]:
    """Return the action and the value of a button, of an entry of the ⋯ menu, or of a select."""
    action = str(element.get("action_id") or "").removeprefix("nod:")
    selected = str((element.get("selected_option") or {}).get("value") or "")
    match element.get("type"):
        case "overflow":
            action, _, value = selected.partition(":")
            return action, value
        case "static_select":
            return action, selected
    return action, str(element.get("value") or "")


@dataclass(frozen=True, slots=True)
class SlackPresses:
    """The handlers of buttons, menus and submitted modals."""

    workspaces: Workspaces
    people: People
    threads: FollowedThreads
    inbox: Inbox
    lookup: Lookup

    async def handle_click(self, body: Mapping[str, Any], element: Mapping[str, Any], team: str) -> None:
        """Handle a press that is acknowledged already, and tell the person of any failure.

        ``element``: the pressed button or menu.
        """
        click = Click.of(body, element, team)
        place = click.place
        action_id = str(element.get("action_id"))
        choice = read_choice(action_id)
        try:
            if action_id == MENTIONS_ACTION and place is not None:
                words = await self._press_mentions_button(click, place)
            elif click.action == buttons.SEND_COMMAND and place is None:  # in App Home
                words = await self._send_command(click)
            elif choice and place is not None:  # a button below an answer, which sends its own words
                words = await self._submit_choice(click, choice, place)
            else:
                words = await self._press_card(click)
        except ValueError:
            words = _NOT_FOUND_TEXT
        except ChannelError as error:  # such as a modal that came too late, or a refused file
            log.warning("press not answered", why=error.message)
            words = describe_for_presser(error)
        except Exception:
            log.exception("press failed")
            words = FAILURE_TEXT
        if not words:
            return
        try:
            await tell_person(self.workspaces, place, click.user, words, team)
        except Exception:
            log.exception("outcome of a press not delivered")

    async def _press_mentions_button(self, click: Click, place: SlackPlace) -> str:
        """Change whether Nod answers in a thread only when mentioned."""
        actor = await self._load_actor(click)
        if actor.outside:
            return _OUTSIDER_TEXT
        return await self.threads.handle_press(place)

    async def _send_command(self, click: Click) -> str:
        """Send the command of a button in App Home, and tell that person the answer. Returns no words."""
        actor = await self._load_actor(click)
        own_address = SlackPlace(click.team, click.user).address
        reply = await self.inbox(
            Command(actor, "nod", click.value, own_address, private=True, in_conversation=False)
        )
        words, link = reply.split_link()
        await tell_person(self.workspaces, None, click.user, words, click.team, link)
        return ""

    async def _submit_choice(self, click: Click, choice: str, place: SlackPlace) -> str:
        """Submit a choice button's words in the person's name, and return the reply for them."""
        actor = await self._load_actor(click)
        message = act_on_choice(
            choice, str(click.ref), actor, place.address, private=place.private, names=click.names
        )
        reply = await self.inbox(message)
        refusal_text = format_choice_reply(reply)
        if refusal_text:
            return refusal_text
        with translate_errors():
            client = await self.workspaces.client(place.team)
            await client.chat_postMessage(
                channel=place.channel,
                thread_ts=place.thread,
                text=escape(f"{actor.label}: {choice}"),
                blocks=[blocks.context(f"{actor.label}: {choice}")],
            )
        return ""

    async def _press_card(self, click: Click) -> str:
        """Carry out a press on a card or in a modal: open a modal, or hand the press to the core.

        Raises ValueError for a button that is not Nod's, and for a group with a card that this person may not
        see.
        """
        proposal_id, round_ = buttons.parse_value(click.value)
        actor = await self._load_actor(click)
        together = not click.in_modal  # in a message a button is about the batch, in a modal about one row
        card, address = await self._find_card(proposal_id, actor, click.address, click.ref, together=together)
        if card is None:
            return _NOT_FOUND_TEXT

        action = _replace_by_review(click.action, card, address)
        if action in _MODAL_ACTIONS:
            return await self._open_modal(click, actor, card, action)
        if action == Verb.APPROVE_ALL:
            if card.group is None:  # only the first card of a group has the button
                return _NOT_FOUND_TEXT
            # a button of an earlier round shows nothing first: the core refuses the press as outdated
            if card.batch and round_ == card.round and not cards.render(card).shows_all:
                return await self._open_modal(click, actor, card, buttons.REVIEW)
            unread_cards = []
            if round_ == card.group.round:
                unread_cards = await self._list_cards_to_review(card.group, actor, address)
            if unread_cards:
                subject = click.make_subject(proposal_id, round_)
                return await self._open_group_review(click, actor, unread_cards, subject)

        press = Press(
            actor, Verb(action), proposal_id, round_, address=address, ref=click.ref, names=click.names
        )
        reply = await self.inbox(press)
        if click.place and reply.on_cards:
            return ""
        return reply.text

    async def _load_actor(self, click: Click) -> Actor:
        return await self.people.load_actor(click.team, click.user, click.account_team, name=click.name)

    async def _find_card(
        self,
        proposal_id: str,
        actor: Actor,
        address: Address | None,
        ref: str | None = None,
        *,
        together: bool = False,
    ) -> tuple[Card | None, Address | None]:
        """Return the card, None if this person may not see it, and the address where it was found.

        A person's own chat with Nod is also known by their user id, so that address is tried, too.
        ``together``: for a row of a batch, return the card of the whole batch.
        """
        card = await self.lookup.card(proposal_id, actor, address, ref, together=together)
        if card is not None or address is None:
            return card, address
        place = SlackPlace.of(address)
        if place.private and place.thread is None:
            address = Address(actor.channel, actor.key)
            card = await self.lookup.card(proposal_id, actor, address, ref, together=together)
        return card, address

    async def _list_cards_to_review(self, group: Group, actor: Actor, address: Address | None) -> list[Card]:
        """Return all cards of a group, to be shown in full before they are approved.

        The list is empty if each posted card shows everything already. Raises ValueError if a card is not for
        this person.
        """
        group_cards = []
        for proposal_id in group.members:
            card, _ = await self._find_card(proposal_id, actor, address)
            if card is None:
                raise ValueError("one of them is not for this person")
            group_cards.append(card)
        if address is not None and all(cards.render(card).shows_all for card in group_cards):
            return []
        return group_cards

    async def _open_modal(self, click: Click, actor: Actor, card: Card, action: str) -> str:
        """Open the modal of an action, or return why this person may not open it."""
        subject = click.make_subject(card.proposal_id, card.round)
        if action in _REVIEW_ACTIONS:
            return await self._open_review(click, actor, card, action)
        if action == buttons.SHOW_CONTEXT:
            words = await self.lookup.context(card.proposal_id, actor, click.address)
            if words is None:
                return CONTEXT_NOT_YOURS_TEXT
            return await self._show_modal(click, screens.make_context_modal(words, subject))
        if action == Verb.SIMILAR:
            return await self._open_grant_form(click, actor, card)

        verb = Verb.DECLINE if action == buttons.DECLINE_REASON else Verb(action)
        if not card.pending:
            return f"It is no longer open. {_NOT_AFFECTED_TEXT}"
        if not await self.lookup.may_press(card.proposal_id, actor, click.address, verb):
            return f"You may not decide this one. {_NOT_AFFECTED_TEXT}"
        if verb is Verb.FOR_REAL:
            review = screens.make_trial_review(card, subject)
            return await self._show_modal(click, review.view, review.file, card.tool_name)
        if verb is Verb.EDIT:
            return await self._open_edit_form(click, actor, card, subject)
        return await self._show_modal(click, screens.make_words_form(card, verb, subject))

    async def _open_edit_form(self, click: Click, actor: Actor, card: Card, subject: ModalSubject) -> str:
        arguments = await self.lookup.arguments(card.proposal_id, actor, click.address) or {}
        may_approve = await self.lookup.may_press(card.proposal_id, actor, click.address)
        form = screens.make_edit_form(card, arguments, subject, click.team, may_approve=may_approve)
        return await self._show_modal(click, form)

    async def _open_review(self, click: Click, actor: Actor, card: Card, action: str) -> str:
        """Open a modal with the full content of a card, of a batch or of a batch's row."""
        subject = click.make_subject(card.proposal_id, card.round)
        may_approve = await self.lookup.may_press(card.proposal_id, actor, click.address)
        if card.batch:
            review = _review_batch(card, subject, action, may_press=may_approve)
        elif action not in _CARD_REVIEW_ACTIONS:
            review = screens.make_row_review(card, subject, may_approve=may_approve)
        elif action == buttons.REVIEW_STEPS and card.kind.has_steps:
            words = buttons.describe_steps(card)
            review = screens.make_plan_review(card, subject, words, may_approve=may_approve)
        else:
            review = screens.make_review(card, subject, may_approve=may_approve)
        answer = await self._show_modal(click, review.view, review.file, card.tool_name)
        await self.lookup.note_opened(card.proposal_id, actor)
        return answer

    async def _open_group_review(
        self, click: Click, actor: Actor, group_cards: Sequence[Card], subject: ModalSubject
    ) -> str:
        """Open a modal with the full content of a group's cards, whose submit approves them."""
        review = screens.make_group_review(group_cards, subject, f"Approve all {len(group_cards)}")
        answer = await self._show_modal(click, review.view, review.file)
        for card in group_cards:
            await self.lookup.note_opened(card.proposal_id, actor)
        return answer

    async def _open_grant_form(self, click: Click, actor: Actor, card: Card) -> str:
        """Open the modal of "approve similar", or return why this person can't give a grant."""
        address = click.address
        scopes = screens.list_fitting_scopes(await self.lookup.ladder(card.proposal_id, actor, address))
        audiences = await self.lookup.reaches(card.proposal_id, actor, address)
        if not (scopes and audiences):
            may_press = await self.lookup.may_press(card.proposal_id, actor, address)
            return f"{_explain_no_grant(card, may_press=may_press)} {_NOT_AFFECTED_TEXT}"
        # App Home, which has no address, does not show the change
        shows_change = address is None or not cards.render(card).shows_all
        subject = click.make_subject(card.proposal_id, card.round)
        review = screens.make_grant_form(card, subject, scopes, audiences, shows_change=shows_change)
        return await self._show_modal(click, review.view, review.file, card.tool_name)

    async def _show_modal(self, click: Click, view: dict[str, Any], file: str = "", name: str = "all") -> str:
        """Open a modal. Returns an empty reply: the modal says all.

        ``file``: the full text if the modal can't hold it, which is posted as a file; else empty. ``name``:
        the beginning of the file's name.
        """
        client = await self.workspaces.client(click.team)
        with translate_errors():
            async with limit_time(_TRIGGER_SECONDS):
                if click.in_modal:
                    await client.views_push(trigger_id=click.trigger_id, view=view)
                else:
                    await client.views_open(trigger_id=click.trigger_id, view=view)
            if file:
                place = click.place or SlackPlace(click.team, click.user)
                await upload(client, place, f"{name[:40]}.txt", file, title="Everything it does")
        return ""

    async def handle_submit(
        self, body: Mapping[str, Any], view: Mapping[str, Any], team: str
    ) -> dict[str, Any]:
        """Handle a modal's submit, and return Slack's acknowledgement; an empty one closes the modal."""
        try:
            return await self._take_submit(body, view, team)
        except ValueError:
            words = _NOT_FOUND_TEXT
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
        together = callback_id in _BATCH_MODALS
        card, address = await self._find_card(subject.proposal_id, actor, address, ref, together=together)
        # the place in the modal's metadata must belong to the installation that the submit came from
        is_of_other_team = address is not None and not subject.address.startswith(f"{team}/")
        if card is None or is_of_other_team:
            return _make_update("Not done", _NOT_FOUND_TEXT)

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
            return _make_update("Not done", _NOT_FOUND_TEXT)
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


def _replace_by_review(action: str, card: Card, address: Address | None) -> str:
    """Return "View all" in place of an approval of a card that does not show everything, else the action.

    In App Home, which has no address, a card never shows the steps of a plan.
    """
    if action == Verb.APPROVE and card.pending and not cards.render(card).shows_all:
        return buttons.REVIEW
    if action == Verb.APPROVE_STEPS and (address is None or not cards.render(card).shows_all):
        return buttons.REVIEW_STEPS
    return action


def _review_batch(card: Card, subject: ModalSubject, action: str, *, may_press: bool) -> screens.Review:
    if action == buttons.CHOOSE_ROWS:
        return screens.make_row_choice(card, subject)
    may_approve = may_press and Verb.APPROVE_ALL in card.verbs
    submit = card.button(Verb.APPROVE_ALL).label if may_approve else ""
    return screens.make_group_review([row.card for row in card.rows], subject, submit)


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


def _explain_no_grant(card: Card, *, may_press: bool) -> str:
    if not card.pending:
        return "It is no longer open."
    if not may_press:
        return "You may not decide this one."
    if card.level is Level.DESTRUCTIVE:
        return "What can't be undone asks each time, unless an admin allows grants for it."
    return "Calls like this can't be allowed in advance. Each is decided on its own."


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


def _make_update(title: str, words: str) -> dict[str, Any]:
    return {"response_action": "update", "view": screens.make_result(title, words)}
