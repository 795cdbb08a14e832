"""A coding agent's hook: before it uses a tool, a person decides. Needs: nod-client, NOD_URL and NOD_TOKEN.

The agent gives the use as JSON on stdin, and reads the decision on stdout. Code 2 blocks the use.
"""

import json
import sys

from nod_client import End, Nod, NodError

use = json.load(sys.stdin)
try:
    with Nod() as nod:
        request = nod.permit(use["tool_name"], use["tool_input"], ttl=600)
except NodError as fault:
    print(fault, file=sys.stderr)
    sys.exit(2)
decision = {"hookEventName": "PreToolUse", "permissionDecisionReason": request.told}
if request.end is End.APPROVED:
    decision |= {"permissionDecision": "allow", "updatedInput": request.input}
else:
    decision |= {"permissionDecision": "deny"}
print(json.dumps({"hookSpecificOutput": decision}))
