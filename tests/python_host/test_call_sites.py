"""What a call site remembers of its last call: whatever has happened in between, the SDFG gets what a call passes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.programs.compiled import CompiledProgram
from gtstub.stub.signature.model import ProgramSignature, TupleType
from tests.support.dispatching import Variants
from tests.support.hosting import EDGES, LEVELS, address, edge_field
from tests.support.signatures import EDGE, NEIGHBORS, K, collection_of, field, program, scalar, tuple_of

pytestmark = pytest.mark.sanitizer


def program_with(pair: TupleType) -> ProgramSignature:
    """All its arguments can be recognised, unlike a zero-dimensional field, which is read in each call."""
    return program(
        "host",
        NEIGHBORS,
        vn=field(EDGE, K),
        out=field(EDGE, K),
        x=tuple_of(field(K, dtype="float32"), pair),
        n=scalar("int32"),
        flag=scalar("bool"),
    )


TABLES: Mapping[str, Any] = {"E2V": np.zeros((EDGES, 2), np.int32)}


class Model:
    """Two compiled programs that share the Programs of their variants, and what their SDFGs must get."""

    def __init__(self, variants: Variants) -> None:
        self.variants = variants
        self.loaded: dict[tuple[Any, ...], _host.Program] = {}
        self.out, self.x = edge_field(), new_tuple(0)
        bound = {"out": self.out, "x": self.x}
        self.selecting = self.compile({"n": [1, 2], "flag": [True]}, bound)
        self.default = self.compile({}, {**bound, "n": 1, "flag": True}, overridable=True)

    def compile(self, choices: Mapping[str, Any], bound: Mapping[str, Any], **options: Any) -> CompiledProgram:
        return self.variants.compile(choices, bound, [TABLES], load=self.load, **options)

    def load(self, artifact: tuple[Any, ...]) -> _host.Program:
        if artifact not in self.loaded:
            self.loaded[artifact] = self.variants.bound(*artifact).load()
        return self.loaded[artifact]

    def check(self, call: Callable[[], object], n: int = 1, **changed: Any) -> None:
        """Makes a call, and compares what the SDFG of variant `n` gets with what is bound or `changed`."""
        expected = {"out": self.out, "x": self.x} | changed
        array, numbers = expected.pop("x")
        recorder = self.variants.bound(n, True).recorder
        recorder.clear()
        call()
        (got,) = recorder.calls()
        assert {name: got[name] for name in ("vn", "out")} == {
            name: address(field._ndarray) for name, field in expected.items()
        }
        assert (got["x_0"], got["x_1_0"], got["x_1_1"]) == (address(array), *numbers)


def new_tuple(number: int) -> tuple[Any, tuple[int, float]]:
    return np.zeros(LEVELS, np.float32), (number, number + 0.5)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Variants:
    return Variants(
        tmp_path_factory.mktemp("variants"), toolchain, program_with(tuple_of(scalar("int32"), scalar("float64")))
    )


@pytest.fixture
def model(built: Variants) -> Iterator[Model]:
    yield Model(built)
    built.called()


def calls_from_all_sites(model: Model, vn: Any, out: Any, x: Any, n: int) -> list[Callable[[], None]]:
    check, default, selecting = model.check, model.default, model.selecting
    program = model.load((n, True))
    return [
        lambda: check(lambda: default(vn), vn=vn),
        lambda: check(lambda: default(vn=vn), vn=vn),
        lambda: check(lambda: default(vn, out=out), vn=vn, out=out),
        lambda: check(lambda: default(vn, n=1), vn=vn),
        lambda: check(lambda: default(vn, x=x, out=out), vn=vn, x=x, out=out),
        lambda: check(lambda: selecting(vn, n, True), n, vn=vn),
        lambda: check(lambda: selecting(flag=True, vn=vn, n=n), n, vn=vn),
        lambda: check(lambda: selecting(vn, n, True, offset_provider=TABLES), n, vn=vn),
        lambda: check(lambda: program(vn, out, x, n, True, offset_provider=TABLES), n, vn=vn, out=out, x=x),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_calls_in_any_order(model: Model, seed: int) -> None:
    chance = random.Random(seed)
    fields, tuples = [edge_field() for _ in range(3)], [new_tuple(i) for i in range(1, 3)]
    for _ in range(150):
        vn, out, x = chance.choice(fields), chance.choice(fields), chance.choice(tuples)
        call = chance.choice(calls_from_all_sites(model, vn, out, x, chance.choice((1, 2))))
        for _ in range(chance.choice((1, 2, 8))):
            call()
        if chance.random() < 0.2:  # most likely at the address of the one that dies
            fields[chance.randrange(3)] = edge_field()


def test_a_call_that_is_refused_in_between(model: Model) -> None:
    vn, wrong = edge_field(), edge_field(np.zeros((EDGES, LEVELS), np.float32))
    for _ in range(5):
        model.check(lambda: model.default(vn), vn=vn)
    for call in (lambda: model.default(wrong), lambda: model.default(vn, out=wrong)):
        for _ in range(3):
            with pytest.raises(TypeError, match="dtype"):
                call()
            model.check(lambda: model.default(vn), vn=vn)


def test_code_of_an_argument_that_calls_from_other_places(model: Model) -> None:
    """The entry of the outer call is another one's by then."""
    vn, other, last = edge_field(), edge_field(), edge_field()

    class Calling:
        _domain = vn._domain  # type: ignore[attr-defined]

        @property
        def _ndarray(self) -> Any:
            for n in (1, 2):
                model.selecting(last, n, True)
                model.selecting(last, n, flag=True)
                model.selecting(last, flag=True, n=n)
                model.selecting(vn=last, n=n, flag=True)
                model.selecting(n=n, vn=last, flag=True)
            return other._ndarray  # type: ignore[attr-defined]

    def names(field: Any) -> None:
        model.default(flag=True, vn=field)

    for _ in range(6):
        model.check(lambda: names(vn), vn=vn)
        calling = Calling()
        with pytest.raises(RuntimeError, match="while it was reading the arguments"):
            names(calling)
        model.check(lambda: names(other), vn=other)
    for _ in range(6):
        model.check(lambda: model.selecting(vn, 2, True), 2, vn=vn)


@dataclasses.dataclass
class Pair:
    i: int
    d: float


def test_bound_collections_are_read_in_each_call(tmp_path: Path, toolchain: Toolchain) -> None:
    pair = collection_of(i=scalar("int32"), d=scalar("float64"))
    model = Model(Variants(tmp_path, toolchain, program_with(pair)))
    array, bound, vn = np.zeros(LEVELS, np.float32), Pair(3, 4.5), edge_field()
    default = model.compile({}, {"out": model.out, "x": (array, bound), "n": 1, "flag": True})
    for i in range(300, 303):
        for _ in range(4):
            model.check(lambda: default(vn), vn=vn, x=(array, dataclasses.astuple(bound)))
        bound.i = i


def test_bound_zero_dimensional_fields_are_read_in_each_call(tmp_path: Path, toolchain: Toolchain) -> None:
    pair = tuple_of(scalar("int32"), field(dtype="float64"))
    model = Model(Variants(tmp_path, toolchain, program_with(pair)))
    array, bound, vn = np.zeros(LEVELS, np.float32), np.array(0.5), edge_field()
    default = model.compile({}, {"out": model.out, "x": (array, (3, bound)), "n": 1, "flag": True})
    for _ in range(3):
        for _ in range(4):
            model.check(lambda: default(vn), vn=vn, x=(array, (3, float(bound))))
        bound += 1


def test_the_level_of_metrics_is_read_when_it_changes(model: Model) -> None:
    vn = edge_field()
    for _ in range(5):
        model.check(lambda: model.default(vn), vn=vn)
    namespace = {"level": 0}
    samples: list[float] = []
    model.load((1, True)).set_metrics(namespace, "level", 10, samples.append)
    model.default(vn)
    assert samples == []
    namespace["level"] = 10
    for _ in range(3):
        model.default(vn)
    assert len(samples) == 3
    namespace["level"] = 0
    for _ in range(3):
        model.default(vn)
    assert len(samples) == 3
