"""The names of entries on command lines: programs, values that were compiled in, and keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtstub.entries.cache.key import make_key
from gtstub.entries.cache.manifest import Built, Machine
from gtstub.entries.cache.names import choice, named
from gtstub.entries.cache.store import Cache
from gtstub.errors import CacheError
from tests.support.entries import DESCRIBED_DOMAIN, LIBRARY, publish, publish_made_of


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def refusal(cache: Cache, name: str) -> str:
    with pytest.raises(CacheError) as caught:
        named(cache, name)
    return str(caught.value)


def test_beginning_of_a_key(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "own", (tmp_path / "shared",))
    publish(Cache(tmp_path / "shared"), "prog-01", name="other")
    for key in ("prog-01", "prog-012", "prog-02"):
        publish(cache, key, name="other")
    assert named(cache, "prog-02")[0].key == "prog-02"
    assert named(cache, "prog-01")[0].path == tmp_path / "own" / "prog-01"
    several = "The keys of 3 entries begin with 'prog-0': 'prog-01', 'prog-012', 'prog-02'."
    assert refusal(cache, "prog-0") == several


def test_of_several_entries_the_newest_is_taken(cache: Cache) -> None:
    for number, size in enumerate((753, 1506, 3012)):
        publish(cache, f"prog-0{number}", baked={"Edge.size": size, "same": 1}, built=Built(time=100 + number))
    found = named(cache, "prog")
    assert [item.key for item in found] == ["prog-02", "prog-01", "prog-00"]
    assert choice(found) == (
        "Program 'prog' has 3 entries. Taken: the newest of this machine, 'prog@Edge.size=3012'. To take another, name"
        " 'prog@Edge.size=1506' or 'prog@Edge.size=753'."
    )


def test_an_entry_of_another_machine_comes_last(cache: Cache) -> None:
    publish(cache, "prog-00", built=Built(time=100))
    publish(cache, "prog-01", built=Built(time=200), machine=Machine(("no_such_feature",)))
    assert named(cache, "prog")[0].key == "prog-00"
    assert named(cache, "prog@01")[0].key == "prog-01"


def test_an_entry_may_have_another_directory(cache: Cache) -> None:
    publish(cache, "copy", name="prog")
    assert named(cache, "prog")[0].key == "copy"


def test_broken_entries_are_not_named_by_their_program(cache: Cache) -> None:
    publish(cache, "prog-00", built=Built(time=100))
    (publish(cache, "prog-01", built=Built(time=200)).path / LIBRARY).unlink()
    assert [item.key for item in named(cache, "prog")] == ["prog-00"]
    assert named(cache, "prog-01")[0].state == "broken"


def test_values_that_were_compiled_in(cache: Cache) -> None:
    publish(cache, "prog-0a", baked={"n": 1, "flag": True, "dt": 0.5, "pair": [1, 2]}, built=Built(time=100))
    publish(cache, "prog-0b", baked={"n": 2, "flag": False, "dt": 1e6, "pair": [1, 3]}, built=Built(time=200))
    publish(
        cache,
        "prog-0c",
        baked={"n": 2, "flag": True, "dt": 1e6, "pair": [1, 4]},
        ingredients={
            "static_domains": {"x": DESCRIBED_DOMAIN, "y": [DESCRIBED_DOMAIN, None]},
            "backend": {"optimize": False},
        },
        built=Built(time=300),
    )
    for name, key in {
        "prog@n=1": "prog-0a",
        "prog@flag=True,n=2": "prog-0c",
        "prog@n=2,flag=false": "prog-0b",
        "prog@dt=0.50": "prog-0a",
        "prog@dt=1000000": "prog-0c",
        "prog@pair=[1,3],n=2": "prog-0b",
        "prog@x=I[0:10],K[2:5]": "prog-0c",
        'prog@y=["I[0:10],K[2:5]", null]': "prog-0c",
        "prog@backend.optimize=false": "prog-0c",
        "prog-0b@n=2": "prog-0b",
    }.items():
        assert named(cache, name)[0].key == key, name
    assert len(named(cache, "prog@n=2")) == 2


def test_names_that_are_none(cache: Cache) -> None:
    assert refusal(cache, "prog") == f"The cache '{cache.root}' has no entry 'prog': it is empty."
    publish(cache, "prog-0a", baked={"Edge.size": 1}, built=Built(time=100))
    publish(cache, "prog-0b", baked={"Edge.size": 2}, built=Built(time=200))
    publish(cache, "tests_models_of_tests_smooth-0a", name="tests_models_of_tests_smooth")
    for name in ("porg", "porg@n=1"):
        assert refusal(cache, name) == f"The cache '{cache.root}' has no entry 'porg'. Did you mean: 'prog'?"
    assert refusal(cache, "smooth").endswith(" has no entry 'smooth'. Did you mean: 'tests_models_of_tests_smooth'?")
    assert refusal(cache, "x").endswith(" has no entry 'x'. Known: 'prog', 'tests_models_of_tests_smooth'.")
    assert refusal(cache, "prog@Edge.sise=1") == (
        "'Edge.sise' is not compiled into program 'prog'. Did you mean: 'Edge.size'?"
    )
    other = refusal(cache, "prog@Edge.size=3")
    assert other.startswith("Program 'prog' has no entry with Edge.size=3. Its entries:\n  prog-0b: built ")
    assert other.endswith(", Edge.size=1")
    assert refusal(cache, "prog@1").startswith("No key of an entry of program 'prog' continues with '1'. Its entries:")
    for number in range(9):
        publish(cache, f"p{number}-00", name=f"p{number}")
    assert refusal(cache, "x").endswith(" has no entry 'x': 'gtstub cache list' lists its entries.")


def test_entries_with_the_same_values_are_told_apart_by_their_digests(cache: Cache) -> None:
    keys = [make_key("prog", {"source": digest * 64}) for digest in "ab"]
    for number, digest in enumerate("ab"):
        publish_made_of(cache, {"source": digest * 64}, built=Built(time=number))
    text = choice(named(cache, "prog"))
    for key in keys:
        assert f"'prog@{key.rpartition('-')[2][:4]}'" in text
    assert named(cache, f"prog@source={'a' * 8}")[0].key == keys[0]
