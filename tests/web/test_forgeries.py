"""One who can write the database but has no key changes it: from then on each look at the record says so."""

import contextlib
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.cli.main import main
from bot.errors import NodError
from tests.kit.sql import sql
from tests.kit.urls import Urls
from tests.tiers import thin
from tests.web.conftest import Serve
from tests.web.scripted import ScriptedModel, ask

KEY = "a key of the audit log"
ADMIN = {"NOD_ADMINS": ("http:local",)}
_BACK = "UPDATE chain_end SET number = :number, hash = :hash, mark = :mark, key = :key"
_JSON = ("about", "before", "after", "holds")


def nod(url: str, *words: str, key: str = KEY) -> Result:
    return CliRunner().invoke(main, words, env={"NOD_DATABASE_URL": url, "NOD_AUDIT_KEY": key})


def _plain(name: str, value: Any) -> Any:
    if name == "at":
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    return json.loads(value) if name in _JSON and isinstance(value, str) else value


def _hash(row: dict[str, Any]) -> str:
    kept = {name: _plain(name, value) for name, value in row.items() if name != "hash"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def recompute(url: str, first: int = 1, *, key: str = "") -> None:
    """Hash all rows from one on without a key, as anyone can who has read how; ``key``: what the end says."""
    every = [(t, row) for t in ("audit", "ledger") for row in sql(url, f"SELECT * FROM {t}")]
    rows = sorted(every, key=lambda each: each[1]["id"])
    previous, number = "", 0
    for table, row in rows:
        number = row["id"]
        if number >= first:
            row["previous"] = previous
            row["hash"] = _hash(row)
            words = f"UPDATE {table} SET previous = :previous, hash = :hash WHERE id = :id"
            sql(url, words, **{name: row[name] for name in ("previous", "hash", "id")})
        previous = row["hash"]
    mark = hashlib.sha256(f"end {number} {previous}".encode()).hexdigest()
    sql(url, _BACK, number=number, hash=previous, mark=mark, key=key)


def _named(url: str) -> str:
    return str(sql(url, "SELECT key FROM chain_end")[0]["key"])


def _rewrite(url: str) -> None:
    sql(url, "UPDATE audit SET person = 'http:eve', actor = 'http:eve' WHERE verb = 'approve'")


def _whose_end(url: str) -> None:
    _rewrite(url)
    recompute(url, key=_named(url))


def _emptied_end(url: str) -> None:
    _rewrite(url)
    recompute(url)


def _from_the_middle(url: str) -> None:
    _rewrite(url)
    recompute(url, 3, key=_named(url))


def _only_the_key(url: str) -> None:
    sql(url, "UPDATE chain_end SET key = ''")


def _cut(url: str) -> None:
    newest = sql(url, "SELECT max(id) AS id FROM audit")[0]["id"]
    sql(url, "DELETE FROM audit WHERE id >= :id", id=newest)
    sql(url, "DELETE FROM ledger WHERE id >= :id", id=newest)
    recompute(url, newest, key=_named(url))


def _emptied(url: str) -> None:
    for table in ("audit", "ledger"):
        sql(url, f"DELETE FROM {table}")
    sql(url, "UPDATE chain_end SET number = 0, hash = '', mark = '', key = ''")


def _emptied_with_the_keys_name(url: str) -> None:
    name = _named(url)
    _emptied(url)
    sql(url, "UPDATE chain_end SET key = :key", key=name)


def _without_an_end(url: str) -> None:
    sql(url, "DELETE FROM chain_end")


def _middle(url: str) -> None:
    sql(url, "DELETE FROM audit WHERE id = (SELECT min(id) + 1 FROM audit)")


def _swapped(url: str) -> None:
    first, second = (row["id"] for row in sql(url, "SELECT id FROM audit ORDER BY id LIMIT 2"))
    for was, is_ in ((first, -1), (second, first), (-1, second)):
        sql(url, "UPDATE audit SET id = :is_ WHERE id = :was", was=was, is_=is_)


def _inserted(url: str) -> None:
    columns = ", ".join(f'"{name}"' for name in sql(url, "SELECT * FROM ledger LIMIT 1")[0] if name != "id")
    given = columns.replace('"previous"', "'x'")
    newest = "(SELECT max(id) FROM ledger)"
    row = f"SELECT id + 100, {given} FROM ledger WHERE id = {newest}"
    sql(url, f"INSERT INTO ledger (id, {columns}) {row}")


def _inserted_well(url: str) -> None:
    _inserted(url)
    newest = sql(url, "SELECT max(id) AS id FROM ledger")[0]["id"]
    number = sql(url, "SELECT number FROM chain_end")[0]["number"]
    sql(url, "UPDATE ledger SET id = :new WHERE id = :old", new=number + 1, old=newest)
    recompute(url, number + 1, key=_named(url))


def _columns(url: str) -> None:
    sql(url, "UPDATE proposal SET description = 'something harmless'")


def _a_vote(url: str) -> None:
    sql(url, "UPDATE proposal SET decided_by = 'Eve' WHERE state <> 'proposed'")


def _a_rule(url: str) -> None:
    sql(url, "UPDATE rule SET value = '\"never\"'")


def _an_older_record(url: str) -> None:
    """As if all there is were from before there was one chain, which verification only reads as it is."""
    sql(url, "UPDATE ledger SET thing = 'upgrade', after = '{\"faults\": []}'"
        " WHERE id = (SELECT max(id) FROM ledger)")  # fmt: skip
    recompute(url, key=_named(url))


FORGERIES: dict[str, Callable[[str], None]] = {
    "a row rewritten": _rewrite,
    "hashes made without a key, the end left to the key": _whose_end,
    "hashes made without a key, and the key of the end emptied": _emptied_end,
    "hashes made without a key from the middle on": _from_the_middle,
    "the key of the end emptied": _only_the_key,
    "the end cut off": _cut,
    "all rows deleted": _emptied,
    "all rows deleted, the end left to the key": _emptied_with_the_keys_name,
    "the end itself deleted": _without_an_end,
    "a row of the middle deleted": _middle,
    "two rows swapped": _swapped,
    "a row inserted": _inserted,
    "a row inserted behind the end, well made": _inserted_well,
    "what a proposal says": _columns,
    "who decided": _a_vote,
    "a rule": _a_rule,
    "a record from before": _an_older_record,
}


@pytest.fixture
def url(database_of: Urls) -> str:
    return database_of("sealed")


async def _record(serve: Serve, url: str, key: tuple[str, ...] = (KEY,)) -> tuple[str, str]:
    """A record with a rule, a decision and an open proposal; gives the two proposals' IDs."""
    model = ScriptedModel(ask(("keep", {"text": "a"}), ("keep", {"text": "b"})))
    async with serve(model=model, NOD_DATABASE_URL=url, NOD_AUDIT_KEY=key, **ADMIN) as started:
        first, second = await started.proposed("keep two")
        await started.press(first, "approve")
        await started.idle()
        made = await started.client.post("/api/rules", json={"subject": "policy", "mode": "always"})
        assert made.is_success
    return first["id"], second["id"]


async def _lives_on(serve: Serve, url: str) -> None:
    """A start and a further row, where Nod lets that happen."""
    model = ScriptedModel(ask(("keep", {"text": "c"})))
    with contextlib.suppress(NodError):
        async with serve(model=model, NOD_DATABASE_URL=url, NOD_AUDIT_KEY=(KEY,)) as started:
            seen(url)
            await started.client.post("/api/chat", json={"message": "keep more"})
            await started.idle()


def seen(url: str, *ids: str) -> None:
    """Verification and the look at each proposal say that something is wrong."""
    for words in (("audit", "verify"), ("audit",), *(("audit", "show", each) for each in ids)):
        result = nod(url, *words)
        assert result.exit_code == 1, (words, result.output)
        assert "verified" not in result.output
        assert "does not verify" in result.output


@pytest.mark.slow
@pytest.mark.parametrize("forge", thin(FORGERIES.values()), ids=FORGERIES)
async def test_a_forgery_without_the_key_is_seen_from_then_on(
    serve: Serve, url: str, forge: Callable[[str], None]
) -> None:
    ids = await _record(serve, url)
    assert nod(url, "audit", "verify").exit_code == 0
    forge(url)
    seen(url, *ids)
    await _lives_on(serve, url)
    seen(url, *ids)


async def test_the_forger_of_these_tests_knows_how_hashes_are_made(serve: Serve, url: str) -> None:
    await _record(serve, url, key=())
    _rewrite(url)
    assert nod(url, "audit", "verify", key="").exit_code == 1
    recompute(url)
    assert nod(url, "audit", "verify", key="").exit_code == 0


async def test_a_start_with_a_key_over_a_log_without_a_seal_names_one_command(serve: Serve, url: str) -> None:
    ids = await _record(serve, url, key=())
    with pytest.raises(NodError, match="nod audit seal"):
        async with serve(NOD_DATABASE_URL=url, NOD_AUDIT_KEY=(KEY,)):
            pass
    seen(url, *ids)
    assert nod(url, "audit", "seal", key="").exit_code == 1
    sealed = nod(url, "audit", "seal")
    assert sealed.exit_code == 0, sealed.output
    assert "are older than the seal" in sealed.output
    assert nod(url, "audit", "seal").exit_code == 1
    async with serve(NOD_DATABASE_URL=url, NOD_AUDIT_KEY=(KEY,)):
        assert nod(url, "audit", "verify").exit_code == 0
        assert nod(url, "audit", "seal").exit_code == 1
    for forge in (_rewrite, _from_before_the_seal):
        forge(url)
        seen(url, *ids)
        await _lives_on(serve, url)
        seen(url, *ids)


def _from_before_the_seal(url: str) -> None:
    """What the seal was put on is another record, and it says that it is sealed from elsewhere on."""
    number = sql(url, "SELECT id FROM ledger WHERE thing = 'key'")[0]["id"]
    end = sql(url, "SELECT * FROM chain_end")[0]
    recompute(url)
    sql(url, "UPDATE ledger SET after = '{\"from\": 1}' WHERE id = :id", id=number)
    sql(url, _BACK, **{name: end[name] for name in ("number", "hash", "mark", "key")})


async def test_a_genuine_older_state_is_seen_by_the_anchor_alone(serve: Serve, url: str) -> None:
    await _record(serve, url)
    end = sql(url, "SELECT * FROM chain_end")[0]
    newest = sql(url, "SELECT max(id) AS id FROM rule")[0]["id"]
    async with serve(NOD_DATABASE_URL=url, NOD_AUDIT_KEY=(KEY,), **ADMIN) as started:
        await started.client.post("/api/rules", json={"subject": "approvers", "who": ["admin"]})
    anchor = nod(url, "audit", "anchor").output.strip()
    sql(url, "DELETE FROM ledger WHERE id > :number", number=end["number"])
    sql(url, "DELETE FROM rule WHERE id > :newest", newest=newest)
    sql(url, _BACK, **{name: end[name] for name in ("number", "hash", "mark", "key")})
    assert nod(url, "audit", "verify").exit_code == 0
    with_it = nod(url, "audit", "verify", "--anchor", anchor)
    assert with_it.exit_code == 1
    assert f"row {anchor.partition('-')[0]} is not the row of anchor" in with_it.output
