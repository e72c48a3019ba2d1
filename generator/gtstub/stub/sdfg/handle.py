"""What the handle of an SDFG's library depends on, and the memory that the caller provides for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gtstub.stub.sdfg.model import Sdfg, nested_in, sdfgs_in, states_in, words_in


def handle_symbols(sdfg: Sdfg) -> frozenset[str]:
    """
    The names of the symbols that the handle depends on: they size memory that it keeps, or occur in the initialisation
    code of an SDFG or a tasklet. Names in nested SDFGs are those that stand for them in this one. DaCe leaves the names
    in initialisation code and in sizes of External memory as they are, so that these count, too.
    """
    names = set(_handle_names(sdfg))
    for inner in sdfgs_in(sdfg):
        names.update(words_in(*inner.init_code))
        for container in inner.containers.values():
            if container.lifetime == "External":
                names.update(words_in(*container.shape, container.total_size))
        for state in states_in(inner):
            names.update(words_in(*(node.init_code for node in state.nodes.values())))
    return frozenset(names)


def _handle_names(sdfg: Sdfg) -> Iterator[str]:
    for container in sdfg.containers.values():
        if container.lifetime in ("Persistent", "External"):
            yield from words_in(*container.shape, container.total_size)
    for _, node, inner in nested_in(sdfg):
        for name in _handle_names(inner):
            yield from words_in(node.mapping.get(name, name))


def external_storages(sdfg: Sdfg) -> Sequence[str]:
    """The storages of memory that the caller provides. 'Default' is the host's: nothing else is said of it."""
    containers = (each for inner in sdfgs_in(sdfg) for each in inner.containers.values())
    found = {each.storage for each in containers if each.lifetime == "External"}
    return sorted({"CPU_Heap" if each == "Default" else each for each in found})


def runs_on_gpu(sdfg: Sdfg) -> bool:
    """Whether anything in an SDFG runs on a GPU."""
    states = (state for inner in sdfgs_in(sdfg) for state in states_in(inner))
    return any(node.schedule.startswith("GPU") for state in states for node in state.nodes.values())
