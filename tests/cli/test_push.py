"""``nod push keys`` prints a key that the settings take."""

import pytest

from bot.features.push.vapid import PushKey
from bot.settings import Settings
from tests.cli.conftest import Shell

pytestmark = pytest.mark.slow


def test_a_new_key_is_one_that_the_settings_take(shell: Shell):
    printed = shell.nod("push", "keys").stdout.strip()
    key = Settings.load(NOD_PUSH_KEY=printed).push_key
    assert key is not None
    assert len(PushKey(key.get_secret_value()).public) == 87
