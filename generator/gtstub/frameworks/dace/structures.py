"""Structures as arguments of DaCe programs: their members, and those of them that a program writes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, TypeGuard

import dace
from dace import data, nodes

from gtstub.errors import SignatureError
from gtstub.frameworks.dace.internals import type_name
from gtstub.stub.signature.model import Argument, ArrayArgument, ScalarArgument, StructureArgument, checked_dtype


def is_structure(descriptor: Any) -> TypeGuard[data.Structure]:
    """Whether it is a structure, and neither a view of one nor a sparse tensor, whose sizes DaCe does not know."""
    return type(descriptor) is data.Structure


def is_struct(value: Any) -> bool:
    """Whether a value is what DaCe makes of an object for a call: the struct of a structure, with addresses."""
    return isinstance(value, ctypes.Structure) and hasattr(type(value), "__descriptor__")


def members_of(sdfg: str, path: str, structure: data.Structure) -> Mapping[str, data.Data]:
    """
    The members of a structure by their paths, in the order of its struct in C; `path` is that of the structure.

    Raises SignatureError for members of other kinds than arrays, scalars and structures.
    """
    members = {f"{path}.{key}": structure.members[key] for key in structure.dtype.base_type.fields}
    for name, member in members.items():
        if type(member) not in (data.Array, data.Scalar, data.Structure):
            raise SignatureError(
                f"Argument '{name}' of SDFG '{sdfg}' must be an array, a scalar or a structure, but has type"
                f" '{type(member).__name__}'."
            )
    return members


def with_members(sdfg: dace.SDFG, described: Mapping[str, data.Data]) -> Iterator[tuple[str, data.Data]]:
    """Descriptors by their paths: of arguments of an SDFG, and after each structure of all its members."""
    for path, descriptor in described.items():
        yield path, descriptor
        if is_structure(descriptor):
            yield from with_members(sdfg, members_of(sdfg.name, path, descriptor))


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


def structure_argument(
    sdfg: str, path: str, structure: data.Structure, arrays: Mapping[str, ArrayArgument]
) -> StructureArgument:
    """
    A structure, or one in a structure. `arrays` has its arrays by their paths, and scalars that the SDFG writes. The
    names of members are their paths.
    """
    members = members_of(sdfg, path, structure)

    def argument(member: str, descriptor: data.Data) -> Argument:
        if is_structure(descriptor):
            return structure_argument(sdfg, member, descriptor, arrays)
        if member in arrays:
            return arrays[member]
        return ScalarArgument(
            member, checked_dtype(f"SDFG '{sdfg}'", member, type_name(descriptor.dtype), is_scalar=True)
        )

    copied = tuple(name for name, each in members.items() if type(each) is data.Scalar and name in arrays)
    return StructureArgument(path, tuple(map(argument, members, members.values())), copied)


def written_members(sdfg: dace.SDFG, structure: str) -> Callable[[str], bool]:
    """Tells of the path of a member whether an SDFG may write it."""
    written = {f"{structure}{each}." for each in _written(sdfg, structure)}
    return lambda path: any(f"{path}.".startswith(each) for each in written)


def _written(sdfg: dace.SDFG, structure: str) -> Set[str]:
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
            found |= _written(end.src.sdfg, end.src_conn)
        else:  # what another one writes may be all of it
            found.add(written.removeprefix(structure) if written.startswith(f"{structure}.") else "")
    return found
