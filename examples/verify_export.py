"""Verify Nod's audit log without Nod: ``nod audit export | python verify_export.py``. It needs Python alone.

It computes each hash again, by the recipe in docs/security.md, and prints who allowed each run. Where the log
is sealed, set NOD_AUDIT_KEY. An argument is an anchor, kept elsewhere. The code is 1 where there is a fault.
"""

import hashlib
import hmac
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

PROPOSAL = (
    "id proposal_id version at verb state actor person channel reason digest rule grant_id about content"
)
OTHER = "id at thing key tool verb actor person channel before after holds"
TOLD = "description requester requester_name place tool_name tool_version arguments"
MASK = "••••••"


def encode(value: object, *, escaped: bool) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=escaped).encode()


def sign(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, "sha256").hexdigest() if key else hashlib.sha256(text).hexdigest()


def verify(
    rows: Iterable[dict[str, Any]], keys: Iterable[bytes] = (), anchors: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Return what ran by whose approval, and the faults. ``keys``: the newest first."""
    told, faults, grants, calls, votes, allowed, keys = [], [], {}, {}, {}, {}, [*keys, b""]
    rows = sorted(rows, key=lambda row: row["id"])
    begin = min([row["id"] for row in rows if row["thing"] == "upgrade"], default=1)
    number, previous = 0, ""

    def expect(holds: object, fault: str) -> None:
        faults.extend([] if holds else [f"row {number}: {fault}"])

    for row in [row for row in rows if row["id"] >= begin]:
        expect(
            row["thing"] == "upgrade" or (row["id"], row["previous"]) == (number + 1, previous),
            "no next row",
        )
        number, previous, ident = row["id"], row["hash"], row["proposal_id"]
        own = {name: row[name] for name in f"{PROPOSAL if ident else OTHER} previous".split()}
        fits = [at for at, key in enumerate(keys) if sign(key, encode(own, escaped=True)) == row["hash"]]
        keys = keys[: fits[-1] + 1] if fits else keys  # no row has an older seal than the row before it
        expect(fits or row["hidden"], "it was altered")
        others = {*PROPOSAL.split(), *OTHER.split(), *(TOLD.split() if not ident else ())} - own.keys()
        expect(all(row[name] is None for name in others), "it has what only other rows have")
        told += [f"row {number} hides a secret: its hash can't be computed"] if row["hidden"] else []
        if row["thing"] == "grant" and row["verb"] == "give":
            grants[row["key"]] = row
        about = calls[ident] = row["about"] or calls.get(ident)
        if not (ident and about):
            expect(not ident, "no row says what it is about")
            continue
        words = [about["summary"], about["requester"], about["name"], about["place"], *about["tool"]]
        words.append(row["about"] and about["arguments"])
        expect([row[name] for name in TOLD.split()] == words, "it tells of another call")
        call = sign(b"", encode([*about["tool"], about["arguments"]], escaped=False))
        secret = MASK in json.dumps(about["arguments"], ensure_ascii=False)
        expect(secret or row["digest"] == call, "its digest is not that of its call")
        if row["about"] or (row["state"] in ("proposed", "failed") and ident in allowed):
            votes[ident] = []  # it is decided again
            allowed.pop(ident, None)
        votes[ident] += [row["actor"]] if row["verb"] in ("approve", "retry") else []
        if row["state"] == "approved" and ident not in allowed:
            grant = grants.get(f"G-{row['grant_id']}", {"actor": "no one", "after": {"tool": None}})
            expect(not row["grant_id"] or grant["after"]["tool"] == about["tool"], "no such grant")
            by = row["rule"] if row["verb"] == "propose" else ", ".join(votes[ident]) or row["actor"]
            by = f"{grant['actor']} (G-{row['grant_id']})" if row["grant_id"] else by
            allowed[ident] = row["digest"], by
        if row["state"] == "executing" and row["verb"] == "execute":
            approved, by = allowed.get(ident, ("", "no one"))
            expect(approved == row["digest"], "no one approved what ran")
            told.append(f"{about['summary']}: {by}")
    hashes = [f"{row['id']}-{row['hash']}" for row in rows]
    expect(not keys[0] or keys[-1], "it has no seal")
    for anchor in anchors:
        expect(any(each.startswith(anchor.strip()) for each in hashes), "what the anchor says is not there")
    return told, faults


if __name__ == "__main__":
    given = [key.strip().encode() for key in os.environ.get("NOD_AUDIT_KEY", "").split(",") if key.strip()]
    told, faults = verify(map(json.loads, sys.stdin), given, sys.argv[1:])
    print(*told, *faults or ["Nothing is missing or altered."], sep="\n")
    sys.exit(bool(faults))
