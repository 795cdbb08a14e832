"""Secrets in rows: encrypted with the keys of NOD_SECRET_KEY, readable in their own place alone."""

from datetime import UTC, datetime

import pytest
from sqlmodel import Session, col, select

import bot.store.migrations.schema  # noqa: F401 - every table that holds a secret
from bot.app.assembly import build
from bot.channels.slack import rows as slack
from bot.errors import SecretLost, SettingsError
from bot.settings import EXAMPLE_SECRET_KEY, Settings
from bot.store import mcp, secrets
from bot.store.database import Database
from bot.store.mcp import FinishedSignInRow, SignIn
from bot.store.secrets import Keyring
from bot.store.tables.workspaces import WorkspaceRow

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
URL = "https://tracker.example/mcp"
TOKENS = '{"access_token": "tok-marked-4711"}'
MADE = SignIn("tracker", URL, '{"client_secret": "client-marked-4711"}', TOKENS, "{}", None, "http:ana", NOW)


def key() -> str:
    return secrets.new_key()


def give(database: Database, *keys: str) -> None:
    secrets.give_keyring(database, Keyring(keys))


def installed(token: str = "xoxb-marked-4711") -> WorkspaceRow:
    return WorkspaceRow(team="T1", token=token, bot_id="B", bot_user="U", installed_at=NOW)


def stored(session: Session) -> list[str]:
    """All that the rows hold in place of the secrets."""
    signed_in = session.exec(select(FinishedSignInRow.client, FinishedSignInRow.tokens)).all()
    return [text for row in signed_in for text in row] + list(session.exec(select(WorkspaceRow.token)))


def test_without_a_key_everything_stays_as_it_was(database: Database):
    database.write_now(mcp.store_sign_in, MADE)
    database.write_now(slack.save_workspace, installed())
    assert database.write_now(secrets.encrypt_plain).encrypted == 0
    assert database.read_now(stored) == [MADE.client, TOKENS, "xoxb-marked-4711"]
    found = database.read_now(mcp.find, "tracker", URL)
    assert found == MADE or (found is not None and found.tokens == TOKENS)


def test_with_a_key_what_was_kept_before_is_encrypted_once_and_read_as_before(database: Database):
    database.write_now(mcp.store_sign_in, MADE)
    database.write_now(slack.save_workspace, installed())
    give(database, key())
    assert database.write_now(secrets.encrypt_plain).encrypted == 3
    assert not any("marked" in text for text in database.read_now(stored))
    assert database.write_now(secrets.encrypt_plain).encrypted == 0
    found = database.read_now(mcp.find, "tracker", URL)
    assert found is not None
    assert (found.tokens, found.client) == (TOKENS, MADE.client)
    workspace = database.read_now(slack.find_workspace, "T1")
    assert workspace is not None
    assert workspace.token == "xoxb-marked-4711"


def test_what_is_kept_with_a_key_was_never_plain_text_and_a_refresh_is_not_either(database: Database):
    give(database, key())
    database.write_now(mcp.store_sign_in, MADE)
    database.write_now(slack.save_workspace, installed())
    held = database.read_now(mcp.find, "tracker", URL)
    assert held is not None
    assert database.write_now(mcp.store_refreshed_tokens, held, '{"access_token": "tok-marked-4712"}', None)
    assert not any("marked" in text for text in database.read_now(stored))
    renewed = database.read_now(mcp.find, "tracker", URL)
    assert renewed is not None
    assert "tok-marked-4712" in renewed.tokens


def test_a_lost_key_leaves_nod_signed_out_and_says_where(database: Database):
    give(database, key())
    database.write_now(mcp.store_sign_in, MADE)
    database.write_now(slack.save_workspace, installed())
    give(database, key())
    done = database.write_now(secrets.encrypt_plain)
    assert {each.place for each in done.lost} == {
        "mcp_login.client tracker",
        "mcp_login.tokens tracker",
        "slack_workspace.token T1",
    }
    found = database.read_now(mcp.find, "tracker", URL)
    assert found is not None
    assert (found.is_lost, found.tokens, found.client) == (True, "", "")
    assert database.read_now(slack.find_workspace, "T1") is None


def test_a_key_that_comes_back_opens_what_it_encrypted(database: Database):
    first = key()
    give(database, first)
    database.write_now(slack.save_workspace, installed())
    give(database, key())
    database.write_now(secrets.encrypt_plain)
    give(database, first)
    assert database.read_now(slack.find_workspace, "T1") is not None


def test_after_a_rotation_the_older_key_is_needed_no_longer(database: Database):
    older, newer = key(), key()
    give(database, older)
    database.write_now(mcp.store_sign_in, MADE)
    give(database, newer, older)
    assert database.read_now(secrets.examine_secrets).older == 2
    assert database.write_now(secrets.rotate).encrypted == 2
    give(database, newer)
    found = database.read_now(mcp.find, "tracker", URL)
    assert found is not None
    assert found.tokens == TOKENS
    assert database.read_now(secrets.examine_secrets) == secrets.SecretsFound(0, 0, ())


def test_a_value_that_was_copied_to_another_row_is_not_read_there(database: Database):
    give(database, key())
    database.write_now(slack.save_workspace, installed())

    def copy(session: Session) -> None:
        taken = session.exec(select(WorkspaceRow.token).where(col(WorkspaceRow.team) == "T1")).one()
        session.add(WorkspaceRow(team="T2", token=taken, bot_id="B", bot_user="U", installed_at=NOW))

    database.write_now(copy)
    assert database.read_now(slack.find_workspace, "T2") is None


def test_a_workspace_is_off_by_the_token_that_is_encrypted_there(database: Database):
    give(database, key())
    database.write_now(slack.save_workspace, installed())
    database.write_now(slack.end_installation, "T1", "xoxb-another", "gone", NOW)
    assert database.read_now(slack.find_workspace, "T1") is not None
    database.write_now(slack.end_installation, "T1", "xoxb-marked-4711", "gone", NOW)
    assert database.read_now(slack.find_workspace, "T1") is None


def test_without_a_key_what_is_encrypted_is_lost_and_not_an_error(database: Database):
    ring = Keyring((key(),))
    kept = ring.encrypt("tok-marked-4711", "connection.tokens 1")
    with pytest.raises(SecretLost):
        Keyring().decrypt(kept, "connection.tokens 1")
    assert ring.decrypt(kept, "connection.tokens 1") == "tok-marked-4711"


def test_the_example_of_the_settings_is_no_key(tmp_path):
    given = {"NOD_DATABASE_URL": f"sqlite:///{tmp_path / 'nod.db'}", "NOD_SECRET_KEY": (EXAMPLE_SECRET_KEY,)}
    with pytest.raises(SettingsError, match="NOD_SECRET_KEY: this is the example that anyone can read"):
        build(Settings.load(**given))
