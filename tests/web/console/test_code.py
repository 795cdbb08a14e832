"""Code in an answer: its colours, its copy, and what it may not do to the page."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.tiers import thin
from tests.web.console.conftest import Served
from tests.web.console.test_console import NewPage, violations

pytestmark = pytest.mark.browser

PYTHON = 'def greet(name):  # says "hello"\n    return f"<b>{name}\u202e</b>" * 2'
SHOWN = PYTHON.replace("\u202e", "U+202E")


def answered(page: Page, *blocks: tuple[str, str]) -> Locator:
    """An answer with these blocks of code, by language; the `code` elements."""
    page.evaluate(
        """async (text) => {
            const { markdown } = await import("/static/markdown.js");
            const box = document.createElement("div");
            box.className = "said";
            box.append(markdown(text));
            document.querySelector("main").prepend(box);
        }""",
        "\n\n".join(f"```{language}\n{text}\n```" for language, text in blocks),
    )
    return page.locator(".said pre code")


@pytest.mark.parametrize("scheme", thin(["light", "dark"]))
def test_code_is_coloured_and_reads_as_it_was_written(nod: Served, new_page: NewPage, scheme: str):
    page = new_page(nod.url, color_scheme=scheme)
    python, also, other, plain = answered(
        page, ("py", PYTHON), ("JSON title=x", '{"a": [1, null]}'), ("klingon", "nuqneH"), ("", "a b")
    ).all()
    expect(python.locator(".hljs-keyword").first).to_have_text("def")
    expect(python.locator(".hljs-comment")).to_have_text('# says "hello"')
    expect(python.locator(".unseen")).to_have_text("U+202E")
    expect(also.locator(".hljs-number")).to_have_text("1")
    assert (python.text_content(), other.inner_html(), plain.inner_html()) == (SHOWN, "nuqneH", "a b")
    assert python.locator("b").count() == 0
    assert violations(page) == []


def test_code_is_copied_as_it_was_written(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answered(page, ("python", PYTHON))
    copy = page.get_by_role("button", name="Copy")
    copy.focus()
    copy.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == PYTHON
    expect(copy).to_have_text("Copy")


def test_code_that_takes_long_to_colour_stays_plain_and_holds_nothing_up(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    page.route("**/highlight/python.min.js", lambda route: route.fulfill(
        content_type="text/javascript", body="for (;;);"
    ))  # fmt: skip
    python, also = answered(page, ("python", PYTHON), ("json", "[1]")).all()
    expect(also.locator(".hljs-number")).to_have_text("1")
    assert python.locator("span[class^=hljs]").count() == 0
    assert python.text_content() == SHOWN


def test_what_is_too_long_is_left_plain(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    long, short = answered(page, ("json", "[1]\n" * 6000), ("json", "[2]")).all()
    expect(short.locator(".hljs-number")).to_have_text("2")
    assert long.locator("span").count() == 0
