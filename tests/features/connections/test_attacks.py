"""What bad input gets on the way to a connection: words that say what to do, and no one else's account."""

from datetime import timedelta
from html import unescape

import httpx
import pytest
from sqlmodel import select

from bot.domain.people import Actor, Membership
from bot.domain.text import hash_text
from bot.errors import SettingsError, SignInError
from bot.features.connections.sign_in.connecting import (
    LINK_OVER_TEXT,
    SIGN_IN_OVER_TEXT,
    ConnectFlow,
)
from bot.features.connections.sign_in.pending import WRONG_DIGITS_TEXT
from bot.features.connections.tables import ConnectingRow
from bot.store.secrets import new_key
from tests.features.connections.conftest import ANA, BEN, Connect, Connectable, port_of, query_of
from tests.features.connections.tracker import Tracker


async def away(there: Connectable, link: str) -> tuple[httpx.AsyncClient, str]:
    """Use a link up; the browser, and where its sign-in would send it back to."""
    browser = there.browser()
    answer = await browser.press(link)
    signed_in = await browser.client.get(answer.headers["location"])
    return browser.client, signed_in.headers["location"]


async def test_a_link_that_is_opened_by_scanners_is_still_there_for_its_person(there: Connectable):
    link = await there.link()
    for _ in range(5):
        assert (await there.browser().open(link)).status_code == 200
        assert (await there.browser().client.head(link)).status_code == 200
    assert "octocat" in (await there.browser().sign_in(link)).text


async def test_a_link_is_used_once(there: Connectable):
    link = await there.link()
    await there.browser().sign_in(link)
    again = await there.browser().press(link)
    assert (again.status_code, LINK_OVER_TEXT in unescape(again.text)) == (410, True)
    assert (await there.browser().open(link)).status_code == 410


async def test_a_link_is_over_after_ten_minutes(there: Connectable):
    link = await there.link()
    there.nod.clock.forward(timedelta(minutes=10, seconds=1))
    assert (await there.browser().open(link)).status_code == 410
    assert (await there.browser().press(link)).status_code == 410


async def test_a_link_is_over_where_the_clock_is_set_back(there: Connectable):
    link = await there.link()
    there.nod.clock.forward(timedelta(hours=-2))
    assert (await there.browser().press(link)).status_code == 410


async def test_a_form_of_another_site_uses_no_link_up(there: Connectable):
    link = await there.link()
    refused = await there.browser().press(link, Origin="https://evil.example")
    assert refused.status_code == 403
    assert (await there.browser().client.post(link)).status_code == 403
    assert (await there.browser().open(link)).status_code == 200


async def test_no_other_page_frames_the_question_and_its_address_goes_nowhere(there: Connectable):
    page = await there.browser().open(await there.link())
    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"


async def test_the_cookie_of_a_sign_in_is_read_by_no_script_and_comes_back_with_the_person(
    there: Connectable,
):
    answer = await there.browser().press(await there.link())
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


async def test_behind_tls_the_cookie_is_of_this_host_alone(start: Connect, tracker: Tracker):
    async with start(NOD_PUBLIC_URL="https://nod.example") as nod:
        there = Connectable(nod, tracker)
        link = (await there.link()).replace("https://nod.example", nod.url)
        answer = await there.browser().press(link, Origin=nod.url)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-nod_connect=")
        assert "Secure" in cookie
        assert "Path=/;" in f"{cookie};"
        await there.close()


async def test_another_browser_can_not_bring_the_return(there: Connectable):
    mine, back = await away(there, await there.link())
    stolen = await there.browser().client.get(back)
    assert (stolen.status_code, SIGN_IN_OVER_TEXT in stolen.text) == (400, True)
    assert "octocat" in (await mine.get(back)).text


async def test_a_return_counts_once(there: Connectable):
    mine, back = await away(there, await there.link())
    assert (await mine.get(back)).status_code == 200
    assert (await mine.get(back)).status_code == 400


async def test_a_return_by_head_uses_nothing_up(there: Connectable):
    mine, back = await away(there, await there.link())
    assert (await mine.head(back)).status_code == 200
    assert (await mine.get(back)).status_code == 200


@pytest.mark.parametrize("changed", ["state=another", "iss=https://evil.example"])
async def test_a_return_with_another_state_or_issuer_connects_nothing(there: Connectable, changed: str):
    mine, back = await away(there, await there.link())
    name = changed.partition("=")[0]
    kept = "&".join(part for part in query_of(back).split("&") if not part.startswith(f"{name}="))
    refused = await mine.get(f"{back.partition('?')[0]}?{kept}&{changed}")
    assert refused.status_code == 400
    assert there.rows() == []
    assert there.told() == []


async def test_a_return_at_another_servers_address_connects_nothing(there: Connectable):
    mine, back = await away(there, await there.link())
    refused = await mine.get(back.replace("/oauth/callback/tracker", "/oauth/callback/wiki"))
    assert refused.status_code == 400
    assert "octocat" in (await mine.get(back)).text


async def test_who_says_no_at_the_server_reads_that_and_nothing_is_connected(there: Connectable):
    there.tracker.people.says_no = True
    page = await there.browser().sign_in(await there.link())
    assert "You were not let in at tracker" in page.text
    assert there.rows() == []


async def test_a_server_that_gives_no_token_is_told_by_its_words(there: Connectable):
    there.tracker.people.refuses = "invalid_grant"
    page = await there.browser().sign_in(await there.link())
    assert "tracker gave no token for this sign-in" in page.text
    assert there.rows() == []


async def test_a_server_that_is_down_leaves_words_and_a_new_link_works(there: Connectable):
    link = await there.link()
    await there.tracker.down()
    gone = await there.browser().press(link)
    assert (gone.status_code, "can't be reached" in unescape(gone.text)) == (409, True)
    await there.tracker.up()
    assert "octocat" in (await there.browser().sign_in(await there.link())).text


async def test_a_wrong_number_ends_the_sign_in_and_its_tokens_are_revoked(there: Connectable):
    digits = await there.digits()
    wrong = f"{(int(digits) + 1) % 1_000_000:06}"
    assert (await there.say(f"confirm {wrong}")).text == WRONG_DIGITS_TEXT
    assert (await there.say(f"confirm {digits}")).text == "No sign-in of yours waits for a number."
    assert there.rows() == []
    await there.sweep()
    assert len(there.tracker.people.revoked) == 2


async def test_the_number_counts_for_the_person_of_the_link_alone(there: Connectable):
    digits = await there.digits()
    assert (await there.say(f"confirm {digits}", BEN)).text == "No sign-in of yours waits for a number."
    assert (await there.say(f"confirm {digits}")).text.startswith("Connected: As Ana")


async def test_a_reader_of_the_database_finds_no_number_by_trying_all(there: Connectable):
    digits = await there.digits()
    row = there.nod.app.database.read_now(lambda session: session.exec(select(ConnectingRow)).one())
    assert row.digits.startswith("fernet:")
    assert hash_text(f"{row.id} {digits}") not in row.digits


async def test_the_number_is_over_after_ten_minutes_and_its_tokens_are_revoked(there: Connectable):
    digits = await there.digits()
    there.nod.clock.forward(timedelta(minutes=11))
    assert (await there.say(f"confirm {digits}")).text == "No sign-in of yours waits for a number."
    await there.sweep()
    await there.sweep()
    assert len(there.tracker.people.revoked) == 2


async def test_an_account_that_another_person_connected_is_refused_and_they_are_told(
    there: Connectable,
):
    await there.connect(ANA, "octocat")
    page = await there.browser().sign_in(await there.link(BEN))
    assert "Another person here has connected that account" in page.text
    assert [row.owner for row in there.rows()] == [str(ANA)]
    assert "Ben" in there.told(ANA)[-1]
    assert "It stays yours alone" in there.told(ANA)[-1]
    assert there.told(BEN) == []
    await there.sweep()
    assert there.tracker.people.revoked == []  # it could end the tokens of her connection


async def test_of_two_who_confirm_one_account_the_second_has_none(there: Connectable):
    hers, his = await there.digits(ANA), await there.digits(BEN)
    assert (await there.say(f"confirm {hers}")).text.startswith("Connected: As Ana")
    assert (await there.say(f"confirm {his}", BEN)).text.startswith("Another person here has connected")
    await there.sweep()
    [row] = there.rows()
    assert row.owner == str(ANA)
    assert there.tracker.people.revoked == []


async def test_what_ends_while_its_code_is_exchanged_leaves_no_token(there: Connectable):
    async def end_everywhere() -> None:
        await there.say("end everywhere")

    there.tracker.people.before_tokens = end_everywhere
    page = await there.browser().sign_in(await there.link())
    assert (page.status_code, SIGN_IN_OVER_TEXT in unescape(page.text)) == (400, True)
    await there.sweep()
    assert there.rows() == []
    assert len(there.tracker.people.revoked) == 2


async def test_the_fourth_sign_in_of_a_person_ends_the_first(there: Connectable):
    links = [await there.link() for _ in range(4)]
    status = [(await there.browser().open(link)).status_code for link in links]
    assert status == [410, 200, 200, 200]
    assert (await there.browser().open(await there.link(BEN))).status_code == 200


async def test_five_hundred_are_under_way_at_most(there: Connectable):
    for number in range(167):
        for _ in range(3):
            said = await there.say("connect tracker", Actor("slack", f"T1/V{number}", "Someone"))
    assert said.text == "Many people are connecting right now. Try again in a minute."
    there.nod.clock.forward(timedelta(minutes=11))
    assert "(http" in (await there.say("connect tracker")).text


async def test_a_name_of_an_account_mentions_no_one_and_stands_on_one_line(there: Connectable):
    there.tracker.named = "<!channel> \u202eevil\n# **bold** " + "x" * 10_000
    page = await there.browser().sign_in(await there.link())
    assert "<!channel>" not in page.text
    assert "\u202e" not in page.text
    [asked] = there.told()
    assert len(asked) < 600
    assert "\n#" not in asked
    assert "\u202e" not in asked


async def test_a_person_from_outside_the_team_connects_nothing(there: Connectable):
    guest = Actor("slack", "T1/U9", "Guest", Membership.GUEST)
    assert "I only work for people of this team." in (await there.say("connect tracker", guest)).text
    with pytest.raises(SignInError, match="Only people of the team connect accounts"):
        await ConnectFlow(port_of(there)).make_link("tracker", guest)


async def test_there_is_no_link_to_a_server_that_is_not_there(there: Connectable):
    assert (await there.say("connect nowhere")).text == (
        "People connect no account at nowhere. They do at: tracker."
    )


async def test_the_redirect_address_is_the_servers_own(there: Connectable):
    answer = await there.browser().press(await there.link())
    assert "%2Foauth%2Fcallback%2Ftracker" in answer.headers["location"]
    assert "code_challenge_method=S256" in answer.headers["location"]


async def test_a_restart_changes_nothing_of_a_sign_in_under_way(start: Connect, tracker: Tracker):
    public = {"NOD_PUBLIC_URL": "http://nod.example"}
    async with start(**public) as nod:
        there = Connectable(nod, tracker)
        link = (await there.link()).replace("http://nod.example", nod.url)
        mine, back = await away(there, link)
        cookies = list(mine.cookies.items())
        await there.close()
    async with start(**public) as nod:
        there = Connectable(nod, tracker)
        browser = there.browser()
        for name, value in cookies:
            browser.client.cookies.set(name, value)
        page = await browser.open(f"{nod.url}/oauth/callback/tracker?{query_of(back)}")
        assert "octocat" in page.text
        await there.close()


async def test_a_lost_key_leaves_nothing_to_use_and_asks_the_owner_again(start: Connect, tracker: Tracker):
    async with start() as nod:
        there = Connectable(nod, tracker)
        await there.connect()
        await there.close()
    async with start(NOD_SECRET_KEY=(new_key(),)) as nod:
        there = Connectable(nod, tracker)
        assert "expired: connect it again" in (await there.say("")).text
        await there.sweep()
        await there.sweep()
        assert "No key of NOD_SECRET_KEY opens your connection to tracker" in there.told()[-1]
        assert len([text for text in there.told() if "No key" in text]) == 1
        assert (await there.connect()).startswith("Connected: As Ana at tracker")
        await there.close()


async def test_without_a_key_the_start_says_what_makes_one(start: Connect, tracker: Tracker):
    with pytest.raises(SettingsError, match=r"NOD_SECRET_KEY: needed .*tracker.* Make one: nod secrets new"):
        async with start(NOD_SECRET_KEY=()):
            pass
