"""Golden files: committed texts that generated ones must equal, byte for byte. The signatures of programs are, too."""

from __future__ import annotations

from gtstub.stub.signature.documents import program_from_json, sdfg_from_json
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature
from tests.support.checkout import ROOT

FOLDER = ROOT / "tests" / "golden"
SIGNATURES = FOLDER / "signatures"

REAL = sorted(path.name.removesuffix(".sdfg.json") for path in SIGNATURES.glob("*.sdfg.json"))
"""The names of the real programs whose signatures are there."""


def signatures_of(name: str) -> tuple[SdfgSignature, ProgramSignature]:
    sdfg, program = (SIGNATURES / f"{name}.{kind}.json" for kind in ("sdfg", "program"))
    return (
        sdfg_from_json(sdfg.read_text(encoding="utf-8"), sdfg.name),
        program_from_json(program.read_text(encoding="utf-8"), program.name),
    )


class Golden:
    """Compares a text with a committed file under tests/golden, or writes the file."""

    def __init__(self, *, regenerate: bool) -> None:
        self._regenerate = regenerate

    def check(self, name: str, text: str) -> None:
        path = FOLDER / name
        if self._regenerate:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"There is no '{name}'; write it with 'pytest --regenerate-goldens'."
        assert text == path.read_text(encoding="utf-8"), f"'{name}' differs; see 'git diff' after --regenerate-goldens."
