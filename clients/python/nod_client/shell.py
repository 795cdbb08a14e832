"""``nod-ask``: one question from a shell script. Its exit code says whether to continue."""

import argparse
import json
import os
import sys
from typing import Any

from nod_client.client import Nod, Question
from nod_client.errors import Declined, NodError, NotApproved, Refused
from nod_client.request import Request

APPROVED, DECLINED, USAGE, NOT_DECIDED, NOT_ASKED = range(5)

_NO_TOKEN = 401

_EPILOG = """\
exit codes: 0 approved, 1 declined, 2 wrong usage, 3 no one decided (expired, withdrawn, still waiting)
or Nod could not finish, 4 could not ask. NOD_URL and NOD_TOKEN say which Nod and as whom.
"""


def main(argv: list[str] | None = None) -> int:
    """The exit code. Prints the end's word, or the request as JSON, on stdout; words for people on stderr."""
    parser = argparse.ArgumentParser(
        prog="nod-ask",
        description="Ask a person, wait for their button, say what they decided.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("summary", help="what you are about to do, in one line")
    parser.add_argument("--details", help="more of it")
    parser.add_argument(
        "--field", action="append", default=[], metavar="NAME=VALUE", help="a fact; repeatable"
    )
    parser.add_argument(
        "--ttl", type=int, metavar="SECONDS", help="when it expires, if not sooner by the rules"
    )
    parser.add_argument("--wait", type=float, metavar="SECONDS", help="how long to wait; else until it ends")
    parser.add_argument("--key", help="the same key is the same question, also in another run of the script")
    parser.add_argument("--json", action="store_true", help="print what was approved, as JSON")
    given = parser.parse_args(argv)
    fields = dict(field.partition("=")[::2] for field in given.field)
    if any("=" not in field for field in given.field):
        parser.error("--field is NAME=VALUE")
    more: dict[str, Any] = {"details": given.details, "ttl": given.ttl, "key": given.key, "fields": fields}
    question = Question(**{name: value for name, value in more.items() if value})  # type: ignore[typeddict-item]
    try:
        with Nod() as nod:
            request = nod.ask(given.summary, wait=given.wait, **question)
        code = APPROVED
    except NotApproved as error:
        request = error.request
        code = DECLINED if isinstance(error, Declined) else NOT_DECIDED
    except NodError as error:
        untold = isinstance(error, Refused) and error.status == _NO_TOKEN and not os.environ.get("NOD_TOKEN")
        print(f"nod-ask: {'this Nod wants a token. Set NOD_TOKEN.' if untold else error}", file=sys.stderr)
        return NOT_ASKED
    except Exception as error:  # noqa: BLE001 - Python's own code for it would be 1: declined
        print(f"nod-ask: something went wrong here: {type(error).__name__}: {error}", file=sys.stderr)
        return NOT_ASKED
    try:
        _tell(request, as_json=given.json)
    except OSError:  # no one can read what was approved
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python fails at its end, as 120
        return code or NOT_ASKED
    return code


def _tell(request: Request, *, as_json: bool) -> None:
    print(request.told, file=sys.stderr)
    told = {
        "id": request.id,
        "end": request.end,
        "decided_by": request.decided_by,
        "edited_by": request.edited_by,
        "reason": request.reason,
        "arguments": request.arguments,
    }
    print(json.dumps(told) if as_json else request.end, flush=True)


if __name__ == "__main__":
    sys.exit(main())
