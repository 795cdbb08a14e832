"""A coding agent's hook: before it uses a tool, a person decides. Needs: nod-client, NOD_URL and NOD_TOKEN.

The agent gives the use as JSON on stdin, and reads the decision on stdout. Code 2 blocks the use. Coding
agents take every other code as "continue", so whatever stumbles here, the code is 2.
"""

import json
import os
import signal
import sys


def decide() -> str:
    from nod_client import End, Nod  # here, so that a missing client blocks the use too

    use = json.loads(sys.stdin.buffer.read())
    with Nod() as nod:
        request = nod.permit(use["tool_name"], use["tool_input"], ttl=600)
    decision = {"hookEventName": "PreToolUse", "permissionDecisionReason": request.told}
    if request.end is End.APPROVED:
        decision |= {"permissionDecision": "allow", "updatedInput": request.input}
    else:
        decision |= {"permissionDecision": "deny"}
    return json.dumps({"hookSpecificOutput": decision})


def block(why: object) -> None:
    try:
        print(f"Nod: the use is blocked. {why}", file=sys.stderr, flush=True)
    finally:
        os._exit(2)  # nothing that Python does at its end may change the code


try:
    signal.signal(signal.SIGTERM, lambda *_: block("The hook was ended before anyone decided."))
    sys.stdout.write(decide())  # print() says nothing where there is no stdout
    sys.stdout.flush()
except BaseException as fault:  # noqa: BLE001 - whatever it is, no consent comes out
    block(f"{type(fault).__name__}: {fault}")
