"""No word of a reviewer that lies, advises or names what the call does not is ever shown."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.annotations import TEXT_CHARS
from bot.features.opinion.review import Asked, OpinionWords, read_review

BRANCHES = [f"old-{n}" for n in range(14)]
FACTS = json.dumps(
    {
        "tool": "delete_branches",
        "title": "Delete 14 branches of acme/site",
        "risk": "destructive",
        "arguments": {"repository": "acme/site", "branches": BRANCHES, "notify": "ana@acme.test"},
        "changes": [["Amount", "1,200", "3.50"]],
    }
)


def answer(does: Any = "deletes 14 branches", asked: Any = "yes", concerns: Any = (), **more: Any) -> str:
    return json.dumps({"does": does, "asked": asked, "concerns": concerns, **more})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (answer(concerns=["you named one"]), "deletes 14 branches; you named one"),
        (answer("Deletes 14 branches"), "deletes 14 branches"),
        (answer(asked="no"), "deletes 14 branches; this is not what was asked"),
        (answer(asked="no", concerns=["you named one"]), "deletes 14 branches; you named one"),
        (f"```json\n{answer()}\n```", "deletes 14 branches"),
        (answer("deletes old-3 and 13 others".replace("13", "14")), "deletes old-3 and 14 others"),
        (answer("mails ana@acme.test about acme/site, 1,200 to 3.50"), None),
        (answer("löscht 14 branches von acme/site"), "löscht 14 branches von acme/site"),
        (answer("ブランチを14個削除します"), "ブランチを14個削除します"),
    ],
)
def test_what_it_does_and_a_no_or_a_concern_are_said_and_a_yes_is_not(text: str, line: str | None) -> None:
    found = read_review(text, FACTS, has_request=True)
    assert found is not None
    said = found.format_line()
    assert said == (line or json.loads(text)["does"])
    assert "yes" not in said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "[]",
        "null",
        "[" * 100_000,
        answer() * 2,
        f"Sure! {answer()}",
        answer(verdict="approve"),
        json.dumps({"does": "deletes 14 branches", "asked": "yes"}),
        answer(does=7),
        answer(does=""),
        answer(does=" \u200b "),
        answer(does="x" * 141),
        answer(does="deletes\n14 branches"),
        answer(does="deletes \u202e14 branches"),
        answer(does="deletes \u202esome branches"),
        answer(does="deletes some\u200b branches"),
        answer(asked="approved"),
        answer(asked=True),
        answer(asked=["yes"]),
        answer(concerns="none"),
        answer(concerns=["a", "b", "c"]),
        answer(concerns=[["a"]]),
        answer(concerns=["x" * 81]),
    ],
)
def test_what_is_not_of_the_schema_is_no_opinion(text: str) -> None:
    assert read_review(text, FACTS, has_request=True) is None


@pytest.mark.parametrize(
    "words",
    [
        "deletes 15 branches",
        "deletes 1 branch",
        "deletes 140 branches",
        "moves 1200.5 euros",
        "asked for by Mallory",
        "deletes branches of ACME2",
        "writes to /etc/passwd",
        "reads ~/.ssh/id_rsa",
        "deletes C:\\Windows",
        "mails mallory@evil.test",
        "see https://evil.test/approve",
        "see evil.test",
        "see [this](https://evil.test)",
        "runs delete_everything",
        "deletes branches of acme/other",
        "this is safe",
        "please approve it",
        "APPROVED by the team",
        "looks good",
        "ok to run",
        "✅ deletes branches",
        "deletes branches 👍",
        "exactly as requested",
        "yes, as asked",
        "press Approve",
        "bitte genehmigen",
        "völlig unbedenklich",
        "es seguro",
        "vous pouvez approuver",
        "これは安全です",
        "可以批准",
    ],
)
@pytest.mark.parametrize("place", ["does", "concerns"])
def test_words_that_advise_or_name_what_the_call_does_not_drop_the_line(words: str, place: str) -> None:
    given = {"does": words} if place == "does" else {"concerns": [words]}
    assert read_review(answer(**given), FACTS, has_request=True) is None


@pytest.mark.parametrize(
    ("value", "word", "is_shown"),
    [
        (100.0, "100", True),
        (100.0, "1000", False),
        (1.5, "1.5", True),
        (1.5, "1,50", True),
        (1.5, "15", False),
        (15, "1.5", False),
        (1.234, "1.234", True),
        (1.234, "1234", False),
        (1234, "1,234", True),
        (1234, "1.234", True),
        (1234, "1234.00", True),
        (1234567.5, "1.234.567,5", True),
        (1234567.5, "1,234,567.50", True),
        (1234567.5, "12345675", False),
        ("1.200,50", "1,200.5", True),
        ("3'500", "3500", True),
        ("1.234", "1.234", True),
        ("1.234", "1234", False),
        (0.125, "0,125", True),
        (125, "0.125", False),
        (7, "007", False),
        ("007", "7", False),
        ("1.2.3", "1.2.3", True),
        ("1.2.3", "12.3", False),
        ("10.0.0.1", "100.0.1", False),
    ],
)
def test_a_number_is_that_of_the_call_by_its_value(value: Any, word: str, is_shown: bool) -> None:
    facts = json.dumps({"tool": "pay", "arguments": {"amount": value}})
    found = read_review(answer(f"pays {word}"), facts, has_request=True)
    assert (found is not None) is is_shown


@pytest.mark.parametrize("asked", list(Asked))
def test_without_a_request_nothing_is_said_of_what_was_asked(asked: Asked) -> None:
    found = read_review(answer(asked=asked), FACTS, has_request=False)
    assert found == OpinionWords("deletes 14 branches", Asked.UNCLEAR)


@given(st.text(), st.booleans())
def test_any_answer_is_read_or_is_no_opinion(text: str, has_request: bool) -> None:
    found = read_review(answer(text), FACTS, has_request=has_request)
    assert found is None or found.does


@given(st.text(st.characters(codec="ascii", categories=("Ll",)), min_size=1, max_size=140))
def test_a_line_fits_and_its_end_is_not_cut_away(does: str) -> None:
    said = OpinionWords(does, Asked.NO, ("you named one", "nothing is kept")).format_line(
        "one more approval is needed"
    )
    assert len(said) <= TEXT_CHARS
    assert said.endswith("; you named one; nothing is kept; one more approval is needed")
