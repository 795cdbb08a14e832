"""The mcpServers file: what it takes, and how it says what is wrong."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bot.domain.connections import Identity
from bot.errors import SettingsError
from bot.tools.mcp.config import Http, ServerConfig, Stdio, Trust, WhoAmI, load_servers


@pytest.fixture
def write(tmp_path: Path):
    def write(servers: Any) -> Path:
        path = tmp_path / "mcp.json"
        path.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))
        return path

    return write


def one(path: Path, **environment: str) -> ServerConfig:
    [config] = load_servers(path, environment)
    return config


def test_a_file_of_another_client_is_read_as_it_is(write):
    path = write(
        {
            "github": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "server-github"],
                "env": {"TOKEN": "${GITHUB_TOKEN}", "LANG": "C"},
                "autoApprove": ["delete_repository"],
            },
            "docs": {"type": "http", "url": "https://docs.example/mcp", "headers": {"X-Key": "a ${KEY} b"}},
            "old": {"command": "gone", "disabled": True},
        }
    )
    github, docs = load_servers(path, {"GITHUB_TOKEN": "t-1", "KEY": "k"})
    assert github == ServerConfig(
        "github",
        Stdio("npx", ("-y", "server-github"), {"TOKEN": "t-1", "LANG": "C"}),
        prefix="github_",
    )
    assert docs.transport == Http("https://docs.example/mcp", {"X-Key": "a k b"})
    assert (github.trust, github.allow, github.deny, github.timeout) == (Trust.UNTRUSTED, ("*",), (), 60.0)


def test_our_own_keys_stand_next_to_theirs(write, tmp_path):
    path = write(
        {
            "git": {
                "command": "git-mcp",
                "cwd": ".",
                "trust": "trusted",
                "allow": ["git_*"],
                "deny": ["*_push"],
                "prefix": "",
                "timeout": 5,
            }
        }
    )
    assert one(path) == ServerConfig(
        "git",
        Stdio("git-mcp", cwd=tmp_path),
        Trust.TRUSTED,
        ("git_*",),
        ("*_push",),
        "",
        5.0,
    )


def test_the_documents_example_is_read_and_every_key_of_ours_is_explained(write):
    page = (Path(__file__).parents[3] / "docs" / "tools.md").read_text()
    section = page[page.index("## MCP servers") :]
    [example] = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    git, tracker = load_servers(write(json.loads(example)["mcpServers"]), {"TRACKER_TOKEN": "t0p"})
    assert (git.trust, tracker.trust) == (Trust.TRUSTED, Trust.UNTRUSTED)
    assert tracker.transport.headers == {"Authorization": "Bearer t0p"}
    assert [tracker.offers(name) for name in ("list_all", "list_admin", "drop")] == [True, False, False]
    assert all(f"`{key}`" in section for key in ("trust", "allow", "deny", "prefix", "timeout"))


def test_what_is_empty_is_as_if_it_were_not_there(write):
    given = {"command": "x", "url": "", "cwd": "", "type": "", "oauth": {"clientId": ""}}
    assert one(write({"a": given})) == ServerConfig("a", Stdio("x"), prefix="a_")


def test_a_text_with_half_a_character_is_a_fault_like_others(write):
    with pytest.raises(SettingsError, match="server 'a': it can't be read"):
        load_servers(write({"a": {"command": "\ud800"}}), {})


def test_an_address_may_hold_a_variable_too(write):
    launch = one(write({"a": {"url": "https://${HOST}/mcp"}}), HOST="h.example").transport
    assert launch == Http("https://h.example/mcp")


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (
            {"command": "x", "env": {"T": "${NOPE}"}},
            "env.T: the environment variable NOPE is not set; set it",
        ),
        ({"url": "https://a/b", "headers": {"T": "${NOPE}"}}, "headers.T: the environment variable NOPE"),
        ({"command": "x", "env": {"PORT": 80}}, "env: write an object of texts"),
        ({"command": "x", "args": "-v"}, "args: write a list of texts"),
        ({}, 'write either "command" (Nod starts it) or "url"'),
        ({"command": "x", "url": "https://a/b"}, 'write either "command"'),
        ({"url": "ftp://a/b"}, "url: write an address such as https://example.com/mcp"),
        ({"url": "http://[/"}, "url: write an address"),
        ({"url": "https://ana:pw@a/b"}, "a password goes into headers"),
        ({"type": "sse", "url": "https://a/sse"}, "type: 'sse' is not spoken here"),
        ({"type": "http", "command": "x"}, "type: 'http' needs \"url\"; leave the type out"),
        ({"type": "stdio", "url": "https://a/mcp"}, "type: 'stdio' needs \"command\"; leave the type out"),
        ({"command": "x", "trust": "yes"}, 'trust: write "untrusted" (every call asks) or "trusted"'),
        ({"command": "x", "denny": ["*"]}, "denny: there is no such key; did you mean 'deny'?"),
        ({"command": "x", "deny": "rm"}, "deny: write a list of texts"),
        ({"command": "x", "timeout": 0}, "timeout: write seconds, as a number more than 0 and at most 3600"),
        ({"command": "x", "timeout": True}, "timeout: write seconds"),
        ({"command": "x", "timeout": "1"}, "timeout: write seconds, as a number"),
        ({"command": "x", "prefix": "a b"}, "prefix: use up to 40 letters, digits, '_' and '-'"),
        ({"command": "x", "disabled": "no"}, "disabled: write true or false"),
        ({"command": "x", "cwd": "/no/such/folder"}, "cwd: there is no folder /no/such/folder"),
        ({"command": "x", "cwd": "~nosuchuser/work"}, "cwd: there is no folder ~nosuchuser/work"),
        ({"command": "x", "cwd": "x" * 300}, "cwd: there is no folder"),
        ({"command": "x", "oauth": []}, 'oauth: write an object such as {"clientId": "nod"'),
        ("npx", 'write an object such as {"command": "npx"}'),
    ],
    ids=str,
)
def test_a_fault_names_the_file_the_server_the_key_and_the_fix(write, server, words):
    path = write({"lamps": server})
    with pytest.raises(SettingsError) as caught:
        load_servers(path, {})
    assert caught.value.message.startswith(f"{path}: server 'lamps': ")
    assert words in caught.value.message


def test_every_fault_of_the_file_is_told_together(write):
    path = write({"a": {"command": "x", "timeout": -1, "trust": "?"}, "b": {}, "c d": {"command": "x"}})
    with pytest.raises(SettingsError) as caught:
        load_servers(path, {})
    for words in (
        "server 'a': timeout",
        "server 'a': trust",
        "server 'b': write",
        "server 'c d': a name has",
    ):
        assert words in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "this is not JSON: "),
        ("[]", 'write {"mcpServers"'),
        ('{"mcpServers": []}', 'write {"mcpServers"'),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "the key 'a' is used twice"),
    ],
)
def test_a_file_that_is_not_of_the_kind_says_so(write, text, words):
    with pytest.raises(SettingsError) as caught:
        load_servers(write(text), {})
    assert words in caught.value.message


def test_a_file_that_is_not_there_names_the_variable(tmp_path):
    with pytest.raises(SettingsError, match=r"NOD_MCP_CONFIG: .*nothing\.json cannot be read"):
        load_servers(tmp_path / "nothing.json", {})


def test_a_disabled_server_may_miss_its_variables(write):
    assert load_servers(write({"a": {"command": "x", "env": {"T": "${NOPE}"}, "disabled": True}}), {}) == ()


@pytest.mark.parametrize(
    ("name", "offered"),
    [("list_issues", True), ("create_issue", True), ("list_admin", False), ("drop", False)],
)
def test_a_tool_is_offered_where_a_pattern_allows_it_and_none_denies_it(name, offered):
    config = ServerConfig("a", Stdio("x"), allow=("list_*", "create_issue"), deny=("*_admin",))
    assert config.offers(name) is offered


def test_a_configuration_shows_none_of_its_secrets(write):
    path = write(
        {
            "a": {"command": "x", "env": {"T": "${T}"}},
            "b": {"url": "https://h.example/?key=${T}", "headers": {"Authorization": "Bearer ${T}"}},
        }
    )
    configs = load_servers(path, {"T": "tok-4711-very-secret"})
    assert "4711" not in repr(configs)
    assert "4711" not in configs[0].scrub("it said tok-4711-very-secret")
    assert "4711" not in configs[1].scrub(
        "no tok-4711-very-secret, no https://h.example/?key=tok-4711-very-secret"
    )


def test_a_secret_in_the_path_of_an_address_is_hidden_alone_too(write):
    config = one(write({"a": {"url": "https://h.example/${KEY}/mcp"}}), KEY="k-4711-secret")
    assert config.scrub("404 for /k-4711-secret/mcp") == "404 for /••••••/mcp"


def test_variables_are_filled_as_other_clients_write_them(write, tmp_path):
    entry = {
        "command": "${BIN:-server}",
        "args": ["--key=${env:KEY}", "--level", "${LEVEL:-info}", "$${LITERAL}", "${workspaceFolder}/x"],
        "env": {"MODE": "${EMPTY:-fast}", "URL": "${URL:-http://localhost:8080/a:-b}"},
    }
    config = one(write({"a": entry}), KEY="k-4711-secret", EMPTY="")
    assert config.transport == Stdio(
        "server",
        ("--key=k-4711-secret", "--level", "info", "${LITERAL}", f"{tmp_path}/x"),
        {"MODE": "fast", "URL": "http://localhost:8080/a:-b"},
    )
    assert config.scrub("bad key k-4711-secret") == "bad key ••••••"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["${NOPE}"], "args.0: the environment variable NOPE is not set"),
        (["${env:NOPE}"], "args.0: the environment variable NOPE is not set"),
        (["${input:key}"], "Nod asks for no inputs"),
    ],
)
def test_a_variable_that_is_not_there_is_told(write, arguments, words):
    with pytest.raises(SettingsError, match=re.escape(words)):
        load_servers(write({"a": {"command": "x", "args": arguments}}), {})


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, 300), ({"startup_timeout_sec": 900}, 900), ({"startup_timeout_ms": 90000}, 90)],
)
def test_how_long_a_start_may_take_is_a_key_of_its_own(write, given, seconds):
    assert one(write({"a": {"command": "npx", **given}})).startup_seconds == seconds


REMOTE = {"url": "https://github.example/mcp"}
WHOAMI = {"tool": "get_me", "field": "login", "subject": "id"}


def test_an_entry_says_under_whose_account_its_calls_are_made(write):
    path = write(
        {
            "tracker": REMOTE,
            "github": {**REMOTE, "identity": "person", "whoami": WHOAMI},
            "wiki": {"url": "http://127.0.0.1:9/mcp", "identity": "place"},
        }
    )
    tracker, github, wiki = load_servers(path, {})
    assert (tracker.identity, tracker.whoami) == (Identity.NOD, None)
    assert (github.identity, github.whoami) == (Identity.PERSON, WhoAmI("get_me", "login", "id"))
    assert wiki.identity is Identity.PLACE


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "npx", "identity": "person"}, "identity 'person' is for a server at a \"url\""),
        ({**REMOTE, "identity": "me"}, 'identity: write "nod" (one account for all)'),
        ({**REMOTE, "identity": "place", "headers": {"authorization": "x"}}, "takes no Authorization header"),
        ({"url": "http://github.example/mcp", "identity": "person"}, "begins with https://"),
        ({**REMOTE, "whoami": WHOAMI}, 'whoami is for an entry whose identity is "person" or "place"'),
        ({**REMOTE, "identity": "person", "whoami": {"tool": "get_me"}}, "whoami: write an object such as"),
    ],
)
def test_an_account_that_could_not_be_kept_apart_stops_the_start(write, entry, words):
    with pytest.raises(SettingsError, match=re.escape(words)) as caught:
        load_servers(write({"github": entry}), {})
    assert "server 'github'" in caught.value.message
