"""
Digests of gt4py's syntax trees and of its IR, without the places of their nodes in source files.

Trees have thousands of nodes and many equal types, so each type object is read once.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable
from typing import Any

from gt4py.eve import concepts
from gt4py.next import common
from gt4py.next.ffront.stages import FOASTOperatorDef
from gt4py.next.type_system import type_specifications as ts
from gt4py.next.type_system import type_translation

from gtstub.util.canonical import canonical
from gtstub.util.per_object import once_per_object


def digest(tree: Any, describe: Callable[[Any], Any]) -> str:
    """The digest of a tree or type. `describe` makes JSON of objects of other packages in it."""
    return hashlib.sha256("\n".join(_Text(describe).of(tree)).encode()).hexdigest()


@once_per_object  # because many programs use the same operators
def digest_of_operator(stage: FOASTOperatorDef, describe: Callable[[Any], Any]) -> str:
    """The digest of the tree of an operator, which gt4py does not change any more."""
    return digest(stage.foast_node, describe)


class _Text:
    """The text of a tree, from which the tree could be read again."""

    def __init__(self, describe: Callable[[Any], Any]) -> None:
        self._describe = describe
        self._types: dict[int, str] = {}  # by identity: the tree keeps them alive

    def of(self, value: Any) -> list[str]:
        parts: list[str] = []
        self._add(value, parts)
        return parts

    def _add(self, value: Any, parts: list[str]) -> None:
        kind = type(value)
        if kind is list or kind is tuple:
            parts.append(f"{kind.__name__} {len(value)}")
            for element in value:
                self._add(element, parts)
        elif isinstance(value, str | int | float | complex | None) and not isinstance(value, enum.Enum):
            parts.append(f"{kind.__name__} {value!r}")
        elif isinstance(value, concepts.Node):
            names = [name for name, _ in value.__datamodel_fields__.items() if name != "location"]
            parts.append(f"{kind.__name__} {len(names)}")
            for name in names:
                parts.append(name)
                self._add(getattr(value, name), parts)
        elif isinstance(value, ts.TypeSpec):
            parts.append(self._type(value))
        elif kind is dict:
            parts.append(f"dict {len(value)}")
            for key, element in value.items():
                self._add(key, parts)
                self._add(element, parts)
        elif isinstance(value, common.Dimension):
            parts.append(f"Dimension {value.value!r} {value.kind.value}")
        elif isinstance(value, enum.Enum):
            parts.append(f"{kind.__name__}.{value.name} {value.value!r}")
        else:
            parts.append(canonical(self._describe(value)).decode())

    def _type(self, value: ts.TypeSpec) -> str:
        if (found := self._types.get(id(value))) is None:
            parts = [type(value).__name__]
            # The members of a namespace are constants in the tree, or have types there.
            if not isinstance(value, type_translation.NamespaceProxy):
                for name, _ in value.__datamodel_fields__.items():
                    parts.append(name)
                    self._add(getattr(value, name), parts)
            found = self._types[id(value)] = f"({' '.join(parts)})"
        return found
