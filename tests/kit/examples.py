"""How many examples Hypothesis tries."""

from typing import Any

from hypothesis import settings


def examples(many: int, **more: Any) -> settings:
    """So many in the long run (`--hypothesis-profile random`), and a share of them each time."""
    return settings(max_examples=many * settings.default.max_examples // 100, deadline=None, **more)
