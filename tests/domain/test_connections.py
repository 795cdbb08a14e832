"""The account in whose name a call is made: its words, its part of a digest, and what hides a token."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from bot.domain.connections import Connection, Identity, encodings_of
from bot.domain.digests import make_digest

OCTOCAT = Connection(
    "c1", "github", Identity.PERSON, "slack:T1/U7", "Ana", "octocat", "https://github.example", "583231",
    datetime(2026, 11, 3, tzinfo=UTC),
)  # fmt: skip
TOKEN = 'gho_marked+random/"token"=é'


def test_it_says_whose_account_it_is_and_what_the_server_calls_it():
    assert OCTOCAT.acts_as == "As Ana at github (octocat)"
    unnamed = replace(OCTOCAT, name="")
    told = "As Ana at github (an account whose name github does not tell, connected 3 November)"
    assert unnamed.acts_as == told


def test_a_digest_without_a_connection_is_the_one_of_before():
    asked = ("close_issue", "v1", {"number": 3})
    assert make_digest(*asked) == "339bbdbc19ab3ecbe47b6a0130dffffc6c883af3c5554f72e8fd25f1d879e8e4"
    assert make_digest(*asked, OCTOCAT) != make_digest(*asked)


def test_the_digest_holds_the_account_and_not_its_name_nor_the_connection():
    asked = ("close_issue", "v1", {"number": 3})
    renamed = replace(OCTOCAT, id="c2", name="hubot", owner_name="Anna")
    assert make_digest(*asked, renamed) == make_digest(*asked, OCTOCAT)
    for other in ({"subject": "9"}, {"issuer": "https://elsewhere.example"}, {"server": "tracker"}):
        assert make_digest(*asked, replace(OCTOCAT, **other)) != make_digest(*asked, OCTOCAT)


def test_an_account_without_a_subject_counts_as_the_connection_that_it_is():
    unknown = replace(OCTOCAT, subject="")
    assert replace(unknown, id="c2").key != unknown.key
    assert replace(OCTOCAT, id="c2").key == OCTOCAT.key


@pytest.mark.parametrize("name", ["a" * 10_000, "oc\u202eto\u200bcat", "octo\ncat\r\x00", "\ud800cat"])
def test_a_hostile_name_stays_on_one_short_line_with_its_marks_spelled_out(name):
    said = replace(OCTOCAT, name=name, owner_name=name).acts_as
    assert len(said) < 180
    assert said.isprintable()
    assert "\u202e" not in said


def test_what_is_kept_reads_back():
    assert Connection.from_json(json.loads(json.dumps(OCTOCAT.as_json))) == OCTOCAT


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_is_found_in_base64_at_every_offset(before, encode):
    encoded = encode(f"{before}{TOKEN} and more".encode()).decode()
    assert any(each in encoded for each in encodings_of([TOKEN]))


def test_a_secret_is_found_plain_percent_encoded_and_in_json():
    for text in (TOKEN, quote(TOKEN, safe=""), json.dumps({"a": TOKEN})):
        assert any(each in text for each in encodings_of([TOKEN])), text
    assert encodings_of(["short"]) == ()
