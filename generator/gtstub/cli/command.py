"""Runs a command of the user with other environment variables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from gtstub.errors import GtstubError


def run_command(command: Sequence[str], settings: Mapping[str, str]) -> int:
    """
    Runs a command with these environment variables, and returns its exit code as a shell does: 128 + N after signal N.
    Raises GtstubError if it cannot be run.
    """
    try:
        status = subprocess.run(command, env={**os.environ, **settings}, check=False).returncode
    except OSError as error:
        raise GtstubError(f"'{command[0]}' cannot be run: {error.strerror}.") from error
    return status if status >= 0 else 128 - status
