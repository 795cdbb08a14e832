"""``nod-ask``: a command that asks one question for a shell script. Its exit code says whether to continue.

On stdout it prints the end (``approved``, ``declined`` …) or, with ``--json``, the request. Sentences for
people go to stderr.
"""

import argparse
import json
import os
import sys
from typing import Any, cast

from nod_client.client import Nod, Question
from nod_client.errors import Declined, NodError, NotApproved, Refused
from nod_client.request import Request

# the exit codes; argparse itself exits with 2 for wrong usage
APPROVED, DECLINED, USAGE, NOT_DECIDED, NOT_ASKED = range(5)
_UNAUTHORIZED = 401

_EPILOG = """\
exit codes: 0 approved, 1 declined, 2 wrong usage, 3 no one decided (expired, withdrawn, still waiting)
or Nod could not finish, 4 could not ask. NOD_URL and NOD_TOKEN say which Nod and as whom.
"""


def main(argv: list[str] | None = None) -> int:
    """Ask the question of the command line, print how it ended, and return the exit code."""
    parser = _make_parser()
    options = parser.parse_args(argv)
    if any("=" not in field for field in options.field):
        parser.error("--field is NAME=VALUE")
    try:
        with Nod() as nod:
            request = nod.ask(options.summary, wait=options.wait, **_make_question(options))
        code = APPROVED
    except NotApproved as error:
        request = error.request
        code = DECLINED if isinstance(error, Declined) else NOT_DECIDED
    except NodError as error:
        print(f"nod-ask: {_explain(error)}", file=sys.stderr)
        return NOT_ASKED
    except Exception as error:  # noqa: BLE001 - Python's own exit code for it would be 1, which says declined
        print(f"nod-ask: something went wrong here: {type(error).__name__}: {error}", file=sys.stderr)
        return NOT_ASKED
    try:
        _print_end(request, as_json=options.json)
    except OSError:  # no one can read what was approved
        # without this, Python fails to flush stdout when it ends, and exits with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or NOT_ASKED
    return code


def _make_parser() -> argparse.ArgumentParser:
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
    return parser


def _make_question(options: argparse.Namespace) -> Question:
    """Return the options of the question that were given on the command line."""
    fields = {}
    for field in options.field:
        name, _, value = field.partition("=")
        fields[name] = value
    values: dict[str, Any] = {
        "details": options.details,
        "ttl": options.ttl,
        "key": options.key,
        "fields": fields,
    }
    return cast("Question", {name: value for name, value in values.items() if value})


def _explain(error: NodError) -> str:
    is_unauthorized = isinstance(error, Refused) and error.status == _UNAUTHORIZED
    if is_unauthorized and not os.environ.get("NOD_TOKEN"):
        return "this Nod wants a token. Set NOD_TOKEN."
    return str(error)


def _print_end(request: Request, *, as_json: bool) -> None:
    """Print the end, or the request as JSON, on stdout; and a sentence for people on stderr."""
    print(request.told, file=sys.stderr)
    printed = {
        "id": request.id,
        "end": request.end,
        "decided_by": request.decided_by,
        "edited_by": request.edited_by,
        "reason": request.reason,
        "arguments": request.arguments,
    }
    print(json.dumps(printed) if as_json else request.end, flush=True)


if __name__ == "__main__":
    sys.exit(main())
