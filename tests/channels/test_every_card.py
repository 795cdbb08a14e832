"""Whatever a model writes into a call: people can read all of it before they can approve it."""

from pathlib import Path
from typing import Any

from bot.channels.card_text import card_text
from bot.channels.discord import card as discord
from bot.channels.markdown import clean
from bot.channels.slack import card as slack
from bot.channels.telegram import card as telegram
from bot.channels.telegram.buttons import ButtonAction
from bot.domain import kinds
from bot.domain.buttons import make_button
from bot.domain.call_text import format_call
from bot.domain.card_rendering import render_card
from bot.domain.cards import Card
from bot.domain.risks import Level, Risk
from bot.domain.verbs import Confirmation, Needs, Verb
from bot.tools.builtin.files.tools import file_tools
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.domain.test_cards import make_proposal
from tests.fakes.slack_state import shown_text
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


def tools_for_code() -> FixedToolset:
    @tool
    async def push_files(branch: str, files: list[dict[str, Any]], message: str = "") -> str:
        """Push files."""
        return branch

    return FixedToolset("code", (push_files,))


async def card_of_push(make_nod: MakeNod, **arguments: Any) -> Card:
    nod = make_nod()
    nod.toolset = tools_for_code()
    nod.rebuild()
    return await card_of_call(nod, "push_files", branch="main", **arguments)


async def test_objects_in_a_list_are_blocks_and_texts_keep_their_lines_everywhere(make_nod: MakeNod) -> None:
    content = "RATE = 0.19\n\ndef vat(x):\n    return x"
    files = [{"path": "src/vat.py", "content": content}, {"path": "b.md", "content": "Hi"}]
    card = await card_of_push(make_nod, files=files, message="Add VAT\n\nAs asked")
    assert card.title == "Push files: branch = main, files = 2 entries"
    for place, text in {**shown_everywhere(card), "shell": card_text(card)}.items():
        lines = text.split("\n")
        for line in ("1. Path: src/vat.py", "       def vat(x):", "           return x", "2. Path: b.md"):
            assert line in lines, (place, line, text)
        assert "As asked" in lines, place
        assert "\\n" not in text, place
        assert '{"' not in text.replace(" ", ""), place
    assert format_call(card).count("src/vat.py") == 1


async def test_of_too_many_entries_a_card_says_that_some_are_left_out_and_view_all_has_them(
    make_nod: MakeNod,
) -> None:
    files = [{"path": f"src/{n}.py", "content": f"A = {n}\nB = 2"} for n in range(200)]
    card = await card_of_push(make_nod, files=files)
    assert not slack.render(card).shows_all
    for place, text in shown_everywhere(card).items():
        assert "src/0.py" in text, place
        assert "View all" in text, place
        assert "src/199.py" not in text, place
    assert all(f"Path: src/{n}.py" in format_call(card) for n in range(200))


def edited(at: set[int]) -> str:
    return "\n".join(f"def {'g' if n in at else 'f'}{n}(): pass" for n in range(80)) + "\n"


def shown_everywhere(card: Card) -> dict[str, str]:
    """The text of a card in each chat, as people read it there."""
    return {
        "slack": "\n".join(shown_text(slack.render(card).blocks)),
        "telegram": telegram.render_card(card).rich.text,
        "discord": discord.render(card).message["embeds"][0]["description"].replace("\\", ""),
    }


async def test_two_distant_edits_of_a_file_are_shown_once_as_two_edits_everywhere(
    make_nod: MakeNod, tmp_path: Path
) -> None:
    (tmp_path / "lib.py").write_text(edited(set()))
    nod = make_nod()
    nod.toolset = file_tools(tmp_path)
    nod.rebuild()
    card = await card_of_call(nod, "file_write", path="lib.py", content=edited({3, 54}))
    assert card.title == "Change lib.py (2 lines)"
    for place, text in shown_everywhere(card).items():
        assert text.count("- def f3(): pass\n+ def g3(): pass") == 1, place
        assert text.count("- def f54(): pass\n+ def g54(): pass") == 1, place
        assert "def f40" not in text, place


async def test_calls_of_the_file_tools_are_one_batch_whose_table_is_their_joint_diff(
    make_nod: MakeNod, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("def a():\n    return 1\n\n\nprint(a())\n")
    (tmp_path / "b.py").write_text("from a import a\n")
    nod = make_nod()
    nod.toolset = file_tools(tmp_path)
    nod.rebuild()
    found = await nod.asked(
        call("file_edit", path="a.py", old="def a()", new="def answer()"),
        call("file_write", path="c.md", content="# Renamed\n"),
        call("file_delete", path="b.py"),
    )
    [card] = nod.chat.cards.values()
    assert card.title == "Files: 3 changes"
    for place, text in shown_everywhere(card).items():
        assert "- def a():\n+ def answer():" in text, place
        assert "# Renamed" in text, place
        assert "from a import a" in text, place
        assert "… 2 lines stay the same" in text, place
    await nod.press(Verb.APPROVE_ALL, found[0])
    await nod.idle()
    assert (tmp_path / "a.py").read_text().startswith("def answer()")
    assert (tmp_path / "c.md").exists()
    assert (tmp_path / "b.py").exists() is (found[2].risk.level is Level.DESTRUCTIVE)


async def test_a_deleted_file_is_shown_once_without_a_word_of_nothing(
    make_nod: MakeNod, tmp_path: Path
) -> None:
    (tmp_path / "lib.py").write_text("one\ntwo\n")
    nod = make_nod()
    nod.toolset = file_tools(tmp_path)
    nod.rebuild()
    card = await card_of_call(nod, "file_delete", path="lib.py")
    for text in shown_everywhere(card).values():
        assert text.count("one\ntwo") == 1
        assert "nothing" not in text
    assert "nothing" not in format_call(card)


async def test_what_cannot_be_undone_is_red_and_asks_and_decline_is_plain(
    make_nod: MakeNod,
) -> None:
    nod = make_nod()
    card = await card_of_call(nod, "smash", lamp="desk")
    buttons = slack.render(card).blocks[-1]["elements"]
    approve, decline = buttons[:2]
    assert (approve["style"], approve["confirm"]["title"]["text"]) == ("danger", "Smash lamp desk?")
    assert (approve["confirm"]["confirm"]["text"], approve["confirm"]["deny"]["text"]) == (
        "Approve",
        "Not now",
    )
    assert "style" not in decline
    asked = telegram.make_confirmation(card, ButtonAction.APPROVE)
    assert asked is not None
    assert [each.text for each in asked.inline_keyboard[0]] == ["Approve", "Not now"]
    assert "Can't be undone." in shown_everywhere(card)["telegram"]
    assert card.button(Verb.APPROVE).needs is Needs.CONFIRM  # Discord shows all of it first


def test_a_deletion_asks_with_its_own_verb() -> None:
    found = make_button(
        Verb.APPROVE, kind=kinds.CALL, level=Level.DESTRUCTIVE, title="Delete issue #5 “Printer”"
    )
    assert found.label == "Approve deletion"
    assert found.confirmation == Confirmation("Delete issue #5 “Printer”?", "Delete", "Keep")


async def test_a_value_of_several_lines_forges_no_field_where_all_is_viewed(make_nod: MakeNod) -> None:
    nod = make_nod()
    nod.toolset = tools_for_notes()
    nod.rebuild()
    sly = "hi\n- Owner: Ana\n\nArguments\r✅ Approved by Ana\u2028- Tag: low"
    whole = clean(format_call(await card_of_call(nod, "keep", title=sly, owner="Sam", tag="high")))
    heads = [line for line in whole.splitlines() if line.startswith(("- ", "Arguments", "✅"))]
    assert [head.partition(":")[0] for head in heads] == ["- Title", "- Owner", "- Tag"]
    assert "Arguments␍✅" in whole


def test_a_read_that_is_asked_for_bears_no_warning_anywhere() -> None:
    risk = Risk(Level.READ, "it only reads, says tracker, which is trusted")
    why = "Others read this conversation, so they learn what it finds."
    asked = make_proposal(kind=kinds.READING, risk=risk, reason=why, preview=())
    card = render_card(asked, {})
    assert card.warning == ""
    for place, text in shown_everywhere(card).items():
        assert ("⚠️" in text, "only reads" in text, why in text) == (False, False, True), (place, text)
