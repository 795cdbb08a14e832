"""``python -m benchmarks``: prints one table; ``--quick`` for a rough one, ``--only NAME`` for one part.

``--database URL`` names a PostgreSQL for the parts `costs`, `grown`, `postgres`, `record` and `size`; they
make schemas there, and drop them.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    cold,
    compared,
    costs,
    cycles,
    grown,
    latency,
    parked,
    past,
    record,
    rules,
    several,
    size,
    slack,
    start,
    tools,
)
from benchmarks.table import Row, show


@dataclass(frozen=True, slots=True)
class Part:
    title: str
    explained: str
    run: Callable[[Path], Awaitable[list[Row]]]


def parts(*, quick: bool, database: str = "", before: str = "") -> dict[str, Part]:
    rounds, each = (3, 100) if quick else (7, 200)
    return {
        "start": Part(
            "Start, memory and weight",
            "Next to the bare interpreter with the same libraries: the floor serves one page with the same\n"
            "web server over one table. Each figure is of a new process; figures are medians.",
            lambda where: start.rows(where, rounds=rounds),
        ),
        "server": Part(
            "Complete cycles, real client",
            "A cycle: a message in a fresh conversation → the model asks for a write → parked on disk →\n"
            "approve → executed → final text on disk. All of Nod as shipped, in one process, over a SQLite\n"
            "file with the durable settings as shipped; five commits wait for the disk. The floor does\n"
            "two model calls with the same payload and four commits, and nothing else. Rounds alternate;\n"
            "figures are medians, ratios are medians of each round's own ratio.",
            lambda where: cycles.with_server(where, rounds=rounds, cycles=each),
        ),
        "process": Part(
            "Complete cycles, model in this process",
            "The same cycle; the model costs next to nothing here, so what is left is Nod and the disk.",
            lambda where: cycles.in_process(where, rounds=rounds, cycles=each),
        ),
        "compared": Part(
            "Next to the floor and to others",
            "A cycle as above, each in a process of its own, with the same prompt, tools and model server.\n"
            "Pydantic AI and the OpenAI Agents SDK keep a run as JSON in SQLite until it is decided, with\n"
            "no claim, audit log or wait for the disk. Rounds are interleaved: medians, least and most.",
            lambda where: compared.rows(where, rounds=2 if quick else 5, cycles=each // 2, before=before),
        ),
        "latency": Part(
            "Approve → executed",
            "From calling handle(Press) until the tool (which costs nothing) has run and its end is on\n"
            "disk: three durable commits (decision, claim, end), one conversation at a time.",
            lambda where: latency.approve_to_executed(where, times=200 if quick else 1000),
        ),
        "slack": Part(
            "A press in Slack",
            "From the press at Slack's door (a real websocket to a fake Slack in this process, taking no\n"
            "time itself) until the tool starts, and until the call that redraws the card is sent.",
            lambda where: slack.rows(where, times=50 if quick else 200),
        ),
        "tools": Part(
            "Reads through the gate",
            "One call at a time: the shelf, judgement by the policy in force, validation, the call with its\n"
            "time limit. Bare is the function itself, and the SDK's own client to the same stdio server.\n"
            "Rounds alternate; figures are medians, ratios are medians of each round's own ratio.",
            lambda where: tools.rows(where, rounds=rounds, calls=each),
        ),
        "parked": Part(
            "Parked proposals",
            "One conversation each, in a process of its own that has everything running.",
            lambda where: parked.rows(where, warm=1000 if quick else 5000, count=1000 if quick else 5000),
        ),
        "size": Part(
            "Many parked proposals",
            "One conversation each, written in bulk by Nod's own code. Each size has a process of its own:\n"
            "its start until it is ready, the newest 10, a press (declined, on disk), the sweep of a tick.\n"
            "The sizes take turns; figures are medians, ratios are medians of each turn's own ratio.",
            lambda where: size.rows(
                where, database, sizes=(100, 10_000) if quick else (100, 100_000, 1_000_000)
            ),
        ),
        "costs": Part(
            "What one cycle costs",
            "One after the other, the model in this process. The CPU includes the driver's. On PostgreSQL\n"
            "(with --database) nothing else may write to the server, or its log holds that, too.",
            lambda where: costs.rows(where, database, cycles=20 if quick else 100),
        ),
        "rules": Part(
            "Rules, grants, expiry and the record at size",
            "A judgement is of one write call under 1,000 rules, a match of one call against 1,000 grants\n"
            "in SQLite. Expiry is the scheduler's own sweep over proposals of as many conversations, each\n"
            "with its audit row and the turn that will tell the model; verifying reads and hashes every row.",
            lambda where: rules.rows(where, due=2000 if quick else 100_000, seconds=0.5 if quick else 3),
        ),
        "past": Part(
            "A rule tried on the past, and insights",
            "Proposals of a month, decided, in as many conversations of four places, in SQLite. The first\n"
            "page judges each that the rule is about twice; a page ends after 5,000 of them. Medians, and\n"
            "the longest that a loop which only ticks had to wait while a thread was at it.",
            lambda where: past.rows(where, count=20_000 if quick else 100_000),
        ),
        "grown": Part(
            "A Nod that has been used for long",
            "Proposals of ten months, twice as many messages and turns, four times as many audit rows. Each\n"
            "figure is the median of one look by the clock, with the processor time of this process. On\n"
            "PostgreSQL (with --database) that leaves the server's out.",
            lambda where: grown.rows(where, database, count=2000 if quick else 100_000),
        ),
        "record": Part(
            "What is unusual here, on cards",
            "The line of the record, in each write that makes a card, with ten writers at the same time and\n"
            "all that goes with a Nod that has been used for long. Every proposal is in one of four chats\n"
            "and of one of seven tools, so each look reads as many earlier calls as it may. Warm.",
            lambda where: record.rows(
                where, database, count=2000 if quick else 100_000, writes=1000 if quick else 5000
            ),
        ),
        "postgres": Part(
            "Several processes on PostgreSQL",
            "Cycles as above, the model in another process, with 1, 2 and 3 Nods that receive and work.\n"
            "The floor is as many processes that do the two model calls and Nod's eight commits, all bare.\n"
            "Rounds alternate; figures are medians, ratios are medians of each round's own ratio. Then each\n"
            "process has a part of a core, so that the cores are not full. A press goes to a process that\n"
            "does no work. A killed one is noticed after four beats of two seconds.",
            lambda where: several.rows(  # noqa: ARG005 - nothing of it is in a folder
                database,
                rounds=3 if quick else 5,
                in_round=96 if quick else 240,
                pressed=100 if quick else 500,
                killed=1 if quick else 5,
            ),
        ),
        "cold": Part(
            "Cold start to first decision",
            "From starting a new process (interpreter and imports included), through build, schema check,\n"
            "start of all channels and recovery, until one approve press is on disk.",
            lambda where: cold.rows(where, rounds=3 if quick else 9, parked=1000 if quick else 5000),
        ),
    }


async def _run(chosen: list[Part]) -> None:
    for part in chosen:
        with tempfile.TemporaryDirectory(prefix="nod-bench-") as where:
            show(part.title, part.explained, await part.run(Path(where)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: rough figures in about a minute")
    parser.add_argument("--only", choices=sorted(parts(quick=True)), help="one part alone")
    parser.add_argument("--database", default="", metavar="URL", help="a PostgreSQL, for some of the parts")
    parser.add_argument(
        "--before", default="", metavar="FOLDER", help="another checkout of Nod, for `compared`"
    )
    given = parser.parse_args()
    if given.only == "postgres" and not given.database:
        parser.error("--database: name a PostgreSQL, such as postgresql+psycopg://user:password@host/nod")
    every = parts(quick=given.quick, database=given.database, before=given.before)
    if not given.database:
        del every["postgres"]
    if given.only != "compared":  # which makes environments for others
        del every["compared"]
    asyncio.run(_run([every[given.only]] if given.only else list(every.values())))


if __name__ == "__main__":
    main()
