"""Secrets never reach a card, a list or an event, while what runs has them."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from sqlmodel import Session, select

from bot.domain.call_text import format_call
from bot.domain.events import ToolStarted
from bot.domain.policy import Policy
from bot.domain.redaction import (
    HIDDEN,
    find_referred,
    list_differences,
    redact,
    redact_arguments,
    redact_text,
)
from bot.domain.verbs import Verb
from bot.store.tables.audit import AuditRow
from tests.kit import ADA, MakeNod, Nod, call

CODE = "hunter2-0451"


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-" + "123456789-abcdef",
        "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
        "xapp-" + "1-A012345-678",
        "123456789:" + "A" * 35,
        "sk-" + "proj-0123456789abcdef",
        "ghp_" + "a" * 36,
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "ghr_" + "a" * 36,
        "ASIA" + "ABCDEFGHIJKLMNOP",
        "sk_" + "live_0123456789abcdef",
        "glpat-" + "0123456789abcdefABCD",
        "npm_" + "a1" * 18,
        "hf_" + "aB3" * 11,
        "pypi-" + "AgEIcHlwaS5vcmc" * 3,
        "AIza" + "SyA-0123456789_0123456789abcdefghi",
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0.abc-DEF_123",
        "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
        "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_key_is_hidden_wherever_it_stands(secret: str) -> None:
    assert redact_text(f"use {secret} now") == f"use {HIDDEN} now"
    assert redact({"notes": [f"it is {secret}"]}) == {"notes": [f"it is {HIDDEN}"]}


@pytest.mark.parametrize(
    "name",
    [
        "password", "api_key", "db_password", "client-secret", "Authorization", "TOKEN", "accessToken",
        "clientSecret", "dbPassword", "pwd", "passphrase", "secret_key", "aws_secret_access_key", "tokens",
        "cookie",
        "otp", "APIKey", "privateKey", "user_pass", "secretValue", "passwordConfirmation", "sshKey",
    ],
)  # fmt: skip
def test_what_is_called_a_secret_is_hidden_whatever_it_is(name: str) -> None:
    assert redact({"deep": {name: "x"}}) == {"deep": {name: HIDDEN}}


def test_what_only_sounds_like_a_secret_is_shown() -> None:
    shown = {"max_tokens": 5, "tokenizer": "x", "password": None, "secretary": "Ben", "hasPassword": True}
    shown |= {"sortKey": "x", "passenger": "Ana", "author": "Ada", "compass": "north"}
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run --password=x now", "run --password=•••••• now"),
        ("DB_PASSWORD=hunter2", "DB_PASSWORD=••••••"),
        ('{"password": "hunter2"}', '{"password": "••••••"}'),
        ("postgres://u:p@h/db", "postgres://u:••••••@h/db"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ••••••"),
        ("bearer abcdef0123456789", "bearer ••••••"),
        ("da39a3ee5e6b4b0d3255bfef95601890afd80709", None),
        ("basic understanding, http://h:80/x, password: required", None),
        ("a lone surrogate \ud800, password=$PASSWORD", None),
    ],
)
def test_a_secret_is_hidden_and_what_says_that_it_is_one_stays(text: str, shown: str | None) -> None:
    assert redact_text(text) == (text if shown is None else shown)


def test_a_schema_is_looked_through_wherever_it_leads() -> None:
    secret = {"type": "string", "writeOnly": True}
    schema = {
        "$defs": {
            "code": secret,
            "a code/%": secret,
            "box": {"properties": {"inner": {"$ref": "#/$defs/code"}}},
            "anchored": {"$anchor": "code", **secret},
            "node": {"$dynamicAnchor": "node", "properties": {"inner": secret}},
        },
        "properties": {
            "by_ref": {"$ref": "#/$defs/code"},
            "by_encoded_ref": {"$ref": "#/$defs/a%20code~1%25"},
            "by_anchor": {"$ref": "#code"},
            "by_dynamic_anchor": {"$dynamicRef": "#node"},
            "by_no_anchor": {"$ref": "#missing"},
            "in_all": {"allOf": [{"minLength": 1}, {"$ref": "#/$defs/code"}]},
            "in_any": {"anyOf": [{"type": "object", "properties": {"x": secret}}, {"type": "null"}]},
            "box": {"$ref": "#/$defs/box"},
            "rest": {"additionalProperties": secret},
            "named": {"patternProperties": {"^p": secret}},
            "list": {"type": "array", "prefixItems": [{}, secret], "items": {"$ref": "#/$defs/box"}},
            "if": {"if": {}, "then": {"properties": {"x": secret}}},
            "round": {"$ref": "#/properties/round"},
        },
        "allOf": [{"properties": {"late": secret}}],
    }
    given = {
        "by_ref": "s", "by_encoded_ref": "s", "by_anchor": "s", "by_dynamic_anchor": {"inner": "s"},
        "by_no_anchor": {"by_ref": "o"}, "in_all": "s", "in_any": {"x": "s", "y": "o"}, "box": {"inner": "s"},
        "rest": {"z": "s"},
        "named": {"p": "s"}, "list": ["o", "s", {"inner": "s"}], "if": {"x": "s"}, "round": "o", "late": "s",
    }  # fmt: skip
    shown = json.dumps(redact(given, schema))
    assert '"s"' not in shown
    assert shown.count('"o"') == 4


def test_a_schema_that_refers_to_its_root_hides_secrets_at_every_depth() -> None:
    for word in ("$ref", "$recursiveRef"):
        schema = {"properties": {"code": {"writeOnly": True}, "child": {word: "#"}}}
        given = {"code": "s", "child": {"code": "s", "child": {"code": "s"}}}
        assert '"s"' not in json.dumps(redact(given, schema))


def test_a_secret_is_hidden_in_full_where_a_text_repeats_it_escaped() -> None:
    code = 'kö"hl'
    given = {"password": code, "body": f"{json.dumps(code)} or {json.dumps(code, ensure_ascii=False)}"}
    assert redact_arguments(given) == {"password": HIDDEN, "body": f'"{HIDDEN}" or "{HIDDEN}"'}


def test_a_new_secret_that_begins_with_the_old_one_is_hidden_in_full() -> None:
    before = {"password": "hunter2", "body": "It is hunter2."}
    after = {"password": "hunter2-new", "body": "It is hunter2-new."}
    body = {each.field: each for each in list_differences(before, after)}["body"]
    assert (body.old_value, body.new_value) == (f"It is {HIDDEN}.", f"It is {HIDDEN}.")


@pytest.mark.slow
def test_a_schema_that_leads_nowhere_fast_hides_all() -> None:
    schema: dict[str, Any] = {"additionalProperties": {"$ref": "#"}, "$defs": {"x": {"writeOnly": True}}}
    schema["allOf"] = [{"minLength": n} for n in range(4000)]
    given = {str(n): {"x": "y"} for n in range(300)}
    assert redact(given, schema)["299"] == HIDDEN


async def test_what_repeats_a_hidden_argument_is_hidden_too(make_nod: MakeNod) -> None:
    nod = make_nod(policy=Policy(admins=frozenset({str(ADA)})))
    because = {"approval_reason": f"They want {CODE} as code"}
    given = {"name": "ana", "code": CODE, "extra": {"note": f"now {CODE}"}}
    [p, q] = await nod.asked(call("enroll", given | because), call("enroll", given | because))
    await nod.press(Verb.DECLINE, q, reason=f"not {CODE}")
    await nod.approve(p)
    shown = "".join(json.dumps(asdict(nod.chat.card_of(each)), default=str) for each in await nod.proposals())
    shown += (await nod.command(f"/approvals show {p.id}", by=ADA)).text
    with Session(nod.database.engine) as session:
        shown += "".join(str(row.model_dump()) for row in session.exec(select(AuditRow)))
    assert CODE not in shown
    assert nod.world.runs[0].arguments["code"] == CODE


async def test_a_secret_argument_stands_nowhere_on_a_card_and_still_runs(make_nod: MakeNod) -> None:
    nod = make_nod(policy=Policy(admins=frozenset({str(ADA)})))
    extra = {"password": CODE}
    [p] = await nod.asked(call("enroll", {"name": "ana", "code": CODE, "extra": extra}))
    card = nod.chat.card_of(p)
    shown = json.dumps(asdict(card), default=str) + format_call(card)
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


class CountedSchema(dict[str, object]):
    """A schema that counts how often all of it is walked through."""

    walks = 0

    def values(self):
        self.walks += 1
        return super().values()


def test_a_schema_is_searched_for_anchors_once_however_many_references_it_has():
    schema = CountedSchema({"properties": {"last": {"$anchor": "a", "type": "string"}}})
    assert [find_referred(schema, "#a")["type"] for _ in range(100)] == ["string"] * 100
    assert schema.walks == 1
