"""A team's own tools: what joins, what stops the start, and the documents' own code run for real."""

import re
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.redaction import HIDDEN
from bot.domain.risks import Level
from bot.domain.verbs import Verb
from bot.errors import SettingsError
from bot.plugins import TOOLS, list_unnamed
from bot.tools.custom import OwnTools, load_tools
from bot.tools.toolset import Toolset
from tests.kit import BEN, FakeClock, Nod, call
from tests.kit.urls import Urls

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()
A_TOOL = """
from bot.tools.decorator import tool

@tool(writes=False)
async def {name}() -> str:
    return "{name}"
"""

Put = Callable[..., None]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    """Write files into the current folder; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)

    def write(name: str, text: str) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        sys.modules.pop(name.partition("/")[0].removesuffix(".py"), None)  # as another test left it

    yield write
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


async def names(own: OwnTools) -> list[str]:
    return [tool.name for tool in await own.tools()]


def package(put: Put, name: str, *points: str) -> None:
    """An installed package that offers entry points, as pip writes it down."""
    put(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    put(f"{name}-1.0.dist-info/entry_points.txt", "[nod.tools]\n" + "\n".join(points) + "\n")


async def test_modules_of_the_current_folder_join_with_their_public_tools_and_toolsets(put: Put):
    put("acme/__init__.py", "")
    put("acme/own.py", A_TOOL.format(name="shown") + A_TOOL.format(name="_hidden"))
    rack = "from bot.tools.toolset import FixedToolset\nrack = FixedToolset('rack', (racked,))\n"
    put("acme/rack.py", A_TOOL.format(name="racked") + rack)
    own = load_tools(["acme.own", "acme.rack"])
    await own.start()
    assert await names(own) == ["shown", "racked"]


async def test_what_one_module_imports_from_another_joins_once(put: Put):
    put("first.py", A_TOOL.format(name="shown"))
    put("second.py", "from first import shown\n" + A_TOOL.format(name="other"))
    own = load_tools(["first", "second", "first"])
    await own.start()
    assert await names(own) == ["shown", "other"]


A_TOOLSET = """
broken = []

class Moods:
    name = "moods"

    async def tools(self):
        if broken:
            raise RuntimeError("bad mood")
        return [_mood]

source = Moods()
"""


async def test_a_toolset_is_asked_again_and_one_that_breaks_later_costs_only_its_own_tools(put: Put):
    put("steady.py", A_TOOL.format(name="steady"))
    put("moody.py", A_TOOL.format(name="_mood") + A_TOOLSET)
    own = load_tools(["moody", "steady"])
    await own.start()
    assert await names(own) == ["_mood", "steady"]
    sys.modules["moody"].broken.append(True)
    assert await names(own) == ["steady"]
    with pytest.raises(SettingsError, match=r"a toolset of moody failed \(RuntimeError: bad mood, moody.py"):
        await own.start()


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        (None, "there is no module wanted; install it, or start nod in the folder that has it"),
        ("import not_installed_anywhere", "it needs the module not_installed_anywhere; install that"),
        ("x = (", "SyntaxError"),
        ("raise ValueError('no key\\nset')", "(ValueError: no key set, wanted.py line 1); fix it"),
        ("raise SystemExit(3)", "(SystemExit: 3, wanted.py line 1); fix it"),
        ("from bot.tools.decorator import tool\n@tool()\ndef f(): ...", "tool f must be an async function"),
        (
            "from bot.tools.decorator import tool; from bot.tools.toolset import FixedToolset",
            "write @tool() over an async function",
        ),
    ],
)
def test_what_cannot_be_loaded_is_one_line_with_the_name_and_the_fix(put: Put, text, mend):
    if text is not None:
        put("wanted.py", text)
    with pytest.raises(SettingsError) as raised:
        load_tools(["wanted"])
    assert raised.value.message.startswith("NOD_TOOLS: wanted")
    assert mend in raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("list_issues", "has the name of a tool of Nod itself; rename it"),
        ("other", "has the name of a tool of first; rename it"),
        ("größe", "has a name no language model takes"),
    ],
)
async def test_a_name_that_is_taken_or_cannot_be_called_stops_the_start(put: Put, name, mend):
    put("first.py", A_TOOL.format(name="other"))
    put("wanted.py", A_TOOL.format(name=name))
    own = load_tools(["first", "wanted"], frozenset({"list_issues"}))
    with pytest.raises(SettingsError, match=f"^NOD_TOOLS: '{name}' in wanted {mend}"):
        await own.start()


async def test_an_installed_package_adds_nothing_until_its_entry_point_is_named(put: Put):
    put("acme_tools.py", A_TOOL.format(name="one") + A_TOOL.format(name="two"))
    package(put, "acme", "acme = acme_tools", "single = acme_tools:two", "gone = acme_tools:three")
    put("mine.py", A_TOOL.format(name="mine"))
    assert await names(load_tools(["mine"])) == ["mine"]
    assert [point.name for point in list_unnamed(TOOLS, ["entry:acme"])] == ["gone", "single"]
    assert await names(load_tools(["entry:acme"])) == ["one", "two"]
    assert await names(load_tools(["entry:single"])) == ["two"]
    with pytest.raises(SettingsError, match="NOD_TOOLS: entry:gone leads to acme_tools:three"):
        load_tools(["entry:gone"])
    with pytest.raises(
        SettingsError, match=r"no installed package .* 'other' .*there are: acme, gone, single"
    ):
        load_tools(["entry:other"])


def test_an_entry_point_that_two_packages_bring_is_refused(put: Put):
    put("acme_tools.py", A_TOOL.format(name="one"))
    package(put, "acme", "acme = acme_tools")
    package(put, "evil", "acme = evil_tools")
    with pytest.raises(
        SettingsError, match=r"NOD_TOOLS: entry:acme is brought by several packages \(acme 1.0, evil 1.0\)"
    ):
        load_tools(["entry:acme"])


def test_a_file_in_the_current_folder_takes_no_installed_modules_place(put: Put):
    put("colorsys.py", A_TOOL.format(name="evil"))
    sys.modules.pop("colorsys", None)
    with pytest.raises(SettingsError, match=r"colorsys has no tools \(.*python3.*colorsys.py\)"):
        load_tools(["colorsys"])


# --- the documents


@pytest.fixture
async def office(put: Put, database_of: Urls, clock: FakeClock) -> AsyncIterator[Nod]:
    """The core over the tools of docs/tools.md, as ``NOD_TOOLS=seats`` loads them."""
    put("seats.py", "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)))
    own = load_tools(["seats"])
    await own.start()

    class Office(Nod):
        def tools(self) -> Toolset:
            return own

    nod = Office(database_of("nod"), clock)
    yield nod
    await nod.check()
    await nod.close()


async def test_the_pages_read_runs_immediately(office: Nod):
    assert await office.asked(call("seats_look", city="paris")) == []
    assert office.model.results == ["3"]


async def test_the_pages_write_shows_old_and_new_and_runs_after_the_press(office: Nod):
    [proposal] = await office.asked(call("seats_set", city="paris", number=4))
    assert proposal.description == "Set the seats in paris to 4"
    assert proposal.preview == (PreviewField("seats", "3", "4"),)
    assert proposal.risk.level is Level.WRITE
    assert sys.modules["seats"].SEATS["paris"] == 3
    done = await office.approve(proposal)
    assert (done.state, done.result_sentence) == (State.SUCCEEDED, "paris has 4 seats")
    assert done.result_url == "https://seats.example/paris"
    booked = sys.modules["seats"].BOOKED
    assert booked == {proposal.idempotency_key: 4}


async def test_the_pages_argument_makes_it_destructive_and_its_error_reaches_the_model(office: Nod):
    [proposal] = await office.asked(call("seats_set", city="oslo", number=0))
    assert (proposal.risk.level, proposal.risk.reason) == (Level.DESTRUCTIVE, "it closes the office")
    assert await office.asked(call("seats_set", city="rome", number=1)) == []
    assert office.model.results[-1] == "ERROR: There is no office in rome. There are: oslo, paris."


async def test_the_pages_key_makes_calls_for_one_office_alike(office: Nod):
    [proposal] = await office.asked(call("seats_set", city="paris", number=4))
    words = [words for _, words in await office.lookup.ladder(proposal.id, proposal.requester)]
    assert any("city" in each and "paris" in each for each in words), words


async def test_the_pages_change_is_read_again_and_undone_unless_it_says_why_not(office: Nod):
    [proposal] = await office.asked(call("seats_book", city="paris", number=4))
    assert office.chat.card_of(proposal).undo_sentence == "Can be undone for 30 min."
    done = await office.approve(proposal)
    assert [each.description for each in done.read_again] == ["seats is 4"]
    await office.press(Verb.UNDO, done)
    await office.idle()
    assert sys.modules["seats"].SEATS["paris"] == 3
    [closing] = await office.asked(call("seats_book", city="paris", number=0))
    assert office.chat.card_of(closing).undo_sentence == "Nod can't undo this: the office is closed for good."


async def test_the_pages_migration_is_tried_rolled_back_and_applied_as_it_was_shown(office: Nod):
    shop = sqlite3.connect("shop.db")
    shop.execute("CREATE TABLE goods (name TEXT)")
    shop.commit()
    [proposal] = await office.asked(call("shop_migrate", sql="ALTER TABLE goods ADD COLUMN price REAL"))
    now, then = "CREATE TABLE goods (name TEXT)", "CREATE TABLE goods (name TEXT, price REAL)"
    assert proposal.preview == (PreviewField("tables", now, then),)
    assert shop.execute("SELECT sql FROM sqlite_master").fetchall() == [(now,)]
    shop.execute("CREATE TABLE staff (name TEXT)")
    shop.commit()
    again = await office.approve(proposal)
    assert (again.state, again.values_changed) == (State.PROPOSED, True)
    done = await office.approve(again)
    assert (done.state, done.result_sentence) == (State.SUCCEEDED, "The shop is migrated")
    assert (then,) in shop.execute("SELECT sql FROM sqlite_master").fetchall()
    shop.close()


async def test_the_pages_secret_stands_on_no_card_and_reaches_the_tool(office: Nod):
    [proposal] = await office.asked(call("seats_open", city="paris", code="4711"))
    card = office.chat.card_of(proposal)
    assert "4711" not in repr(card)
    assert card.arguments["code"] == HIDDEN
    assert (await office.approve(proposal)).result == "the door in paris is open"


async def test_the_pages_tools_ask_those_who_may_decide_and_no_one_else(office: Nod):
    [proposal] = await office.asked(call("seats_set", city="paris", number=4))
    await office.press(Verb.APPROVE, proposal, by=BEN)
    await office.idle()
    assert (await office.now(proposal)).state is State.PROPOSED


def test_the_pages_first_block_is_ten_lines():
    first = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert first is not None
    assert len([line for line in first[1].splitlines() if line.strip()]) <= 10
