"""Connecting an account: the link, the sign-in, whose account it is, and the person's yes."""

import pytest

from bot.domain.people import LOCAL, SHELL, Actor
from tests.features.connections.conftest import ANA, Connectable


async def test_a_person_connects_their_account_by_a_link_a_sign_in_and_the_number(there: Connectable):
    link, browser = await there.link(), there.browser()
    question = await browser.open(link)
    assert question.status_code == 200
    assert "act as <strong>you</strong>" in question.text
    assert "Ana (Slack)" in question.text
    there.tracker.people.user = "octocat"
    page = await browser.follow(await browser.press(link))
    assert (page.status_code, "octocat" in page.text) == (200, True)
    [asked] = there.told()
    assert "**octocat**" in asked
    digits = page.text.split('class="digits"><strong>')[1][:6]
    assert digits not in asked
    said = await there.say(f"confirm {digits}")
    assert said.text == ("Connected: As Ana at tracker (octocat). `/nod connections end tracker` ends it.")
    [row] = there.rows()
    assert (row.owner, row.name, row.subject) == (str(ANA), "octocat", "id-of-octocat")
    assert there.tracker.log == [("octocat", "get_me", {})]


@pytest.mark.parametrize(
    ("asker", "named", "where"),
    [
        (ANA, "Ana (Slack)", "Nod has asked you in private"),
        (Actor("telegram", "991", "Ana"), "Ana (Telegram)", "Nod has asked you in private"),
        (Actor("discord", "7", "Ana"), "Ana (Discord)", "Send this number in Discord"),
        (Actor("http", "ana", "ana"), "ana (the console)", "in the console, on the page"),
        (LOCAL, "the person at the computer on which Nod runs", "in the console, on the page"),
        (Actor(SHELL, "ana", "ana"), "ana (the command line)", "Give this number to the command"),
    ],
)
async def test_the_pages_say_who_asks_and_where_the_number_goes_in_each_channel(
    there: Connectable, asker: Actor, named: str, where: str
):
    link, browser = await there.link(asker), there.browser()
    question = await browser.open(link)
    assert f"whenever <strong><bdi>{named}</bdi></strong> asks?" in question.text
    assert f"If you are not <strong><bdi>{named}</bdi></strong>, close this page." in question.text
    page = await browser.follow(await browser.press(link))
    assert f"for <strong><bdi>{named}</bdi></strong>" in page.text
    assert where in page.text
