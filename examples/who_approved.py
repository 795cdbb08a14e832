"""Verify who approved each run, from an export alone: ``nod audit export | python who_approved.py``.

By the recipe in docs/security.md. verify_export.py verifies more: seals, anchors, grants, votes, upgrades.
"""

import json
import sys
from hashlib import sha256

CALL = "id proposal_id version at verb state actor person channel reason digest rule grant_id about content"
OTHER = "id at thing key tool verb actor person channel before after holds"


def hash_json(value: object, *, escaped: bool) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=escaped)
    return sha256(text.encode()).hexdigest()


number, previous, approved, about = 0, "", {}, {}
for row in sorted(map(json.loads, sys.stdin), key=lambda row: row["id"]):
    if (row["id"], row["previous"]) != (number + 1, previous):
        sys.exit(f"After row {number} one is missing.")
    number, previous, ident = row["id"], row["hash"], row["proposal_id"]
    columns = f"{CALL if ident else OTHER} previous".split()
    if not row["hidden"] and previous != hash_json({name: row[name] for name in columns}, escaped=True):
        sys.exit(f"Row {number} was altered.")
    call = about[ident] = row["about"] or about.get(ident)
    digest = call and hash_json([*call["tool"], call["arguments"]], escaped=False)
    if call and "••••••" not in str(call["arguments"]) and row["digest"] != digest:
        sys.exit(f"Row {number} is about another call.")
    if row["state"] == "approved":
        approved[ident] = row
    if row["state"] == "executing":
        approval = approved.get(ident, {"digest": None})
        if approval["digest"] != row["digest"]:
            sys.exit(f"Row {number}: what ran is not what was approved.")
        said = [str(approval[name]) for name in ("actor", "rule", "grant_id", "at") if approval[name]]
        print(f"{call['summary']}: {', '.join(said)}")
print("Each row, each call and each approval is as it was written.")
