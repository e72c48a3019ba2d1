"""
Random DaCe programs for hypothesis: the text of a module, arguments of a call, and what the SDFG must get from it.

Sizes and strides are texts of Python. What symbols must be is found by trying: nothing is asked of gtstub.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gtstub.stub.signature.dtypes import DTYPES, STATIC_DTYPES, DType
from tests.support.random_programs import Number, numbers

SYMBOLS: dict[str, DType] = {"N": "int32", "M": "int32", "K": "int64", "L": "int64"}
"""All symbols, each of one type always, because sympy takes symbols of one name for equal."""

LOG = 24
"""The size of the array `log`, into which a program writes scalars and symbols, so that its SDFG takes them."""


@dataclasses.dataclass(frozen=True)
class Array:
    """An array of a program. Its memory is that of a call with the symbols that were drawn."""

    name: str
    dtype: DType
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    is_plain: bool
    """Whether its layout is what numpy makes, which chooses the strides of an array without elements."""

    @property
    def annotation(self) -> str:
        return f"dace.data.Array({_dace(self.dtype)}, {_tuple(self.sizes)}, strides={_tuple(self.strides)})"

    def make(self, symbols: Mapping[str, int]) -> Any:
        shape = [evaluated(text, symbols) for text in self.sizes]
        strides = [evaluated(text, symbols) for text in self.strides]
        return np.zeros(shape, self.dtype) if self.is_plain else laid_out(self.dtype, shape, strides)


@dataclasses.dataclass(frozen=True)
class Callback:
    """A function that a program calls with some of its parameters; `result` is its type and sizes, if it has one."""

    name: str
    arguments: tuple[str, ...]
    result: tuple[DType, tuple[str, ...]] | None


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A text of a size or stride must have a value. It is loose if no access depends on it."""

    text: str
    value: int
    is_stride: bool
    is_loose: bool


@dataclasses.dataclass(frozen=True)
class RandomDaceProgram:
    """
    `scalars` and `arrays` are parameters, of which those in `keyword_only` come after a star. Those in `left_out` have
    defaults, and the call does not pass them. `symbols` has the values of all symbols; those in `logged` are arguments
    of the SDFG, and those in `passed` are passed by name.
    """

    arrays: tuple[Array, ...]
    scalars: tuple[tuple[str, DType, Number], ...]
    globals_: tuple[Array, ...]
    results: tuple[Array, ...]
    callbacks: tuple[Callback, ...]
    symbols: Mapping[str, int]
    logged: tuple[str, ...]
    passed: tuple[str, ...]
    keyword_only: frozenset[str]
    left_out: frozenset[str]

    @property
    def present(self) -> tuple[Array, ...]:
        """The arrays that a call passes."""
        return tuple(each for each in self.arrays if each.name not in self.left_out)

    @property
    def described(self) -> tuple[Array, ...]:
        """All arrays of the SDFG."""
        return (*self.present, *self.globals_, *self.results)

    @property
    def positional(self) -> list[str]:
        """The parameters before the star, those with defaults last."""
        names = [*(each.name for each in self.arrays), *(name for name, _, _ in self.scalars)]
        return [
            "log",
            *sorted((name for name in names if name not in self.keyword_only), key=self.left_out.__contains__),
        ]

    @property
    def text(self) -> str:
        lines = ["import dace", "import numpy as np", ""]
        lines += [f'{name} = dace.symbol("{name}", dace.{dtype})' for name, dtype in SYMBOLS.items()]
        lines += [f"Type_{each.name} = {each.annotation}" for each in self.arrays]
        types = {"log": f"dace.float64[{LOG}]"}
        types |= {each.name: f"Type_{each.name}" for each in self.arrays}
        types |= {name: _dace(dtype) for name, dtype, _ in self.scalars}
        default = {each.name: " = None" for each in self.arrays} | {
            name: f" = {dtype == 'bool' or 1}" for name, dtype, _ in self.scalars
        }
        written = {
            name: f"{name}: {type_}{default[name] if name in self.left_out else ''}" for name, type_ in types.items()
        }
        parameters = [written[name] for name in self.positional]
        if self.keyword_only:
            parameters += ["*", *(written[name] for name in sorted(self.keyword_only))]
        lines += ["", "@dace.program", f"def prog({', '.join(parameters)}):"]
        values = [name for name, _, _ in self.scalars if name not in self.left_out]
        values += [*self.logged, *(f"{each.name}[{', '.join('0' * len(each.sizes))}]" for each in self.globals_)]
        for number, callback in enumerate(self.callbacks):
            called = f"{callback.name}({', '.join(callback.arguments)})"
            if callback.result is None:
                lines.append(f"    {called}")
                continue
            dtype, sizes = callback.result
            type_ = _dace(dtype) + (f"[{', '.join(sizes)}]" if sizes else "")
            lines.append(f"    result_{number}: {type_} = {called}")
            values.append(f"result_{number}" + (f"[{', '.join('0' * len(sizes))}]" if sizes else ""))
        lines += [f"    log[{number}] = {value}" for number, value in enumerate([*values, "0.0"])]
        for each in self.results:
            lines.append(f"    {each.name} = np.zeros({_tuple(each.sizes)}, dtype=np.{_numpy(each.dtype)})")
        if self.results:
            lines.append(f"    return {', '.join(each.name for each in self.results)}")
        return "\n".join(lines) + "\n"

    def constraints(self, arrays: Mapping[str, Any]) -> Iterator[Constraint]:
        """What the sizes and strides of arrays demand of the symbols that matter."""
        for each in self.described:
            if each.name not in arrays:
                continue
            array = arrays[each.name]
            for axis, (size, stride) in enumerate(zip(each.sizes, each.strides, strict=True)):
                step = array.strides[axis] // array.itemsize
                yield Constraint(size, array.shape[axis], is_stride=False, is_loose=False)
                yield Constraint(stride, step, is_stride=True, is_loose=array.size == 0 or array.shape[axis] < 2)

    @property
    def unimportant(self) -> frozenset[str]:
        """Symbols that the SDFG does not take and on which only one size or stride depends: they may have any value."""
        texts = [text for each in self.described for text in (*each.sizes, *each.strides)]
        times = {name: sum(name in names_in(text) for text in texts) for name in SYMBOLS}
        used = {name for each in self.callbacks if each.result for text in each.result[1] for name in names_in(text)}
        return frozenset(name for name in SYMBOLS if times[name] <= 1 and name not in self.logged and name not in used)


# --- What symbols must be ---------------------------------------------------------------------------------------------


class UnknownSymbolError(Exception):
    """A symbol whose value only a stride shows on which no access depends."""


def solve(program: RandomDaceProgram, arrays: Mapping[str, Any], passed: Mapping[str, int]) -> Mapping[str, int] | None:
    """The values of the symbols that arrays and passed symbols determine; None if they contradict each other."""
    constraints = [each for each in program.constraints(arrays) if names_in(each.text).isdisjoint(program.unimportant)]
    tight = [each for each in constraints if not each.is_loose]
    names = sorted({name for each in constraints for name in names_in(each.text)} | set(program.logged) | passed.keys())
    candidates: list[set[int]] = []
    for name in names:
        shown = [(each, found) for each in constraints if (found := solution(each, name)) is not False]
        if name in passed:
            candidates.append({passed[name]})
        elif any(each.is_loose for each, _ in shown) and all(each.is_stride for each, _ in shown):
            raise UnknownSymbolError
        else:
            candidates.append({found for each, found in shown if found is not None and not each.is_loose})
    for values in itertools.product(*candidates):
        symbols = dict(zip(names, values, strict=True))
        if all(fits(name, value) for name, value in symbols.items()) and all(
            evaluated(each.text, symbols) == each.value for each in tight
        ):
            return symbols
    return None


def solution(constraint: Constraint, name: str) -> int | bool | None:
    """The value of a symbol from a text that is linear in it alone; None if it is no integer, False for other texts."""
    if names_in(constraint.text) != {name}:
        return False
    zero, one, two, three = (evaluated(constraint.text, {name: value}) for value in range(4))
    if one == zero or (one - zero, one - zero) != (two - one, three - two):
        return False
    quotient, rest = divmod(constraint.value - zero, one - zero)
    return quotient if rest == 0 else None


def fits(symbol: str, value: int) -> bool:
    limits = np.iinfo(SYMBOLS[symbol])
    return bool(limits.min <= value <= limits.max)


def names_in(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Z]", text))


def evaluated(text: str, symbols: Mapping[str, int]) -> int:
    return int(eval(text, {}, dict(symbols)))


def laid_out(dtype: str, shape: list[int], strides: list[int]) -> Any:
    """An array with these strides, in elements. The elements of a huge one are not all in memory."""
    size = np.dtype(dtype).itemsize
    extent = 1 + sum(max(count - 1, 0) * step for count, step in zip(shape, strides, strict=True))
    memory = np.zeros(min(extent, 1 << 22), dtype)
    return np.lib.stride_tricks.as_strided(memory, shape, [size * step for step in strides])


def _dace(dtype: DType) -> str:
    return f"dace.{_numpy(dtype)}"


def _numpy(dtype: DType) -> str:
    return "bool_" if dtype == "bool" else dtype


def _tuple(texts: tuple[str, ...]) -> str:
    return f"({', '.join(texts)},)"


# --- Drawing ----------------------------------------------------------------------------------------------------------

dtypes = st.sampled_from(DTYPES)
logged_dtypes = st.sampled_from(STATIC_DTYPES)  # `log` has real numbers


def sizes(names: list[str]) -> st.SearchStrategy[str]:
    """The texts of sizes."""
    name = st.sampled_from(names)
    return st.one_of(
        st.integers(1, 3).map(str),
        name,
        name,
        st.builds("{}*{} + {}".format, st.integers(1, 3), name, st.integers(0, 2)),
        st.builds("{}*{} - 1".format, st.integers(1, 2), name),
        st.builds("{}*{}".format, name, name),
        st.builds("{} + {}".format, name, name),
        st.builds("{}*({} + 1)".format, name, name),
    )


@st.composite
def arrays(draw: st.DrawFn, name: str, names: list[str], symbols: Mapping[str, int]) -> Array:
    rank = draw(st.integers(1, 4))
    # numpy has no negative sizes
    size = sizes(names).filter(lambda text: evaluated(text, symbols) >= 0)
    texts = tuple(draw(size) for _ in range(rank))
    layout = draw(st.sampled_from(("C", "C", "Fortran", "padded", "constants", "symbols")))
    if layout == "constants":
        strides = tuple(str(draw(st.integers(1, 20))) for _ in texts)
    elif layout == "symbols":
        strides = tuple(draw(sizes(names).filter(lambda text: evaluated(text, symbols) > 0)) for _ in texts)
    else:
        strides = contiguous(texts, layout, draw(st.integers(1, 3)))
    return Array(name, draw(dtypes), texts, strides, is_plain=layout == "C")


def contiguous(texts: tuple[str, ...], layout: str = "C", padding: int = 0) -> tuple[str, ...]:
    """The strides of a layout; a padded one is C order with more elements on each axis."""
    factors = [f"({text} + {padding})" if layout == "padded" else f"({text})" for text in texts]
    parts = [factors[:axis] if layout == "Fortran" else factors[axis + 1 :] for axis in range(len(texts))]
    return tuple("*".join(part) or "1" for part in parts)


@st.composite
def callbacks(draw: st.DrawFn, name: str, parameters: list[str], names: list[str]) -> Callback:
    taken = tuple(draw(st.lists(st.sampled_from(parameters), max_size=3)))
    kind = draw(st.sampled_from(("nothing", "number", "array")))
    dtype = draw(st.sampled_from(("float64", "float32", "int32", "int64")))
    shape = tuple(draw(st.lists(st.sampled_from([*names, "3"]), min_size=1, max_size=2))) if kind == "array" else ()
    return Callback(name, taken, None if kind == "nothing" else (dtype, shape))


@st.composite
def random_dace_programs(draw: st.DrawFn) -> RandomDaceProgram:
    names = draw(st.lists(st.sampled_from(tuple(SYMBOLS)), min_size=1, max_size=3, unique=True))
    least = draw(st.sampled_from((1, 1, 1, 0)))
    symbols = {name: draw(st.integers(least, 4)) for name in names}
    drawn = tuple(draw(arrays(name, names, symbols)) for name in "abcd"[: draw(st.integers(1, 4))])
    scalars = []
    for name in "pqr"[: draw(st.integers(0, 3))]:
        dtype = draw(logged_dtypes)
        scalars.append((name, dtype, draw(numbers(dtype))))
    parameters = [*(each.name for each in drawn), *(name for name, _, _ in scalars)]
    keyword_only = frozenset(draw(st.sets(st.sampled_from(parameters), max_size=2)))
    left_out = frozenset(draw(st.sets(st.sampled_from(parameters), max_size=draw(st.sampled_from((0, 0, 2))))))
    given_ = [name for name in parameters if name not in left_out]
    called = []
    if given_ and draw(st.integers(0, 2)) == 0:
        called = [draw(callbacks(f"call_{i}", given_, names)) for i in range(draw(st.integers(1, 2)))]
    globals_ = []
    if draw(st.integers(0, 3)) == 0:
        shape = tuple(str(draw(st.integers(1, 3))) for _ in range(draw(st.integers(1, 2))))
        globals_ = [Array("constant_table", draw(logged_dtypes), shape, _evaluated(contiguous(shape)), is_plain=True)]
    results = []
    for number in range(draw(st.sampled_from((0, 0, 1, 2)))):
        shape = tuple(
            draw(sizes(names).filter(lambda text: evaluated(text, symbols) >= 0))
            for _ in range(draw(st.integers(1, 3)))
        )
        results.append(Array(f"result{number}", draw(dtypes), shape, contiguous(shape), is_plain=True))
    made = RandomDaceProgram(
        arrays=drawn,
        scalars=tuple(scalars),
        globals_=tuple(globals_),
        results=tuple(results),
        callbacks=tuple(called),
        symbols=symbols,
        logged=tuple(sorted(draw(st.sets(st.sampled_from(names))))),
        passed=(),
        keyword_only=keyword_only,
        left_out=left_out,
    )
    free = [name for name in names if not _is_shown(made, name)]
    chosen = draw(st.sets(st.sampled_from(names), max_size=1))
    return dataclasses.replace(made, passed=tuple(sorted({*free, *chosen})))


def _evaluated(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(evaluated(text, {})) for text in texts)


def _is_shown(program: RandomDaceProgram, name: str) -> bool:
    """Whether an array that is passed shows the value of a symbol."""
    made = {each.name: each.make(program.symbols) for each in program.present}
    shown = [each for each in program.constraints(made) if solution(each, name) is not False]
    return any(not each.is_stride for each in shown) or (bool(shown) and not any(each.is_loose for each in shown))
