"""Reads the JSON form of an SDFG, as DaCe and the cache save it."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtstub.errors import GtstubError

Document = Mapping[str, Any]
"""An SDFG in DaCe's JSON form."""


class SdfgError(GtstubError):
    """A file is no SDFG that can be analysed."""

    exit_code = 2


def read(file: Path) -> Document:
    """The SDFG in a file, which may be compressed. Raises SdfgError if there is none."""
    try:
        data = file.read_bytes()
        document = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    except FileNotFoundError:
        raise SdfgError(f"There is no file '{file}'.") from None
    except OSError as error:
        raise SdfgError(f"'{file}' cannot be read: {error.strerror or 'it is not compressed JSON'}.") from None
    except (ValueError, EOFError, RecursionError, zlib.error):
        raise SdfgError(f"'{file}' is not an SDFG: it is neither JSON nor compressed JSON, or is truncated.") from None
    if not isinstance(document, dict) or document.get("type") != "SDFG":
        raise SdfgError(f"'{file}' is not an SDFG: its 'type' is not 'SDFG'.")
    return document
