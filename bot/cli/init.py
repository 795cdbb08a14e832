"""``nod init``: five questions, each answer tried out before the next, and a ``.env`` of them.

Language models that answer on this machine, at their servers' usual ports, are found and offered.
"""

import asyncio
import base64
import io
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
import typer
from dotenv import dotenv_values
from pydantic import BaseModel, ValidationError

from bot.channels.kinds import own_channels
from bot.cli import doctor
from bot.cli.command import command
from bot.cli.shared import database_url, line, log_at
from bot.domain.findings import Finding, ok
from bot.domain.people import LOCAL
from bot.domain.times import now
from bot.errors import NodError
from bot.settings import Settings
from bot.tools.intake import bound_response

app = typer.Typer()
_PORTS = {"Ollama": 11434, "LM Studio": 1234, "Jan": 1337, "vLLM": 8000}
"""As their documents give them."""
_SECONDS = 1.0
_FILE = Path(".env")
_PLAIN = re.compile(r"[\w@%+=:,./-]*")  # what needs no quotes in a .env


@dataclass(frozen=True)
class LocalServer:
    name: str
    url: str  # for OPENAI_BASE_URL
    model: str  # the first that it offers


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Model]


async def local_servers(ports: Mapping[str, int] = _PORTS) -> list[LocalServer]:
    """Return the local model servers that answer within a second and offer a model for chats."""
    async with httpx2.AsyncClient(
        timeout=_SECONDS, trust_env=False, event_hooks={"response": [bound_response]}
    ) as client:
        found = await asyncio.gather(*(_ask(client, name, port) for name, port in ports.items()))
    return [each for each in found if each is not None]


async def _ask(client: httpx2.AsyncClient, name: str, port: int) -> LocalServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(_SECONDS):
            offered = _Models.model_validate_json((await client.get(f"{url}/models")).content)
    except (httpx2.HTTPError, httpx2.StreamError, TimeoutError, ValidationError):
        return None
    talking = [model.id for model in offered.data if "embed" not in model.id]
    if talking:
        return LocalServer(name, url, talking[0])
    return None


Given = dict[str, str]


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One question: ``ask`` turns it into settings, ``look`` tries them out."""

    ask: Callable[[], Given]
    look: Callable[[Settings], list[Finding]]


@command(app)
def init() -> None:
    """Write a .env: asks five questions, and tries each answer out."""
    log_at("critical")
    if _FILE.exists() and not _yes(f"There is a {_FILE} here. Replace it?"):
        raise NodError(f"{_FILE} was not changed. nod doctor checks it.")
    print("Five questions. Press Enter to take the value in brackets. Ctrl+C stops and writes nothing.")
    given = {"NOD_WEBHOOK_SECRET": _webhook_secret()}
    for number, step in enumerate(_STEPS, start=1):
        print(f"\n{number} of {len(_STEPS)}")
        given |= _ask_until_it_works(step, given)
    _write(given)
    print(f"\nWrote {_FILE}. Only you can read it. Next: nod run")


def _webhook_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def _ask_until_it_works(step: SetupStep, given: Given) -> Given:
    """Return the answer to one question: one that works, or that a person keeps although it does not."""
    while True:
        answer = step.ask()
        findings = _try_answer(step, given | answer)
        for found in findings:
            print(f"  {doctor.in_words(found)}")
        if not any(found.failed for found in findings) or _yes("That can't work yet. Keep it anyway?"):
            return answer


def _try_answer(step: SetupStep, given: Given) -> list[Finding]:
    settings, faults = Settings.inspect(_env_file=None, **given)
    wrong = [doctor.fault(each) for each in faults if each.partition(":")[0] in given]
    return wrong or (step.look(settings) if settings else [])


def _prompt(words: str, default: str | None = "", *, secret: bool = False) -> str:
    hidden = secret and sys.stdin.isatty()
    answer: str = typer.prompt(words, default=default, hide_input=hidden, show_default=bool(default))
    return answer.strip()


def _yes(question: str) -> bool:
    return _prompt(f"{question} [y/N]").lower() in ("y", "yes")


def _ask_database() -> Given:
    named = _prompt(
        "Where should Nod keep its data? A file, or postgresql+psycopg://user:password@host/name", "nod.db"
    )
    return {"NOD_DATABASE_URL": database_url(named)}


def _ask_model() -> Given:
    print(
        "Which language model should answer? Any OpenAI-compatible server. Press Enter for the scripted demo."
    )
    here = asyncio.run(local_servers())
    for each in here:
        print(f"{each.name} answers on this machine at {each.url}, with {line(each.model)}.")
    server = _prompt("Its address, such as http://127.0.0.1:11434/v1, or openai")
    if not server:
        return {}
    given = {} if server.lower() == "openai" else {"OPENAI_BASE_URL": server}
    if given:
        findings = _try_answer(SetupStep(_ask_model, _look_at_model), given)
    else:
        findings = []
    unreached = [each for each in findings if each.failed and "OPENAI_BASE_URL" in each.name + each.fix]
    if unreached:
        print(f"  {doctor.in_words(unreached[0])}")
        if not _yes("That can't work yet. Keep it anyway?"):
            return _ask_model()
    key = _prompt("Its key, if it needs one", secret=True)
    if key:
        given["OPENAI_API_KEY"] = key
    return given | {"NOD_MODEL": _prompt("The model's name", _model_of(server, here))}


def _model_of(server: str, here: Sequence[LocalServer]) -> str:
    return next((each.model for each in here if each.url == server.rstrip("/")), "gpt-5-mini")


def _look_at_model(settings: Settings) -> list[Finding]:
    return asyncio.run(doctor.look_at_models(settings))


def _ask_chats() -> Given:
    kinds = {kind.name: kind for kind in own_channels()}
    names = ", ".join(kinds)
    question = f"Where do people talk to Nod, besides the console? {names}, or none"
    while unknown := set(wanted := re.findall(r"[a-z]+", _prompt(question, "none").lower())) - {
        "none",
        "and",
        *kinds,
    }:
        print(f"  Nod doesn't know {', '.join(sorted(unknown))}. Write {names}, or none.")
    found = [kind for name, kind in kinds.items() if name in wanted]
    given = {key: _prompt(key, secret=True) for kind in found for key in kind.keys}
    accounts = [_prompt(f"Your account there, such as {kind.example}", None) for kind in found]
    return given | {"NOD_ADMINS": ",".join(accounts or [str(LOCAL)])}


def _look_at_chats(settings: Settings) -> list[Finding]:
    found = [doctor.look_at_admins(settings)]
    for kind in own_channels():
        if kind.configured(settings):
            found += asyncio.run(kind.check(settings))
    return found


def _ask_zone() -> Given:
    return {"NOD_TIMEZONE": _prompt("In which time zone does your team work, such as Europe/London?", "UTC")}


def _look_at_zone(settings: Settings) -> list[Finding]:
    return [ok("time", f"it is {now().astimezone(settings.timezone):%H:%M} there")]


def _ask_port() -> Given:
    return {"NOD_PORT": _prompt("On which port of this machine is the console?", "8080")}


_STEPS = (
    SetupStep(_ask_database, lambda given: [doctor.look_at_database(given)]),
    SetupStep(_ask_model, _look_at_model),
    SetupStep(_ask_chats, _look_at_chats),
    SetupStep(_ask_zone, _look_at_zone),
    SetupStep(_ask_port, lambda given: [doctor.look_at_port(given, running=False)]),
)


def _write(given: Given) -> None:
    """Write ``.env`` at one stroke, for its owner alone; raises NodError where it can't hold a value."""
    text = "\n".join(["# Made by nod init. Every other setting: .env.example", *_lines(given), ""])
    if dotenv_values(stream=io.StringIO(text)) != given:
        raise NodError(f"{_FILE} can't hold one of these values. Write it with an editor.")
    new = _FILE.with_name(".env.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
        new.replace(_FILE)
    except OSError as error:
        raise NodError(f"cannot write {_FILE.resolve()} ({error.strerror})") from None


def _lines(given: Given) -> Iterator[str]:
    for name, value in given.items():
        quoted = value.replace("\\", "\\\\").replace("'", "\\'")
        yield f"{name}={value}" if _PLAIN.fullmatch(value) else f"{name}='{quoted}'"
