"""``nod init``: a set-up in five questions, whose answers are written to a ``.env``.

Each question is a `SetupStep`: a function that asks and returns settings (`Answers`), and a function that
tries these settings out by the checks of ``nod doctor``. A step is repeated until its settings work, or the
person keeps them as they are. `_STEPS` lists the steps, below their functions.
"""

import asyncio
import base64
import io
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from dotenv import dotenv_values

from bot.channels.kinds import own_channels
from bot.cli.checks.admins import check_admins
from bot.cli.checks.database import check_database
from bot.cli.checks.environment import check_port, make_fault
from bot.cli.checks.models import check_models
from bot.cli.command import command
from bot.cli.doctor import format_finding
from bot.cli.local_servers import LocalServer, find_local_servers
from bot.cli.shared import database_url, log_at, redact_line
from bot.domain.doctor_findings import Finding, ok
from bot.domain.people import LOCAL
from bot.domain.times import now
from bot.errors import NodError
from bot.settings import Settings

app = typer.Typer()
_ENV_FILE = Path(".env")
_OPENAI = "openai"  # the answer for the server that needs no address
_KEEP_QUESTION = "That can't work yet. Keep it anyway?"
_UNQUOTED_PATTERN = re.compile(r"[\w@%+=:,./-]*")  # a value that needs no quotes in a .env


Answers = dict[str, str]
"""The values of settings, by their names."""


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One question of the set-up."""

    ask: Callable[[], Answers]
    """Asks the person, and returns settings."""
    check: Callable[[Settings], list[Finding]]
    """Tries the settings, and returns what was found."""


@command(app)
def init() -> None:
    """Write a .env: asks five questions, and tries each answer out."""
    log_at("critical")
    if _ENV_FILE.exists() and not _confirm(f"There is a {_ENV_FILE} here. Replace it?"):
        raise NodError(f"{_ENV_FILE} was not changed. nod doctor checks it.")
    print("Five questions. Press Enter to take the value in brackets. Ctrl+C stops and writes nothing.")
    answers = {"NOD_WEBHOOK_SECRET": _make_webhook_secret()}
    for number, step in enumerate(_STEPS, start=1):
        print(f"\n{number} of {len(_STEPS)}")
        answers |= _ask_until_it_works(step, answers)
    _write_env_file(answers)
    print(f"\nWrote {_ENV_FILE}. Only you can read it. Next: nod run")


def _make_webhook_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def _ask_until_it_works(step: SetupStep, answers: Answers) -> Answers:
    """Ask one question until its answer works, or until the person keeps an answer that does not."""
    while True:
        answer = step.ask()
        findings = _try_answers(step.check, answers | answer)
        for finding in findings:
            print(f"  {format_finding(finding)}")
        has_failed = any(finding.failed for finding in findings)
        if not has_failed or _confirm(_KEEP_QUESTION):
            return answer


def _try_answers(check: Callable[[Settings], list[Finding]], answers: Answers) -> list[Finding]:
    """Return the faults in the values of the answers. Without any, return what ``check`` finds.

    A wrong setting of the environment is left to ``nod doctor``: it has its default in what is tried out.
    """
    settings, faults = Settings.inspect(_env_file=None, **answers)
    findings = [make_fault(words) for words in faults]
    answer_findings = [finding for finding in findings if finding.name in answers]
    if answer_findings or settings is None:
        return answer_findings
    return check(settings)


def _ask_text(words: str, default: str = "", *, secret: bool = False, required: bool = False) -> str:
    """Ask for a text. An empty answer gives ``default``, or is asked for again if it is ``required``."""
    answer: str = typer.prompt(
        words,
        default=None if required else default,
        hide_input=secret and sys.stdin.isatty(),
        show_default=bool(default),
    )
    return answer.strip()


def _confirm(question: str) -> bool:
    return _ask_text(f"{question} [y/N]").lower() in ("y", "yes")


def _ask_database() -> Answers:
    answer = _ask_text(
        "Where should Nod keep its data? A file, or postgresql+psycopg://user:password@host/name", "nod.db"
    )
    return {"NOD_DATABASE_URL": database_url(answer)}


def _ask_model() -> Answers:
    address, local_servers = _ask_model_address()
    if not address:
        return {}
    answers: Answers = {}
    if address.lower() != _OPENAI:
        answers["OPENAI_BASE_URL"] = address
    key = _ask_text("Its key, if it needs one", secret=True)
    if key:
        answers["OPENAI_API_KEY"] = key
    return answers | {"NOD_MODEL": _ask_text("The model's name", _suggest_model(address, local_servers))}


def _ask_model_address() -> tuple[str, Sequence[LocalServer]]:
    """Ask for the address of a model's server, until it works or the person keeps one that does not.

    Returns the address, empty for the scripted demo, and the servers found on this machine.
    """
    while True:
        print(
            "Which language model should answer? Any OpenAI-compatible server."
            " Press Enter for the scripted demo."
        )
        local_servers = asyncio.run(find_local_servers())
        for server in local_servers:
            print(f"{server.name} answers on this machine at {server.url}, with {redact_line(server.model)}.")
        address = _ask_text("Its address, such as http://127.0.0.1:11434/v1, or openai")
        if not address or address.lower() == _OPENAI:
            return address, local_servers
        fault = _find_address_fault({"OPENAI_BASE_URL": address})
        if fault is None:
            return address, local_servers
        print(f"  {format_finding(fault)}")
        if _confirm(_KEEP_QUESTION):
            return address, local_servers


def _find_address_fault(answers: Answers) -> Finding | None:
    """Return the finding that the address of a model's server is wrong; None if there is no such finding.

    Other findings are ignored, since the person is asked for the key and the model's name later.
    """
    for finding in _try_answers(_check_model, answers):
        # a finding names the setting to correct: a fault of its value as its name, a check in its fix
        is_about_address = "OPENAI_BASE_URL" in finding.name or "OPENAI_BASE_URL" in finding.fix
        if finding.failed and is_about_address:
            return finding
    return None


def _suggest_model(address: str, local_servers: Sequence[LocalServer]) -> str:
    for server in local_servers:
        if server.url == address.rstrip("/"):
            return server.model
    return "gpt-5-mini"


def _check_model(settings: Settings) -> list[Finding]:
    return asyncio.run(check_models(settings))


def _ask_chats() -> Answers:
    kinds = {kind.name: kind for kind in own_channels()}
    names = ", ".join(kinds)
    question = f"Where do people talk to Nod, besides the console? {names}, or none"
    while True:
        words = set(re.findall(r"[a-z]+", _ask_text(question, "none").lower()))
        unknown = words - {"none", "and", *kinds}
        if not unknown:
            break
        print(f"  Nod doesn't know {', '.join(sorted(unknown))}. Write {names}, or none.")
    chosen = [kind for name, kind in kinds.items() if name in words]
    answers: Answers = {}
    for kind in chosen:
        for key in kind.keys:
            answers[key] = _ask_text(key, secret=True)
    accounts = [_ask_text(f"Your account there, such as {kind.example}", required=True) for kind in chosen]
    answers["NOD_ADMINS"] = ",".join(accounts or [str(LOCAL)])
    return answers


def _check_chats(settings: Settings) -> list[Finding]:
    findings = [check_admins(settings)]
    for kind in own_channels():
        if kind.configured(settings):
            findings += asyncio.run(kind.check(settings))
    return findings


def _ask_zone() -> Answers:
    return {
        "NOD_TIMEZONE": _ask_text("In which time zone does your team work, such as Europe/London?", "UTC")
    }


def _check_zone(settings: Settings) -> list[Finding]:
    return [ok("time", f"it is {now().astimezone(settings.timezone):%H:%M} there")]


def _ask_port() -> Answers:
    return {"NOD_PORT": _ask_text("On which port of this machine is the console?", "8080")}


_STEPS = (
    SetupStep(_ask_database, lambda settings: [check_database(settings)]),
    SetupStep(_ask_model, _check_model),
    SetupStep(_ask_chats, _check_chats),
    SetupStep(_ask_zone, _check_zone),
    SetupStep(_ask_port, lambda settings: [check_port(settings, running=False)]),
)


def _write_env_file(answers: Answers) -> None:
    """Write ``.env`` in one step, readable by its owner alone. Raises NodError if it can't hold a value."""
    text = "\n".join(
        ["# Made by nod init. Every other setting: .env.example", *_format_settings(answers), ""]
    )
    if dotenv_values(stream=io.StringIO(text)) != answers:
        raise NodError(f"{_ENV_FILE} can't hold one of these values. Write it with an editor.")
    temporary = _ENV_FILE.with_name(".env.new")
    try:
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(_ENV_FILE)
        finally:
            temporary.unlink(missing_ok=True)  # it has secrets
    except OSError as error:
        raise NodError(f"cannot write {_ENV_FILE.resolve()} ({error.strerror})") from None


def _format_settings(answers: Answers) -> Iterator[str]:
    for name, value in answers.items():
        if not _UNQUOTED_PATTERN.fullmatch(value):
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            value = f"'{escaped}'"  # noqa: PLW2901 - the same value, quoted
        yield f"{name}={value}"
