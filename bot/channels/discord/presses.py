"""Buttons and modals of Discord: each press is checked with the core, and answered to the person alone.

A press on a card that does not show everything leads to the full content first, whatever the button said.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.approvals.lookup.context import NOT_YOURS
from bot.channels.base import Lookup
from bot.channels.discord import forms
from bot.channels.discord.card import (
    APPROVING,
    GROUP,
    choosing,
    in_rows,
    lay_out_rows,
    make_labelled_button,
    render,
)
from bot.channels.discord.inbound import WINDOW, Interaction
from bot.channels.discord.places import BUTTON, CONTENT
from bot.channels.discord.text import OUTLINER, cut, fence, fit, literal, width
from bot.domain.batches import PAGE, Picked, format_split_label, page_of
from bot.domain.cards import Card, everything
from bot.domain.chat import Answer, Inbox, Press, Reply, make_said, read_choice, refusal
from bot.domain.forms import fields_of, leaves_out
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.value_text import label_of
from bot.domain.verbs import CONTEXT, ButtonMark, Needs, Verb, Way

_UNREADABLE = "This button no longer works."
_NOT_HERE = "There is nothing here for you to decide."
_NOT_OPEN = "It is no longer open, or you may not decide it."
_NO_LADDER = "Calls like this can't be allowed in advance, or not by you."
_CHANGED = "One of these has changed. Choose again on the card."
_OF_ROWS = frozenset({Way.CHOOSE, Way.TOGGLE, Way.LOOK, Way.DECIDE})
_OF_A_ROW = frozenset({Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.SIMILAR, Verb.RETRY, Verb.UNDO})
_FEW = 1500  # units of a text that is shown in place; a longer one is a file


@dataclass(frozen=True, slots=True)
class Display:
    """The response to the person who acted. ``replaces``: it replaces the message with the pressed button."""

    words: str = ""  # CommonMark; empty: nothing to tell
    rows: Sequence[Mapping[str, Any]] = ()
    file: str = ""
    window: Mapping[str, Any] | None = None
    public: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class DiscordPresses:
    """The handler of interactions, which returns the response to each."""

    inbox: Inbox
    lookup: Lookup

    async def handle(self, call: Interaction) -> Display:
        """Handle a press or a submitted modal.

        Raises KeyError or ValueError for a modal that Nod did not make.
        """
        pressed = str(call.data.get("custom_id"))
        words = read_choice(pressed)
        if words:
            return await self._say(call, words)
        data = ButtonMark.parse(pressed)
        if data is None or (call.kind == WINDOW) is not (data.way is Way.SENT):
            return Display(_UNREADABLE)
        at = call.place.address
        together = data.way in _OF_ROWS or data.verb in GROUP
        card = await self.lookup.card(data.id, call.actor, at, call.ref, together=together)
        if card is None:
            return Display(_NOT_HERE)
        press = Press(call.actor, data.verb, data.id, data.round, address=at, ref=call.ref, names=call.names)
        if data.way is Way.SENT:
            return await self._take_form(press, card, data.page, call.filled)
        if data.way in _OF_ROWS:
            return await self._choose(press, card, data)
        if data.way is Way.CONTEXT:
            led = await self.lookup.context(data.id, call.actor, at)
            if led is None:
                return Display(NOT_YOURS)
            return _display_text(led, CONTEXT)
        return await self._first(press, card, data) or await self._press(press, data.way)

    async def _say(self, call: Interaction, words: str) -> Display:
        """Submit a choice button's words in the person's name, and show everybody who chose."""
        at, private = call.place.address, bool(call.place.person)
        message = make_said(words, call.ref or call.id, call.actor, at, private=private, names=call.names)
        told = refusal(await self.inbox(message))
        echo = f"**{literal(call.actor.label)}:** {literal(words)}"
        return Display(told or echo, public=not told)

    async def _press(self, press: Press, way: Way = Way.PRESS) -> Display:
        """Submit the press, and return the response; empty where the card shows it."""
        reply = await self.inbox(press)
        if way is Way.READ:
            return Display(reply.text or "Done.", replaces=True)
        told = reply.on_cards and press.verb not in (Verb.SIMILAR, Verb.APPROVE_STEPS)
        return Display("" if told else reply.text)

    async def _first(self, press: Press, card: Card, data: ButtonMark) -> Display | None:
        """Return the step before the press: a modal, or the full content of the card; None for none."""
        verb, needs, unread = data.verb, card.button(data.verb).needs, data.way is not Way.READ
        if data.way in (Way.VIEW, Way.ROW):
            verbs = _OF_A_ROW if data.way is Way.ROW else APPROVING - GROUP
            return await self._everything(press, [card], card, GROUP if card.batch else verbs)
        each = Verb.UNDO if verb is Verb.UNDO_ALL else verb
        may = await self.lookup.may_press(data.id, press.actor, press.address, each)
        sure = card.button(verb).sure if unread and may else None
        words = f"{sure.question} {sure.more}" if sure else ""
        if sure and each is Verb.UNDO:
            return Display(
                literal(words), lay_out_rows([[make_labelled_button(card, verb, Way.READ, sure.yes)]])
            )
        if unread and needs is Needs.CONFIRM and (may or verb not in APPROVING):
            return await self._everything(press, [card], card, {verb}, words)
        if unread and verb in APPROVING and (hidden := await self._find_hidden(press, card)):
            return await self._everything(press, hidden, card, {verb})
        if needs is Needs.WORDS or data.way is Way.WHY:
            if not may:
                return Display(_NOT_OPEN)
            return Display(window=forms.reason(card, verb))
        if needs is Needs.LADDER:
            ladder = await self.lookup.ladder(data.id, press.actor, press.address)
            reaches = await self.lookup.reaches(data.id, press.actor, press.address)
            able = ladder and reaches
            if able:
                return Display(window=forms.ask_grant(card, ladder, reaches))
            return Display(_NO_LADDER)
        if needs is Needs.FORM:
            return await self._form(press, card, data)
        return None

    async def _find_hidden(self, press: Press, card: Card) -> list[Card]:
        """Return the cards of a press if any of them does not show everything."""
        about = [card]
        if press.verb is Verb.APPROVE_ALL and card.group:
            found = [await self.lookup.card(each, press.actor, press.address) for each in card.group.members]
            about = [each for each in found if each]
        if any(each.pending and not render(each).whole for each in about):
            return about
        return []

    async def _everything(
        self,
        press: Press,
        cards: Sequence[Card],
        under: Card,
        verbs: Collection[Verb],
        first: str = "",
    ) -> Display:
        """Return the full content of these cards with the next buttons, below the note ``first``."""
        said = "\n\n".join(filter(None, (first, *map(everything, cards))))
        may = await self.lookup.may_press(under.proposal_id, press.actor, press.address) or not under.pending
        offered = [verb for verb in under.verbs if may and verb in verbs]
        asks = not first and under.button(Verb.RETRY).sure  # as on a card
        ways = {verb: Way.PRESS if asks and verb is Verb.RETRY else Way.READ for verb in offered}
        rows = lay_out_rows([[make_labelled_button(under, verb, way) for verb, way in ways.items()]])
        return _display_text(said, first or "Everything it does:", rows)

    async def _choose(self, press: Press, card: Card, data: ButtonMark) -> Display:
        """Show the rows of a batch to pick from, or decide those that are picked."""
        if card.batch is None or not (card.pending or data.way is Way.LOOK):
            return Display(_NOT_OPEN)
        if data.round != card.round:
            return Display(_CHANGED, replaces=data.way is not Way.CHOOSE)
        try:
            picked = Picked.parse(data.picked) if data.picked else Picked.all_of(card)
        except ValueError:
            return Display(_UNREADABLE)
        if data.way is not Way.DECIDE:
            toggles = data.way is Way.TOGGLE
            page = data.page // PAGE if toggles else data.page
            if toggles:
                picked = picked.toggle(data.page)
            rows = choosing(card, page, picked, looks=data.way is Way.LOOK)
            part, _, _ = page_of(card, page)
            return Display(fit(OUTLINER.card(part).made, CONTENT), rows, replaces=bool(data.picked))
        declines = data.verb is Verb.APPROVE_ALL
        if not (data.page or render(card).whole):
            approve, others = picked.split_rows(card)
            label = format_split_label(len(approve), len(others) if declines else 0)
            button = make_labelled_button(card, data.verb, Way.DECIDE, label, 1, data.picked)
            return Display("Everything it does:", lay_out_rows([[button]]), everything(card))
        choice = picked.choice(card, press.actor, data.round, press.address, declines=declines)
        reply = await self.inbox(choice)
        return Display(reply.text, replaces=reply.answer is Answer.ACCEPTED)

    async def _arguments(self, press: Press, card: Card) -> Mapping[str, Any] | None:
        asked = self.lookup.arguments(press.proposal_id, press.actor, press.address)
        return await asked if card.pending else None

    async def _form(self, press: Press, card: Card, data: ButtonMark) -> Display:
        arguments = await self._arguments(press, card)
        if arguments is None:
            return Display(_NOT_OPEN)
        pages = forms.pages(fields_of(card.schema, arguments))
        if len(pages) == 1 or data.way is Way.FILL:
            return Display(window=forms.form(card, data.page, pages[data.page]))
        names = (cut(", ".join(field.label for field in page), BUTTON) for page in pages)
        parts = [
            make_labelled_button(card, Verb.EDIT, Way.FILL, name, page) for page, name in enumerate(names)
        ]
        asked = f"Which part? {leaves_out(card.schema, arguments)}".strip()
        return Display(asked if parts else "It has nothing to edit here.", lay_out_rows(in_rows(parts)))

    async def _take_form(self, press: Press, card: Card, page: int, sent: Mapping[str, Any]) -> Display:
        if press.verb is Verb.EDIT:
            return await self._keep_edit(press, card, page, sent)
        if press.verb is not Verb.SIMILAR:
            return await self._press(replace(press, reason=str(sent[forms.REASON]).strip() or None))
        rung, whose, lasting = (sent[name][0] for name in (forms.RUNG, forms.REACH, forms.LASTING))
        chosen = replace(
            press, rung=GrantScope(rung), reach=GrantAudience(whose), lasting=GrantDuration(lasting)
        )
        return await self._press(chosen)

    async def _keep_edit(self, press: Press, card: Card, page: int, sent: Mapping[str, Any]) -> Display:
        """Store a submitted edit, and return the new card for this person to decide."""
        original = await self._arguments(press, card)
        if card.round != press.round or original is None:
            return await self._press(press)
        fields = forms.pages(fields_of(card.schema, original))[page]
        arguments, faults = forms.read_form(fields, sent, original)
        reply = Reply(Answer.INVALID, "", fields=faults)
        if not faults:
            reply = await self.inbox(replace(press, arguments=arguments))
        if reply.answer is not Answer.ACCEPTED:
            said = [f"{label_of(name)}: {fault}" for name, fault in reply.fields.items()] or [reply.text]
            return Display(fit("\n".join(["Nothing was changed.", *said]), CONTENT))
        now = await self.lookup.card(press.proposal_id, press.actor, press.address)
        if now is None or Verb.APPROVE not in now.verbs or not render(now).whole:
            return Display(reply.text)
        label = "" if now.kind.is_answer else "Approve as edited"
        return Display(reply.text, lay_out_rows([[make_labelled_button(now, Verb.APPROVE, Way.READ, label)]]))


def _display_text(text: str, head: str, rows: Sequence[Mapping[str, Any]] = ()) -> Display:
    if width(text) <= _FEW:
        return Display(fence(text), rows)
    return Display(head, rows, text)
