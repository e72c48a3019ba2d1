"""What is suggested for an unknown name."""

from __future__ import annotations

import pytest

from gtstub.util.suggest import did_you_mean

TAGS = ["CPU", "DACE_CPU", "DACE_GPU", "GTSTUB_CPU", "GTSTUB_GPU"]


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("DACE", TAGS, " Did you mean: 'DACE_CPU' or 'DACE_GPU'?"),
        ("gtstub_cpu", TAGS, " Did you mean: 'GTSTUB_CPU'?"),
        ("GTSTUP_CPU", TAGS, " Did you mean: 'GTSTUB_CPU'?"),
        ("smooth", ["my_model_with_a_name_smooth", "rough"], " Did you mean: 'my_model_with_a_name_smooth'?"),
        ("static_arg", ["bound_static_args", "static_args"], " Did you mean: 'static_args'?"),
        ("sizes", [f"sizes_{number}" for number in range(4)], " Did you mean: 'sizes_3'?"),
        ("U", TAGS, " Known: 'CPU', 'DACE_CPU', 'DACE_GPU', 'GTSTUB_CPU', 'GTSTUB_GPU'."),
    ],
)
def test_suggestions(name: str, known: list[str], expected: str) -> None:
    assert did_you_mean(name, known) == expected
