"""Features are driven over the core, as in ``tests/approvals``, and over HTTP, as in ``tests/web``."""

from tests.web.conftest import _log, meet, serve  # noqa: F401 - fixtures
