"""Each field of `Feature` has a user, and each feature the folder of its name."""

from dataclasses import fields
from pathlib import Path

import pytest

import bot.features
from bot.app.features import FEATURES
from bot.features.feature import Feature

FOLDER = Path(bot.features.__path__[0])


@pytest.mark.parametrize("name", sorted({each.name for each in fields(Feature)} - {"name"}))
def test_each_field_of_a_feature_is_given_by_one(name: str) -> None:
    nothing = getattr(Feature(name="none"), name)
    assert [each.name for each in FEATURES if getattr(each, name) != nothing]


def test_each_feature_is_a_folder_of_its_name_and_each_folder_is_listed() -> None:
    folders = sorted(each.parent.name for each in FOLDER.glob("*/feature.py"))
    assert sorted(each.name for each in FEATURES) == folders
