"""The card that a click or a submit is about."""

from bot.channels.base import Lookup
from bot.channels.slack.places import SlackPlace
from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.people import Actor

NOT_FOUND_TEXT = "There is nothing here for you to decide. The proposal is not affected."


async def find_card(
    lookup: Lookup,
    proposal_id: str,
    actor: Actor,
    address: Address | None,
    ref: str | None = None,
    *,
    as_batch: bool = False,
) -> tuple[Card | None, Address | None]:
    """Return the card, None if this person may not see it, and the address where it was found.

    A person's own chat with Nod is also known by their user id, so that address is tried, too.
    ``as_batch``: for a row of a batch, return the card of the whole batch.
    """
    card = await lookup.card(proposal_id, actor, address, ref, together=as_batch)
    if card is not None or address is None:
        return card, address
    place = SlackPlace.of(address)
    if place.private and place.thread is None:
        address = Address(actor.channel, actor.key)
        card = await lookup.card(proposal_id, actor, address, ref, together=as_batch)
    return card, address
