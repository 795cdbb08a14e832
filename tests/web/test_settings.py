"""The settings and the doctor over HTTP: for admins, and without any secret."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from bot.approvals.lookup import settings as looked
from bot.approvals.lookup.settings import Doctor
from bot.domain.doctor_findings import Health
from bot.domain.times import now
from bot.settings import Settings
from tests.kit.urls import Urls
from tests.web.conftest import ANA, CHIEF, TOKENS, Serve

pytestmark = pytest.mark.platform

SECRET = "sk-live-0123456789abcdef"
KEY = "k" * 43 + "="
GIVEN = {
    "NOD_HTTP_TOKENS": TOKENS,
    "NOD_ADMINS": ("http:chief",),
    "NOD_PROPOSAL_TTL": "36h",
    "NOD_WEBHOOK_SECRET": SECRET,
    "NOD_AUDIT_KEY": SECRET,
    "NOD_SECRET_KEY": KEY,
    "SLACK_API_URL": f"http://ana:{SECRET}@127.0.0.1:9/api/",
}


@pytest.fixture
def sealed(database_of: Urls) -> str:
    """A database that a Nod with the key will make."""
    return database_of("sealed")


async def test_admins_read_every_setting_and_no_secret(serve: Serve, sealed: str):
    async with serve(token=CHIEF, NOD_DATABASE_URL=sealed, **GIVEN) as nod:
        answer = await nod.client.get("/api/settings")
        assert SECRET not in answer.text
        assert KEY not in answer.text
        assert CHIEF not in answer.text
        found = {each["name"]: each for each in answer.json()["settings"]}
        assert set(found) == {str(each.validation_alias) for each in Settings.model_fields.values()}

        def told(name: str) -> tuple[str | None, bool, bool]:
            return found[name]["value"], found[name]["secret"], found[name]["given"]

        assert told("NOD_PROPOSAL_TTL") == ("36h", False, True)
        assert told("NOD_RETENTION") == ("30d", False, False)
        assert told("NOD_ISSUES") == ("true", False, False)
        assert told("NOD_ADMINS") == ("http:chief", False, True)
        assert told("SLACK_API_URL") == ("http://127.0.0.1:9/api/", False, True)
        for name in ("NOD_HTTP_TOKENS", "NOD_WEBHOOK_SECRET", "NOD_AUDIT_KEY", "NOD_SECRET_KEY"):
            assert told(name) == (None, True, True)
        assert told("OPENAI_API_KEY") == (None, True, False)
        async with nod.caller(ANA) as ana:
            for path in ("settings", "doctor"):
                assert (await ana.get(f"/api/{path}")).status_code == 403


def test_who_signs_in_at_the_database_is_not_told():
    url = f"postgresql+psycopg://nod:{SECRET}@db/nod?password={SECRET}"
    found = {each.name: each.value for each in looked.list_settings(Settings.load(NOD_DATABASE_URL=url))}
    assert found["NOD_DATABASE_URL"] == "postgresql+psycopg://db/nod"


def test_the_variables_of_settings_make_the_same_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    more = {"NOD_TIMEZONE": "Europe/London", "NOD_RETENTION": "100000s", "NOD_FETCH_PORTS": (80, 8443)}
    made = Settings.load(**GIVEN, **more)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings.load() == made


@pytest.mark.slow
async def test_the_doctor_looks_at_the_nod_that_runs_and_tells_what_to_do(serve: Serve, sealed: str):
    async with serve(
        token=CHIEF, patience=200, NOD_DATABASE_URL=sealed, **GIVEN, NOD_APPROVERS=("http:nobody",)
    ) as nod:
        first, second = await asyncio.gather(*(nod.client.get("/api/doctor", timeout=150) for _ in range(2)))
        found = first.json()
        assert found == second.json()
        assert found["fault"] == ""
        assert SECRET not in first.text
        health = {each["name"]: each["health"] for each in found["findings"]}
        assert health[f"address 127.0.0.1:{nod.app.web.port}"] == "ok"
        (model,) = [each for each in found["findings"] if each["name"] == "model"]
        assert (model["health"], model["fix"]) == (
            "warn",
            "the scripted demo model answers; set OPENAI_API_KEY or OPENAI_BASE_URL",
        )


def a_doctor(code: str, patience: float = 30) -> Doctor:
    """A doctor that is another program."""
    return Doctor(Settings.load(), lambda: 8080, now, command=(sys.executable, "-c", code), patience=patience)


async def test_what_imported_tools_print_is_passed_over():
    found = [{"name": "model", "health": "FAIL", "fix": "[\nno"}]
    noise = "print('hello [', '\\n[\\n1]')"
    said = await a_doctor(f"{noise}; print({json.dumps(found, indent=2)!r})").examine()
    assert [(each.name, each.health) for each in said.findings] == [("model", Health.FAIL)]


@pytest.mark.parametrize("code", ["print('nothing')", "print('[]'[0])", "print('[\\n{}]')", "1 / 0"])
async def test_a_doctor_that_fails_says_where_to_look(code: str):
    said = await a_doctor(code).examine()
    assert (said.findings, said.fault) == ((), "The doctor failed. Run nod doctor on that machine.")


async def test_a_doctor_that_hangs_is_ended_with_all_it_started():
    code = "import subprocess, time; subprocess.Popen(['sleep', '1000']); time.sleep(1000)"
    said = await a_doctor(code, patience=0.5).examine()
    assert said.fault == "The doctor was stopped after 0.5 s."


async def test_a_nod_that_stops_does_not_wait_for_its_doctor():
    doctor = a_doctor("import time; time.sleep(1000)")
    asking = asyncio.create_task(doctor.examine())
    await asyncio.sleep(0)
    await doctor.stop()
    with pytest.raises(asyncio.CancelledError):
        await asking
