"""A click in Slack, parsed: a press of a button or of a menu's entry, in a message, a modal or App Home."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bot.channels.slack.marks import find_channel_name
from bot.channels.slack.places import NAME, SlackPlace, SlackPosted
from bot.channels.slack.screens import ModalSubject
from bot.domain.chat import Address
from bot.domain.people import Names


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
