"""`python -m gtstub` is the command `gtstub`."""

from __future__ import annotations

from gtstub.cli.app import main

main(prog_name="gtstub")
