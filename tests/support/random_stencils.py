"""Random gt4py programs for hypothesis, as the text of a module: a field operator of a few statements, a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

HEAD = """\
import gt4py.next as gtx
from gt4py.next import broadcast, max_over, neighbor_sum, where
from gt4py.next.experimental import concat_where

from tests.support.small_programs import E2V, V2E, E2VDim, Edge, EdgeK, I, K, Plane, V2EDim, Vertex, VertexK
"""

KINDS = {"Plane": "I", "EdgeK": "Edge", "VertexK": "Vertex"}
"""The types of fields, with their horizontal dimension."""

SIZES = ("start", "end", "k_start", "k_end", "middle")


@dataclasses.dataclass(frozen=True)
class Stencil:
    """The text of a module with the program `stencil`, and values of its scalars."""

    text: str
    scalars: tuple[Mapping[str, Any], ...]

    @property
    def tests_skip_values(self) -> bool:
        """Whether the program tests for -1 wherever it uses indices of V2E."""
        return "V2E[" not in self.text


@st.composite
def stencils(draw: st.DrawFn) -> Stencil:
    is_cartesian = draw(st.booleans())
    kinds = ("Plane",) if is_cartesian else ("EdgeK", "VertexK")
    known: dict[str, list[str]] = {kind: [f"{name}_{kind}" for name in "ab"] for kind in kinds}
    fields = [(name, kind) for kind, names in known.items() for name in names]
    lines = []
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(kinds))
        lines.append(f"    t{number} = {draw(_expression(known, kind))}")
        known[kind].append(f"t{number}")
    result = draw(st.sampled_from([kind for kind in kinds if known[kind][2:]]))
    parameters = ", ".join([*(f"{name}: {kind}" for name, kind in fields), "flag: bool", "middle: gtx.int32"])
    names = ", ".join([*(name for name, _ in fields), "flag", "middle"])
    sizes = ", ".join(f"{name}: gtx.int32" for name in SIZES if name != "middle")
    text = f"""{HEAD}

@gtx.field_operator
def _stencil({parameters}) -> {result}:
{"\n".join(lines)}
    return {known[result][-1]}


@gtx.program
def stencil({parameters}, out: {result}, {sizes}):
    _stencil({names}, out=out, domain={{{KINDS[result]}: (start, end), K: (k_start, k_end)}})
"""
    return Stencil(text, tuple(draw(st.lists(_scalars(is_cartesian), min_size=3, max_size=3))))


@st.composite
def _scalars(draw: st.DrawFn, is_cartesian: bool) -> dict[str, Any]:
    start = draw(st.integers(-3, 3) if is_cartesian else st.integers(0, 4))
    k_start = draw(st.integers(-3, 3))
    return {
        "start": start,
        "end": start + draw(st.integers(-2, 6)),
        "k_start": k_start,
        "k_end": k_start + draw(st.integers(-2, 6)),
        "middle": draw(st.integers(-4, 9)),
        "flag": draw(st.booleans()),
    }


@st.composite
def _expression(draw: st.DrawFn, known: Mapping[str, list[str]], kind: str) -> str:
    def one(of: str = kind) -> str:
        # More often a result than an argument.
        return draw(st.sampled_from((*known[of], *known[of][2:])))

    def shifted(of: str = kind) -> str:
        steps = draw(st.sampled_from((-2, -1, 0, 1, 2)))
        dim = "K" if of != "Plane" else draw(st.sampled_from(("I", "K")))
        return f"{one(of)}({dim} {'-' if steps < 0 else '+'} {abs(steps)})" if steps else one(of)

    forms = ["sum", "product", "where", "flag", "place", "number"]
    forms += {"Plane": ["row"], "EdgeK": ["neighbor", "neighbors"], "VertexK": ["neighbor", "neighbors"]}[kind]
    table, other = ("E2V", "VertexK") if kind == "EdgeK" else ("V2E", "EdgeK")
    match draw(st.sampled_from(forms)):
        case "sum":
            return f"{shifted()} + {shifted()}"
        case "product":
            return f"{one()} * {shifted()} - {shifted()}"
        case "where":
            return f"where({one()} > 1.0, {shifted()}, {shifted()})"
        case "flag":
            return f"{shifted()} if flag else {shifted()}"
        case "number":
            return f"{shifted()} if middle > {draw(st.integers(-1, 4))} else {one()} + {shifted()}"
        case "place":
            relation = draw(st.sampled_from(("<", "<=", ">", ">=", "==")))
            where = draw(st.sampled_from(("middle", "0", "2")))
            return f"concat_where(K {relation} {where}, {shifted()}, {shifted()})"
        case "row":
            relation = draw(st.sampled_from(("<", ">=", "==")))
            return f"concat_where(I {relation} {draw(st.sampled_from(('middle', '1')))}, {shifted()}, {shifted()})"
        case "neighbor":
            return f"{one()} + {one(other)}({table}[{draw(st.integers(0, 1))}])"
        case _:
            reduction = draw(st.sampled_from(("neighbor_sum", "max_over")))
            return f"{reduction}({one(other)}({table}), axis={table}Dim) - {shifted()}"
