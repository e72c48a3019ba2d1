"""Makes the objects of `model.py` from validated documents, in which their members have the same names."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from gtstub.errors import SignatureError
from gtstub.stub.signature import model
from gtstub.stub.signature.expressions import Expression, parse, polynomial
from gtstub.stub.signature.facts import Fact, fact_text

KINDS: Mapping[type, str] = {
    model.ScalarType: "scalar",
    model.FieldType: "field",
    model.TupleType: "tuple",
    model.CallbackType: "callback",
    model.ArrayArgument: "array",
    model.ScalarArgument: "scalar",
    model.CallbackArgument: "callback",
    model.StructureArgument: "structure",
}
"""The member 'kind' of objects that stand where others may stand, too."""

_CONDITION = re.compile(r"([^<=!]+) (<|==|!=) ([^<=!]+)")


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads a document; `source` is its file name for error messages."""

    source: str

    def refusal(self, place: str, problem: str) -> SignatureError:
        return SignatureError(f"'{self.source}' is not an SDFG signature: at '{place}', {problem}.")

    def made(self, type_: Any, item: Any, place: str) -> Any:
        """The object of a type for an item at a place. Raises SignatureError for other expressions and conditions."""
        if type_ in (str, int, bool):
            return item
        if type_ is Expression:
            return self._expression(item, place)
        if type_ is model.Condition:
            return self._condition(item, place)
        if dataclasses.is_dataclass(type_):
            return self._object(type_, item, place)
        if isinstance(type_, types.UnionType):
            return self._one_of(get_args(type_), item, place)
        if get_origin(type_) is tuple:
            return tuple(self.made(get_args(type_)[0], each, f"{place}[{i}]") for i, each in enumerate(item))
        return self._polynomial(item, place) if type_ == model.Polynomial else item

    def _object(self, type_: Any, item: Mapping[str, Any], place: str) -> Any:
        members = {name: each for name, each in _members(type_).items() if name in item}
        made = type_(**{name: self.made(each, item[name], f"{place}.{name}") for name, each in members.items()})
        self._check(made, place)
        return made

    def _one_of(self, choices: tuple[Any, ...], item: Any, place: str) -> Any:
        if isinstance(item, str) and float in choices:
            return float(item)  # JSON has neither infinities nor NaN.
        kind = item.get("kind") if isinstance(item, dict) else None
        found = (each for each in choices if kind is not None and KINDS.get(each) == kind)
        return self.made(next(found, choices[0]), item, place)

    def _check(self, made: Any, place: str) -> None:
        match made:
            case model.CallbackValue(shape=shape, strides=strides) if len(shape) != len(strides):
                found = f"{len(shape)} sizes and {len(strides)} strides"
                raise self.refusal(place, f"expected as many strides as sizes, found {found}")
            case model.StructureArgument(members=members) if any(
                isinstance(each, model.CallbackArgument) for each in members
            ):
                raise self.refusal(f"{place}.members", "expected arrays, scalars and structures, found a callback")
            case model.StructureArgument(members=members, copied=copied) if unknown := sorted(
                {*copied} - {each.name for each in members if isinstance(each, model.ArrayArgument)}
            ):
                raise self.refusal(f"{place}.copied", f"expected names of arrays in 'members', found '{unknown[0]}'")
            case model.Follow(array=array, axis=axis, size=size) if (
                len({array is None, axis is None, size is not None}) > 1
            ):
                raise self.refusal(place, "expected either 'array' and 'axis' or 'size', found both or neither")
            case Fact(text=text) if fact_text(text, {name: name for name in made.symbols}) != text:
                raise self.refusal(f"{place}.text", f"expected a condition on scalars, found '{_shown(text)}'")

    def _expression(self, text: str, place: str) -> Expression:
        found = parse(text)
        if found is None:
            problem = f"expected a sum of integers and symbols, of limited size, found '{_shown(text)}'"
            raise self.refusal(place, problem)
        return found

    def _polynomial(self, text: str, place: str) -> Expression:
        found = polynomial(text)
        if found is None:
            raise self.refusal(place, f"expected a polynomial, found {shortened(text)}")
        return found

    def _condition(self, text: str, place: str) -> model.Condition:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise self.refusal(place, f"expected two expressions with '<', '==' or '!=', found '{_shown(text)}'")
        left, relation, right = match.groups()
        return model.Condition(self._expression(left, place), relation, self._expression(right, place))  # type: ignore[arg-type]


@functools.cache
def _members(type_: type) -> Mapping[str, Any]:
    """The members of a class by name, with their types."""
    return get_type_hints(type_, include_extras=True)


def shortened(value: Any) -> str:
    """The start of a part of a document, in JSON and on one line."""
    text = json.dumps(value, ensure_ascii=False)
    text = text if text.isprintable() else json.dumps(value)
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"


def _shown(text: str) -> str:
    """The start of a text, on one line."""
    start = text[:60]
    return start if start.isprintable() else start.encode("unicode_escape").decode()
