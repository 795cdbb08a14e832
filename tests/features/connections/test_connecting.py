"""Connecting an account: the link, the sign-in, whose account it is, and the person's yes."""

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
