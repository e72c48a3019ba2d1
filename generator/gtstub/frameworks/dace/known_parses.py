"""
What earlier processes have found out by parsing a program, so that a later one finds its entry without parsing it.

A document in the cache has the digest of the SDFG and what calls need besides. Its name is a digest of all that the
parse depends on (reachable.py). Each reading that calls make must be one of these; a program of which this is not
certain has no document, and is parsed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import dace
from dace import nodes
from dace.frontend.python.parser import DaceProgram

from gtstub import ranks, settings
from gtstub.cache.cleanup import PARSES
from gtstub.cache.store import open_cache
from gtstub.cache.trust import check_directory, check_file, check_root, make_directory
from gtstub.errors import TrustError
from gtstub.frameworks.dace import dace_config
from gtstub.frameworks.dace.call_arguments import Arguments
from gtstub.frameworks.dace.closures import Closure, End, Identical, copy_of, is_plain, type_of
from gtstub.frameworks.dace.internals import Types
from gtstub.frameworks.dace.program_signature import Parameters
from gtstub.frameworks.dace.reachable import Reachable, UnfitError, check_registered, describe_data
from gtstub.frameworks.dace.readings import Reading
from gtstub.frameworks.dace.variant import LoadedVariant, Options, ParsedVariant, arrays_of, load_variant, request_of
from gtstub.frameworks.versions import dace_versions
from gtstub.plan.planner import make_plan
from gtstub.signature import documents
from gtstub.util.atomic import replacing
from gtstub.util.regular import opened, read_regular

LARGEST = 2**22
"""Bytes of the largest document that is read."""


@dataclasses.dataclass(frozen=True)
class Parse:
    """A parse of a program that is needed now: what it depends on, and the name of its document."""

    program: DaceProgram
    reachable: Reachable
    name: str

    @classmethod
    def of(cls, program: DaceProgram, types: Types, call: Arguments, options: Options) -> Parse | None:
        """None if it is not certain what the parse depends on."""
        try:
            check_registered()
            reachable = Reachable(program)
            known = {
                "reachable": reachable.digest,
                "types": [[name, describe_data(each)] for name, each in types.descriptors.items()],
                "values": [[name, _plain(value, reachable)] for name, value in types.values.items()],
                "given": [sorted(types.given), sorted(types.annotated)],
                "call": [[name, value is None] for name, value in call.by_name.items()],
                "options": [options.build_type, dict(options.dace_config), options.bounds, settings.bounds()],
                "config": {name: each.value for name, each in options.build("cpu").settings.items()},
                "rules": dace_config.FILE.read_text(encoding="utf-8"),
                "versions": [sys.version, dace_versions(), metadata.version("sympy"), metadata.version("networkx")],
            }
        except Exception:  # UnfitError, and the errors of any object's attributes
            return None
        text = json.dumps(known, sort_keys=True, default=str)
        return cls(program, reachable, hashlib.sha256(text.encode()).hexdigest())

    def find(self, types: Types, call: Arguments, options: Options) -> LoadedVariant | None:
        """The program, if an earlier process has parsed it and the cache has its entry."""
        for layer in open_cache(ranks.current().path).layers:
            if (document := _read(layer / PARSES, f"{self.name}.json")) is None:
                continue
            try:
                closure, parameters, arrays = self._restored(document, types, call)
                names = document["name"], document["sdfg"], document["stub"]
            except Exception:  # of a document of another form, and of any object's attributes
                continue
            request = request_of(*names, closure, options.build("cpu"), None)
            if (entry := request.find()) is not None:
                with suppress(OSError):  # Others may own a shared layer.
                    os.utime(layer / PARSES / f"{self.name}.json")
                plan = make_plan(
                    documents.sdfg_in(entry.path / "sdfg.json"), documents.program_in(entry.path / "program.json")
                )
                return load_variant(entry, plan, arrays, parameters, closure, types, call)
        return None

    def _restored(
        self, document: Mapping[str, Any], types: Types, call: Arguments
    ) -> tuple[Closure, Parameters, Mapping[str, dace.data.Array]]:
        def reading(made: Any) -> Reading:
            kind, number, name, steps, source = made
            return self.reachable.reading_of((kind, number, name, tuple(map(_step, steps))), source)

        given = call.by_name
        arguments = {name: given[name] for name in types.values if name in given}
        constants: list[tuple[Reading, Any]] = []
        for made, is_identical in document["constants"]:
            found = reading(made).read(arguments)
            constants.append((reading(made), Identical(found) if is_identical else copy_of(found)))
        found_arrays = {name: reading(made) for name, made in document["arrays"].items()}
        closure = Closure(
            arrays=found_arrays,
            types={name: type_of(each.read(arguments)) for name, each in found_arrays.items()},
            callbacks={},
            constants=tuple(constants),
            shared=(),
            distinct=frozenset(document["distinct"]),
            ends={End[name]: count for name, count in document["ends"].items()},
            again=(),
        )
        read = {name: reading(made) for name, made in document["read"].items()}
        parameters = Parameters(tuple(document["passed"]), read, tuple(document["results"]))
        return closure, parameters, {name: _array(each) for name, each in document["described"].items()}

    def keep(self, parsed: ParsedVariant) -> None:
        """Writes the document of a program that was parsed meanwhile, unless something speaks against it."""
        try:
            document = self._document(parsed)
        except UnfitError:
            return
        directory = parsed.request.cache.root / PARSES
        with suppress(OSError, TrustError):  # It only saves time.
            make_directory(directory, 0o700, exist_ok=True)
            check_root(directory)
            with replacing(directory / f"{self.name}.json") as aside:
                aside.write_text(json.dumps({**document, "digest": _digest(document)}), encoding="utf-8")

    def _document(self, parsed: ParsedVariant) -> dict[str, Any]:
        closure, parameters = parsed.closure, parsed.parameters
        has_callbacks = not parameters.read.keys() <= closure.arrays.keys()
        if has_callbacks or closure.shared or closure.again or parsed.library or parsed.build.device != "cpu":
            raise UnfitError("callbacks, expressions, arrays with two names, another package's library, a GPU")
        if any(isinstance(node, nodes.LibraryNode) for node, _ in parsed.sdfg.all_nodes_recursive()):
            raise UnfitError("nodes whose expansion DaCe chooses by other settings")
        if Reachable(self.program).digest != self.reachable.digest:
            raise UnfitError("changes during the parse")

        def made(reading: Reading) -> list[Any]:
            return [*self.reachable.path_to(reading), reading.source]

        if any(type(each) not in (dace.data.Array, dace.data.Scalar) for each in parsed.sdfg.arglist().values()):
            raise UnfitError("structures")
        return {
            "name": parsed.request.program,
            "sdfg": parsed.request.ingredients["sdfg"],
            "stub": parsed.request.ingredients["stub"],
            "constants": [[made(reading), isinstance(value, Identical)] for reading, value in closure.constants],
            "arrays": {name: made(reading) for name, reading in closure.arrays.items()},
            "distinct": sorted(closure.distinct),
            "ends": {end.name: count for end, count in closure.ends.items()},
            "read": {name: made(reading) for name, reading in parameters.read.items()},
            "passed": parameters.passed,
            "results": parameters.results,
            "described": {name: each.to_json() for name, each in arrays_of(parsed.sdfg, parameters).items()},
        }


def _plain(value: Any, reachable: Reachable) -> Any:
    if not is_plain(value):
        raise UnfitError("a compile-time argument that is an object")
    return reachable.describe(value)


def _array(raw: Any) -> dace.data.Array:
    made = dace.data.Array.from_json(raw, context={"version": dace.__version__})
    if not isinstance(made, dace.data.Array):
        raise TypeError(raw)
    return made


def _step(step: Any) -> Any:
    return sys.intern(step) if isinstance(step, str) else tuple(step)


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(json.loads(json.dumps(document)), sort_keys=True).encode()).hexdigest()


def _read(directory: Path, name: str) -> dict[str, Any] | None:
    """A document; None if there is none, if it is damaged, or if somebody who is not trusted could have written it."""
    try:
        with opened(directory) as descriptor:
            check_directory(descriptor, directory)
            with opened(directory / name, descriptor) as file:
                check_file(file, descriptor, directory, name)
            document = json.loads(read_regular(directory / name, LARGEST, descriptor))
    except (OSError, TrustError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.pop("digest", None) != _digest(document):
        return None
    return document
