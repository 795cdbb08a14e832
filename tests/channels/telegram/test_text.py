"""CommonMark and hostile text as Telegram takes it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.channels.telegram.limits import TEXT_UNITS
from bot.channels.telegram.markdown import DEEPEST_LEVEL, from_markdown
from bot.channels.telegram.text import plain, split, style
from tests.fakes.telegram_rules import check_text
from tests.kit.examples import examples

_ADDRESS = re.compile(r"\]\([^\s]*")  # of a link, which may lead nowhere that is shown


def accepted(pieces):
    for piece in pieces:
        check_text(piece.text, [e.to_dict() for e in piece.entities])
    return pieces


def kinds(rich):
    return [(e.type, e.url) for e in rich.entities]


def test_ordinary_markup_becomes_entities():
    rich = from_markdown("**bold** and [docs](https://example.com/x)")
    assert kinds(rich) == [("bold", None), ("text_link", "https://example.com/x")]


@pytest.mark.parametrize(
    "source",
    [
        "![x](https://evil.example/?q=secret)",
        "[![x](https://evil.example/?q=1)](https://evil.example/?q=2)",
        "[x](tg://resolve?domain=evil)",
        "[x](TG://resolve?domain=evil)",
        "![👍](tg://emoji?id=5368324170671202286)",
        "tg://resolve?domain=evil",
        "tg&#58;//resolve?domain=evil",
        "`tg://resolve?domain=evil`",
        "[x](javascript:alert(1))",
        "| a |\n|---|\n| ![x](https://evil.example/) |",
        "\ue000[x](tg://y)",
    ],
)
def test_pictures_and_links_into_the_app_are_taken_out(source: str):
    rich = from_markdown(source)
    assert "://" not in "".join(str(url) for _, url in kinds(rich) if url and "q=2" not in url)
    assert "tg://" not in rich.text.lower()


@pytest.mark.parametrize(
    "source",
    [
        "if x < y and <div> is it",
        "<p>\n<b>hi</b>\n</p>",
        "It costs $5-$10.",
        "a || b || c",
        "[^1]: the price is 5",
        "[a]: https://example.com/x",
        "é $$y$$ <b>",
    ],
)
def test_nothing_that_was_written_is_hidden(source: str):
    assert from_markdown(source).text == source


_MARKUP = [
    *("- ", "* ", "1. ", "7) ", "> ", "# ", "    ", "- [ ] ", "```py\n", "~~~\n", "===\n", "---\n", "[x]: "),
    *("[", "**", "_", "~~", "`", "``", "![", "](https://e.example/a) ", '](/b "', '")', "](", ")", "<b>"),
    *("&amp;", "\\", "$", "||", "| ", "|-|\n", " | ", "\n", "\n\n", "  \n", "\t"),
]


def find_lost_words(source: str, words: list[str]) -> list[str]:
    """The words that no one sees: neither in the text, nor as the address of a link, nor as a language."""
    rich = from_markdown(source)
    seen = rich.text + " ".join(f"{each.url} {each.language}" for each in rich.entities)
    return [word for word in words if word not in seen]


@given(st.lists(st.one_of(st.sampled_from(_MARKUP), st.none()), max_size=60))
@examples(400)
def test_every_word_of_the_text_is_in_what_is_sent(parts: list[str | None]):
    words = [f"w{at}q" for at, part in enumerate(parts) if part is None]
    source = "".join(f"w{at}q " if part is None else part for at, part in enumerate(parts))
    hidden = {word for found in _ADDRESS.finditer(source) for word in found[0].split()}
    assert find_lost_words(source, [word for word in words if word not in hidden]) == []


@pytest.mark.parametrize("nesting", ["- ", "> ", "1. ", "> - ", "- > 1. "])
@pytest.mark.parametrize("times", [5, 15, 16, 17, 60, 200])
def test_what_lies_too_deep_is_shown_as_it_was_written(nesting: str, times: int):
    source = f"{nesting * times}first words\n\nsecond\n\n{nesting * times}`third` **words**"
    assert find_lost_words(source, ["first words", "second", "third", "words"]) == []
    assert from_markdown(f"**x**\n\n{source}").text.startswith("x\n\n")
    if times > DEEPEST_LEVEL:
        assert from_markdown(source).text == source


def test_lines_too_deep_keep_their_order_and_what_follows_is_read_again():
    deep = "\n".join(f"{'  ' * level}- level{level}" for level in range(30))
    text = from_markdown(f"{deep}\n\n**end**").text
    assert [int(found) for found in re.findall(r"level(\d+)", text)] == list(range(30))
    assert text.endswith("\n\nend")


def test_titles_of_links_and_all_that_names_a_code_block_are_shown():
    assert from_markdown('[a](https://e.example "its title") b').text == "a (its title) b"
    assert from_markdown("```py title=x\ncode\n```").text == "py title=x\ncode"


def test_a_table_with_more_cells_than_columns_stays_as_it_was_written():
    source = "| a | b |\n|---|---|\n| 1 | 2 | 3 |"
    assert from_markdown(source).text == source


def test_markup_in_code_stays_as_it_is():
    assert from_markdown("`<b> $x$ ||a||` and [^1]").text == "<b> $x$ ||a|| and [^1]"


def test_a_link_that_names_another_host_is_no_link():
    rich = from_markdown("[good.com](https://evil.com) and [README.md](https://good.com/README.md)")
    assert kinds(rich) == [("text_link", "https://good.com/README.md")]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("[Ana](mailto:ana@e.example) b", "Ana (ana@e.example) b"),
        ("[ana@e.example](mailto:ana@e.example)", "ana@e.example"),
        ("<ana@e.example> and <tel:123>", "ana@e.example and tel:123"),
        ("[call](tel:123)", "call (123)"),
        ("see [](https://e.example/x)", "see  (https://e.example/x)"),
        ("[console](localhost:8000)", "console (localhost:8000)"),
        ("[console](http://localhost:8000/)", "console (http://localhost:8000/)"),
        ("[the notes](docs/a.md)", "the notes (docs/a.md)"),
        ("[good.com](https://evil.com)", "good.com (https://evil.com)"),
        (f"[{'word ' * 80}end](https://e.example/x)", f"{'word ' * 80}end (https://e.example/x)"),
        ('[x](/b "title")', "x (/b) (title)"),
        ("[x](tg://resolve?domain=evil)", "x"),
        ("[x](TON://transfer/evil)", "x"),
    ],
)
def test_an_address_that_is_no_link_is_shown_unless_it_leads_into_the_app(source: str, text: str):
    rich = from_markdown(source)
    assert (rich.text, kinds(rich)) == (text, [])


def test_headings_lists_and_tasks_look_plain():
    assert from_markdown("# Head\n\n- a\n- [ ] b\n- [x] c").text == "Head\n\n• a\n☐ b\n☑ c"


def test_a_code_block_that_fits_is_not_cut():
    block = "x = 1\n" * 400
    pieces = accepted(split(from_markdown("intro\n\n" * 300 + f"```python\n{block}```\n\nend")))
    (whole,) = [p for p in pieces if "x = 1" in p.text]
    assert whole.text.count("x = 1") == 400


def test_a_code_block_that_does_not_fit_is_code_in_every_message():
    pieces = accepted(split(from_markdown("```python\n" + "x = 1\n" * 3000 + "```")))
    assert len(pieces) > 3
    assert all(
        [e.type for e in p.entities] == ["pre"] and e.language == "python" for p in pieces for e in p.entities
    )
    assert all(set(p.text.split("\n")) == {"x = 1"} for p in pieces)


def test_quotes_inside_quotes_are_one_quote():
    rich = from_markdown(">" * 150 + " deep")
    accepted(split(rich))


def test_text_that_would_show_as_something_else_is_shown_as_escapes():
    assert plain("pay\u202eevil\x00").text == "pay\\u202eevil\\u0000"


def test_half_a_character_does_not_stop_the_rest():
    accepted(split(from_markdown("ok \ud83d half")))
    accepted([plain("ok \ud83d half")])


@given(st.text(max_size=400))
@examples(200)
def test_any_markdown_is_accepted(source: str):
    accepted(split(from_markdown(source)))


_MARKED = st.lists(
    st.sampled_from(
        [
            "**b** ",
            "> q\n",
            "```py\ncode\n",
            "```\n",
            "[l](https://e.com) ",
            "😀" * 7,
            "||s||",
            "\n\n",
            "- i\n",
            "word " * 40,
        ]
    ),
    max_size=120,
)


@given(_MARKED)
@examples(150)
def test_any_mix_of_markup_is_accepted_and_nothing_is_lost(parts: list[str]):
    rich = from_markdown("".join(parts))
    pieces = accepted(split(rich))
    assert "".join("".join(p.text for p in pieces).split()) == "".join(rich.text.split())


@given(st.text(alphabet="a😀\n é", max_size=300), st.integers(min_value=2, max_value=40))
@settings(deadline=None)
def test_a_cut_never_goes_through_a_character(text: str, units: int):
    pieces = split(style(text, "pre"), units)
    assert all(p.units <= units for p in pieces)
    for p in pieces:
        check_text(p.text, [e.to_dict() for e in p.entities])


def test_each_message_of_a_table_names_its_columns_in_one_block_with_its_rows():
    rows = "".join(f"| milk {number} | {number} |\n" for number in range(600))
    pieces = split(from_markdown(f"| Name | Sum |\n|---|---|\n{rows}\nEnd"))
    assert len(pieces) > 1
    for piece in pieces:
        (block,) = piece.entities
        shown = piece.text.encode("utf-16-le")[2 * block.offset : 2 * (block.offset + block.length)]
        names, rule, first, *_ = shown.decode("utf-16-le").split("\n")
        assert names.split() == ["Name", "|", "Sum"]
        assert set(rule) == {"-", "+"}
        assert first.startswith("milk ")
        assert piece.units <= TEXT_UNITS
    assert sum(piece.text.count("milk") for piece in pieces) == 600


def test_an_answer_keeps_the_marks_that_words_are_written_with_and_no_others():
    words = "Donau\u00adschiff \u200fשלום\u200f می\u200cخواهم \u2068ב\u2069 a\u200bb"  # noqa: RUF001 - Hebrew, Persian
    assert from_markdown(words).text == words
    assert from_markdown("safe\u202etxt.exe\U000e0041").text == "safetxt.exe"


def test_the_address_of_a_link_in_a_table_is_shown():
    assert "x (https://e.example/y)" in from_markdown("| a |\n|---|\n| [x](https://e.example/y) |").text


def test_a_value_from_right_to_left_has_its_own_direction_and_code_holds_it_alone():
    made = style("מ-prod ל-test", "code")
    assert made.text == "\u2068מ-prod ל-test\u2069"
    (code,) = made.entities
    assert (code.offset, code.length) == (1, 13)
    block = style("מ-prod\nok", "pre")
    assert block.text == "\u2068מ-prod\u2069\nok"
    assert [each.type for each in block.entities] == ["blockquote"]
    assert style("from prod", "pre").entities[0].type == "pre"
