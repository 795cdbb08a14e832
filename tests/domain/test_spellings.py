"""Many spellings of one path, address and name: none passes a rule that forbids.

They are judged by the real policy, with schemas that say what a field names and with some that say nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.call_facts import CallFacts, Place
from bot.domain.conditions import Condition
from bot.domain.people import Person
from bot.domain.policy import Policy
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Mode, Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import EVERYWHERE, Limits, Rule
from bot.domain.spellings import REFERENT_KEYWORD
from bot.domain.spellings.terms import Referent
from bot.domain.verdicts import Judgement

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
NOTHING: Mapping[str, Any] = {}


def declares(**named: Referent) -> Mapping[str, Any]:
    parts = {name: {"type": "string", REFERENT_KEYWORD: str(referent)} for name, referent in named.items()}
    return {"type": "object", "properties": parts}


def judge(
    mode: Mode, condition: str, arguments: Mapping[str, Any], schema: Mapping[str, Any], **more: Any
) -> Judgement:
    limits = Limits(condition=Condition.parse(condition))
    book = Rulebook(1, (Rule(1, Subject.POLICY, EVERYWHERE, EVERYWHERE, mode, limits),))
    risk = Risk(Level.READ if mode is Mode.FORBID else Level.WRITE, "")
    place, person = Place("chat:room", private=False), Person("chat:ana")
    call = CallFacts("any_tool", risk, place, person, NOW, arguments=arguments, schema=schema)
    policy = Policy(mode=Mode.WRITES, admins=frozenset({"chat:ben"}), rulebook=book)
    return policy.judge(replace(call, **more)).judgement


PATHS = [
    "infra/keys.pem",
    "./infra/keys.pem",
    "infra//keys.pem",
    "infra/./keys.pem",
    ".//infra/keys.pem",
    "infra/keys.pem/",
    "infra/keys.pem/.",
    "docs/../infra/keys.pem",
    "infra/../infra/keys.pem",
    "../ws/infra/keys.pem",
    "/infra/keys.pem",
    "/srv/ws/infra/keys.pem",
    "//srv//ws/infra/keys.pem",
    "~/infra/keys.pem",
    "~nod/ws/infra/keys.pem",
    "$HOME/infra/keys.pem",
    "${PWD}/infra/keys.pem",
    "file:///srv/ws/infra/keys.pem",
    "file:infra/keys.pem",
    "C:\\ws\\infra\\keys.pem",
    "C:/ws/infra/keys.pem",
    "infra\\keys.pem",
    ".\\infra\\keys.pem",
    "Infra/keys.pem",
    "INFRA/KEYS.PEM",
    "infra/Keys.Pem",
    " infra/keys.pem",
    "infra/keys.pem ",
    "infra/keys.pem\n",
    "infra /keys.pem",
    "infra/keys.pem.",
    "infra/keys.pem::$DATA",
    "infra/keys.pem\u200b",
    "\ufeffinfra/keys.pem",
    "inf\u00adra/keys.pem",
    "\uff49nfra/keys.pem",
    "infra\u2215keys.pem",
    "infra\uff0fkeys.pem",
    "infra/keys\uff0epem",
    "infra%2Fkeys.pem",
    "%69nfra/keys.pem",
    "infra%252Fkeys.pem",
    "infra/keys.pem%00.txt",
    "infra%5Ckeys.pem",
    "infra%2F%2e%2Fkeys.pem",
    '"infra/keys.pem"',
    "'infra/keys.pem'",
    "infra",
    "infra/",
    "./infra",
    "Infra",
    ".",
    "./",
    "infra/keys.pem/part",
    "C:infra/keys.pem",
    "%CD%/infra/keys.pem",
    "infra/*",
    "infra/k?ys.pem",
    "{infra}/keys.pem",
    "infra/{keys,other}.pem",
    "infra/[k]eys.pem",
    "**/keys.pem",
    "**/infra/keys.pem",
    "/srv/ws/infra/*",
    "/srv/*/infra/keys.pem",
    "file:///srv/ws/infra/*",
    "~/ws/infra/*.pem",
    "infra/@(keys|x).pem",
    "infra/+(keys).pem",
    "infra/{a,{b,keys}}.pem",
    "infra/{j..l}eys.pem",
    "infra/k\\eys.pem",
]

ADDRESSES = [
    "https://b\u00fccher.example/pay",
    "https://xn--bcher-kva.example/pay",
    "https://B\u00dcCHER.example/pay",
    "https://bu\u0308cher.example/pay",
    "https://b%C3%BCcher.example/pay",
    "HTTPS://b\u00fccher.EXAMPLE/pay",
    "https://b\u00fccher.example:443/pay",
    "https://b\u00fccher.example:/pay",
    "http://b\u00fccher.example/pay",
    "http://b\u00fccher.example:80/pay",
    "https://ana@b\u00fccher.example/pay",
    "https://ana:word@b\u00fccher.example/pay",
    "https://good.example@b\u00fccher.example/pay",
    "https://good.example%2F@b\u00fccher.example/pay",
    "https://good.example%23@b\u00fccher.example/pay",
    "https://good.example?@b\u00fccher.example/pay",
    "https://good.example#@b\u00fccher.example/pay",
    "https://ana@b\u00fccher.example:443@good.example/pay",
    "good.example\\@b\u00fccher.example/pay",
    "//good.example\\@b\u00fccher.example/pay",
    "//b\u00fccher.example:+443/pay",
    "https:b\u00fccher.example:+443/pay",
    "https://b\u00fccher.example./pay",
    "https://b\u00fccher\u3002example/pay",
    "https://b\uff55\u0308cher.example/pay",
    "https://b\u00fccher.example//pay",
    "https://b\u00fccher.example/./pay",
    "https://b\u00fccher.example/x/../pay",
    "https://b\u00fccher.example/pay/",
    "https://b\u00fccher.example/%70ay",
    "https://b\u00fccher.example/%2570ay",
    "https://b\u00fccher.example/PAY",
    "https://b\u00fccher.example/pay#top",
    "https://b\u00fccher.example/pay?",
    "https://b\u00fccher.example/pay?to=ben",
    "https://b\u00fccher.example/pay/now",
    "//b\u00fccher.example/pay",
    "b\u00fccher.example/pay",
    "xn--bcher-kva.example/pay",
    "https:b\u00fccher.example/pay",
    "https:/b\u00fccher.example/pay",
    "https:\\\\b\u00fccher.example\\pay",
    "https://b\u00fccher.example\\pay",
    " https://b\u00fccher.example/pay",
    "https://b\u00fccher.example/pay ",
    "https://b\u00fccher.example/pa\ny",
    "https://b\u00fc\u200bcher.example/pay",
    "<https://b\u00fccher.example/pay>",
    "view-source:https://b\u00fccher.example/pay",
    "https://b\u00fccher.example/pay;v=1",
    "blob:https://b\u00fccher.example/pay",
    "jar:https://b\u00fccher.example/pay!/",
]

NAMES = [
    "ana\u00efs",
    "ANA\u00cfS",
    "anai\u0308s",
    " ana\u00efs",
    "ana\u00efs ",
    "ana\u00efs\n",
    "ana\u200b\u00efs",
    "\u202aana\u00efs",
    "@ana\u00efs",
    "#ana\u00efs",
    "/ana\u00efs",
    "\uff41na\u00efs",
    "refs/heads/ana\u00efs",
    "heads/ana\u00efs",
]

MAILS = [
    "ben@b\u00fccher.example",
    "BEN@B\u00dcCHER.EXAMPLE",
    "ben@xn--bcher-kva.example",
    "mailto:ben@b\u00fccher.example",
    "Ben <ben@b\u00fccher.example>",
    '"Ben, the other" <ben@b\u00fccher.example>',
    "ana@good.example, ben@b\u00fccher.example",
    "ana@good.example;ben@b\u00fccher.example",
    " ben@b\u00fccher.example",
    "ben@b\u00fccher.example.",
    '"Why?" <ben@b\u00fccher.example>',
    "=?utf-8?q?Ben?= <ben@b\u00fccher.example>",
    '"ben"@b\u00fccher.example',
    "ben @b\u00fccher.example",
    "'ben@b\u00fccher.example'",
    "ben+news@b\u00fccher.example",
    "mailto:ana@good.example?cc=ben@b\u00fccher.example",
    "mailto:ana@good.example?bcc=ben%40b\u00fccher.example",
]

DOTLESS = [
    "ana.bell@gmail.com",
    "anabell@gmail.com",
    "a.n.a.bell@gmail.com",
    "Ana.Bell+bills@GoogleMail.com",
    "Ana <anabell@googlemail.com>",
]

HOSTS = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://[::ffff:127.0.0.1]/",
    "http://127.0.0.1./",
    "http://127.0.0.1:80/",
    "http://ana@127.0.0.1/",
    "http://ana@127.0.0.1:80@good.example/",
    "http://127%2E0.0.1/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127.0.0.1\\@good.example/",
    "http:/127.0.0.1/",
    "http:127.0.0.1/",
    "http:///127.0.0.1/",
    "http://good.example?@127.0.0.1/",
    "http://good.example#@127.0.0.1/",
    "http://127.0.0.1%2fx",
]


def operators(field: str, wanted: str, pattern: str, other: str) -> list[str]:
    return [
        f'{field} = "{wanted}"',
        f'{field} in ("{other}", "{wanted}")',
        f'{field} matches "{pattern}"',
        f'not ({field} != "{wanted}")',
        f'not ({field} not in ("{other}", "{wanted}"))',
        f'not ({field} not matches "{pattern}")',
        f'{field} != "{other}" and {field} = "{wanted}"',
    ]


def cases() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    every = [
        (PATHS, "path", "infra/keys.pem", "infra/**", "a.txt", Referent.TREE),
        (PATHS, "target", "infra/keys.pem", "infra/*", "a.txt", Referent.TREE),
        (
            ADDRESSES,
            "url",
            "https://b\u00fccher.example/pay",
            "https://b\u00fccher.example/*",
            "https://good.example/",
            Referent.ADDRESS,
        ),
        (NAMES, "user", "ana\u00efs", "ana\u00ef*", "ben", Referent.NAME),
        (
            MAILS,
            "email",
            "ben@b\u00fccher.example",
            "*@b\u00fccher.example",
            "ana@good.example",
            Referent.EMAIL,
        ),
    ]
    for spellings, field, wanted, pattern, other, referent in every:
        for condition in operators(field, wanted, pattern, other):
            yield from ((condition, each, declares(**{field: referent})) for each in spellings)
            if field != "target":  # nothing tells what an undeclared field of such a name holds
                yield from ((condition, each, NOTHING) for each in spellings)
    for condition in operators("host(url)", "127.0.0.1", "127.*", "good.example"):
        yield from ((condition, each, NOTHING) for each in HOSTS)


def test_no_spelling_passes_a_rule_that_forbids() -> None:
    every = list(cases())
    assert len({spelling for _, spelling, _ in every}) > 120
    through = [
        (condition, spelling)
        for condition, spelling, schema in every
        if judge(Mode.FORBID, condition, {condition_field(condition): spelling}, schema)
        is not Judgement.REFUSE
    ]
    assert through == []


@pytest.mark.parametrize(
    "found",
    [
        "http://[::1]/a",
        "http://x@[::1]/a",
        "http://x:word@[::1]/a",
        "http://x@[::1]:80/a",
        "http://x@[0:0:0:0:0:0:0:1]/a",
        "x@[::1]/a",
    ],
)
def test_no_spelling_of_an_address_with_an_ipv6_host_passes_a_rule_that_forbids_it(found: str) -> None:
    for schema in (declares(url=Referent.ADDRESS), NOTHING):
        assert judge(Mode.FORBID, 'url = "http://[::1]/a"', {"url": found}, schema) is Judgement.REFUSE


def condition_field(condition: str) -> str:
    return Condition.parse(condition).fields[0].name


@pytest.mark.parametrize("named", DOTLESS[:4])
def test_each_way_to_write_one_mailbox_is_that_mailbox(named: str) -> None:
    for schema in (declares(email=Referent.EMAIL), NOTHING):
        for found in DOTLESS:
            assert judge(Mode.FORBID, f'email = "{named}"', {"email": found}, schema) is Judgement.REFUSE
        other = {"email": "ana.ball@gmail.com"}
        assert judge(Mode.FORBID, f'email = "{named}"', other, schema) is Judgement.RUN
    dots = {"email": "ana.bell@example.com"}
    assert judge(Mode.FORBID, "email = anabell@example.com", dots, NOTHING) is Judgement.RUN


WILDCARDS = [
    (
        "path = main.tf",
        ["*.tf", "*", "ma?n.tf", "**/*.tf", "/srv/ws/*.tf", "~/*.tf", "main.{py,tf}", "[!x]*.tf"],
    ),
    ('path matches "*.tf"', ["*", "main.*", "*.t?", "ma[i]n.tf", "src/*", "main.{tf,py}", "/srv/ws/main.*"]),
    ('path matches "infra/*.tf"', ["infra/*", "inf*/x.tf", "*/*", "infra/x.*", "/srv/ws/infra/x.*"]),
    ("path = secrets.production.json", ["SECRET~1.JSO", "secret~1.jso", "/srv/ws/SECRET~2.JSO"]),
    ('path matches "infra-live/**"', ["INFRA-~1/x.tf", "infra-~1", "./INFRA-~1/**"]),
]


@pytest.mark.parametrize(("condition", "arguments"), WILDCARDS)
@pytest.mark.parametrize("referent", [None, Referent.PATH, Referent.TREE, Referent.FOLDER])
def test_no_wildcard_and_no_short_name_stands_for_what_a_rule_forbids(
    condition: str, arguments: list[str], referent: Referent | None
) -> None:
    schema = declares(path=referent) if referent else NOTHING
    for found in arguments:
        assert judge(Mode.FORBID, condition, {"path": found}, schema) is Judgement.REFUSE, found


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("path = main.tf", "*.py"),
        ("path = infra/main.tf", "docs/*"),
        ('path matches "infra/**"', "docs/*.md"),
        ('path matches "*.tf"', "main.{py,md}x"),
        ("path = a.txt", "b~1.txt"),
    ],
)
def test_a_wildcard_that_stands_for_other_files_is_not_refused(condition: str, found: str) -> None:
    schema = declares(path=Referent.PATH)
    assert judge(Mode.FORBID, condition, {"path": found}, schema) is Judgement.RUN


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ('path matches "docs/**"', "docs/{a,../secret}.md"),
        ('path matches "docs/?.md"', "docs/*.md"),
        ('path matches "docs/[ab].md"', "docs/[!x].md"),
    ],
)
def test_a_wildcard_that_may_stand_for_more_than_the_rule_is_spared_nothing(
    condition: str, found: str
) -> None:
    for schema in (declares(path=Referent.PATH), NOTHING):
        assert judge(Mode.NEVER, condition, {"path": found}, schema) is Judgement.ASK


ALIKE = {"./infra/keys.pem", "infra//keys.pem", "infra/./keys.pem", ".//infra/keys.pem", "infra/keys.pem/"}
ALIKE |= {"infra/keys.pem/."}


def test_no_other_spelling_is_spared_the_question() -> None:
    """What a tool declares to be a path may have dots and slashes in it that change nothing, and no more."""
    conditions = [
        ("path", "infra/keys.pem", PATHS, Referent.TREE, ALIKE),
        ("user", "ana\u00efs", NAMES, Referent.NAME, set()),
        ("email", "ben@b\u00fccher.example", MAILS, Referent.EMAIL, {"ben@b\u00fccher.example."}),
    ]
    for field, wanted, spellings, referent, alike in conditions:
        for condition in (f'{field} = "{wanted}"', f'{field} in ("{wanted}")'):
            for schema, same in ((declares(**{field: referent}), alike), (NOTHING, set())):
                for each in spellings:
                    spared = judge(Mode.NEVER, condition, {field: each}, schema) is Judgement.RUN
                    assert spared == (each in same | {wanted}), (condition, each)


@pytest.mark.parametrize(
    "address",
    [
        "https://docs.example@evil.example/",
        "https://docs.example\\@evil.example/",
        "https://evil.example\\@docs.example/",
        "https://docs.example\n.evil.example/",
        "http://docs.example/",
        "https://docs.example%2F@evil.example/",
        "https://docs.example#@evil.example/",
    ],
)
def test_an_address_that_programs_read_in_two_ways_is_spared_nothing(address: str) -> None:
    for schema in (declares(url=Referent.ADDRESS), NOTHING):
        assert (
            judge(Mode.NEVER, 'url matches "https://docs.example*"', {"url": address}, schema)
            is Judgement.ASK
        )


@given(st.text(max_size=40), st.text(max_size=20).filter(lambda text: '"' not in text))
def test_what_is_spared_is_what_the_rule_says_letter_for_letter_or_the_same_path(
    found: str, named: str
) -> None:
    """Where no tool declares anything, no rule became looser by comparing more than letters."""
    try:
        condition = Condition.parse(f'path = "{named}"')
    except ValueError:
        return
    value = condition.root.values[0]  # type: ignore[union-attr]
    if condition.holds({"path": found}, NOTHING):
        assert found == value


MOVE = declares(path=Referent.TREE, to=Referent.TREE)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "infra", "to": "old"},
        {"path": "a.txt", "to": "infra/a.txt"},
        {"path": ".", "to": "old"},
        {"path": "old", "to": "infra"},
    ],
)
def test_a_rule_about_what_is_in_a_folder_covers_the_folder_and_every_argument_that_is_a_path(
    arguments: Mapping[str, Any],
) -> None:
    for schema in (MOVE, NOTHING):
        assert judge(Mode.FORBID, 'path matches "infra/**"', arguments, schema) is Judgement.REFUSE


def test_a_rule_about_what_is_deep_in_a_folder_covers_what_is_above_it() -> None:
    for condition in ('path matches "a/infra/**"', "path = a/infra/keys.pem", 'path in ("a/infra/x", "b")'):
        assert judge(Mode.FORBID, condition, {"path": "a", "to": "b"}, MOVE) is Judgement.REFUSE


@pytest.mark.parametrize("found", ["/srv/v1.2", "/home/ana/.config"])
def test_a_rule_about_a_relative_path_covers_an_absolute_folder_whatever_its_name(found: str) -> None:
    schema = declares(path=Referent.FOLDER)
    assert judge(Mode.FORBID, 'path matches "infra/*"', {"path": found}, schema) is Judgement.REFUSE


def test_a_rule_about_a_relative_path_covers_an_absolute_hidden_folder_but_no_file_with_an_ending() -> None:
    schema = declares(path=Referent.TREE)
    rule = 'path matches "infra/*"'
    assert judge(Mode.FORBID, rule, {"path": "/home/ana/.config"}, schema) is Judgement.REFUSE
    assert judge(Mode.FORBID, rule, {"path": "/home/ana/a.txt"}, schema) is Judgement.RUN


def test_a_move_is_spared_where_both_ends_are() -> None:
    rule = 'path matches "docs/**"'
    assert judge(Mode.NEVER, rule, {"path": "docs/a", "to": "docs/b"}, MOVE) is Judgement.RUN
    assert judge(Mode.NEVER, rule, {"path": "docs/a", "to": "infra/b"}, MOVE) is Judgement.ASK
    both = 'path matches "docs/**" and to matches "old/**"'
    assert judge(Mode.NEVER, both, {"path": "docs/a", "to": "old/a"}, MOVE) is Judgement.RUN


def test_what_lies_behind_a_link_is_compared_too() -> None:
    read = {"argv": ["cat", "notes.txt"]}
    ends = {"argv": ["cat", "secrets.txt"]}
    rule = "argv.1 = secrets.txt"
    assert judge(Mode.FORBID, rule, read, NOTHING) is not Judgement.REFUSE
    assert judge(Mode.FORBID, rule, read, NOTHING, link_targets=ends) is Judgement.REFUSE
    assert judge(Mode.NEVER, "argv.1 = notes.txt", read, NOTHING, link_targets=ends) is Judgement.ASK


@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        ("path = infra/keys.pem", {"path": "docs/keys.pem"}),
        ("path = infra/keys.pem", {"path": "README"}),
        ("path = secrets.txt", {"path": "notes.txt"}),
        ('path matches "*.pem"', {"path": "Makefile"}),
        ("url = https://evil.example/", {"url": "https://good.example/evil.example"}),
        ('url matches "https://evil.example/*"', {"url": "https://evil.example.org/"}),
        ("url = https://evil.example/", {"url": "https://ana@good.example/"}),
        ("url = https://evil.example/", {"url": "https://good.example/@evil.example"}),
        ("url = https://evil.example/", {"url": "https://good.example/?to=ana@evil.example"}),
        ('note matches "*urgent*"', {"note": "see a/b and c"}),
        ("title = v1.2", {"title": "hello world"}),
        ("user = ben", {"user": "bendix"}),
        ("argv.0 = ./deploy.sh", {"argv": ["/usr/bin/git", "status"]}),
        ('email matches "*@evil.example"', {"email": "ben@good.example"}),
        ("currency = EUR", {"currency": "USD"}),
        ("path = infra/keys.pem", {"path": "docs/*.md"}),
        ('path matches "infra/**"', {"path": "docs/*.md"}),
        ("email = ben@evil.example", {"email": "bendix+ben@evil.example"}),
        ("host(url) = evil.example", {"url": "https://good.example/?to=ana@evil.org"}),
    ],
)
def test_what_a_rule_does_not_name_is_not_forbidden(condition: str, arguments: Mapping[str, Any]) -> None:
    assert judge(Mode.FORBID, condition, arguments, NOTHING) is not Judgement.REFUSE
