"""Stand-in for ndsl.dsl.dace.orchestration; see the package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import dace
from dace.dtypes import AllocationLifetime, StorageType
from dace.frontend.python.common import SDFGConvertible
from gt4py import storage

from ndsl.dsl.dace.dace_config import DaceConfig, DaCeOrchestration
from ndsl.dsl.dace.dace_executable import DaceExecutable
from ndsl.quantity import Quantity, State


def dace_inhibitor(func: Callable[..., Any]) -> Callable[..., Any]:
    """DaCe makes a callback of what has a decorator that it does not know."""
    return func


def _download_results_from_dace(config: DaceConfig, dace_result: Any) -> list[Any] | None:
    if dace_result is None:
        return None
    return [storage.from_array(result, backend=config.get_backend()) for result in dace_result]


def _parse_sdfg(dace_program: Any, config: DaceConfig, *args: Any, **kwargs: Any) -> Any:
    """The compiled SDFG if it is loaded, or in mode Run; else a new SDFG."""
    if dace_program in config.loaded_dace_executables:
        return config.loaded_dace_executables[dace_program].compiled_sdfg
    if config.get_orchestrate() == DaCeOrchestration.Run:
        return _load(dace_program, config, args, kwargs)
    closure = dace_program.__sdfg_closure__()
    return dace_program.to_sdfg(*args, **closure, **kwargs, save=False, simplify=False, validate=False)


def _load(dace_program: Any, config: DaceConfig, args: Any, kwargs: Any) -> Any:
    folder = Path(dace.Config.get("default_build_folder")) / dace_program.name
    compiled, _ = dace_program.load_precompiled_sdfg(str(folder), *args, **kwargs)
    config.loaded_dace_executables[dace_program] = DaceExecutable(compiled_sdfg=compiled)
    return compiled


def _build_sdfg(dace_program: Any, sdfg: Any, config: DaceConfig, args: Any, kwargs: Any) -> None:
    """Builds the library; mode Build ends here."""
    sdfg.simplify(skip={"ScalarToSymbolPromotion"})
    for _, _, array in sdfg.arrays_recursive():
        if array.shape == (1,):
            array.storage = StorageType.Register
    for _, name, array in sdfg.arrays_recursive():
        if array.transient and not name.startswith("__return") and array.storage != StorageType.Register:
            array.lifetime = AllocationLifetime.Persistent
    sdfg.compile()
    if config.get_orchestrate() == DaCeOrchestration.Build:
        sys.exit(0)
    _load(dace_program, config, args, kwargs)


def _call_sdfg(dace_program: Any, sdfg: Any, config: DaceConfig, args: Any, kwargs: Any) -> list[Any] | None:
    if dace_program not in config.loaded_dace_executables:
        _build_sdfg(dace_program, sdfg, config, args, kwargs)
    executable = config.loaded_dace_executables[dace_program]
    found = executable.hash_expected_dsl_args(args, kwargs)
    if executable.arguments is None or found != executable.arguments_hash:
        executable.arguments = dace_program._create_sdfg_args(executable.compiled_sdfg.sdfg, args, kwargs)
        executable.arguments_hash = found
    return _download_results_from_dace(config, executable.compiled_sdfg(**executable.arguments))


class _Lazy(SDFGConvertible):
    """What the lazy callables of functions and methods share; NDSL writes it twice."""

    daceprog: Any

    @property
    def _dace_config(self) -> DaceConfig:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert self._dace_config.is_dace_orchestrated()
        sdfg = _parse_sdfg(self.daceprog, self._dace_config, *args, **kwargs)
        return _call_sdfg(self.daceprog, sdfg, self._dace_config, args, kwargs)

    @property
    def global_vars(self) -> Any:
        return self.daceprog.global_vars

    @global_vars.setter
    def global_vars(self, value: Any) -> None:
        self.daceprog.global_vars = value

    def __sdfg__(self, *args: Any, **kwargs: Any) -> Any:
        return _parse_sdfg(self.daceprog, self._dace_config, *args, **kwargs)

    def __sdfg_closure__(self, reevaluate: Any = None) -> Any:
        return self.daceprog.__sdfg_closure__(reevaluate)

    def __sdfg_signature__(self) -> Any:
        return self.daceprog.argnames, self.daceprog.constant_args

    def closure_resolver(self, constant_args: Any, given_args: Any, parent_closure: Any = None) -> Any:
        return self.daceprog.closure_resolver(constant_args, given_args, parent_closure)


class _LazyComputepathFunction(_Lazy):
    def __init__(self, func: Callable[..., Any], config: DaceConfig) -> None:
        self.func = func
        self.config = config
        self.daceprog = dace.program(func)

    @property
    def _dace_config(self) -> DaceConfig:
        return self.config


class _LazyComputepathMethod:
    bound_callables: ClassVar[dict[tuple[int, int], Any]] = {}

    class SDFGEnabledCallable(_Lazy):
        def __init__(self, lazy_method: _LazyComputepathMethod, obj_to_bind: object) -> None:
            self.obj_to_bind = obj_to_bind
            self.lazy_method = lazy_method
            self.daceprog = dace.method(lazy_method.func).__get__(obj_to_bind)

        @property
        def _dace_config(self) -> DaceConfig:
            return self.lazy_method.config

    def __init__(self, func: Callable[..., Any], config: DaceConfig) -> None:
        self.func = func
        self.config = config

    def __get__(self, obj: object, objtype: Any = None) -> Any:
        key = id(obj), id(self.func)
        if key not in self.bound_callables:
            self.bound_callables[key] = self.SDFGEnabledCallable(self, obj)
        return self.bound_callables[key]


def orchestrate(
    *,
    obj: object,
    config: DaceConfig,
    method_to_orchestrate: str = "__call__",
    dace_compiletime_args: Any = None,
) -> None:
    if not config.is_dace_orchestrated():
        return
    if not hasattr(obj, method_to_orchestrate):
        raise RuntimeError(f"Could not orchestrate, {type(obj).__name__}.{method_to_orchestrate} does not exist.")
    func: Any = type.__getattribute__(type(obj), method_to_orchestrate)
    for argument in dace_compiletime_args or ():
        func.__annotations__[argument] = dace.compiletime
    for name, annotation in func.__annotations__.items():
        if isinstance(annotation, type) and issubclass(annotation, Quantity | State):
            func.__annotations__[name] = dace.compiletime
    wrapped = _LazyComputepathMethod(func, config).__get__(obj)
    if method_to_orchestrate != "__call__":
        setattr(obj, method_to_orchestrate, wrapped)
        return

    class Patched(type(obj)):  # type: ignore[misc]
        __name__ = f"{type(obj).__name__}_patched"

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return wrapped(*args, **kwargs)

        def __sdfg__(self, *args: Any, **kwargs: Any) -> Any:
            return wrapped.__sdfg__(*args, **kwargs)

        def __sdfg_closure__(self, reevaluate: Any = None) -> Any:
            return wrapped.__sdfg_closure__(reevaluate)

        def __sdfg_signature__(self) -> Any:
            return wrapped.__sdfg_signature__()

        def closure_resolver(self, constant_args: Any, given_args: Any, parent_closure: Any = None) -> Any:
            return wrapped.closure_resolver(constant_args, given_args, parent_closure)

    name = type(obj).__name__
    obj.__class__ = Patched
    type(obj).__name__ = name


def orchestrate_function(config: DaceConfig, dace_compiletime_args: Any = None) -> Callable[..., Any]:
    def decorate(func: Any) -> Any:
        for argument in dace_compiletime_args or ():
            func.__annotations__[argument] = dace.compiletime
        return _LazyComputepathFunction(func, config) if config.is_dace_orchestrated() else func

    return decorate
