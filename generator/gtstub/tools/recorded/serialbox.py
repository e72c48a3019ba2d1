"""
The two JSON files for each program with which serialbox can read the values of a recording.

    serializer = serialbox.Serializer(serialbox.OpenModeKind.Read, "recording/host-1234/diffuse", "diffuse")
    vn = serializer.read("vn", serializer.savepoint["diffuse-before"].call[3].as_savepoint())

They have the form of serialbox 2.6, without checksums, because serialbox does not check these when it reads.
"""

from __future__ import annotations

import itertools
import json
import math

from gtstub.stub.signature.dtypes import NAMES
from gtstub.tools.recorded.archive import Archive, Value, When
from gtstub.util.atomic import write

VERSION = 263
INT32, STRING = 2, 6
"""Numbers of serialbox's types."""


def write_serialbox_files(archive: Archive) -> None:
    """Writes the files. Values without elements, or without a type in serialbox, are left out."""
    moments: tuple[When, When] = ("before", "after")
    for program in archive.programs:
        fields: dict[str, Value] = {}
        places: dict[str, dict[int, int]] = {}
        savepoints, contents = [], []
        calls = [call for call in archive.calls if call.program is program]
        for call, when in itertools.product(calls, moments):
            content = {}
            for value in call.values:
                place = value.place(when)
                if place is None or _type_id(value) is None or math.prod(value.shape) == 0:
                    continue
                fields.setdefault(value.field, value)
                known = places.setdefault(value.field, {})
                content[value.field] = known.setdefault(place, len(known))
            if content:  # because serialbox ignores all savepoints after one without fields
                name = f"{program.id}-{when}"
                savepoints.append({"name": name, "meta_info": {"call": {"type_id": INT32, "value": call.number}}})
                contents.append({name: content})
        origin = {"program": program.name, "program_digest": program.program_digest, "sdfg_digest": program.sdfg_digest}
        directory = archive.path / program.id
        metadata = {
            "serialbox_version": VERSION,
            "prefix": program.id,
            "global_meta_info": {name: {"type_id": STRING, "value": text} for name, text in origin.items()},
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


def _type_id(value: Value) -> int | None:
    return NAMES[value.leaf.dtype].serialbox
