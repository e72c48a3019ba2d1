"""
What serialbox needs beside the values of a recording to read them: two JSON files for each program.

    serializer = serialbox.Serializer(serialbox.OpenModeKind.Read, "recording/host-1234/diffuse", "diffuse")
    vn = serializer.read("vn", serializer.savepoint["diffuse-before"].call[3].as_savepoint())

Written as serialbox 2.6 writes them. It checks no checksum when it reads, so there are none.
"""

from __future__ import annotations

import json
import math
from typing import Any

from gtstub.recorded.archive import Archive, Call, Program, Value
from gtstub.signature.dtypes import NAMES
from gtstub.util.atomic import write

VERSION = 263

STRING = 6


def write_serialbox_files(archive: Archive) -> None:
    """Makes all values of an archive that serialbox has types for fields of savepoints."""
    for program in archive.programs:
        calls = [call for call in archive.calls if call.program is program]
        fields: dict[str, Value] = {}
        places: dict[str, dict[int, int]] = {}
        savepoints, contents = [], []
        for call in calls:
            for when in ("before", "after"):
                content = {}
                for value in call.values:
                    place = value.before if when == "before" else value.after
                    if place is None or not _is_readable(value):
                        continue
                    fields.setdefault(value.field, value)
                    known = places.setdefault(value.field, {})
                    content[value.field] = known.setdefault(place, len(known))
                if content:  # serialbox loses all savepoints behind one without fields
                    savepoints.append(_savepoint(call, when))
                    contents.append({f"{program.id}-{when}": content})
        directory = archive.path / program.id
        metadata = {
            "serialbox_version": VERSION,
            "prefix": program.id,
            "global_meta_info": _origin(program),
            "field_map": {
                name: {"type_id": _type_id(value), "dims": list(value.shape) or [1], "meta_info": None}
                for name, value in fields.items()
            },
            "savepoint_vector": {"savepoints": savepoints, "fields_per_savepoint": contents},
        }
        table = {
            "serialbox_version": VERSION,
            "archive_name": "Binary",
            "archive_version": 0,
            "hash_algorithm": "SHA256",
            "fields_table": {name: [[place, ""] for place in known] for name, known in places.items()},
        }
        write(directory / f"MetaData-{program.id}.json", json.dumps(metadata, indent=1) + "\n")
        write(directory / f"ArchiveMetaData-{program.id}.json", json.dumps(table, indent=1) + "\n")


def _is_readable(value: Value) -> bool:
    return _type_id(value) is not None and math.prod(value.shape) > 0


def _savepoint(call: Call, when: str) -> dict[str, Any]:
    return {"name": f"{call.program.id}-{when}", "meta_info": {"call": {"type_id": 2, "value": call.number}}}


def _origin(program: Program) -> dict[str, Any]:
    texts = {"program": program.name, "program_digest": program.program_digest, "sdfg_digest": program.sdfg_digest}
    return {name: {"type_id": STRING, "value": text} for name, text in texts.items()}


def _type_id(value: Value) -> int | None:
    return NAMES[value.leaf.dtype].serialbox
