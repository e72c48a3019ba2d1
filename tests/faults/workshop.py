"""What the tests of faults share: compiled parts, preloaded libraries, and processes that build while something fails."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import gtstub
from gtstub import toolchain
from recording import C_COMPILER_FLAGS, compile_c
from signatures import SMALL_PROGRAM, SMALL_SDFG
from stubs import build_stub

HERE = Path(__file__).parent

BUILD_TIMEOUT = "2"
"""Seconds after which a claim is overtaken that its builder left half-written."""
