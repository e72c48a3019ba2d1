"""Reads and writes the two signature documents."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.errors import SignatureError
from gtstub.signature import bounds, model
from gtstub.signature.expressions import Expression, polynomial
from gtstub.util.canonical import sha256

if TYPE_CHECKING:
    import jsonschema

_KINDS: dict[type, str] = {
    model.ScalarType: "scalar",
    model.FieldType: "field",
    model.TupleType: "tuple",
    model.CallbackType: "callback",
    model.ArrayArgument: "array",
    model.ScalarArgument: "scalar",
    model.CallbackArgument: "callback",
}


def program_to_json(signature: model.ProgramSignature) -> str:
    return _canonical({"schema": "gtstub/program-signature/1", **plain(signature)})


def sdfg_to_json(signature: model.SdfgSignature) -> str:
    return _canonical({"schema": "gtstub/sdfg-signature/1", **plain(signature)})


def program_from_json(text: str | bytes, source: str) -> model.ProgramSignature:
    """Reads a program signature; `source` is its file name for error messages. Raises SignatureError."""
    document = parse(text, source, "program")
    return model.ProgramSignature(
        name=document["name"],
        parameters=tuple(
            model.Parameter(item["name"], _type(item["type"]), item.get("source")) for item in document["parameters"]
        ),
        connectivities=tuple(
            model.Connectivity(
                **item | {name: model.Dimension(**item[name]) for name in ("source", "neighbor", "codomain")}
            )
            for item in document["connectivities"]
        ),
        static_arguments=tuple(
            model.StaticArgument(item["leaf"], float(value) if isinstance(value := item["value"], str) else value)
            for item in document["static_arguments"]
        ),
        static_domains=tuple(
            model.StaticDomain(item["leaf"], tuple((start, stop) for start, stop in item["ranges"]))
            for item in document["static_domains"]
        ),
    )


def sdfg_from_json(text: str | bytes, source: str) -> model.SdfgSignature:
    """Reads an SDFG signature; `source` is its file name for error messages. Raises SignatureError."""
    document = parse(text, source, "sdfg")
    signature = model.SdfgSignature(
        name=document["name"],
        device=document["device"],
        library=document["library"],
        arguments=tuple(
            _argument(item, source, f"$.arguments[{index}]") for index, item in enumerate(document["arguments"])
        ),
        init=tuple(document["init"]),
        memory_symbols=tuple(document["memory_symbols"]),
        workspaces=tuple(model.Workspace(**item) for item in document["workspaces"]),
        shapes=_shapes(document["shapes"], source) if "shapes" in document else None,
        bounds=bounds.read(document["bounds"], source) if "bounds" in document else None,
    )
    _check_references(signature, source)
    return signature


def program_in(file: Path) -> model.ProgramSignature:
    """The program signature in a file. Raises SignatureError or OSError."""
    return program_from_json(file.read_bytes(), str(file))


def sdfg_in(file: Path) -> model.SdfgSignature:
    """The SDFG signature in a file. Raises SignatureError or OSError."""
    return sdfg_from_json(file.read_bytes(), str(file))


def digest(text: str) -> str:
    """SHA-256 of a document's canonical text, hexadecimal."""
    return sha256(text.encode())


# --- Writing ----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value of a signature as JSON has it; what is None is left out, and expressions and infinities are texts."""
    if isinstance(value, Expression | model.Condition):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": _KINDS[type(value)]} if type(value) in _KINDS else {}
        return kind | {name: plain(item) for name, item in vars(value).items() if item is not None}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _canonical(document: dict[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


# --- Reading ----------------------------------------------------------------------------------------------------------


def _type(item: dict[str, Any]) -> model.Type:
    match item["kind"]:
        case "scalar":
            return model.ScalarType(item["dtype"])
        case "callback":
            return model.CallbackType()
        case "field":
            return model.FieldType(item["dtype"], tuple(model.Dimension(**dim) for dim in item["dims"]))
        case _:
            keys = tuple(item["keys"]) if "keys" in item else None
            return model.TupleType(tuple(_type(element) for element in item["elements"]), keys)


def _argument(item: dict[str, Any], source: str, place: str) -> model.Argument:
    if item["kind"] == "scalar":
        return _scalar(item)
    if item["kind"] == "callback":
        arguments, results = (
            tuple(_value(each, source, f"{place}.{name}[{index}]") for index, each in enumerate(item[name]))
            for name in ("arguments", "results")
        )
        return model.CallbackArgument(item["name"], arguments, results, item["is_parallel"])
    members = {name: value for name, value in item.items() if name != "kind"}
    return model.ArrayArgument(**members | {"axes": tuple(model.Axis(**axis) for axis in item["axes"])})


def _scalar(item: dict[str, Any]) -> model.ScalarArgument:
    return model.ScalarArgument(item["name"], item["dtype"], tuple(model.Role(**role) for role in item["roles"]))


def _value(item: dict[str, Any], source: str, place: str) -> model.CallbackValue:
    shape, strides = (
        tuple(_polynomial(text, source, f"{place}.{name}[{index}]") for index, text in enumerate(item[name]))
        for name in ("shape", "strides")
    )
    if len(shape) != len(strides):
        raise SignatureError(
            f"'{source}' is not an SDFG signature: at '{place}', expected as many strides as sizes, found {len(shape)}"
            f" sizes and {len(strides)} strides."
        )
    return model.CallbackValue(item["dtype"], shape, strides)


def _shapes(item: dict[str, Any], source: str) -> model.Shapes:
    requirements = (
        model.Requirement(
            **each | {"value": _polynomial(each["value"], source, f"$.shapes.requirements[{index}].value")}
        )
        for index, each in enumerate(item["requirements"])
    )
    return model.Shapes(tuple(map(_scalar, item["symbols"])), tuple(requirements))


def _polynomial(text: str, source: str, place: str) -> Expression:
    value = polynomial(text)
    if value is None:
        raise SignatureError(
            f"'{source}' is not an SDFG signature: at '{place}', expected a polynomial, found {_shorten(text)}."
        )
    return value


def parse(text: str | bytes, source: str, kind: str) -> dict[str, Any]:
    """Reads and validates a document of a kind with a schema, a key of _TITLES. Raises SignatureError."""
    try:
        document = json.loads(
            text if isinstance(text, str) else text.decode(), parse_constant=_finite, parse_float=_finite
        )
        violations = sorted(_validator(kind).iter_errors(document), key=lambda error: error.json_path)
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
}


@functools.cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    import jsonschema  # Here, because the import takes longer than loading a compiled program.

    schema = json.loads((Path(__file__).parent / "schema" / f"{kind}.schema.json").read_text(encoding="utf-8"))
    # 1.0 is an integer for JSON Schema, but not for C.
    types = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=types)(schema)


def _explain(error: jsonschema.ValidationError) -> str:
    found = _shorten(error.instance)
    match error.validator:
        case "required":
            missing = next(name for name in error.validator_value if name not in error.instance)
            return f"expected a member '{missing}', found none"
        case "additionalProperties":
            known = error.schema.get("properties", {})
            surplus = next(name for name in sorted(error.instance) if name not in known)
            return f"expected no member '{surplus}', found one"
        case "const":
            return f"expected '{error.validator_value}', found {found}"
        case "enum":
            return f"expected one of {', '.join(repr(value) for value in error.validator_value)}, found {found}"
        case "type":
            types = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
            return f"expected {' or '.join(types)}, found {found}"
        case "pattern":
            return f"expected text that matches '{error.validator_value}', found {found}"
        case "minimum":
            return f"expected at least {error.validator_value}, found {found}"
        case "maximum":
            return f"expected at most {error.validator_value}, found {found}"
        case "maxItems":
            return f"expected at most {error.validator_value} elements, found {len(error.instance)}"
        case _:
            return f"expected a value that '{error.validator}' allows, found {found}"


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    text = text if text.isprintable() else json.dumps(value)
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"


def _check_references(signature: model.SdfgSignature, source: str) -> None:
    """Checks what the schema cannot express: each name that the document uses is defined in the document."""

    def refuse(place: str, problem: str) -> SignatureError:
        return SignatureError(f"'{source}' is not an SDFG signature: at '{place}', {problem}.")

    ranks = {item.name: len(item.axes) for item in signature.arguments if isinstance(item, model.ArrayArgument)}
    scalars = {item.name for item in signature.arguments if isinstance(item, model.ScalarArgument)}
    callbacks = {item.name: item for item in signature.arguments if isinstance(item, model.CallbackArgument)}
    if len({*ranks, *scalars, *callbacks}) != len(signature.arguments):
        twice, _ = collections.Counter(item.name for item in signature.arguments).most_common(1)[0]
        raise refuse("$.arguments", f"expected each name once, found '{twice}' several times")
    shapes = signature.shapes or model.Shapes((), ())
    symbols = {symbol.name for symbol in shapes.symbols}
    if len(symbols) < len(shapes.symbols) or symbols & (scalars | ranks.keys()):
        raise refuse("$.shapes.symbols", "expected each name once, and not that of an argument")

    def check_axis(place: str, array: str, axis: int) -> None:
        if array not in ranks:
            raise refuse(f"{place}.array", f"expected the name of an array argument, found '{array}'")
        if axis >= ranks[array]:
            raise refuse(f"{place}.axis", f"expected an axis of '{array}', which has {ranks[array]}, found '{axis}'")

    for where, group in (("$.arguments", signature.arguments), ("$.shapes.symbols", shapes.symbols)):
        for index, argument in enumerate(group):
            for number, role in enumerate(argument.roles if isinstance(argument, model.ScalarArgument) else ()):
                check_axis(f"{where}[{index}].roles[{number}]", role.array, role.axis)
    for index, each in enumerate(shapes.requirements):
        check_axis(f"$.shapes.requirements[{index}]", each.array, each.axis)
        if unknown := sorted(each.value.symbols - scalars - symbols):
            raise refuse(f"$.shapes.requirements[{index}].value", f"expected names of scalars, found '{unknown[0]}'")
    for name, callback in callbacks.items():
        sizes = [size for each in (*callback.arguments, *callback.results) for size in (*each.shape, *each.strides)]
        if unknown := sorted(frozenset().union(*(size.symbols for size in sizes)) - scalars - symbols):
            raise refuse("$.arguments", f"expected names of scalars in the sizes of '{name}', found '{unknown[0]}'")
    for index, name in enumerate(signature.init):
        if name not in scalars and name not in callbacks:
            raise refuse(f"$.init[{index}]", f"expected the name of a scalar argument, found '{name}'")
    for index, name in enumerate(signature.memory_symbols):
        if name not in signature.init:
            raise refuse(f"$.memory_symbols[{index}]", f"expected a name in 'init', found '{name}'")
    bounds.check_references(signature, refuse)
