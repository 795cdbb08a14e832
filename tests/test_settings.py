"""Settings: each wrong value is one line that names the variable and the fix."""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import typer

from bot.cli.checks.environment import check_names
from bot.cli.doctor import doctor
from bot.cli.serve import check_surroundings
from bot.errors import SettingsError
from bot.settings import ONLY_TRANSCRIPTION_NOTICE, Settings, find_environment_faults
from tests.kit.modes import bound_by_modes

WRONG = [
    ("NOD_FETCH_PORTS", "0", "'0' is not a port. Use numbers from 1 to 65535"),
    ("NOD_FETCH_PORTS", "80, http", "'http' is not a port. Use numbers from 1 to 65535"),
    ("NOD_DATABASE_URL", "mysql://x/y", "sqlite:///file.db"),
    ("NOD_DATABASE_URL", "nod.db", "sqlite:///file.db"),
    ("NOD_DATABASE_URL", "sqlite://", "sqlite:///file.db"),
    ("NOD_DATABASE_URL", "sqlite:///:memory:", "name a file"),
    ("NOD_DATABASE_URL", "postgresql+psycopg://u:p@host:port/name", "user:password@host"),
    ("NOD_DATABASE_URL", "postgresql+psycopg://u:p@host", "user:password@host"),
    ("NOD_PORT", "eighty", "'eighty' is not a number. Use a number from 0 to 65535"),
    ("NOD_PORT", "65536", "65535"),
    ("NOD_HTTP_TOKENS", "ana", "name:token"),
    ("NOD_HTTP_TOKENS", "ana:short", "at least 16"),
    ("NOD_HTTP_TOKENS", "a/b:0123456789abcdef", "name:token"),
    ("NOD_HTTP_TOKENS", "ana:0123456789abcdef,ana:0123456789abcdeg", "used twice"),
    ("NOD_HTTP_TOKENS", "ana:0123456789abcdef,ben:0123456789abcdef", "its own"),
    ("NOD_METRICS_PORT", "0", "a number from 1 to 65535"),
    ("NOD_MODEL_PRICE", "5", "two numbers, such as 0.25,2"),
    ("NOD_MODEL_PRICE", "-1,2", "two numbers"),
    ("NOD_URL", "localhost:8080", "https://"),
    ("NOD_WEBHOOK_SECRET", "short", "at least 16"),
    ("NOD_METRICS_TOKEN", "short", "at least 16"),
    ("NOD_WEBHOOK_SECRET", "whsec_this-is-no-base64", "base64"),
    ("NOD_PUBLIC_URL", "nod.example.com", "https://"),
    ("NOD_ADMINS", "ana", "slack:T0123/U0456"),
    ("NOD_APPROVERS", "slack:", "is not an account"),
    ("NOD_APPROVER_CHATS", ":C1", "is not an account"),
    ("NOD_APPROVAL_POLICY", "sometimes", "not one of always, writes, destructive"),
    ("NOD_APPROVAL_POLICY", "never", "/approvals policy never for TOOL"),
    ("NOD_TIMEZONE", "Mars/Olympus", "Europe/London"),
    ("NOD_MAX_TEAMMATES", "99", "Use a number from 0 to 20"),
    ("NOD_PROPOSAL_TTL", "soon", "24h"),
    ("NOD_PROPOSAL_TTL", "0s", "from 1s"),
    ("NOD_PROPOSAL_TTL", "9999999w", "to 520w"),
    ("NOD_PROPOSAL_TTL", "-1h", "24h"),
    ("NOD_PROPOSAL_TTL", "365", "7d"),
    ("NOD_PROPOSAL_TTL", "99999999999999999999w", "24h"),
    ("NOD_OIDC_NAME", "x" * 41, "at most 40"),
    ("NOD_RETENTION", "a month", "7d"),
    ("NOD_MODEL_TIMEOUT", "60", "90s"),
    ("NOD_MAX_MODEL_CALLS", "0", "1"),
    ("NOD_HISTORY_TOKENS", "many", "is not a number. Use a number from 1000"),
    ("NOD_LOG_LEVEL", "loud", "debug, info"),
    ("NOD_MODEL_STRICT", "perhaps", "true or false"),
    ("NOD_MODEL_STREAM_OPTIONS", "2", "true or false"),
    ("NOD_MODEL_PARALLEL_TOOL_CALLS", "?", "true or false"),
    ("NOD_TOOLS", "acme/tools.py", "acme.tools"),
    ("NOD_TOOLS", "acme.tools,entry:", "entry:name"),
    ("NOD_AUDIT_KEY", ",", "at least 16 random characters"),
    ("NOD_SECRET_KEY", "short", "what nod secrets new prints"),
    ("NOD_AUDIT_KEY", "0123456789abcdef,short", "at least 16 random characters"),
    ("OPENAI_BASE_URL", "localhost:11434/v1", "https://"),
    ("OPENAI_BASE_URL", "http://me:secret@localhost/v1", "without a name or a password"),
    ("SLACK_API_URL", "slack.com", "https://"),
    ("TELEGRAM_API_URL", "ftp://telegram", "https://"),
]


@pytest.fixture(autouse=True)
def _nobodys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)


@pytest.mark.parametrize(("name", "value", "fix"), WRONG)
def test_a_wrong_value_is_one_line_with_the_variable_and_the_fix(monkeypatch, name, value, fix):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as raised:
        Settings.load()
    assert raised.value.message.startswith(f"{name}: ")
    assert fix in raised.value.message
    assert "\n" not in raised.value.message


def test_a_price_file_is_refused_with_its_wrong_line(monkeypatch, tmp_path):
    path = tmp_path / "prices.txt"
    monkeypatch.setenv("NOD_PRICES", str(path))
    for content, fix in {
        None: "can't be read: No such file",
        b"currency EUR\ngpt-5 cheap 2": "line 2: 'cheap' is not a price; write a number such as 0.25",
        b"\xff\xfe": "is not UTF-8 text",
    }.items():
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(SettingsError) as raised:
            Settings.load().prices("gpt-5-mini")
        assert raised.value.message.startswith("NOD_PRICES: ")
        assert fix in raised.value.message
    path.write_text("currency EUR\ngpt-5-mini 1 2\n")
    monkeypatch.setenv("NOD_MODEL_PRICE", "3,4")
    prices = Settings.load().prices("gpt-5-mini")
    assert (prices.currency, prices.cost("gpt-5-mini", 1_000_000, 1_000_000)) == ("EUR", 7)


def test_what_is_wrong_hides_nothing_that_is_right(monkeypatch):
    monkeypatch.setenv("NOD_PORT", "x")
    monkeypatch.setenv("NOD_MODEL", "mine")
    settings, faults = Settings.inspect()
    assert settings is not None
    assert (settings.model, settings.port) == ("mine", 8080)
    assert [fault.partition(":")[0] for fault in faults] == ["NOD_PORT"]


def test_several_wrong_values_are_all_told_together(monkeypatch):
    monkeypatch.setenv("NOD_PORT", "x")
    monkeypatch.setenv("NOD_LOG_LEVEL", "x")
    with pytest.raises(SettingsError, match=r"NOD_PORT: .*; NOD_LOG_LEVEL: "):
        Settings.load()


@pytest.mark.parametrize("name", ["NOD_HTTP_TOKENS", "NOD_DATABASE_URL", "OPENAI_BASE_URL"])
def test_no_secret_stands_in_a_fault_or_in_what_settings_look_like(monkeypatch, name):
    monkeypatch.setenv(name, "ana:hunter2-hunter2-hunter2,ana:hunter2-hunter2-hunter2")
    with pytest.raises(SettingsError) as raised:
        Settings.load()
    assert "hunter2" not in str(raised.value)
    monkeypatch.delenv(name)
    given = {
        "NOD_HTTP_TOKENS": "ana:hunter2-hunter2-hunter2",
        "NOD_DATABASE_URL": "postgresql+psycopg://u:hunter2@h/n",
        "OPENAI_API_KEY": "hunter2",
    }
    assert "hunter2" not in repr(Settings.load(**given))


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.168.1.4", "nod.example.com", "127.0.0.1.example.com"],  # noqa: S104 - refused
)
def test_an_address_others_can_reach_is_refused_without_tokens(host):
    with pytest.raises(SettingsError, match="NOD_HTTP_TOKENS: needed when NOD_HOST is not loopback"):
        Settings.load(NOD_HOST=host)
    assert Settings.load(NOD_HOST=host, NOD_HTTP_TOKENS="ana:0123456789abcdef").host == host


def test_the_defaults_are_a_start_without_any_setting():
    settings = Settings.load()
    assert settings.sqlite_file == Path("nod.db")
    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert settings.proposal_ttl == timedelta(hours=24)
    assert settings.names_by_token == {}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"NOD_HOST": "::1", "NOD_PORT": 9001}, "http://[::1]:9001"),
        ({"NOD_HOST": "0.0.0.0", "NOD_HTTP_TOKENS": "ana:0123456789abcdef"}, "http://127.0.0.1:8080"),  # noqa: S104
        ({"NOD_URL": "https://nod.example.com"}, "https://nod.example.com"),
    ],
)
def test_commands_find_the_running_nod_where_it_listens(given, url):
    assert Settings.load(**given).own_url == url


def test_dotenv_is_read_and_the_environment_wins(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("NOD_PORT=9001\nNOD_MODEL=of-the-file\nNOD_PROPOSAL_TTL=\n", "utf-8")
    monkeypatch.setenv("NOD_PORT", "9002")
    settings = Settings.load()
    assert (settings.port, settings.model) == (9002, "of-the-file")
    assert settings.proposal_ttl == timedelta(hours=24)


def test_a_dotenv_that_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / ".env").write_bytes(b"NOD_MODEL=caf\xe9\n")
    with pytest.raises(SettingsError, match=r"^\.env: it is not UTF-8 text\. Save it as UTF-8$"):
        Settings.load()


@pytest.mark.parametrize(
    ("folder", "file", "told"),
    [
        (0o000, 0o600, r"^/.*: user \d+ may not enter this folder\. Run Nod as user \d+ or in group \d+"),
        (0o500, 0o000, r"^\.env: user \d+ may not read it\. Let that user read it, or remove the file$"),
    ],
)
def test_who_may_not_read_the_dotenv_is_told_whether_it_is_the_folder_or_the_file(
    tmp_path: Path, folder: int, file: int, told: str
):
    (there := tmp_path / "there").mkdir()
    (there / ".env").write_text("NOD_MODEL=gpt\n")
    (there / ".env").chmod(file)
    program = "from bot.settings import Settings; print(*Settings.inspect()[1])"
    program = f"import os; os.chdir({str(there)!r}); os.chmod('.', {folder}); {program}"
    ended = subprocess.run(  # noqa: S603 - our own code
        [*bound_by_modes(), sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    there.chmod(0o700)
    assert re.search(told, ended.stdout.strip())


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_durations_are_written_with_a_unit(text, length):
    assert Settings.load(NOD_PROPOSAL_TTL=text).proposal_ttl == length


def test_lists_are_commas_and_tokens_are_looked_up_by_their_value():
    settings = Settings.load(
        NOD_ADMINS=" slack:T1/U1 , telegram:991,",
        NOD_HTTP_TOKENS="ana:0123456789abcdef,ci-bot:with:colons:0123456",
    )
    assert settings.admins == ("slack:T1/U1", "telegram:991")
    assert settings.names_by_token == {"0123456789abcdef": "ana", "with:colons:0123456": "ci-bot"}


def test_a_database_file_may_stand_anywhere():
    assert Settings.load(NOD_DATABASE_URL="sqlite:////var/lib/nod.db").sqlite_file == Path("/var/lib/nod.db")
    assert Settings.load(NOD_DATABASE_URL="postgresql+psycopg://u@h/n").sqlite_file is None


@pytest.mark.parametrize("library", ["psycopg", "procrastinate"])
def test_postgresql_without_its_libraries_says_what_to_install(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        SettingsError, match=re.escape("Run: pip install 'nod-approvals[postgres]'")
    ) as raised:
        Settings.load(NOD_DATABASE_URL="postgresql+psycopg://u:hunter2@h/n")
    assert str(raised.value).startswith("NOD_DATABASE_URL: ")


def test_a_setting_is_named_by_its_prefix_and_its_field_except_where_a_name_was_given():
    assert [
        str(field.validation_alias)
        for name, field in Settings.model_fields.items()
        if str(field.validation_alias) not in (name.upper(), f"NOD_{name.upper()}")
    ] == [
        "NOD_MODELS",
        "NOD_PRICES",
        "NOD_HTTP_TRUSTED_PROXIES",
        "NOD_HTTP_USER_HEADER",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "NOD_MAX_OPEN_PER_PERSON",
        "NOD_MAX_TURNS_PER_PERSON",
        "NOD_MAX_OPEN_PER_CONVERSATION",
    ]


def test_the_example_names_every_setting_and_no_other():
    example = (Path(__file__).parent.parent / ".env.example").read_text("utf-8")
    named = re.findall(r"^(?:# ?)?([A-Z][A-Z0-9_]+)=", example, re.MULTILINE)
    aliases = {str(field.validation_alias) for field in Settings.model_fields.values()}
    assert aliases - set(named) == set(), "settings without an entry"
    assert set(named) - aliases == set(), "entries without a setting"
    assert len(named) == len(set(named))


def test_every_example_value_is_a_valid_one(tmp_path):
    example = (Path(__file__).parent.parent / ".env.example").read_text("utf-8")
    lines = [line.removeprefix("# ") for line in example.splitlines() if re.match(r"^(# )?[A-Z0-9_]+=", line)]
    (tmp_path / ".env").write_text("\n".join(lines), "utf-8")
    Settings.load()


def test_metrics_of_a_worker_need_their_token(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOD_METRICS_PORT", "9464")
    with pytest.raises(SettingsError, match="NOD_METRICS_TOKEN: needed"):
        Settings.load()


BLANKS = ("\n", "\r\n", " ", "\t", "\ufeff", "\xa0", "\x00")
"""What a secret made by ``echo x | base64``, a mounted file or a paste has around it."""
ODD_VALUES = {  # of those that take no free text
    "NOD_DATABASE_URL": "sqlite:///other.db",
    "NOD_PORT": "9090",
    "NOD_HTTP_TOKENS": "ana:0123456789abcdef",
    "NOD_APPROVAL_POLICY": "always",
    "NOD_PROPOSAL_TTL": "2h",
    "NOD_TIMEZONE": "Europe/London",
    "NOD_LOG_LEVEL": "debug",
    "NOD_MODEL_IMAGES": "true",
    "NOD_MODEL_PRICE": "0.25,2",
    "NOD_ADMINS": "telegram:991",
    "NOD_URL": "https://nod.example.com",
    "NOD_WORKSPACE": "work",
    "NOD_INSTRUCTIONS": "Be brief.",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_API_KEY": "sk-1",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "TELEGRAM_BOT_TOKEN": "1:a",
    "DISCORD_BOT_TOKEN": "a.b.c",
}


@pytest.mark.parametrize("name", ODD_VALUES)
def test_the_blanks_around_a_value_do_not_count(monkeypatch: pytest.MonkeyPatch, name: str):
    plain = Settings.load(**{name: ODD_VALUES[name]})
    for blank in BLANKS:
        if "\x00" not in blank:  # no environment holds it, a file does
            monkeypatch.setenv(name, f"{blank}{ODD_VALUES[name]}{blank}")
            assert Settings.load() == plain
        assert Settings.load(**{name: f"{blank}{ODD_VALUES[name]}{blank}"}) == plain


@pytest.mark.parametrize("name", ODD_VALUES)
def test_a_value_that_is_blank_is_unset(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv(name, " \r\n")
    assert Settings.load() == Settings()


def test_a_file_with_carriage_returns_is_read_as_one_without(tmp_path: Path):
    lines = [f"{name}={value}" for name, value in ODD_VALUES.items() if name != "NOD_WORKSPACE"]
    (tmp_path / ".env").write_bytes("\n".join(lines).encode())
    plain = Settings.load()
    (tmp_path / ".env").write_bytes("".join(f"{line} \r\n" for line in lines).encode())
    assert Settings.load() == plain


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "SLACK_BOT_TOKEN", "TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN"]
)
@pytest.mark.parametrize("value", ["sk-1\nsk-2", "sk 1", "sk-\u2013", "sk\u200b-1"])
def test_a_key_that_no_header_can_hold_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=rf"^{name}: .*Copy it again$"):
        Settings.load()


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "NOD_URL", "NOD_PUBLIC_URL", "SLACK_API_URL"])
def test_a_line_break_inside_an_address_is_told_by_the_settings_name(
    monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setenv(name, "https://exa\nmple.com/v1")
    with pytest.raises(SettingsError, match=rf"^{name}: write an address"):
        Settings.load()


def test_a_key_of_the_file_of_models_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "models.toml").write_text('[local]\nbase_url = "http://127.0.0.1:9/v1"\nkey = "LOCAL_KEY"\n')
    monkeypatch.setenv("NOD_MODELS", "models.toml")
    monkeypatch.setenv("LOCAL_KEY", "sk-1\n")
    assert Settings.load().list_answering_models()[0].secret == "sk-1"
    monkeypatch.setenv("LOCAL_KEY", "sk-1\nsk-2")
    with pytest.raises(SettingsError, match=r"^LOCAL_KEY: "):
        Settings.load().list_answering_models()


def test_a_file_of_models_that_only_transcribe_says_at_the_start_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    file = tmp_path / "models.toml"
    ears = '[ears]\nbase_url = "http://127.0.0.1:9/v1"\naudio = true\n'
    monkeypatch.setenv("NOD_MODELS", str(file))
    for text, notice in (
        (ears, ONLY_TRANSCRIPTION_NOTICE),
        (f"{ears}[talker]\nbase_url = 'http://127.0.0.1:9'\n", ""),
    ):
        file.write_text(text)
        settings = Settings.load()
        assert (settings.uses_demo_model, settings.model_notice) == (bool(notice), notice)


def test_what_a_cluster_sets_for_services_is_no_setting(monkeypatch: pytest.MonkeyPatch):
    for name in ("NOD", "NOD_METRICS"):
        monkeypatch.setenv(f"{name}_PORT", "tcp://10.96.12.7:80")
        monkeypatch.setenv(f"{name}_SERVICE_HOST", "10.96.12.7")
        monkeypatch.setenv(f"{name}_SERVICE_PORT", "80")
        monkeypatch.setenv(f"{name}_SERVICE_PORT_HTTP", "80")
        for part in ("", "_PROTO", "_PORT", "_ADDR"):
            monkeypatch.setenv(f"{name}_PORT_80_TCP{part}", "10.96.12.7")
    assert Settings.load() == Settings()
    assert list(check_names()) == []
    monkeypatch.setenv("NOD_PORT", "tcp:80")
    with pytest.raises(SettingsError, match="not a number"):
        Settings.load()


def test_where_a_variable_is_blank_or_a_clusters_the_file_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("NOD_PORT= 9000 \r\nNOD_HOST=::1\r\n")
    monkeypatch.setenv("NOD_PORT", "tcp://10.96.12.7:80")
    monkeypatch.setenv("NOD_HOST", " \n")
    found = Settings.load()
    assert (found.port, found.host) == (9000, "::1")
    monkeypatch.setenv("NOD_PORT", "9001")
    assert Settings.load().port == 9001


@pytest.mark.parametrize("name", ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "http_proxy"])
def test_a_socks_proxy_is_a_fault_of_the_installation(name: str):
    [fault] = find_environment_faults({name: "socks5://127.0.0.1:1080"})
    assert re.match(rf"{name}: .*HTTPS_PROXY", fault)


def test_a_missing_or_empty_file_of_certificates_is_a_fault_of_the_installation(tmp_path: Path):
    gone, empty = tmp_path / "gone.pem", tmp_path / "empty.pem"
    empty.write_text("no certificate")
    for name, file, words in (
        ("SSL_CERT_FILE", gone, "does not exist"),
        ("SSL_CERT_DIR", gone, "does not exist"),
        ("SSL_CERT_FILE", tmp_path, "does not exist"),
        ("SSL_CERT_FILE", empty, "holds no certificates"),
    ):
        [fault] = find_environment_faults({name: f"{file}\n"})
        assert fault.startswith(f"{name}: ")
        assert words in fault
    assert find_environment_faults({"SSL_CERT_FILE": "", "SSL_CERT_DIR": str(tmp_path)}) == []


def test_what_the_system_brings_is_told_before_anything_starts(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(SettingsError, match=r"^ALL_PROXY: "):
        check_surroundings()
    with pytest.raises(typer.Exit):
        doctor(as_json=False)
    assert "ALL_PROXY: Nod can't go through a SOCKS proxy." in capsys.readouterr().out
