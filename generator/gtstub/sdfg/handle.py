"""What the handle of an SDFG's library depends on, and the memory that the caller provides for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gtstub.sdfg.model import Sdfg, nested_in, sdfgs_in, states_in, words_in


def handle_symbols(sdfg: Sdfg) -> frozenset[str]:
    """
    The names of the symbols that the handle depends on: they size memory that it keeps, or occur in its initialisation
    code. Names in nested SDFGs are those that stand for them in this one. DaCe leaves the names in sizes of External
    memory as they are, so that these count, too.
    """
    external = (each for inner in sdfgs_in(sdfg) for each in inner.containers.values() if each.lifetime == "External")
    names = (name for each in external for name in words_in(*each.shape, each.total_size))
    return frozenset((*names, *_handle_names(sdfg)))


def _handle_names(sdfg: Sdfg) -> Iterator[str]:
    for container in sdfg.containers.values():
        if container.lifetime in ("Persistent", "External"):
            yield from words_in(*container.shape, container.total_size)
    yield from words_in(*sdfg.init_code)
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
