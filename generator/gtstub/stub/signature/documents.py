"""Reads and writes the two signature documents."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.errors import SignatureError
from gtstub.stub.signature import model
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.objects import KINDS, Reader, shortened
from gtstub.stub.signature.references import check_references
from gtstub.util.canonical import readable, sha256

if TYPE_CHECKING:
    import jsonschema


def program_to_json(signature: model.ProgramSignature) -> str:
    return _text("gtstub/program-signature/1", signature)


def sdfg_to_json(signature: model.SdfgSignature) -> str:
    return _text("gtstub/sdfg-signature/1", signature)


def program_from_json(text: str | bytes, source: str, *, is_valid: bool = False) -> model.ProgramSignature:
    """
    Reads a program signature; `source` is its file name for error messages. One that `is_valid`, such as that of a
    loaded program, is not validated again. Raises SignatureError.
    """
    document = parse(text, source, "program", is_valid=is_valid)
    return Reader(source).made(model.ProgramSignature, document, "$")  # type: ignore[no-any-return]


def sdfg_from_json(text: str | bytes, source: str, *, is_valid: bool = False) -> model.SdfgSignature:
    """Does the same for an SDFG signature."""
    reader, document = Reader(source), parse(text, source, "sdfg", is_valid=is_valid)
    signature: model.SdfgSignature = reader.made(model.SdfgSignature, document, "$")
    check_references(signature, reader.refusal)
    return signature


def program_in(file: Path, *, is_valid: bool = False) -> model.ProgramSignature:
    """The program signature in a file. Raises SignatureError or OSError."""
    return program_from_json(file.read_bytes(), str(file), is_valid=is_valid)


def sdfg_in(file: Path, *, is_valid: bool = False) -> model.SdfgSignature:
    """The SDFG signature in a file. Raises SignatureError or OSError."""
    return sdfg_from_json(file.read_bytes(), str(file), is_valid=is_valid)


def digest(text: str) -> str:
    """SHA-256 of a document's text, hexadecimal."""
    return sha256(text.encode())


def interface_digest(sdfg: model.SdfgSignature, program: model.ProgramSignature) -> str:
    """
    The digest of both signatures without the bounds, which two versions of gtstub may find otherwise in one SDFG. A
    library that has another one than a stub takes other arguments, or has other values compiled in.
    """
    return digest(program_to_json(program) + sdfg_to_json(dataclasses.replace(sdfg, bounds=None)))


# --- Writing ----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """
    A value as JSON has it: what is None is left out, expressions and infinities are texts, and complex numbers are
    lists of both parts.
    """
    if isinstance(value, Expression | model.Condition):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": KINDS[type(value)]} if type(value) in KINDS else {}
        return kind | {name: plain(item) for name, item in vars(value).items() if item is not None}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _text(schema: str, signature: model.ProgramSignature | model.SdfgSignature) -> str:
    return readable({"schema": schema, **plain(signature)})


# --- Reading ----------------------------------------------------------------------------------------------------------


def parse(text: str | bytes, source: str, kind: str, *, is_valid: bool = False) -> dict[str, Any]:
    """
    Reads a document of a kind with a schema, a key of _TITLES, and validates it unless it `is_valid`. Raises
    SignatureError.
    """
    try:
        document = json.loads(
            text if isinstance(text, str) else text.decode(), parse_constant=_finite, parse_float=_finite
        )
        errors = () if is_valid else _validator(kind).iter_errors(document)
        violations = sorted(errors, key=lambda error: error.json_path)
    except UnicodeDecodeError:
        raise SignatureError(f"'{source}' is not JSON: it is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise SignatureError(
            f"'{source}' is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except ValueError as error:  # of a number with too many digits
        raise SignatureError(f"'{source}' is not JSON: {error}.") from None
    except RecursionError:
        raise SignatureError(f"'{source}' is not {_TITLES[kind]}: it is nested too deeply.") from None
    if violations:
        # A wrong schema name explains all other violations.
        first = next((error for error in violations if error.json_path == "$.schema"), violations[0])
        raise SignatureError(f"'{source}' is not {_TITLES[kind]}: at '{first.json_path}', {_explain(first)}.")
    assert isinstance(document, dict)
    return document


def _finite(text: str) -> float:
    """A number of a document. JSON has neither infinities nor NaN, but Python reads and writes them."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is not finite")
    return value


_TITLES = {
    "program": "a program signature",
    "sdfg": "an SDFG signature",
    "profile": "a profile",
    "memory": "a memory report",
    "report": "a report",
    "granule": "the description of a granule",
}


@functools.cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    import jsonschema  # Here, because the import takes longer than loading a compiled program.

    schema = json.loads((Path(__file__).parent / "schema" / f"{kind}.schema.json").read_text(encoding="utf-8"))
    # 1.0 is an integer for JSON Schema, but not for C.
    types = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=types)(schema)


def _explain(error: jsonschema.ValidationError) -> str:
    found, value = shortened(error.instance), error.validator_value
    match error.validator:
        case "required":
            missing = next(name for name in value if name not in error.instance)
            return f"expected a member '{missing}', found none"
        case "additionalProperties":
            known = error.schema.get("properties", {})
            surplus = next(name for name in sorted(error.instance) if name not in known)
            return f"expected no member '{surplus}', found one"
        case "const":
            expected = f"'{value}'"
        case "enum":
            expected = f"one of {', '.join(map(repr, value))}"
        case "type":
            expected = " or ".join(value if isinstance(value, list) else [value])
        case "pattern":
            expected = f"text that matches '{value}'"
        case "minimum":
            expected = f"at least {value}"
        case "maximum":
            expected = f"at most {value}"
        case "maxItems":
            expected, found = f"at most {value} elements", f"{len(error.instance)}"
        case other:
            expected = f"a value that '{other}' allows"
    return f"expected {expected}, found {found}"
