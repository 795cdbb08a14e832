"""``nod approve`` and the other decisions from the command line.

Each command makes a `Press`, as a button in a chat does, with the account of the person at this shell. So the
same checks apply, and the running nod does what follows.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bot.cli.command import command
from bot.cli.shared import (
    Id,
    Json,
    decode_object,
    escape_for_terminal,
    find_proposal,
    get_shell_actor,
    load_settings,
    log_at,
    open_existing,
    open_readonly,
    print_json,
    redact_line,
)
from bot.domain.card_rendering import render_card
from bot.domain.chat import Answer, Press, Reply
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_arguments
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import NodError, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.tools.registry import AvailableTools

RoundSeen = Annotated[
    int | None,
    typer.Option(
        "--round", help="The round you saw, as nod show prints it; refused if the proposal has changed since."
    ),
]
AllOfAnswer = Annotated[
    bool, typer.Option("--all", help="Decide the other open proposals of the answer, too.")
]

app = typer.Typer()
_APPROVING_VERBS = (Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.FOR_REAL)
_VERBS_WITH_OWN_QUESTION = (Verb.UNDO, Verb.UNDO_ALL, Verb.FOR_REAL, Verb.RETRY)
"""Verbs whose own button has a question. The other approving verbs share the question of *Approve*."""
_VERBS_TO_CONFIRM = frozenset({*_APPROVING_VERBS, *_VERBS_WITH_OWN_QUESTION})
_SCOPE_COLUMNS = 6  # as wide as the longest scope
_AUDIENCE_COLUMNS = 10  # wider than the longest audience


@command(app)
def approve(
    proposal: Id,
    *,
    similar: Annotated[
        GrantScope | None, typer.Option(help="Let similar calls run from now on; nod similar lists choices.")
    ] = None,
    duration: Annotated[GrantDuration | None, typer.Option("--for", help="How long --similar holds.")] = None,
    round_seen: RoundSeen = None,
    audience: Annotated[
        GrantAudience, typer.Option("--whose", help="Whose calls --similar lets run, and where.")
    ] = GrantAudience.HERE,
    steps: Annotated[bool, typer.Option("--steps", help="A plan: also allow the tools it names.")] = False,
    decides_all: AllOfAnswer = False,
    real: Annotated[
        bool, typer.Option("--real", help="Run it for real instead of applying the result of its trial.")
    ] = False,
) -> None:
    """Approve a proposal as it is now; the running nod executes it."""
    if (similar is None) != (duration is None):
        raise SettingsError("--similar and --for go together, such as: --similar exact --for 1h")
    options = {
        Verb.SIMILAR: similar,
        Verb.APPROVE_STEPS: steps,
        Verb.APPROVE_ALL: decides_all,
        Verb.FOR_REAL: real,
    }
    verbs = [verb for verb, value in options.items() if value]
    if len(verbs) > 1:
        raise SettingsError("use only one of --similar, --steps, --all and --real")
    verb = verbs[0] if verbs else Verb.APPROVE
    # a `Press` calls a grant's scope ``rung``, its duration ``lasting``, its audience ``reach``
    press_and_print(proposal, verb, round_seen, rung=similar, lasting=duration, reach=audience)


@command(app)
def decline(
    proposal: Id,
    reason: Annotated[str | None, typer.Argument()] = None,
    *,
    round_seen: RoundSeen = None,
    decides_all: AllOfAnswer = False,
) -> None:
    """Decline a proposal."""
    press_and_print(proposal, Verb.DECLINE_ALL if decides_all else Verb.DECLINE, round_seen, reason=reason)


@command(app, "similar")
def list_similar(proposal: Id, *, as_json: Json = False) -> None:
    """Say what approving calls like it may allow, narrowest first."""
    settings = load_settings()
    log_at("error")
    with open_readonly(settings) as database:
        found = find_proposal(database, proposal)
        scopes, audiences = asyncio.run(_list_grant_choices(settings, database, found))
        if not scopes:
            raise NodError("you can't allow anything beyond this one call")
        if as_json:
            print_json({
                "similar": [{"similar": scope, "allows": words} for scope, words in scopes],
                "whose": [{"whose": audience, "allows": words} for audience, words in audiences],
                "for": list(GrantDuration),
            })  # fmt: skip
            return
        for scope, words in scopes:
            print(f"--similar {scope:<{_SCOPE_COLUMNS}} {redact_line(words)}")
        for audience, words in audiences:
            print(f"--whose {audience:<{_AUDIENCE_COLUMNS}} {redact_line(words)}")
        print(f"--for     {', '.join(GrantDuration)}")


@command(app, "edit")
def edit_proposal(
    proposal: Id,
    arguments: Annotated[
        str | None, typer.Argument(help="All arguments, as a JSON object.", metavar="JSON")
    ] = None,
    *,
    round_seen: RoundSeen = None,
) -> None:
    """Change a proposal's arguments; it needs approval again.

    Without JSON, print the current ones to start from.
    """
    if arguments is None:
        _print_arguments(proposal)
        return
    press_and_print(proposal, Verb.EDIT, round_seen, arguments=decode_object(arguments))


@command(app)
def ask(
    proposal: Id,
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    *,
    round_seen: RoundSeen = None,
) -> None:
    """Ask the agent about an open proposal; this decides nothing.

    It answers in its conversation.
    """
    press_and_print(proposal, Verb.ASK, round_seen, reason=question)


@command(app)
def answer(
    proposal: Id, words: Annotated[str, typer.Argument(help="Your answer.")], *, round_seen: RoundSeen = None
) -> None:
    """Answer a question of the agent. This approves nothing."""
    press_and_print(proposal, Verb.ANSWER, round_seen, reason=words)


@command(app)
def revise(
    proposal: Id,
    changes: Annotated[str, typer.Argument(help="What should change.")],
    *,
    round_seen: RoundSeen = None,
) -> None:
    """Send a teammate's plan back for changes."""
    press_and_print(proposal, Verb.REVISE, round_seen, reason=changes)


@command(app)
def cancel(proposal: Id) -> None:
    """Withdraw a proposal you asked for (an admin: anyone's)."""
    press_and_print(proposal, Verb.CANCEL)


@command(app)
def extend(proposal: Id) -> None:
    """Restart a proposal's expiry timer."""
    press_and_print(proposal, Verb.EXTEND)


@command(app)
def stop(proposal: Id) -> None:
    """Stop a proposal's tool while it runs.

    The running nod does so within a second. What the tool did until then stays done.
    """
    press_and_print(proposal, Verb.STOP)


@command(app)
def undo(proposal: Id, *, decides_all: AllOfAnswer = False) -> None:
    """Put back what a proposal did, while its time for that lasts; shows first what would be done.

    With --all: what each row of its batch did.
    """
    press_and_print(proposal, Verb.UNDO_ALL if decides_all else Verb.UNDO)


@command(app)
def retry(proposal: Id) -> None:
    """Run a failed proposal again."""
    press_and_print(proposal, Verb.RETRY)


def _print_arguments(prefix: str) -> None:
    with open_readonly(load_settings()) as database:
        proposal = find_proposal(database, prefix)
        # without tools the stored schema is used, which says what is secret
        schema = database.read_now(AvailableTools({}).schema_of, proposal)
        print(json.dumps(redact_arguments(proposal.arguments, schema), indent=2))


def press_and_print(prefix: str, verb: Verb, round_seen: int | None = None, **fields: Any) -> None:
    """Press on the proposal with this id prefix, and print the reply. Exits with 1 unless it is accepted.

    ``round_seen``: the round of the proposal that the person saw; None: any. A round is the count of its
    changes. ``fields``: further fields of `Press`.
    """
    settings = load_settings()
    log_at("error")
    with open_existing(settings) as database:
        proposal = find_proposal(database, prefix)
        if verb in _VERBS_TO_CONFIRM and not _confirm(proposal, verb):
            raise typer.Exit(1)
        button_press = Press(get_shell_actor(), verb, proposal.id, round_seen, **fields)
        reply = asyncio.run(_take_press(settings, database, button_press))
        is_approved = verb in _APPROVING_VERBS and reply.answer is Answer.ACCEPTED
        subject = f"{redact_line(proposal.description)}: " if is_approved else ""
        print(f"{subject}{escape_for_terminal(reply.text)}")
        if reply.answer is Answer.STALE:
            print(f"See: nod show {proposal.id}")
        if reply.answer is Answer.INVALID and verb is Verb.SIMILAR:
            print(f"See: nod similar {proposal.id}")
        if reply.answer is Answer.REFUSED:
            raise NodError(f"you act as {button_press.actor} here; an admin can add it to NOD_ADMINS")
        if reply.answer is not Answer.ACCEPTED:
            raise typer.Exit(1)


def _confirm(proposal: Proposal, verb: Verb) -> bool:
    """Ask a person at a terminal before a risky press, and tell if they agree; True without a terminal."""
    asking_verb = verb if verb in _VERBS_WITH_OWN_QUESTION else Verb.APPROVE
    question = render_card(proposal, schema={}).button(asking_verb).confirmation
    if question is None or not sys.stdin.isatty():
        return True
    return typer.confirm(redact_line(f"{question.question} {question.warning}"))


async def _take_press(settings: Settings, database: Database, button_press: Press) -> Reply:
    from bot.cli.gate import open_presses  # here, so that printing help loads no tools

    async with open_presses(settings, database) as presses:
        return (await presses.handle_press(button_press)).reply


async def _list_grant_choices(
    settings: Settings, database: Database, proposal: Proposal
) -> tuple[Sequence[tuple[GrantScope, str]], Sequence[tuple[GrantAudience, str]]]:
    """Return the choices for approving similar calls: scopes (how similar) and audiences (whose calls).

    Each comes with its description, the narrowest first.
    """
    from bot.cli.gate import open_presses

    async with open_presses(settings, database) as presses:
        scopes = await presses.list_grant_scopes(proposal.id, get_shell_actor())
        audiences = await presses.list_grant_audiences(proposal.id, get_shell_actor())
    return scopes, audiences
