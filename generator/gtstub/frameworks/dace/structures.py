"""Structures as arguments of DaCe programs: their members, and those of them that a program writes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Set
from typing import Any

import dace
from dace import data, nodes

from gtstub.errors import SignatureError


def is_structure(descriptor: Any) -> bool:
    return isinstance(descriptor, data.Structure) and not isinstance(descriptor, data.View | data.Reference)


def is_struct(value: Any) -> bool:
    """Whether a value is what DaCe makes of an object for a call: the struct of a structure, with addresses."""
    return isinstance(value, ctypes.Structure) and hasattr(type(value), "__descriptor__")


def members_of(sdfg: str, path: str, structure: data.Structure) -> Iterator[tuple[str, data.Data]]:
    """
    The members of a structure in the order of its struct in C, each with its path; `path` is that of the structure.

    Raises SignatureError for members of other kinds than arrays, scalars and structures.
    """
    for key in structure.dtype.base_type.fields:
        member = structure.members[key]
        if not is_structure(member) and type(member) not in (data.Array, data.Scalar):
            raise SignatureError(
                f"Argument '{path}.{key}' of SDFG '{sdfg}' must be an array, a scalar or a structure, but has type"
                f" '{type(member).__name__}'."
            )
        yield f"{path}.{key}", member


def with_members(sdfg: dace.SDFG, described: Mapping[str, data.Data]) -> Iterator[tuple[str, data.Data]]:
    """Descriptors by their paths: of arguments of an SDFG, and after each structure of all its members."""
    for path, descriptor in described.items():
        yield path, descriptor
        if is_structure(descriptor):
            yield from with_members(sdfg, dict(members_of(sdfg.name, path, descriptor)))


def names_of_members(sdfg: dace.SDFG) -> Mapping[str, str]:
    """The names in C of all members of structures among the arguments of an SDFG, by their paths."""
    names: dict[str, str] = {}
    taken = {*sdfg.arrays, *sdfg.symbols, *sdfg.constants}
    for path, _ in with_members(sdfg, sdfg.arglist()):
        if "." in path:
            names[path] = path.replace(".", "_")
            while names[path] in taken:
                names[path] += "_"
            taken.add(names[path])
    return names


def written_members(sdfg: dace.SDFG, structure: str) -> Set[str]:
    """
    The paths of what an SDFG writes of a structure, from the structure on: '.x.a', or '' for all of it. A nested SDFG
    gets whole structures, and says itself what it writes.
    """
    _, writes = sdfg.read_and_write_sets()
    found = {each.removeprefix(structure) for each in writes if f"{each}.".startswith(f"{structure}.")}
    if "" not in found:
        return found
    ends = [
        end
        for state in sdfg.states()
        for node in state.data_nodes()
        if node.data == structure
        for edge in state.in_edges(node)
        if not edge.data.is_empty()
        for end in state.memlet_tree(edge).leaves()
    ]
    if ends:
        found.remove("")
    for end in ends:
        written = str(end.data.data)
        if isinstance(end.src, nodes.NestedSDFG):
            found |= written_members(end.src.sdfg, end.src_conn)
        else:  # what another one writes may be all of it
            found.add(written.removeprefix(structure) if written.startswith(f"{structure}.") else "")
    return found
