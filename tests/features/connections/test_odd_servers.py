"""Connecting at sign-in servers that do what real ones do, and what hostile ones do."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.features.connections.conftest import BEN, Connect, Connectable, write_config
from tests.features.connections.tracker import Tracker
from tests.tools.mcp.servers.sign_in import TOKEN, SignInServer

LARGE = {"access_token": "x" * (10 << 20), "token_type": "bearer"}


@pytest.fixture
def odd() -> Iterator[SignInServer]:
    served = SignInServer()
    yield served
    served.close()


@pytest.fixture
async def there(start: Connect, odd: SignInServer, tmp_path: Path) -> AsyncIterator[Connectable]:
    write_config(tmp_path, odd={"url": f"{odd.base}/mcp", "identity": "person"})
    async with start() as nod:
        made = Connectable(nod, Tracker())
        yield made
        await made.close()


async def end_of(there: Connectable) -> str:
    return (await there.browser().sign_in(await there.link(server="odd"))).text


async def test_github_answers_form_encoded(there: Connectable, odd: SignInServer):
    odd.token = (200, "application/x-www-form-urlencoded", TOKEN)
    assert "an account whose name <strong><bdi>odd</bdi></strong> does not tell" in await end_of(there)


async def test_google_names_its_issuer_with_and_without_a_last_slash(there: Connectable, odd: SignInServer):
    odd.issuer, odd.asked_for = f"{odd.base}/", odd.base
    odd.back = {"code": "code-1", "iss": odd.base}
    assert "You signed in at" in await end_of(there)


async def test_two_people_of_a_server_that_names_no_account_have_their_own(there: Connectable):
    for actor in (BEN, None):
        said = there.browser()
        page = await said.sign_in(await (there.link(actor, "odd") if actor else there.link(server="odd")))
        digits = page.text.split('class="digits"><strong>')[1][:6]
        await (there.say(f"confirm {digits}", actor) if actor else there.say(f"confirm {digits}"))
    assert len({row.id for row in there.rows()}) == 2
    assert {row.subject for row in there.rows()} == {""}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"token": (200, "application/json", LARGE)}, "reached. Try again later"),
        (
            {"token": (200, "application/json", {"token_type": "bearer"})},
            "odd gave no token for this sign-in",
        ),
        ({"token": (400, "application/json", {"error": "invalid_grant"})}, "invalid_grant"),
        ({"token": (200, "text/html", {"x": "<script>"})}, "odd gave no token for this sign-in"),
        ({"back": {"code": "c", "iss": "https://evil.example"}}, "describes its sign-in wrongly"),
        (
            {"back": {"error": "access_denied", "error_description": "<b>no</b>"}},
            "You were not let in at odd",
        ),
        ({"back": {}}, "You were not let in at odd"),
        ({"issuer": "https://evil.example"}, "describes its sign-in wrongly"),
        ({"registered": (403, {"error": "invalid_client"})}, "takes no clients that it does not know"),
    ],
)
async def test_a_server_that_answers_wrongly_is_told_in_words_and_nothing_is_kept(
    there: Connectable, odd: SignInServer, changes: dict[str, Any], told: str
):
    for name, value in changes.items():
        setattr(odd, name, value)
    page = await end_of(there)
    assert told in page
    assert "<script>" not in page
    assert "<b>no</b>" not in page
    assert there.rows() == []
    assert there.told() == []
    assert (await there.say("confirm 123456")).text == "No sign-in of yours waits for a number."
