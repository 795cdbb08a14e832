"""Attacks on connecting and on using accounts: each a row, with the rule that stops it.

A row of `ATTACKS` is carried out here. A row of `ELSEWHERE` is the name of the test that carries it out.
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from bot.domain.chat import Address, Message
from bot.domain.connections import ConnectionOwner, Identity
from bot.domain.people import Actor
from bot.features.connections.sign_in.connecting import LINK_OVER_TEXT, SIGN_IN_OVER_TEXT
from tests.features.connections.conftest import ANA, BEN, Browser, Connectable, port_of, query_of
from tests.web.conftest import ANA as ANA_TOKEN
from tests.web.conftest import BEN as BEN_TOKEN
from tests.web.scripted import ask, say

EVE = Actor("slack", "T1/U6", "Eve")
THEIRS = {str(ANA): "octocat", str(BEN): "hubot"}
TESTS = Path(__file__).parents[2]


async def begin(there: Connectable, actor: Actor = ANA, user: str = "octocat") -> tuple[Browser, str]:
    """Use a person's link up; their browser, and where the server's sign-in leads it back to."""
    there.tracker.people.user = user
    browser = there.browser()
    answer = await browser.press(await there.link(actor))
    back = await browser.client.get(answer.headers["location"])
    return browser, back.headers["location"]


async def guess_a_link(there: Connectable) -> None:
    await there.link()
    for _ in range(20):
        url = f"{there.nod.url}/connect/{secrets.token_urlsafe(32)}"
        assert (await there.browser().press(url)).status_code == 410


async def ask_for_odd_links(there: Connectable) -> None:
    for odd in ("..%2f..%2fapi", "a" * 5_000, "%00" * 30, "<script>" * 5, "' OR 1=1 --" * 3):
        answer = await there.browser().press(f"{there.nod.url}/connect/{odd}")
        assert answer.status_code in (404, 405, 410, 422)
        assert "<script>" not in answer.text


async def poison_the_host(there: Connectable) -> None:
    async with there.nod.caller(ANA_TOKEN) as client:
        answer = await client.post(
            "/api/connections/tracker/link", headers={"X-Forwarded-Host": "evil.example"}
        )
    assert "evil.example" not in answer.text


async def return_without_a_cookie(there: Connectable) -> None:
    browser, back = await begin(there)
    browser.client.cookies.clear()
    assert SIGN_IN_OVER_TEXT in (await browser.open(back)).text


async def return_with_a_made_up_cookie(there: Connectable) -> None:
    browser, back = await begin(there)
    browser.client.cookies.clear()
    browser.client.cookies.set("nod_connect", secrets.token_urlsafe(32))
    assert SIGN_IN_OVER_TEXT in (await browser.open(back)).text


async def return_without_a_state(there: Connectable) -> None:
    browser, back = await begin(there)
    bare = re.sub(r"state=[^&]*&?", "", back)
    assert SIGN_IN_OVER_TEXT in (await browser.open(bare)).text


async def return_with_two_states(there: Connectable) -> None:
    browser, back = await begin(there)
    assert (await browser.open(f"{back}&state=another")).status_code == 400


async def inject_the_code_of_another(there: Connectable) -> None:
    """Put Ben's code into Ana's return: it was given for another verifier."""
    mine, back = await begin(there, ANA, "octocat")
    _, theirs = await begin(there, BEN, "hubot")
    code = re.search(r"code=([^&]+)", theirs)
    assert code
    refused = await mine.open(re.sub(r"code=[^&]+", f"code={code[1]}", back))
    assert refused.status_code == 400


async def bring_ones_own_state_into_her_browser(there: Connectable) -> None:
    """Send Ana a return of Eve's own sign-in, so that Eve's account becomes Ana's."""
    hers, _ = await begin(there, ANA, "octocat")
    _, of_eve = await begin(there, EVE, "eve")
    assert SIGN_IN_OVER_TEXT in (await hers.open(of_eve)).text


async def lead_the_return_elsewhere(there: Connectable) -> None:
    browser, back = await begin(there)
    page = await browser.open(f"{back}&redirect_uri=https://evil.example&next=https://evil.example")
    assert not page.is_redirect
    assert "evil.example" not in page.text


async def frame_and_script_the_pages(there: Connectable) -> None:
    page = await there.browser().open(await there.link())
    assert "script-src 'none'" in page.headers["content-security-policy"] or (
        "default-src 'none'" in page.headers["content-security-policy"]
    )


async def try_all_numbers(there: Connectable) -> None:
    digits = await there.digits()
    for offset in range(1, 6):
        await there.say(f"confirm {(int(digits) + offset) % 1_000_000:06}")
    assert "No sign-in of yours waits" in (await there.say(f"confirm {digits}")).text


async def use_a_number_of_an_ended_sign_in(there: Connectable) -> None:
    first = await there.digits()
    await there.say("confirm no")
    await there.digits()
    assert "not the number" in (await there.say(f"confirm {first}")).text


async def send_her_number_over_the_api(there: Connectable) -> None:
    digits = await there.digits()
    async with there.nod.caller(BEN_TOKEN) as client:
        answer = await client.post("/api/connections/confirm", json={"digits": digits})
    assert answer.status_code == 409


async def type_her_number_in_a_group(there: Connectable) -> None:
    digits = await there.digits()
    there.nod.model.answer(say("A number."))
    said = Message(Address("slack", "T1/C1/1.1"), ANA, digits, "e-1", private=False)
    await there.nod.app.core.assistant.handle(said)
    await there.nod.app.dispatcher.wait_until_idle()


async def type_her_number_as_another(there: Connectable) -> None:
    digits = await there.digits()
    there.nod.model.answer(say("A number."))
    said = Message(Address("slack", "T1/D8"), BEN, digits, "e-2", private=True)
    await there.nod.app.core.assistant.handle(said)
    await there.nod.app.dispatcher.wait_until_idle()


async def forward_her_number(there: Connectable) -> None:
    digits = await there.digits()
    there.nod.model.answer(say("A number."))
    text = f"> {digits}\n(forwarded from Eve)"
    await there.nod.app.core.assistant.handle(
        Message(Address("slack", "T1/D7"), ANA, text, "e-3", private=True)
    )
    await there.nod.app.dispatcher.wait_until_idle()


async def end_hers_over_the_api(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    [row] = there.rows()
    async with there.nod.caller(BEN_TOKEN) as client:
        assert (await client.delete(f"/api/connections/{row.id}")).status_code == 404
        assert (await client.delete("/api/connections")).json()["text"] == "Nothing was connected."
    assert len(there.rows()) == 1


async def end_hers_by_a_command(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    [row] = there.rows()
    for which in (row.id, row.id[:8], "tracker", "", "%", "*"):
        await there.say(f"end {which}", BEN)
    assert len(there.rows()) == 1


async def list_hers(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    async with there.nod.caller(BEN_TOKEN) as client:
        assert "octocat" not in (await client.get("/api/connections")).text
    assert "octocat" not in (await there.say("", BEN)).text


async def read_a_list_without_a_token(there: Connectable) -> None:
    async with httpx.AsyncClient(base_url=there.nod.url) as client:
        for path in ("/api/connections", "/api/connections/tracker/link", "/api/connections/confirm"):
            assert (await client.post(path, json={"digits": "1"})).status_code in (401, 405)


async def claim_her_account_at_the_server(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    page = await there.browser().sign_in(await there.link(EVE))  # the browser is still signed in as octocat
    assert "Another person here has connected that account" in page.text


async def connect_under_her_linked_name(there: Connectable) -> None:
    """An account that is called as she is has another id, so it is another person's."""
    await there.connect(ANA, "octocat")
    spoofed = Actor("slack", "T1/U66", "Ana")
    whose = ConnectionOwner(frozenset({str(spoofed)}), "slack:T1/D66")
    port = port_of(there)
    assert (
        there.nod.app.database.read_now(lambda session: port.find(session, "tracker", Identity.PERSON, whose))
        is None
    )


async def use_hers_in_ones_own_conversation(there: Connectable) -> None:
    await there.connect(ANA, "octocat")
    there.tracker.log.clear()
    there.nod.model.answer(ask(("tracker_list_issues", {})), say("None."))
    said = Message(Address("slack", "T1/D8"), BEN, "list Ana's issues", "e-4", private=True)
    await there.nod.app.core.assistant.handle(said)
    await there.nod.app.dispatcher.wait_until_idle()
    assert there.tracker.log == []


async def have_the_model_send_links(there: Connectable) -> None:
    """The model asks for a link for a server that is not there, and for one again and again."""
    calls = [ask(("connect", {"server": name})) for name in ("evil", "tracker", "tracker", "../tracker")]
    there.nod.model.answer(*calls, say("Done."))
    said = Message(Address("slack", "T1/C1/2.2"), ANA, "connect me", "e-5", private=False)
    await there.nod.app.core.assistant.handle(said)
    await there.nod.app.dispatcher.wait_until_idle()
    assert len([text for text in there.told() if "/connect/" in text]) == 1
    assert "/connect/" not in str(there.nod.model.seen)


async def give_a_link_to_an_outsider(there: Connectable) -> None:
    """Eve uses Ana's link up and signs in: the number that she sees is of no use from her own chat."""
    there.tracker.people.user = "eve"
    page = await there.browser().sign_in(await there.link(ANA))
    digits = page.text.split('class="digits"><strong>')[1][:6]
    assert "No sign-in of yours waits" in (await there.say(f"confirm {digits}", EVE)).text
    await there.say("confirm no")  # Ana reads that someone signed in as eve


async def press_a_link_by_another_method(there: Connectable) -> None:
    link = await there.link()
    for method in ("PUT", "PATCH", "DELETE", "TRACE"):
        answer = await there.browser().client.request(method, link, headers={"Origin": there.nod.url})
        assert answer.status_code in (405, 501)
    assert (await there.browser().open(f"{link}?_method=POST")).status_code == 200
    assert LINK_OVER_TEXT not in (await there.browser().open(link)).text


async def ask_for_a_server_by_another_spelling(there: Connectable) -> None:
    for name in ("Tracker", "tracker ", "tracker/../tracker", "tr\u0430cker"):
        said = (await there.say(f"connect {name}")).text
        assert "/connect/" not in said or name.strip() == "tracker"


async def guess_the_state_from_the_link(there: Connectable) -> None:
    """The state is a secret of its own, which no cookie has."""
    browser, back = await begin(there)
    state = re.search(r"state=([^&]+)", query_of(back))
    assert state
    for each in browser.client.cookies.values():
        assert state[1] not in each


@dataclass(frozen=True)
class Attack:
    """An attack, and the rule that stops it."""

    run: Callable[[Connectable], Awaitable[None]]
    rule: str


ATTACKS = [
    Attack(guess_a_link, "a link has 256 random bits, and the database its hash"),
    Attack(ask_for_odd_links, "a link that is none is over, in the same words"),
    Attack(poison_the_host, "addresses come from the settings"),
    Attack(return_without_a_cookie, "a return needs the cookie of the browser that left"),
    Attack(return_with_a_made_up_cookie, "a return needs the cookie of the browser that left"),
    Attack(return_without_a_state, "a return needs its state"),
    Attack(return_with_two_states, "a return needs its state"),
    Attack(inject_the_code_of_another, "PKCE: a code goes with its verifier"),
    Attack(bring_ones_own_state_into_her_browser, "state and cookie are of one sign-in"),
    Attack(lead_the_return_elsewhere, "pages lead nowhere that a request names"),
    Attack(frame_and_script_the_pages, "no script runs on the pages, and nothing frames them"),
    Attack(try_all_numbers, "a wrong number ends the sign-in"),
    Attack(use_a_number_of_an_ended_sign_in, "a number is of one sign-in"),
    Attack(send_her_number_over_the_api, "a number counts from its person alone"),
    Attack(type_her_number_in_a_group, "a number counts in private alone"),
    Attack(type_her_number_as_another, "a number counts from its person alone"),
    Attack(forward_her_number, "a number is all of its message"),
    Attack(end_hers_over_the_api, "people end their own alone"),
    Attack(end_hers_by_a_command, "people end their own alone"),
    Attack(list_hers, "people see their own alone"),
    Attack(read_a_list_without_a_token, "the API asks for a token"),
    Attack(claim_her_account_at_the_server, "one account is of one person"),
    Attack(connect_under_her_linked_name, "people are their accounts, not their names"),
    Attack(use_hers_in_ones_own_conversation, "a person's tools are those of their own account"),
    Attack(have_the_model_send_links, "the model sends one link an hour, in private, and reads none"),
    Attack(give_a_link_to_an_outsider, "the number comes from her own chat"),
    Attack(press_a_link_by_another_method, "a form's POST alone uses a link up"),
    Attack(ask_for_a_server_by_another_spelling, "a server is its exact name"),
    Attack(guess_the_state_from_the_link, "link, cookie and state are three secrets"),
]

ELSEWHERE = {
    "test_a_link_that_is_opened_by_scanners_is_still_there_for_its_person": "GET changes nothing",
    "test_a_link_is_used_once": "a link works once",
    "test_a_link_is_over_after_ten_minutes": "a link lasts ten minutes",
    "test_a_link_is_over_where_the_clock_is_set_back": "a link lasts ten minutes, by any clock",
    "test_a_form_of_another_site_uses_no_link_up": "a form is sent by Nod's own page",
    "test_no_other_page_frames_the_question_and_its_address_goes_nowhere": "nothing frames the page",
    "test_the_cookie_of_a_sign_in_is_read_by_no_script_and_comes_back_with_the_person": "HttpOnly, Lax",
    "test_behind_tls_the_cookie_is_of_this_host_alone": "__Host-",
    "test_another_browser_can_not_bring_the_return": "a return needs the browser that left",
    "test_a_return_counts_once": "a return counts once",
    "test_a_return_with_another_state_or_issuer_connects_nothing": "state; RFC 9207",
    "test_a_return_at_another_servers_address_connects_nothing": "an address for each server",
    "test_a_wrong_number_ends_the_sign_in_and_its_tokens_are_revoked": "a wrong number ends it",
    "test_the_number_counts_for_the_person_of_the_link_alone": "a number is of its person",
    "test_the_number_is_over_after_ten_minutes_and_its_tokens_are_revoked": "ten minutes",
    "test_an_account_that_another_person_connected_is_refused_and_they_are_told": "one person's alone",
    "test_the_fourth_sign_in_of_a_person_ends_the_first": "three at a time",
    "test_five_hundred_are_under_way_at_most": "five hundred for all",
    "test_a_name_of_an_account_mentions_no_one_and_stands_on_one_line": "names are bounded and escaped",
    "test_a_person_from_outside_the_team_connects_nothing": "the team's own people alone",
    "test_a_server_that_answers_wrongly_is_told_in_words_and_nothing_is_kept": "bounds, and words",
    "test_who_is_someone_else_at_the_organisation_uses_no_link_up": "the organisation's sign-in as her",
    "test_another_browser_confirms_nothing": "the browser that left",
    "test_the_organisations_sign_in_leads_to_pages_of_nods_alone": "no open redirect",
    "test_a_refresh_that_many_ask_for_is_made_once": "one process renews",
    "test_a_connection_ends_where_an_account_of_its_person_is_unlinked": "it goes with its person",
    "test_a_changed_address_takes_the_tokens_with_it": "a token is for one address",
    "test_a_connection_that_no_one_made_is_seen_in_the_audit_log": "the audit log has who made it",
    "test_a_value_that_was_copied_to_another_row_is_not_read_there": "encrypted for its row",
    "test_nothing_runs_under_another_account_or_none": "issuer and subject are in the digest",
    "test_what_the_server_says_has_no_token_in_it": "tokens are hidden by value",
    "test_a_schema_that_differs_by_account_is_a_version_of_its_own": "the digest has the version",
    "test_who_steers_the_model_makes_no_call_under_her_account": "thirty ways to steer a read or write",
    "test_what_others_decide_of_her_card_runs_nothing": "the owner's own press",
    "test_only_in_private_outranks_the_press_on_the_card": "what an end shows is a read",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.run.__name__)
async def test_an_attack_connects_nothing_of_anyone_else(there: Connectable, attack: Attack):
    await attack.run(there)
    await there.sweep()
    assert [row for row in there.rows() if row.name != THEIRS.get(row.owner)] == []
    for subject, tool, _ in there.tracker.log:
        assert tool == "get_me" or subject in THEIRS.values()


def test_the_table_names_sixty_attacks_and_each_is_carried_out():
    written = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    missing = [name for name in ELSEWHERE if f"def {name}(" not in written]
    assert missing == []
    assert len(ATTACKS) + len(ELSEWHERE) >= 60
