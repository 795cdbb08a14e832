"""Each policy of docs/cookbook.md is set with the page's own words and answers as the page says."""

import re
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from bot.domain.chat import Address
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.rule_values import Mode
from bot.features.issues.tools import make_issue_toolset
from bot.features.requests.tools import make_request_toolset
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from tests.kit import FakeClock, Nod, cores
from tests.kit.urls import Urls

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[3] / "docs" / "cookbook.md").read_text()
HEAD, *_PARTS = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
RECIPES = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))


class Said(NamedTuple):
    command: str
    answer: str


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _said(text: str) -> list[Said]:
    """The commands of a recipe, each with the answer below it."""
    found = re.findall(r"^> (/.+)\n((?:[^>\n`].*\n)*)", "\n".join(_blocks(text, "text")), re.MULTILINE)
    return [Said(command, " ".join(answer.split())) for command, answer in found]


def _setting(text: str, name: str, default: str) -> str:
    found = re.search(rf"^{name}=(\S+)$", "\n".join(_blocks(text, "sh")), re.MULTILINE)
    return found[1] if found else default


def _accounts(name: str) -> frozenset[str]:
    return frozenset(_setting(HEAD, name, "").split(","))


ADMIN = Actor.parse(*_accounts("NOD_ADMINS"))
HERE = Address("slack", "T1/ADMINS")


def _own_tools(text: str) -> list[Tool]:
    """The tools that a recipe's Python makes."""
    module = ModuleType("tools_of_the_page")
    for block in _blocks(text, "python"):
        exec(block, vars(module))  # noqa: S102 - our own document
    return [each for each in vars(module).values() if isinstance(each, Tool)]


class Kitchen(Nod):
    """The core with the issue tracker, what scripts ask, and the tools of one recipe."""

    own: tuple[Tool, ...] = ()

    def tools(self) -> FixedToolset:
        brought = (
            make_issue_toolset(self.database, self.clock).fixed,
            make_request_toolset().fixed,
            self.own,
        )
        return FixedToolset("kitchen", tuple(tool for each in brought for tool in each))


@pytest.mark.parametrize("recipe", RECIPES)
async def test_each_policy_is_set_and_answers_as_the_page_says(
    recipe: str, database_of: Urls, clock: FakeClock
) -> None:
    text = RECIPES[recipe]
    kind = type("Recipe", (Kitchen,), {"own": tuple(_own_tools(text))})
    policy = Policy(
        mode=Mode(_setting(text, "NOD_APPROVAL_POLICY", "writes")),
        admins=_accounts("NOD_ADMINS"),
        approvers=_accounts("NOD_APPROVERS"),
    )
    async with cores(kind, database_of, clock) as make:
        nod = make(policy=policy)
        told = [
            Said(
                said.command,
                (await nod.command(said.command, by=ADMIN, at=Address("slack", "T1/ADMINS"))).text,
            )
            for said in _said(text)
        ]
    assert told == _said(text)
    assert any(" policy test " in said.command for said in told)


def test_the_page_counts_its_policies() -> None:
    assert len(RECIPES) == 16
    assert "\nSixteen policies" in HEAD
