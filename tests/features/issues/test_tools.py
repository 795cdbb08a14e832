"""The built-in issue tracker: its rows and its tools."""

from datetime import timedelta
from typing import Any

import pytest

from bot.domain.policy import Policy
from bot.domain.risks import Level
from bot.errors import BadArguments, PermanentRefusal, ToolError
from bot.features.feature import FeatureParts
from bot.features.issues import rows as issues
from bot.features.issues.samples import store_samples
from bot.features.issues.tools import make_issue_toolset
from bot.settings import Settings
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.call import CallContext
from bot.tools.tool import Tool


class Tracker:
    """Calls the tools as the core does: arguments are validated, then previewed or run."""

    def __init__(self, database: Database, clock) -> None:
        self.tools: dict[str, Tool] = {t.name: t for t in make_issue_toolset(database, clock).fixed}

    async def run(self, name: str, key: str = "", **arguments: Any) -> Any:
        tool = self.tools[name]
        output = await tool.run(tool.validate(arguments), CallContext("c1", "http:ana", key))
        return output.data

    async def preview(self, name: str, **arguments: Any) -> list[tuple[str, str | None, str | None]]:
        tool = self.tools[name]
        fields = await tool.preview_fields(tool.validate(arguments))
        return [(f.field, f.old_value, f.new_value) for f in fields]

    async def title(self, name: str, **arguments: Any) -> str:
        tool = self.tools[name]
        assert tool.title is not None
        return await tool.title(tool.validate(arguments))

    async def told(self, name: str, **arguments: Any) -> str | None:
        tool = self.tools[name]
        return (await tool.run(tool.validate(arguments), CallContext("c1", "http:ana"))).told

    def summary(self, name: str, **arguments: Any) -> str:
        tool = self.tools[name]
        return tool.summary(tool.validate(arguments))


@pytest.fixture
def tracker(database, clock):
    return Tracker(database, clock)


def numbers(answer: dict[str, Any]) -> list[int]:
    return [issue["number"] for issue in answer["issues"]]


async def test_a_created_issue_can_be_read_back_whole(tracker, clock):
    made = await tracker.run(
        "create_issue", title=" Login fails ", body="Since *today*.", labels=["web", "bug", "bug"]
    )
    assert made["number"] == 1
    assert await tracker.run("get_issue", number=1) == {
        "number": 1,
        "title": "Login fails",
        "body": "Since *today*.",
        "state": "open",
        "priority": "normal",
        "assignee": None,
        "labels": ["bug", "web"],
        "author": "http:ana",
        "comments": [],
        "created_at": clock.now.isoformat(),
        "updated_at": clock.now.isoformat(),
    }


async def test_a_run_with_the_same_idempotency_key_creates_once(tracker):
    first = await tracker.run("create_issue", key="k1", title="Login fails")
    again = await tracker.run("create_issue", key="k1", title="Login fails")
    other = await tracker.run("create_issue", key="k2", title="Login fails")
    assert first["number"] == again["number"] != other["number"]
    assert (await tracker.run("list_issues"))["total"] == 2


async def test_a_comment_with_the_same_idempotency_key_is_said_once(tracker):
    await tracker.run("create_issue", title="Login fails")
    for key in ("k1", "k1", "k2"):
        await tracker.run("comment_issue", key=key, number=1, body="Me too")
    assert len((await tracker.run("get_issue", number=1))["comments"]) == 2


async def test_the_number_of_a_deleted_issue_is_never_given_again(tracker):
    await tracker.run("create_issue", title="First")
    await tracker.run("delete_issue", number=1)
    assert (await tracker.run("create_issue", title="Second"))["number"] == 2


async def test_the_preview_of_a_new_issue_shows_every_value_it_will_have(tracker):
    assert await tracker.preview(
        "create_issue", title="Login fails", assignee="Ana", labels=["web", "bug"]
    ) == [
        ("title", None, "Login fails"),
        ("assignee", None, "Ana"),
        ("priority", None, "normal"),
        ("labels", None, "bug, web"),
    ]


async def test_the_preview_of_an_update_shows_only_what_really_changes(tracker):
    await tracker.run("create_issue", title="Login fails", assignee="Ana", priority="high", labels=["bug"])
    assert await tracker.preview(
        "update_issue",
        number=1,
        title="Login fails",
        assignee="",
        priority="urgent",
        labels=["web", "bug"],
        state="open",
    ) == [
        ("assignee", "Ana", None),
        ("priority", "high", "urgent"),
        ("labels", "bug", "bug, web"),
    ]


async def test_an_update_changes_what_was_given_and_leaves_the_rest(tracker, clock):
    await tracker.run("create_issue", title="Login fails", body="Why?", assignee="Ana", labels=["bug"])
    clock.forward(timedelta(hours=1))
    told = await tracker.run(
        "update_issue", number=1, title="Login is slow", assignee="", labels=[], state="closed"
    )
    assert (told["title"], told["assignee"], told["labels"], told["state"]) == (
        "Login is slow",
        None,
        [],
        "closed",
    )
    assert told["updated_at"] == clock.now.isoformat()
    assert (await tracker.run("get_issue", number=1))["body"] == "Why?"


async def test_an_update_that_would_change_nothing_says_so(tracker):
    await tracker.run("create_issue", title="Login fails", labels=["a", "b"])
    with pytest.raises(ToolError, match="change nothing: issue #1"):
        await tracker.preview("update_issue", number=1, title="Login fails", assignee="", labels=["b", "a"])


@pytest.mark.parametrize("step", ["preview", "run"])
async def test_an_update_without_any_field_says_which_there_are(tracker, step):
    await tracker.run("create_issue", title="Login fails")
    with pytest.raises(ToolError, match="at least one of title, body, assignee, priority, labels, state"):
        await getattr(tracker, step)("update_issue", number=1)


async def test_an_update_run_again_after_a_crash_succeeds_without_touching_the_issue(tracker, clock):
    await tracker.run("create_issue", title="Login fails")
    first = await tracker.run("update_issue", number=1, priority="high")
    clock.forward(timedelta(minutes=1))
    assert await tracker.run("update_issue", number=1, priority="high") == first


async def test_closing_shows_the_state_and_keeps_the_reason_as_a_comment(tracker):
    await tracker.run("create_issue", title="Login fails")
    assert await tracker.preview("close_issue", number=1, reason="Fixed.") == [
        ("state", "open", "closed"),
        ("comment", None, "Fixed."),
    ]
    assert (await tracker.run("close_issue", number=1, reason="Fixed."))["state"] == "closed"
    assert [c["body"] for c in (await tracker.run("get_issue", number=1))["comments"]] == ["Fixed."]


async def test_closing_a_closed_issue_says_that_nothing_would_change(tracker):
    await tracker.run("create_issue", title="Login fails")
    await tracker.run("close_issue", number=1)
    with pytest.raises(ToolError, match="issue #1 is closed already"):
        await tracker.preview("close_issue", number=1)


async def test_a_comment_is_previewed_and_its_issue_is_named_in_the_title(tracker):
    await tracker.run("create_issue", title="Login fails")
    assert await tracker.preview("comment_issue", number=1, body="Me too") == [("comment", None, "Me too")]
    assert (
        await tracker.title("comment_issue", number=1, body="Me too") == "Comment on issue #1 “Login fails”"
    )


async def test_every_card_about_an_issue_names_it(tracker):
    await tracker.run("create_issue", title="Login fails")
    update = {"number": 1, "assignee": "Ana", "priority": "low", "state": "closed"}
    assert await tracker.title("update_issue", **update) == (
        "Change assignee, priority and state of issue #1 “Login fails”"
    )
    assert await tracker.title("close_issue", number=1) == "Close issue #1 “Login fails”"
    assert await tracker.title("delete_issue", number=1) == "Delete issue #1 “Login fails”"
    await tracker.run("comment_issue", number=1, body="Me too")
    assert await tracker.title("delete_issue", number=1) == "Delete issue #1 “Login fails” and its comment"


async def test_every_write_is_told_to_people_in_a_sentence_that_names_the_issue(tracker):
    assert await tracker.told("create_issue", title="Login fails") == "Created issue #1 “Login fails”"
    changed = await tracker.told("update_issue", number=1, priority="high", labels=["bug"])
    assert changed == "Changed priority and labels of issue #1 “Login fails”"
    assert (
        await tracker.told("comment_issue", number=1, body="Me too") == "Commented on issue #1 “Login fails”"
    )
    assert await tracker.told("close_issue", number=1) == "Closed issue #1 “Login fails”"
    assert await tracker.told("delete_issue", number=1) == "Deleted issue #1 “Login fails” and its comment"


async def test_calls_about_the_same_issue_can_be_allowed_together(tracker):
    for name in ("update_issue", "comment_issue", "close_issue"):
        key = tracker.tools[name].key
        assert key is not None
        assert await key({"number": 7, "body": "whatever"}) == {"issue": "#7"}


async def test_an_issue_that_does_not_exist_cannot_be_retried(tracker):
    with pytest.raises(PermanentRefusal, match="There is no issue #4"):
        await tracker.run("close_issue", number=4)


async def test_a_comment_moves_the_time_of_its_issue(tracker, clock):
    await tracker.run("create_issue", title="Login fails")
    clock.forward(timedelta(days=1))
    await tracker.run("comment_issue", number=1, body="Me too")
    told = await tracker.run("get_issue", number=1)
    assert told["updated_at"] == clock.now.isoformat()
    assert told["comments"] == [{"body": "Me too", "author": "http:ana", "created_at": clock.now.isoformat()}]


async def test_deleting_shows_what_is_lost_and_takes_the_comments_too(tracker, database):
    await tracker.run("create_issue", title="Login fails")
    lost = [("title", "Login fails", None), ("state", "open", None)]
    assert await tracker.preview("delete_issue", number=1) == lost
    await tracker.run("comment_issue", number=1, body="Me too")
    await tracker.run("comment_issue", number=1, body="And me")
    assert await tracker.preview("delete_issue", number=1) == [*lost, ("comments", "2", None)]
    told = await tracker.run("delete_issue", number=1)
    assert told == {"deleted": 1, "title": "Login fails", "comments_deleted": 2}
    assert await database.read(issues.list_comments, 1) == []


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("update_issue", {"title": "New"}),
        ("comment_issue", {"body": "Me too"}),
        ("close_issue", {}),
        ("delete_issue", {}),
    ],
)
@pytest.mark.parametrize("step", ["preview", "run"])
async def test_an_issue_that_does_not_exist_is_named_with_the_newest_one(tracker, step, name, rest):
    await tracker.run("create_issue", title="Login fails")
    with pytest.raises(ToolError, match=r"There is no issue #99; the newest is #1\."):
        await getattr(tracker, step)(name, number=99, **rest)


async def test_reading_an_issue_of_an_empty_tracker_says_that_there_is_nothing(tracker):
    with pytest.raises(ToolError, match=r"There is no issue #1; there are no issues yet\."):
        await tracker.run("get_issue", number=1)


async def test_a_search_finds_every_word_in_title_or_body_whatever_the_case(tracker):
    await tracker.run("create_issue", title="Login fails", body="After the password RESET")
    await tracker.run("create_issue", title="Reset the counters")
    await tracker.run("create_issue", title="Ошибка входа")
    assert numbers(await tracker.run("search_issues", query="reset")) == [2, 1]
    assert numbers(await tracker.run("search_issues", query="reset LOGIN")) == [1]
    assert numbers(await tracker.run("search_issues", query="ошибка")) == [3]
    assert await tracker.run("search_issues", query="nothing") == {"issues": [], "total": 0}


@pytest.mark.parametrize("query", ["100%", "a_b", r"c\d", "it's", '"quoted"'])
async def test_a_search_takes_special_characters_as_they_are(tracker, query):
    await tracker.run("create_issue", title=f"About {query} here")
    await tracker.run("create_issue", title="About 1000 axb cd its quoted")
    assert numbers(await tracker.run("search_issues", query=query)) == [1]


async def test_a_search_can_be_narrowed_to_a_state(tracker):
    await tracker.run("create_issue", title="Login fails")
    await tracker.run("create_issue", title="Login is slow")
    await tracker.run("close_issue", number=1)
    assert numbers(await tracker.run("search_issues", query="login", state="closed")) == [1]


async def test_a_listing_is_narrowed_by_priority(tracker):
    await tracker.run("create_issue", title="One", priority="urgent")
    await tracker.run("create_issue", title="Two")
    assert numbers(await tracker.run("list_issues", priority="urgent")) == [1]
    assert numbers(await tracker.run("list_issues", priority="normal", assignee="")) == [2]


async def test_a_listing_is_narrowed_by_state_assignee_and_label_together(tracker):
    await tracker.run("create_issue", title="One", assignee="Ana", labels=["bug", "größe"])
    await tracker.run("create_issue", title="Two", assignee="Sam", labels=["bugfix"])
    await tracker.run("create_issue", title="Three", labels=["bug"])
    await tracker.run("close_issue", number=3)
    assert numbers(await tracker.run("list_issues")) == [3, 2, 1]
    assert numbers(await tracker.run("list_issues", assignee="ana")) == [1]
    assert numbers(await tracker.run("list_issues", assignee="")) == [3]
    assert numbers(await tracker.run("list_issues", label="Bug")) == [3, 1]
    assert numbers(await tracker.run("list_issues", label="größe")) == [1]
    assert numbers(await tracker.run("list_issues", label="bug", state="open")) == [1]


async def test_a_long_listing_is_cut_and_says_how_many_there_are(tracker):
    for number in range(51):
        await tracker.run("create_issue", title=f"Issue {number}")
    answer = await tracker.run("list_issues")
    assert (len(answer["issues"]), answer["total"]) == (50, 51)


async def test_the_workload_counts_open_issues_of_each_assignee_and_of_no_one(tracker):
    for assignee, priority in [
        ("Ana", "urgent"),
        ("Sam", "low"),
        ("Ana", "low"),
        ("", "urgent"),
        ("Sam", "urgent"),
    ]:
        await tracker.run("create_issue", title="One", assignee=assignee, priority=priority)
    await tracker.run("close_issue", number=5)
    assert await tracker.run("workload") == {
        "workload": [
            {"assignee": "Ana", "open": 2, "urgent": 1},
            {"assignee": "Sam", "open": 1, "urgent": 0},
            {"assignee": None, "open": 1, "urgent": 1},
        ]
    }


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("create_issue", {"title": "   "}, "title"),
        ("create_issue", {"title": "x" * 201}, "title"),
        ("create_issue", {"title": "two\nlines"}, "title"),
        ("create_issue", {"title": "t", "body": "x" * 20_001}, "body"),
        ("create_issue", {"title": "t", "body": "nul \x00"}, "body"),
        ("create_issue", {"title": "t", "body": "half \ud800"}, "body"),
        ("create_issue", {"title": "t", "priority": "asap"}, "priority"),
        ("create_issue", {"title": "t", "labels": [str(n) for n in range(11)]}, "labels"),
        ("create_issue", {"title": "t", "labels": ["fine", "x" * 41]}, "labels.1"),
        ("update_issue", {"number": 1, "state": "done"}, "state"),
        ("update_issue", {"number": 1, "title": "\u200b"}, "title"),
        ("update_issue", {"number": 1, "labels": ["\u200b"]}, "labels.0"),
        ("update_issue", {"number": 0, "state": "open"}, "number"),
        ("comment_issue", {"number": 1, "body": " \n "}, "body"),
        ("delete_issue", {"number": 2**40}, "number"),
        ("get_issue", {"number": 1, "comments": True}, "comments"),
    ],
)
def test_arguments_outside_the_limits_are_refused_naming_the_field(tracker, name, arguments, field):
    with pytest.raises(BadArguments) as caught:
        tracker.tools[name].validate(arguments)
    assert list(caught.value.fields) == [field]


def test_summaries_say_in_plain_language_what_will_happen(tracker):
    assert tracker.summary("create_issue", title="Login fails") == "Create issue “Login fails”"
    assert (
        tracker.summary("update_issue", number=3, priority="low", title="x")
        == "Change title and priority of issue #3"
    )
    assert tracker.summary("comment_issue", number=3, body="x") == "Comment on issue #3"
    assert tracker.summary("close_issue", number=3) == "Close issue #3"
    assert tracker.summary("delete_issue", number=3) == "Delete issue #3 and its comments"


def test_each_tool_has_its_level_and_fits_strict_mode(tracker):
    levels = {name: tool.classify({}).level for name, tool in tracker.tools.items()}
    assert levels == {
        "search_issues": Level.READ,
        "get_issue": Level.READ,
        "list_issues": Level.READ,
        "workload": Level.READ,
        "create_issue": Level.WRITE,
        "update_issue": Level.WRITE,
        "comment_issue": Level.WRITE,
        "close_issue": Level.WRITE,
        "delete_issue": Level.DESTRUCTIVE,
        "take_back_comment": Level.WRITE,
    }
    assert all(tool.strict for tool in tracker.tools.values())
    assert not tracker.tools["delete_issue"].idempotent


def test_every_parameter_of_every_tool_is_described_to_the_model(tracker):
    for tool in tracker.tools.values():
        for name, schema in tool.parameters["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


async def test_a_preview_moves_when_someone_else_changed_the_issue_in_the_meantime(tracker):
    await tracker.run("create_issue", title="Login fails", priority="low")
    shown = await tracker.preview("update_issue", number=1, priority="urgent")
    await tracker.run("update_issue", number=1, priority="high")
    assert shown == [("priority", "low", "urgent")]
    assert await tracker.preview("update_issue", number=1, priority="urgent") == [
        ("priority", "high", "urgent")
    ]


async def test_the_sample_issues_are_made_once_and_only_in_an_empty_tracker(database, tracker, clock):
    await database.write(store_samples, clock.now)
    await database.write(store_samples, clock.now)
    answer = await tracker.run("list_issues")
    assert answer["total"] == 6
    assert (await tracker.run("workload"))["workload"][-1]["assignee"] is None


async def test_sample_issues_are_not_added_to_a_tracker_in_use(database, tracker, clock):
    await tracker.run("create_issue", title="Login fails")
    await database.write(store_samples, clock.now)
    assert (await tracker.run("list_issues"))["total"] == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("update_issue", {"number": 1, "assignee": "Ben"}),
        ("close_issue", {"number": 1, "reason": "Done."}),
        ("delete_issue", {"number": 1}),
    ],
)
async def test_an_issue_that_changed_after_the_card_was_shown_stays_as_it_is(tracker, name, arguments):
    await tracker.run("create_issue", title="Login fails")
    tool = tracker.tools[name]
    shown = await tool.preview_fields(tool.validate(arguments))
    await tracker.run("update_issue", number=1, assignee="Ana", title="Login fails again", state="closed")
    before = await tracker.run("get_issue", number=1)

    with pytest.raises(ToolError):
        await tool.run(tool.validate(arguments), CallContext("c1", "http:ana", "k1", shown))
    assert await tracker.run("get_issue", number=1) == before


async def test_changes_of_one_issue_wait_for_each_other_whichever_tool_makes_them(tracker):
    changes = {
        "update_issue": {"number": 1, "assignee": "Ben"},
        "close_issue": {"number": 1},
        "delete_issue": {"number": 1},
    }
    assert {await tracker.tools[name].name_touched(given) for name, given in changes.items()} == {"issue 1"}
    assert await tracker.tools["close_issue"].name_touched({"number": 2}) == "issue 2"


@pytest.mark.slow  # it imports all of Nod
@pytest.mark.parametrize(("setting", "there"), [("true", True), ("false", False)])
def test_the_tracker_can_be_turned_off(setting: str, there: bool, database: Database, clock):
    from bot.features.issues.feature import ISSUES

    settings = Settings.load(NOD_ISSUES=setting)
    parts = FeatureParts(
        settings=settings, database=database, policies=Policies(Policy(), clock), clock=clock
    )
    found = {tool.name for toolset in ISSUES.make_toolsets(parts) for tool in toolset.fixed}
    assert ("create_issue" in found) is there


async def test_only_a_comment_of_the_named_issue_is_removed(tracker):
    for title in ("Login fails", "Dark mode"):
        await tracker.run("create_issue", title=title)
    await tracker.run("comment_issue", number=1, body="Me too")
    await tracker.run("take_back_comment", number=2, comment=1)  # the first comment, which is on issue 1
    assert len((await tracker.run("get_issue", number=1))["comments"]) == 1
