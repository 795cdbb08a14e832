"""Clicks on buttons and menus of Slack: each is acknowledged in three seconds, and authorised by the core.

A click is a press of a button or of a menu's entry. It decides, or opens a modal: a window with a form that
the person submits (``screens.py``, ``submits.py``). A button only carries a verb, a proposal's id, and its
round. An edit raises the round, so that a press of an outdated button is noticed. The `Lookup` and the inbox
say if this person may see or decide the proposal, whatever the button says. Where a card does not show
everything, the modal "View all" has the button that approves.

A batch is several calls in one card, each of which is a row. A method that handles a click returns the reply
that only this person sees; it is empty where the card or a modal already says it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.approvals.lookup.context import CONTEXT_NOT_YOURS_TEXT
from bot.channels.base import Lookup
from bot.channels.slack import blocks, buttons, screens
from bot.channels.slack import card as cards
from bot.channels.slack.card_lookup import NOT_FOUND_TEXT, find_card
from bot.channels.slack.clicks import Click
from bot.channels.slack.client import limit_time
from bot.channels.slack.errors import describe_for_presser, translate_errors
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.posting import tell_person, upload
from bot.channels.slack.screens import ModalSubject
from bot.channels.slack.text import escape
from bot.channels.slack.threads import MENTIONS_ACTION, FollowedThreads
from bot.channels.slack.workspaces import Workspaces
from bot.domain.cards import Card, Group
from bot.domain.chat import (
    Address,
    Command,
    Inbox,
    Press,
    act_on_choice,
    format_choice_reply,
    read_choice,
)
from bot.domain.people import Actor
from bot.domain.risks import Level
from bot.domain.verbs import BUTTONS, Needs, Verb
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

FAILURE_TEXT = "Something went wrong on my side. Nothing was decided. Please try again."
_TRIGGER_SECONDS = 2.0  # a press can open a modal for 3 s
_OUTSIDER_TEXT = "I can't tell that you are of this team. Nothing was changed."
_NOT_AFFECTED_TEXT = "The proposal is not affected."
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


@dataclass(frozen=True, slots=True)
class SlackPresses:
    """The handler of clicks on buttons and menus."""

    workspaces: Workspaces
    people: SlackPeople
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
            words = NOT_FOUND_TEXT
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
        if actor.is_outsider:
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
            client = await self.workspaces.get_client(place.team)
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
        as_batch = not click.in_modal  # in a message a button is about the batch, in a modal about one row
        card, address = await find_card(
            self.lookup, proposal_id, actor, click.address, click.ref, as_batch=as_batch
        )
        if card is None:
            return NOT_FOUND_TEXT

        action = _replace_by_review(click.action, card, address)
        if action in _MODAL_ACTIONS:
            return await self._open_modal(click, actor, card, action)
        if action == Verb.APPROVE_ALL:
            if card.group is None:  # only the first card of a group has the button
                return NOT_FOUND_TEXT
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

    async def _list_cards_to_review(self, group: Group, actor: Actor, address: Address | None) -> list[Card]:
        """Return all cards of a group, to be shown in full before they are approved.

        The list is empty if each posted card shows everything already. Raises ValueError if a card is not for
        this person.
        """
        group_cards = []
        for proposal_id in group.approvable_ids:
            card, _ = await find_card(self.lookup, proposal_id, actor, address)
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
        client = await self.workspaces.get_client(click.team)
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


def _explain_no_grant(card: Card, *, may_press: bool) -> str:
    if not card.pending:
        return "It is no longer open."
    if not may_press:
        return "You may not decide this one."
    if card.level is Level.DESTRUCTIVE:
        return "What can't be undone asks each time, unless an admin allows grants for it."
    return "Calls like this can't be allowed in advance. Each is decided on its own."
