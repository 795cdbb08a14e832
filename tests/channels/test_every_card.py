"""Whatever a model writes into a call: people can read all of it before they can approve it."""

from typing import Any

from bot.domain.cards import Card
from bot.tools.tool import FixedToolset, tool
from tests.kit import MakeNod, Nod, call


async def card_of_call(nod: Nod, name: str, **arguments: Any) -> Card:
    (proposal,) = await nod.asked(call(name, **arguments))
    return next(card for card in nod.chat.cards.values() if card.proposal_id == proposal.id)


def tools_for_notes() -> FixedToolset:
    @tool(summary="Keep the note “{title}”")
    async def keep(title: str, owner: str = "", tag: str = "", tags: list[str] | None = None) -> str:
        """Keep a note."""
        return title

    return FixedToolset("notes", (keep,))


async def test_a_title_that_has_the_words_of_other_fields_hides_none_of_them(make_nod: MakeNod) -> None:
    nod = make_nod()
    nod.toolset = tools_for_notes()
    nod.rebuild()
    title = "Order toner, see high and Sam"
    plain = await card_of_call(nod, "keep", title=title, owner="Sam", tag="high")
    assert [f.field for f in plain.shown_fields] == ["Owner", "Tag"]
    sly = "Order toner, see “high” and “Sam” and “payroll”"
    card = await card_of_call(nod, "keep", title=sly, owner="Sam", tag="high", tags=["payroll"])
    assert [f.field for f in card.shown_fields] == ["Title", "Owner", "Tag", "Tags"]
    same = await card_of_call(nod, "keep", title="Sam", owner="Sam", tag="high")
    assert [f.field for f in same.shown_fields] == ["Owner", "Tag"]
