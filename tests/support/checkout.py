"""The checkout that the tests are in."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
