"""How people decide, what they mute, what is on, agents, devices: in light, dark and on a phone."""

import os
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlmodel import Session

from bot.domain.people import Actor
from bot.features.push.rows import NewDevice, Subscription, add_device
from tests.features.push.conftest import KEY
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_agents import ANA, CHIEF, SETTINGS, enter
from tests.web.console.test_console import NARROW, NewPage, violations

pytestmark = pytest.mark.browser

SHOWN: dict[str, str] = {
    "insights": "How people decide",
    "people": "close_issue",
    "features": "12 an hour",
    "agents": "claude-code",
    "you": "Laptop",
}
"""What stands on each page, by its address."""
RULES = ("attention 12 an hour", "notify reminder after 30m where risk is destructive", "remind 2h")
GIVEN: dict[str, Any] = SETTINGS | {
    "token": CHIEF,
    "NOD_INSIGHTS": "people",
    "NOD_PUSH_KEY": KEY.private,
    "NOD_PUBLIC_URL": "https://nod.example.com",
}


def type_command(nod: Served, text: str, name: str = "approvals", token: str = CHIEF) -> None:
    signed_in = {"Authorization": f"Bearer {token}"}
    body = {"name": name, "text": text}
    answer = nod.client.post("api/commands", json=body, headers=signed_in).json()
    assert answer["ok"], answer


def prepare(nod: Served) -> None:
    """Some decisions of two people, rules, a mute of each, a device and an agent."""
    for words in RULES:
        type_command(nod, words)
    for token in (ANA, CHIEF):
        type_command(nod, "mutes close_issue for 8h", "nod", token)
    for number in (1, 2, 3):
        [proposal] = nod.ask(f"close #{number}")
        nod.press(proposal, "approve" if number < 3 else "decline")
    named = {"name": "claude-code", "tools": ["list_*"]}
    made = nod.client.post("api/agents", json=named)
    assert made.status_code < 400, made.text
    nod.app.database.write_now(_add_device, nod)


def _add_device(session: Session, nod: Served) -> None:
    subscription = Subscription("https://push.example.com/1", KEY.public, "s" * 22)
    now = nod.app.clock()
    device = NewDevice(subscription, None, now + timedelta(hours=1), "Laptop", KEY.fingerprint)
    add_device(session, Actor("http", "chief", "Chief"), device, now)


@pytest.mark.parametrize(
    ("name", "look"), [("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", NARROW)]
)
def test_axe_finds_nothing_on_them(serve: Serve, new_page: NewPage, name: str, look: dict[str, Any]) -> None:
    with serve(**GIVEN) as nod:
        prepare(nod)
        page = enter(nod, new_page, "insights", CHIEF, **look)
        for at, words in SHOWN.items():
            page.goto(f"{nod.url}#/{at}")
            expect(page.locator("main:visible")).to_contain_text(words)
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            take_picture(page, f"{at}-{name}")


def take_picture(page: Page, name: str) -> None:
    """Where pictures are wanted, to be looked at."""
    if folder := os.environ.get("NOD_TEST_PICTURES"):
        page.wait_for_timeout(300)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
