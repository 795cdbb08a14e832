"""Commands that are bound by the modes of files, also where root runs the tests."""

import os
import shutil
import subprocess

import pytest

_WEAK = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # root, but bound by a file's mode


def bound_by_modes() -> tuple[str, ...]:
    """What to write before a command so that it may not write to what is read-only."""
    if os.geteuid():
        return ()
    if shutil.which(_WEAK[0]) is None or subprocess.run([*_WEAK, "true"], check=False).returncode:  # noqa: S603
        pytest.skip("root may write everywhere here, and nothing takes that away")
    return _WEAK
