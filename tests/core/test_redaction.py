"""Secrets never reach a card, a list or an event, while what runs has them."""

import json
from dataclasses import asdict

import pytest

from bot.domain.cards import whole_text
from bot.domain.events import ToolStarted
from bot.domain.policy import Policy
from bot.domain.redaction import HIDDEN, redact, redact_text
from tests.core.conftest import MakeNod
from tests.kit import ADA, Nod, call

CODE = "hunter2-0451"


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-" + "123456789-abcdef",
        "xapp-" + "1-A012345-678",
        "123456789:" + "A" * 35,
        "sk-" + "proj-0123456789abcdef",
        "ghp_" + "a" * 36,
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_key_is_hidden_wherever_it_stands(secret: str) -> None:
    assert redact_text(f"use {secret} now") == f"use {HIDDEN} now"
    assert redact({"notes": [f"it is {secret}"]}) == {"notes": [f"it is {HIDDEN}"]}


@pytest.mark.parametrize(
    "name", ["password", "api_key", "db_password", "client-secret", "Authorization", "TOKEN"]
)
def test_what_is_called_a_secret_is_hidden_whatever_it_is(name: str) -> None:
    assert redact({"deep": {name: "x"}}) == {"deep": {name: HIDDEN}}


def test_what_only_sounds_like_a_secret_is_shown() -> None:
    shown = {"max_tokens": 5, "tokenizer": "x", "password": None, "secretary": "Ben"}
    assert redact(shown) == shown


def test_a_schema_hides_what_its_words_call_secret() -> None:
    schema = {
        "properties": {
            "a": {"writeOnly": True},
            "b": {"anyOf": [{"format": "password"}, {"type": "null"}]},
            "c": {"items": {"properties": {"d": {"format": "password"}}}},
        }
    }
    given = {"a": "x", "b": "x", "c": [{"d": "x", "e": "y"}]}
    assert redact(given, schema) == {"a": HIDDEN, "b": HIDDEN, "c": [{"d": HIDDEN, "e": "y"}]}


async def test_a_secret_argument_stands_nowhere_on_a_card_and_still_runs(make_nod: MakeNod) -> None:
    nod = make_nod(policy=Policy(admins=frozenset({str(ADA)})))
    extra = {"password": CODE}
    [p] = await nod.asked(call("enroll", {"name": "ana", "code": CODE, "extra": extra}))
    card = nod.chat.card_of(p)
    shown = json.dumps(asdict(card), default=str) + whole_text(card)
    shown += (await nod.command("/nod status")).text
    shown += (await nod.command(f"/approvals show {p.id}", by=ADA)).text
    shown += (await nod.command("/approvals list", by=ADA)).text
    assert CODE not in shown
    assert HIDDEN in shown
    await nod.approve(p)
    assert nod.world.runs[0].arguments == {"name": "ana", "code": CODE, "extra": extra}
    card = nod.chat.card_of(p)
    assert CODE not in json.dumps(asdict(card), default=str)


async def test_a_tools_answer_with_a_key_in_it_is_shown_without_it(nod: Nod) -> None:
    key = "sk-" + "0123456789abcdefghij"
    [p] = await nod.asked(call("paint", lamp="desk", color=key))
    await nod.approve(p)
    card = nod.chat.card_of(p)
    assert key not in json.dumps(asdict(card), default=str)
    assert card.result == f"desk is {HIDDEN}"


async def test_a_read_is_announced_without_secrets(nod: Nod) -> None:
    key = "ghp_" + "b" * 36
    await nod.asked(call("look", lamp=key))
    [started] = [e for e in nod.chat.streams[0].events if isinstance(e, ToolStarted)]
    assert (started.arguments, key in started.summary) == ({"lamp": HIDDEN}, False)
