"""Buttons and modals of Discord: each press is checked with the core, and answered to the person alone.

A card shows a proposal, or a batch: several calls in one table, each of which is a row. A button carries a
`ButtonMark` with its verb, such as approve, and its way. The way is the step that a press on the button
takes, or the place where the button is:

- `Way.PRESS`: on a card; a question, a modal (a form) or the full content may have to come first
- `Way.READ`: below a question or the full content, so the verb counts now
- `Way.VIEW` and `Way.ROW`: shows the full content of the card, or of one row
- `Way.WHY` and `Way.FILL`: opens the modal for a reason, or for one page of the edit form
- `Way.SUBMIT`: a submitted modal
- `Way.CONTEXT`: shows what led to the proposal
- `Way.CHOOSE`, `Way.TOGGLE`, `Way.SHOW_ROWS`, `Way.DECIDE`: in the picker, which shows the rows of a batch

Where a card does not show everything, a press that approves it shows the full content first. Each handler
returns a `Display`, the response to the person, which ``channel.py`` sends.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.approvals.lookup.context import CONTEXT_NOT_YOURS_TEXT
from bot.channels.base import Lookup
from bot.channels.discord import forms
from bot.channels.discord.card import (
    APPROVING_VERBS,
    GROUP_VERBS,
    lay_out_rows,
    make_labelled_button,
    make_picker_rows,
    render,
    split_rows,
)
from bot.channels.discord.inbound import MODAL, Interaction
from bot.channels.discord.places import MAX_BUTTON_UNITS, MAX_CONTENT_UNITS
from bot.channels.discord.text import CARD_RENDERER, cut_label, cut_to_units, fence, literal, width
from bot.domain.batch_picks import ROWS_PER_PAGE, Picked, format_split_label, page_of
from bot.domain.call_text import format_call_and_outcome
from bot.domain.cards import Card
from bot.domain.chat import Answer, Inbox, Press, Reply, act_on_choice, format_choice_reply, read_choice
from bot.domain.forms import describe_left_out, fields_of
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.value_text import label_of
from bot.domain.verbs import CONTEXT_LABEL, ButtonMark, Needs, Verb, Way

_UNREADABLE_TEXT = "This button no longer works."
_NOT_HERE_TEXT = "There is nothing here for you to decide."
_NOT_OPEN_TEXT = "It is no longer open, or you may not decide it."
_NO_GRANT_TEXT = "Calls like this can't be allowed in advance, or not by you."
_CHANGED_TEXT = "One of these has changed. Choose again on the card."
_PICKER_WAYS = frozenset({Way.CHOOSE, Way.TOGGLE, Way.SHOW_ROWS, Way.DECIDE})
_SINGLE_APPROVING_VERBS = APPROVING_VERBS - GROUP_VERBS
"""Verbs that approve one proposal; `GROUP_VERBS` decide all proposals of a batch or group."""
_ROW_VERBS = frozenset({Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.SIMILAR, Verb.RETRY, Verb.UNDO})
"""Verbs with a button below one row of a batch that is shown by itself."""
_BELOW_FULL_CONTENT = 1
"""The ``page`` of a `Way.DECIDE` button that is below the full content of the batch; on others it is 0."""
_INLINE_UNITS = 1500  # a longer text is sent as a file


@dataclass(frozen=True, slots=True)
class Display:
    """The response to the person who acted."""

    text: str = ""  # CommonMark; empty for no message
    rows: Sequence[Mapping[str, Any]] = ()  # the rows of buttons
    file: str = ""  # the content of a text file
    modal: Mapping[str, Any] | None = None  # the modal to open
    is_public: bool = False  # everyone in the channel sees it
    replaces_message: bool = False  # it replaces the message with the pressed button


@dataclass(frozen=True, slots=True)
class DiscordPresses:
    """The handler of interactions, which returns the response to each."""

    inbox: Inbox
    lookup: Lookup

    async def handle(self, interaction: Interaction) -> Display:
        """Handle a press or a submitted modal.

        Raises KeyError or ValueError for a modal that Nod did not make.
        """
        custom_id = str(interaction.data.get("custom_id"))
        choice = read_choice(custom_id)
        if choice:
            return await self._submit_choice(interaction, choice)
        mark = ButtonMark.parse(custom_id)
        if mark is None:
            return Display(_UNREADABLE_TEXT)
        is_from_modal = interaction.kind == MODAL
        if is_from_modal != (mark.way is Way.SUBMIT):
            return Display(_UNREADABLE_TEXT)

        address = interaction.place.address
        wants_batch_card = mark.way in _PICKER_WAYS or mark.verb in GROUP_VERBS  # else the card of a row
        card = await self.lookup.card(
            mark.id, interaction.actor, address, interaction.ref, together=wants_batch_card
        )
        if card is None:
            return Display(_NOT_HERE_TEXT)
        press = Press(
            interaction.actor,
            mark.verb,
            mark.id,
            mark.round,
            address=address,
            ref=interaction.ref,
            names=interaction.channel_names,
        )

        if mark.way is Way.SUBMIT:
            return await self._take_form(press, card, mark.page, interaction.modal_values)
        if mark.way in _PICKER_WAYS:
            return await self._pick_rows(press, card, mark)
        if mark.way is Way.CONTEXT:
            return await self._show_context(press)
        earlier_step = await self._find_earlier_step(press, card, mark)
        if earlier_step is not None:
            return earlier_step
        return await self._submit(press, mark.way)

    async def _show_context(self, press: Press) -> Display:
        """Return the turn that led to the proposal, for people who may decide it."""
        context = await self.lookup.context(press.proposal_id, press.actor, press.address)
        if context is None:
            return Display(CONTEXT_NOT_YOURS_TEXT)
        return _display_text(context, CONTEXT_LABEL)

    async def _submit_choice(self, interaction: Interaction, choice: str) -> Display:
        """Submit a choice button's words in the person's name, and show in the channel who chose what."""
        message = act_on_choice(
            choice,
            interaction.ref or interaction.id,
            interaction.actor,
            interaction.place.address,
            private=bool(interaction.place.person),
            names=interaction.channel_names,
        )
        refused = format_choice_reply(await self.inbox(message))
        echo = f"**{literal(interaction.actor.label)}:** {literal(choice)}"
        return Display(refused or echo, is_public=not refused)

    async def _submit(self, press: Press, way: Way = Way.PRESS) -> Display:
        """Submit the press, and return the core's reply; empty if the card already says all of it."""
        reply = await self.inbox(press)
        if way is Way.READ:
            return Display(reply.text or "Done.", replaces_message=True)
        # the reply to these verbs names the grant, which no card shows
        names_grant = press.verb in (Verb.SIMILAR, Verb.APPROVE_STEPS)
        if reply.on_cards and not names_grant:
            return Display()
        return Display(reply.text)

    async def _find_earlier_step(self, press: Press, card: Card, mark: ButtonMark) -> Display | None:
        """Return the step before the press counts: a question, a modal, the full content, or a refusal.

        None if the press counts now.
        """
        verb = mark.verb
        if mark.way in (Way.VIEW, Way.ROW):
            if card.batch:
                verbs = GROUP_VERBS
            elif mark.way is Way.ROW:
                verbs = _ROW_VERBS
            else:
                verbs = _SINGLE_APPROVING_VERBS
            return await self._show_everything(press, [card], card, verbs)
        # the core judges who may UNDO, and has no separate right to UNDO_ALL
        single_verb = Verb.UNDO if verb is Verb.UNDO_ALL else verb
        may_press = await self.lookup.may_press(mark.id, press.actor, press.address, single_verb)

        if mark.way is not Way.READ:  # a button below the question or the full content shows neither again
            question = await self._find_question_or_content(press, card, may_press=may_press)
            if question is not None:
                return question
        return await self._find_modal(press, card, mark, may_press=may_press)

    async def _find_question_or_content(self, press: Press, card: Card, *, may_press: bool) -> Display | None:
        """Return the question or the full content that must come before a press; None if neither must."""
        verb = press.verb
        button = card.button(verb)
        # who may not press is refused by the core without a question
        question = button.confirmation if may_press else None
        text = f"{question.question} {question.warning}" if question else ""
        if question and verb in (Verb.UNDO, Verb.UNDO_ALL):
            confirm = make_labelled_button(card, verb, Way.READ, question.yes)
            return Display(literal(text), lay_out_rows([[confirm]]))
        if button.needs is Needs.CONFIRM and (may_press or verb not in APPROVING_VERBS):
            return await self._show_everything(press, [card], card, {verb}, text)
        if verb in APPROVING_VERBS:
            cards = await self._list_cards_to_show_first(press, card)
            if cards:
                return await self._show_everything(press, cards, card, {verb})
        return None

    async def _find_modal(
        self, press: Press, card: Card, mark: ButtonMark, *, may_press: bool
    ) -> Display | None:
        """Return the modal for what the verb needs, or a refusal; None if the verb needs nothing."""
        verb = mark.verb
        needs = card.button(verb).needs
        if needs is Needs.TEXT or mark.way is Way.WHY:
            if not may_press:
                return Display(_NOT_OPEN_TEXT)
            return Display(modal=forms.ask_words(card, verb))
        # a grant lets similar calls run: the person chooses its scope and its audience
        if needs is Needs.GRANT_TERMS:
            scopes = await self.lookup.ladder(mark.id, press.actor, press.address)
            audiences = await self.lookup.reaches(mark.id, press.actor, press.address)
            if not (scopes and audiences):
                return Display(_NO_GRANT_TEXT)
            return Display(modal=forms.ask_grant(card, scopes, audiences))
        if needs is Needs.FORM:
            return await self._open_form(press, card, mark)
        return None

    async def _list_cards_to_show_first(self, press: Press, card: Card) -> list[Card]:
        """Return the cards whose full content must come before a press that approves.

        These are all cards that the press approves, if any of them does not show everything, else none. With
        `Verb.APPROVE_ALL` the press approves all members of the group.
        """
        cards = [card]
        if press.verb is Verb.APPROVE_ALL and card.group:
            members = card.group.approvable_ids
            member_cards = [await self.lookup.card(member, press.actor, press.address) for member in members]
            cards = [member_card for member_card in member_cards if member_card]
        hides_something = any(
            member_card.pending and not render(member_card).shows_all for member_card in cards
        )
        return cards if hides_something else []

    async def _show_everything(
        self,
        press: Press,
        cards: Sequence[Card],
        pressed_card: Card,
        verbs: Collection[Verb],
        note: str = "",
    ) -> Display:
        """Return the full content of these cards, below ``note``, with buttons of the pressed card.

        Only the verbs in ``verbs`` get a button. Features are told that the person opened the content.
        """
        text = "\n\n".join(filter(None, (note, *map(format_call_and_outcome, cards))))
        for card in cards:
            await self.lookup.note_opened(card.proposal_id, press.actor)
        may_press = await self.lookup.may_press(pressed_card.proposal_id, press.actor, press.address)
        buttons = []
        if may_press or not pressed_card.pending:
            retry_question = pressed_card.button(Verb.RETRY).confirmation
            for verb in pressed_card.verbs:
                if verb not in verbs:
                    continue
                # Retry asks its question first, as on a card, unless ``note`` is that question
                must_ask_retry = verb is Verb.RETRY and retry_question is not None and not note
                way = Way.PRESS if must_ask_retry else Way.READ
                buttons.append(make_labelled_button(pressed_card, verb, way))
        return _display_text(text, note or "Everything it does:", lay_out_rows([buttons]))

    async def _pick_rows(self, press: Press, card: Card, mark: ButtonMark) -> Display:
        """Show a page of a batch's rows to pick from, or decide the picked rows."""
        if card.batch is None or not (card.pending or mark.way is Way.SHOW_ROWS):
            return Display(_NOT_OPEN_TEXT)
        if mark.round != card.round:
            return Display(_CHANGED_TEXT, replaces_message=mark.way is not Way.CHOOSE)
        try:
            picked = Picked.parse(mark.picked) if mark.picked else Picked.all_of(card)
        except ValueError:
            return Display(_UNREADABLE_TEXT)
        if mark.way is not Way.DECIDE:
            page = mark.page
            if mark.way is Way.TOGGLE:  # here ``mark.page`` is the position of a row, not of a page
                picked = picked.toggle(mark.page)
                page = mark.page // ROWS_PER_PAGE
            rows = make_picker_rows(card, page, picked, opens_rows=mark.way is Way.SHOW_ROWS)
            page_card, _, _ = page_of(card, page)
            text = cut_to_units(CARD_RENDERER.card(page_card).text, MAX_CONTENT_UNITS)
            is_in_picker = bool(mark.picked)  # the card's button that opens the picker carries no rows
            return Display(text, rows, replaces_message=is_in_picker)
        return await self._decide_rows(press, card, mark, picked)

    async def _decide_rows(self, press: Press, card: Card, mark: ButtonMark, picked: Picked) -> Display:
        """Approve the picked rows, and decline or leave the others; the full content may come first."""
        declines_others = mark.verb is Verb.APPROVE_ALL  # with the verb APPROVE the others stay open
        was_shown_in_full = mark.page == _BELOW_FULL_CONTENT
        if not was_shown_in_full and not render(card).shows_all:
            approve, others = picked.split_rows(card)
            label = format_split_label(len(approve), len(others) if declines_others else 0)
            button = make_labelled_button(
                card, mark.verb, Way.DECIDE, label, _BELOW_FULL_CONTENT, mark.picked
            )
            return Display("Everything it does:", lay_out_rows([[button]]), format_call_and_outcome(card))
        decision = picked.make_decision(
            card, press.actor, mark.round, press.address, declines=declines_others
        )
        reply = await self.inbox(decision)
        return Display(reply.text, replaces_message=reply.answer is Answer.ACCEPTED)

    async def _load_arguments(self, press: Press, card: Card) -> Mapping[str, Any] | None:
        if not card.pending:
            return None
        return await self.lookup.arguments(press.proposal_id, press.actor, press.address)

    async def _open_form(self, press: Press, card: Card, mark: ButtonMark) -> Display:
        """Open the edit form, or ask which of its pages to open if it has several."""
        arguments = await self._load_arguments(press, card)
        if arguments is None:
            return Display(_NOT_OPEN_TEXT)
        pages = forms.split_pages(fields_of(card.schema, arguments))
        if not pages:
            return Display("It has nothing to edit here.")
        if len(pages) == 1:
            return Display(modal=forms.make_form(card, 0, pages[0]))
        # an edit may have removed the page that a button opens
        if mark.way is Way.FILL and mark.page < len(pages):
            return Display(modal=forms.make_form(card, mark.page, pages[mark.page]))
        buttons = []
        for number, fields in enumerate(pages):
            label = cut_label(", ".join(field.label for field in fields), MAX_BUTTON_UNITS)
            buttons.append(make_labelled_button(card, Verb.EDIT, Way.FILL, label, number))
        question = f"Which part? {describe_left_out(card.schema, arguments)}".strip()
        return Display(question, lay_out_rows(split_rows(buttons)))

    async def _take_form(self, press: Press, card: Card, page: int, values: Mapping[str, Any]) -> Display:
        """Take a submitted modal; ``values`` are its inputs by custom_id."""
        if press.verb is Verb.EDIT:
            return await self._take_edit(press, card, page, values)
        if press.verb is not Verb.SIMILAR:
            reason = str(values[forms.REASON]).strip()
            return await self._submit(replace(press, reason=reason or None))
        scope = GrantScope(values[forms.RUNG][0])
        audience = GrantAudience(values[forms.REACH][0])
        duration = GrantDuration(values[forms.LASTING][0])
        # `Press` calls the scope of a grant ``rung``, its audience ``reach`` and its duration ``lasting``
        return await self._submit(replace(press, rung=scope, reach=audience, lasting=duration))

    async def _take_edit(self, press: Press, card: Card, page: int, values: Mapping[str, Any]) -> Display:
        """Store a submitted edit, and return the reply, with a button that approves if the card allows it."""
        original = await self._load_arguments(press, card)
        if card.round != press.round or original is None:
            return await self._submit(press)  # the core refuses it, and says why
        fields = forms.split_pages(fields_of(card.schema, original))[page]
        arguments, faults = forms.read_form(fields, values, original)
        reply = Reply(Answer.INVALID, "", fields=faults)
        if not faults:
            reply = await self.inbox(replace(press, arguments=arguments))
        if reply.answer is not Answer.ACCEPTED:
            fault_lines = [f"{label_of(name)}: {fault}" for name, fault in reply.fields.items()]
            lines = ["Nothing was changed.", *(fault_lines or [reply.text])]
            return Display(cut_to_units("\n".join(lines), MAX_CONTENT_UNITS))
        new_card = await self.lookup.card(press.proposal_id, press.actor, press.address)
        if new_card is None or Verb.APPROVE not in new_card.verbs or not render(new_card).shows_all:
            return Display(reply.text)
        label = "" if new_card.kind.is_answer else "Approve as edited"
        approve = make_labelled_button(new_card, Verb.APPROVE, Way.READ, label)
        return Display(reply.text, lay_out_rows([[approve]]))


def _display_text(text: str, intro: str, rows: Sequence[Mapping[str, Any]] = ()) -> Display:
    """Return a response with a text: as a message, or as a file below ``intro`` if it is long."""
    if width(text) <= _INLINE_UNITS:
        return Display(fence(text), rows)
    return Display(intro, rows, text)
