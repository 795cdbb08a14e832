"""Each field of `Feature` has a user, and each feature the folder of its name."""

from dataclasses import MISSING, fields
from pathlib import Path

import pytest

import bot.features
from bot.app import FEATURES
from bot.features.feature import Feature

FOLDER = Path(bot.features.__path__[0])


@pytest.mark.parametrize(
    "field", [each for each in fields(Feature) if each.name != "name"], ids=lambda f: f.name
)
def test_each_field_of_a_feature_is_given_by_one(field: object) -> None:
    name, usual = field.name, field.default  # type: ignore[attr-defined]
    nothing = ({}, ()) if usual is MISSING else (usual,)
    assert [each.name for each in FEATURES if getattr(each, name) not in nothing]


def test_each_feature_is_a_folder_of_its_name_and_each_folder_is_listed() -> None:
    folders = sorted(each.parent.name for each in FOLDER.glob("*/feature.py"))
    assert sorted(each.name for each in FEATURES) == folders
