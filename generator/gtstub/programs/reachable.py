"""
What an object has: elements, attributes, what its classes have, and for a function its variables. `State` goes from one
object to the next.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import sysconfig
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gtstub import _host

KINDS = "biufcmMSTUVO"
"""Kinds of arrays: those of numbers, dates, texts, structures and objects."""

FILLED = frozenset(("_weakrefset", "argparse", "builtins", "collections", "functools", "numpy.ma", "types", "weakref"))
"""Modules whose objects have only what their users put into them."""

NO_STATE = frozenset(("cupy", "dace", "gt4py", "gtstub", "mpi4py", "numpy", "sympy")) | sys.stdlib_module_names
"""Objects of these packages have state in C beside their attributes, so their attributes are not put back."""

LIBRARIES = frozenset(
    ("_pytest", "dask", "h5py", "jax", "matplotlib", "netCDF4", "numba", "pandas", "pytest", "scipy", "torch", "xarray")
)
"""Packages whose functions and classes are not looked into, because their variables are their own."""

_VIEWS = (types.MappingProxyType, *map(type, ({}.keys(), {}.values(), {}.items())))
"""What shows the elements of a mapping, which may be a class of the user."""

_ELEMENTS: Mapping[type, Callable[[Any], Iterable[tuple[Any, Any]]]] = {
    list: lambda each: enumerate(list.__iter__(each)),
    tuple: lambda each: enumerate(tuple.__iter__(each)),
    deque: lambda each: enumerate(deque.__iter__(each)),
    set: lambda each: enumerate(set.__iter__(each)),
    frozenset: lambda each: enumerate(frozenset.__iter__(each)),
    dict: dict.items,
    OrderedDict: lambda each: _items_in_order(each),
    type: lambda owner: attributes(owner).items(),
    **dict.fromkeys(_VIEWS, lambda view: elements(gc.get_referents(view)[0])),
    BaseException: lambda error: enumerate(vars(BaseException)["args"].__get__(error)),
    _host.Step: enumerate,
    _host.Action: lambda action: enumerate((*action.arrays, action.function)),
    _host.BoundCall: lambda call: call.arguments.items(),
}
"""Keys or numbers, and what they stand for, by the type of the container."""

_HOLDERS = (types.MethodType, functools.partial, property, staticmethod, classmethod)
"""What has functions, and is of C."""

SIMPLE = frozenset((bool, int, float, complex, str, bytes, type(None)))
"""Types of objects that have nothing, and that nothing changes."""

type Member = tuple[str, Any, Callable[[], object] | None]
"""A name, such as 'self.vn', a value, and what puts it back, unless it is put back with all that its owner has."""


def is_a(value: Any, kinds: Any) -> bool:
    """isinstance() without code of the object, which may say that it is of another class."""
    return issubclass(type(value), kinds)


def first_kind(value: Any, kinds: Container[type]) -> type | None:
    """The first class of an object that is one of these."""
    return next((each for each in type(value).__mro__ if each in kinds), None)


def has_state(value: Any) -> bool:
    """Whether an object, a class, a module or a function is the user's, so that it may be looked into and put back."""
    if is_a(value, types.FunctionType):  # Others have the `__module__` of what they wrap.
        return _is_own(value.__module__) or _is_own(dict.get(value.__globals__, "__name__"))
    if is_a(value, types.ModuleType):
        return _is_own(attributes(value).get("__name__"))
    if is_a(value, type):
        return _is_own(value.__module__)
    module = type(value).__module__
    is_step = is_a(value, (_host.Step, _host.BoundCall, _host.Action))
    return _package(module) not in NO_STATE or module in FILLED or is_step


def array_of(value: Any) -> Any:
    """The array of numpy or CuPy that an object is, or that a field of gt4py has."""
    import numpy as np

    array: Any = getattr(value, "ndarray", None) if _package(type(value).__module__) == "gt4py" else value
    if is_a(array, np.ndarray) and has_state(array):
        array = np.ndarray.view(array, np.ndarray)  # No code of its class runs.
    if _package(type(array).__module__) not in ("numpy", "cupy"):
        return None
    if not hasattr(array, "flags") or not hasattr(array, "__setitem__"):
        return None  # a number
    return array if array.dtype.kind in KINDS and array.dtype.itemsize > 0 else None


def layout(array: Any) -> tuple[object, ...]:
    """Where an array has which elements."""
    interface = getattr(array, "__array_interface__", None) or array.__cuda_array_interface__
    return interface["data"][0], array.dtype, array.shape, array.strides


def members(name: str, value: Any) -> Iterator[Member]:
    """What an object of this name has. No code of its classes runs. The name of its attributes ends with a dot."""
    if is_a(value, types.ModuleType):
        return  # It has `variables`.
    if is_a(value, types.FunctionType):
        yield from _variables(value)
    if is_a(value, (types.BuiltinMethodType, types.MethodWrapperType)):
        yield f"{name}.self", value.__self__, None
    if is_a(value, weakref.ReferenceType):
        yield f"{name}()", weakref.ReferenceType.__call__(value), None
    if is_a(value, types.MappingProxyType):  # Only the elements of a dict: it may be that of a class.
        yield from ((name, each, None) for each in gc.get_referents(value) if type(each) is not dict)
    if is_a(value, weakref.ProxyTypes):
        with contextlib.suppress(ReferenceError):  # is gone
            yield name, _Referent() + value, None
    are_attributes = name.endswith(".") or is_a(value, type)
    for number, (key, each) in enumerate(elements(value), 1):
        if type(each) in SIMPLE and type(key) in SIMPLE:
            continue
        if are_attributes and type(key) is str:
            yield f"{name.removesuffix('.')}.{key}".removeprefix("."), each, None
        elif type(key) in (str, int):
            yield f"{name}[{key!r}]", each, None
        else:
            yield f"{name}[key {number}]", each, None
            yield f"{name}.key {number}", key, None
    kind, mapping = type(value), attributes(value)
    put_back = functools.partial(_put_back_attributes, value, kind, mapping) if has_state(kind) else None
    if is_a(mapping, dict) and (foreign := set(_foreign_names(kind))):
        own = [each for each in dict.__iter__(mapping) if type(each) is str and each not in foreign]
        yield from variables(f"{name}.".removeprefix("."), mapping, own)
        yield f"{name}.", None, functools.partial(_remove_others, mapping, {*own, *foreign})
    else:
        yield f"{name}.", mapping, put_back
    yield from _slots(name, value)
    yield from ((name, each, None) for each in (*(value.__mro__ if is_a(value, type) else ()), *kind.__mro__))


def elements(value: Any) -> list[tuple[Any, Any]]:
    """
    What a container, an array of objects, a step or an action has, after keys or numbers, in order. No code of
    users runs, but that for the hash of a key of an OrderedDict.
    """
    kind = first_kind(value, _ELEMENTS)
    if kind is not None:
        return list(_ELEMENTS[kind](value))
    array = array_of(value)
    return list(enumerate(array.ravel().tolist())) if array is not None and array.dtype.hasobject else []


def _items_in_order(mapping: OrderedDict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """Only by the hashes of its keys; if one of them fails, in the order of insertion."""
    try:
        return list(OrderedDict.items(mapping))
    except Exception:  # of a key
        return dict.items(mapping)


def attributes(value: Any) -> Any:
    """The mapping that has those of an object itself, without code of its class; None if there is none."""
    slots = (vars(kind).get("__dict__") for kind in type(value).__mro__)
    slot = next((each for each in slots if is_a(each, (types.GetSetDescriptorType, types.MemberDescriptorType))), None)
    return None if slot is None else slot.__get__(value)  # A property of this name is none of these.


def _foreign_names(kind: type) -> Iterator[str]:
    """What the code of its bases of the standard library names. Such attributes of an object are theirs."""
    for base in filter(_is_foreign, kind.__mro__):
        for function in filter(lambda each: is_a(each, types.FunctionType), vars(base).values()):
            yield from names(function.__code__)


def _is_foreign(base: type) -> bool:
    """Whether a class is of the standard library, and its objects have more than their users put into them."""
    package = _package(base.__module__)
    return package in sys.stdlib_module_names and package not in FILLED


def _put_back_attributes(value: Any, kind: type, mapping: Any) -> None:
    if type(value) is not kind:
        vars(object)["__class__"].__set__(value, kind)
    if type(mapping) is dict and attributes(value) is not mapping:
        object.__setattr__(value, "__dict__", mapping)


def _remove_others(mapping: dict[Any, Any], kept: set[str]) -> None:
    for name in [each for each in dict.__iter__(mapping) if type(each) is str and each not in kept]:
        dict.__delitem__(mapping, name)


class _Referent:
    """`_Referent() + proxy` is what the proxy stands for. Python asks the left one first: no other code runs."""

    def __add__(self, other: Any) -> Any:
        return NotImplemented if is_a(other, weakref.ProxyTypes) else other


def _slots(name: str, value: Any) -> Iterator[Member]:
    for kind in type(value).__mro__:
        has_slots = "__slots__" in vars(kind) and not _is_foreign(kind)
        slots = vars(kind).values() if kind in _HOLDERS or has_slots else ()
        for slot in (each for each in slots if is_a(each, types.MemberDescriptorType)):
            with contextlib.suppress(AttributeError):  # is not set
                each = slot.__get__(value)
                if kind in _HOLDERS:  # such as __self__ of a method
                    yield f"{name}.{slot.__name__.strip('_')}".removeprefix("."), each, None
                else:
                    yield f"{name}.{slot.__name__}", each, functools.partial(slot.__set__, value, each)


def _variables(function: types.FunctionType) -> Iterator[Member]:
    """Those of functions around it, those of its module that it names, and default values."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # is not set
            value = cell.cell_contents
            yield name, value, functools.partial(setattr, cell, "cell_contents", value)
    for space in (function.__globals__, sys.modules):  # It may import what it names.
        yield from variables("", space, dict.fromkeys(names(code)))
    defaults = function.__defaults__ or ()
    arguments = code.co_varnames[: code.co_argcount]
    given = dict(zip(arguments[::-1], defaults[::-1], strict=False))  # A decorator may set more than there are.
    yield from ((name, each, None) for name, each in (given | (function.__kwdefaults__ or {})).items())


def variables(prefix: str, space: dict[str, Any], named: Iterable[str]) -> Iterator[Member]:
    """Those of a module that functions name, and of an object."""
    for name in named:
        if not dict.__contains__(space, name):
            continue
        value = dict.__getitem__(space, name)
        yield f"{prefix}{name}", value, functools.partial(dict.__setitem__, space, name, value)


def names(code: types.CodeType) -> Iterator[str]:
    """What the code of a function names, and of the functions inside it."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from names(each)


def _is_own(module: Any) -> bool:
    """Whether a module is neither of a package with state in C nor of a library."""
    package = _package(module)
    return package not in NO_STATE and package not in LIBRARIES


def _package(module: Any) -> str:
    """The package of a module, by its name; "" for one of the user with the name of one of the standard library."""
    package = module.partition(".")[0] if type(module) is str else ""
    return "" if package in sys.stdlib_module_names and _is_elsewhere(package) else package


@functools.cache
def _is_elsewhere(package: str) -> bool:
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and not Path(file).is_relative_to(sysconfig.get_path("stdlib"))
