"""What users gave to classes and objects: their members and attributes, without those that Python makes."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Set
from typing import Any

from gtstub.frameworks.gt4py import origin

PICKLING = ("__getstate__", "__reduce__", "__reduce_ex__")

NOT_THE_USERS = {
    "__dict__",
    "__weakref__",
    "__module__",
    "__qualname__",
    "__doc__",
    "__annotations__",
    "__abstractmethods__",
}
NOT_THE_USERS |= {"_abc_impl", "__dataclass_fields__", "__dataclass_params__", "__orig_bases__", "__parameters__"}
NOT_THE_USERS |= {"__firstlineno__", "__static_attributes__", "__type_params__"}
NOT_THE_USERS |= {"__slotnames__", "__annotate__", "__annotate_func__", "__annotations_cache__"}
"""The members of classes that Python makes, some of them when an object is copied or asked for its annotations."""


def of_class(class_: type) -> dict[str, Any]:
    """The members of a class by their names; its bases and what its metaclass keeps elsewhere under tags."""
    found: dict[str, Any] = {"<bases>": [type(class_), *class_.__bases__]}
    if isinstance(class_, enum.EnumMeta):
        found["<members>"] = {name: _own(vars(class_)["_member_map_"][name]) for name in class_.__members__}
    if "__dataclass_fields__" in vars(class_):
        found["<metadata>"] = {each.name: dict(each.metadata) for each in dataclasses.fields(class_)}
    for name, value in sorted(vars(class_).items()):
        if name not in NOT_THE_USERS and _is_the_users(class_, name, value):
            found[name] = value
    return found


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots among them."""
    found = dict(getattr(value, "__dict__", {}))
    for class_ in filter(lambda each: not origin.is_known(each), type(value).__mro__):
        for name, member in vars(class_).items():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # The slot is empty.
                    found[name] = member.__get__(value)
    return found


def cached(value: Any) -> dict[str, functools.cached_property[Any]]:
    """What has set attributes of an object when they were first read, by their names."""
    found = ((name, inspect.getattr_static(type(value), name, None)) for name in getattr(value, "__dict__", ()))
    return {name: member for name, member in found if isinstance(member, functools.cached_property)}


def without(state: Any, names: Set[str]) -> Any:
    """The attributes of an object, or their pair with those in slots, as pickle has them, without some of them."""
    if isinstance(state, tuple):
        return tuple(without(each, names) for each in state)
    return {name: value for name, value in state.items() if name not in names} if type(state) is dict else state


def pickles_itself(kind: type) -> bool:
    """Whether a class of the user decides what pickle stores, and so may leave attributes out."""
    return not origin.is_known(kind) and any(getattr(kind, own) is not getattr(object, own) for own in PICKLING)


def _is_the_users(class_: type, name: str, value: Any) -> bool:
    """Whether a member of a class was not made by Python."""
    if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
        return False  # of slots
    if isinstance(class_, enum.EnumMeta) and (name in class_.__members__ or _is_reserved(name)):
        return isinstance(value, types.FunctionType | staticmethod | classmethod)
    return True


def _own(member: enum.Enum) -> list[Any]:
    """The value of a member of an enumeration, and the attributes that the user gave it."""
    return [member.value, {name: value for name, value in vars(member).items() if not _is_reserved(name)}]


def _is_reserved(name: str) -> bool:
    """Whether `enum` or Python gives the name its meaning."""
    return name.startswith("_") and name.endswith("_")
