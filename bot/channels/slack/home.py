"""App Home: what waits for you, what you asked for, how things ended. Pure, from an `Overview`."""

from bot.channels.slack import blocks as b
from bot.channels.slack import text
from bot.channels.slack.blocks import Block, Line, Run
from bot.channels.slack.card import MORE, REVIEW, VIEW, action_id, more, value_of
from bot.domain.cards import Action, Card
from bot.domain.chat import Overview, Verb
from bot.domain.proposals import Kind
from bot.domain.risk import Level

_EACH = 8  # cards per part: three parts of 8 with 3 blocks each stay below 100


def view(overview: Overview) -> Block:
    """Render the home tab of one person."""
    shown = [
        b.header("Waiting for you"),
        *_part(overview.waiting, "Nothing waits for you.", decide=True),
        b.divider(),
        b.header("You asked for"),
        *_part(overview.asked, "Nothing of yours is open.", cancel=True),
        b.divider(),
        b.header("Lately"),
        *_part(overview.recent, "Nothing yet. Write to Nod in the Messages tab."),
    ]
    return {"type": "home", "blocks": shown}


def _part(cards: tuple[Card, ...], empty: str, *, decide: bool = False, cancel: bool = False) -> list[Block]:
    if not cards:
        return [b.context(empty)]
    shown: list[Block] = []
    for card in cards[:_EACH]:
        shown += _entry(card, decide=decide, cancel=cancel)
    if len(cards) > _EACH:
        shown.append(b.context(f"… and {len(cards) - _EACH} more."))
    return shown


def _entry(card: Card, *, decide: bool, cancel: bool) -> list[Block]:
    title = text.cut(text.link_text(card.title) or card.tool_name, 300)[0]
    sign = "🔴 " if card.level is Level.DESTRUCTIVE else ""
    under = f"{sign}{text.cut(card.outcome, 200)[0]} Asked by {text.cut(card.asked_by, 60)[0]}."
    value = value_of(card.proposal_id, card.round)
    shown = b.rich([Line((Run(title, "bold"),)), Line((Run(under),))])
    if card.pending:
        shown.append(b.moment("Expires", card.expires_at))
    elif card.decided_at:
        shown.append(b.moment("Decided", card.decided_at))
    buttons = []
    if decide and Action.APPROVE in card.actions:
        buttons += [
            b.button(
                "Read, then answer" if card.kind is Kind.QUESTION else "Read, then approve",
                action_id(REVIEW),
                value,
                "primary",
            ),
            b.button("Decline", action_id(Action.DECLINE), value, "danger"),
            b.overflow(MORE, [*more(card, whole=False), ("View all", f"{VIEW}:{value}")]),
        ]
    elif cancel and card.pending:
        sure = "It is taken back and will not run."
        buttons += [
            b.button("View all", action_id(VIEW), value),
            b.button("Cancel", action_id(Verb.CANCEL), value, "danger", sure),
        ]
    else:
        buttons.append(b.button("View all", action_id(VIEW), value))
    return [*shown, b.actions(*buttons)]
