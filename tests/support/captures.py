"""What captures say."""

from collections.abc import Callable

import pytest

import gtstub
from gtstub.errors import CaptureWarning


def warned(method: Callable[[], object]) -> str:
    """The only warning of a capture of a method, which names the file that has captured it."""
    with pytest.warns(CaptureWarning) as caught:
        gtstub.capture(method, name="run")
    (warning,) = caught
    assert warning.filename == __file__
    return str(warning.message)
