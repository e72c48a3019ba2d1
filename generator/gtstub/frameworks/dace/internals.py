"""The internals of DaCe that gtstub uses. After an upgrade of DaCe, check this module first."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import dace
from dace import config, data, nodes
from dace.codegen import codegen, compiler
from dace.frontend.python import cached_program, parser
from dace.frontend.python.parser import DaceProgram
from dace.sdfg import type_inference
from dace.sdfg.state import ConditionalBlock, LoopRegion
from dace.sdfg.validation import InvalidSDFGError
from dace.transformation.passes.analysis import loop_analysis
from dace.transformation.passes.lift_trivial_if import LiftTrivialIf

from gtstub.errors import CompilationError, SignatureError, reason
from gtstub.frameworks.dace.call_arguments import may_be_none, says_none
from gtstub.frameworks.dace.saved import load_nested


def fixed_settings() -> dict[str, Any]:
    """The settings that change generated code and that DaCe reads only on import, with their values at that time."""
    return {
        "compiler.cpu.openmp_sections": dace.SDFG.openmp_sections.default,
        "compiler.default_data_types": {"int32": "C", "int64": "Python"}[
            type_inference._py2c_typeconversion["int"].to_string()
        ],
    }


@dataclasses.dataclass(frozen=True)
class Types:
    """
    What DaCe compiles a program for, with the arguments of one call: the descriptors of the parameters that are data,
    the compile-time values, the names of the arguments that the call passes, and those of the parameters whose types
    are annotations.
    """

    descriptors: Mapping[str, data.Data]
    values: Mapping[str, Any]
    given: frozenset[str]
    annotated: frozenset[str]


def types_of(program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Types:
    """
    As DaceProgram.__call__ finds them, in DaCe 2.0.0a10. Raises TypeError for an argument without annotation of which
    DaCe makes no data.
    """
    refresh(program)
    try:
        descriptors, _, values, given = program._get_type_annotations(args, dict(kwargs))
    except (TypeError, ValueError, KeyError) as error:
        raise _with_name(program, args, kwargs, error) from error
    names = frozenset(name for name in (*given, *kwargs) if isinstance(name, str))
    parameters = program.signature.parameters.values()
    return Types(descriptors, values, names, frozenset(each.name for each in parameters if _is_typed(program, each)))


def _with_name(program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> Exception:
    """DaCe's error with the name of the argument that it is about."""
    parameters = [each for each in program.signature.parameters.values() if each.name != program.objname]
    given = {**{each.name: value for each, value in zip(parameters, args, strict=False)}, **kwargs}
    for name in (each.name for each in parameters if each.name in given and not _is_typed(program, each)):
        try:
            data.create_datadescriptor(given[name])
        except (TypeError, ValueError) as own:
            return TypeError(f"Argument '{name}' of program '{program.f.__name__}' is no data: {own}")
        except KeyError as own:
            return TypeError(
                f"Argument '{name}' of program '{program.f.__name__}' is no data: DaCe has no type for {reason(own)}."
            )
    return error


def _is_typed(program: DaceProgram, parameter: inspect.Parameter) -> bool:
    """Whether the annotation of a parameter is a type of DaCe; otherwise, the type of the argument counts."""
    annotation = parameter.annotation
    starred = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if starred or program.ignore_type_hints or annotation is parameter.empty:
        return False
    if get_origin(annotation) is Union:  # None, and another one
        (annotation,) = (each for each in get_args(annotation) if each is not type(None))
    try:
        return data.create_datadescriptor(program._evaluate_annotation(annotation)) is not None
    except (TypeError, ValueError):
        return True


def examples(program: DaceProgram, signature: inspect.Signature) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """
    Descriptors in place of the arguments without which a program cannot be called.

    Raises TypeError if a parameter has no annotation that is a type.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        starred = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if starred or parameter.default is not parameter.empty:
            continue
        if not _is_typed(program, parameter):
            raise TypeError(f"Program '{program.f.__name__}' needs an example of '{name}', which has no annotation.")
        descriptor = data.create_datadescriptor(program._evaluate_annotation(parameter.annotation))
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[name] = descriptor
        else:
            args.append(descriptor)
    return tuple(args), kwargs


def type_name(dtype: dace.typeclass) -> str:
    """DaCe's name of a type of elements. Its structs, vectors and pointers have no `to_string()`."""
    return str(dtype.to_string() if hasattr(dtype, "typename") else dtype)


def number_types(dtype: dace.typeclass) -> tuple[type, ...]:
    """The types of the numbers that DaCe takes for a scalar of this type."""
    numpy_type = dtype.type
    return (numpy_type, *(each for each in (bool, int, float, complex) if dace.typeclass(each) == dtype))


def parse_program(program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dace.SDFG:
    """
    Parses a program for the arguments of a call, and optimises it if it says so, as DaceProgram.compile does. An
    optional parameter for which there is no argument is None.

    Raises SignatureError for an option with which DaCe uses what it has built before, and the errors of `load_nested`.
    """
    for option in ("recreate_sdfg", "regenerate_code", "recompile"):
        if not getattr(program, option):
            raise SignatureError(
                f"Program '{program.name}' has the option '{option}=False' of dace.program(): DaCe uses what is in its"
                f" build folder, but gtstub builds each program from its source."
            )
    refresh(program)
    # Calls within a map are simplified by the setting alone.
    with _nones(program, args, kwargs), config.set_temporary("optimizer", "automatic_simplification", value=False):
        sdfg = program._parse(args, dict(kwargs), simplify=False)
    is_safe = counts_up(sdfg)
    if config.Config.get_bool("optimizer", "automatic_simplification"):
        sdfg.simplify(validate=False, skip=None if is_safe else {LiftTrivialIf.__name__})
    if config.Config.get_bool("optimizer", "autooptimize") or program.autoopt:
        if not is_safe:
            warnings.warn(
                f"Program '{program.name}' has a loop that counts down: the automatic optimisation of DaCe 2.0.0a10 may"
                " leave out a branch that the loop reaches, so that results are wrong.",
                stacklevel=2,
            )
        sdfg = program.auto_optimize(sdfg)
        sdfg.simplify()
    load_nested(sdfg)  # What is in them is in the key then.
    return expanded(sdfg)


def counts_up(sdfg: dace.SDFG) -> bool:
    """
    Whether all loops with branches in them count up. DaCe 2.0.0a10 leaves out branches that a loop never reaches
    (LiftTrivialIf), but takes the first value of any loop's variable for the least one.
    """
    regions = (each for nested in sdfg.all_sdfgs_recursive() for each in nested.all_control_flow_regions())
    loops = [each for each in regions if isinstance(each, LoopRegion) and each.loop_variable]
    return all(
        ((step := loop_analysis.get_loop_stride(each)) is not None and step.is_positive)
        or not any(isinstance(block, ConditionalBlock) for block in each.all_control_flow_blocks(recursive=True))
        for each in loops
    )


@contextmanager
def _nones(program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[None]:
    """
    Gives optional parameters without a default and without an argument the default None.

    Raises TypeError if DaCe cannot parse the program without an array.
    """
    parameters = [each for each in program.signature.parameters.values() if each.name != program.objname]
    missing = [each for each in parameters[len(args) :] if each.name not in kwargs and may_be_none(each)]
    before = program.default_args
    program.default_args = {**dict.fromkeys(each.name for each in missing), **before}
    try:
        yield
    except Exception as error:
        for name in (each.name for each in missing if not says_none(each)):
            raise TypeError(
                f"Argument '{name}' of program '{program.name}' must be an array, not 'NoneType'."
            ) from error
        raise
    finally:
        program.default_args = before


def expanded(sdfg: dace.SDFG) -> dace.SDFG:
    """
    The SDFG with the arguments that it is compiled with: the code of library nodes, such as that of a sum, may use
    sizes of which the SDFG says nothing else, and keep what it has made of them, as a Fourier transform on a GPU does.
    DaCe expands the nodes when it compiles them, too.
    """
    if not any(isinstance(node, nodes.LibraryNode) for node, _ in sdfg.all_nodes_recursive()):
        return sdfg
    copied = copy.deepcopy(sdfg)
    copied.expand_library_nodes()
    tasklets = (node for node, _ in copied.all_nodes_recursive() if isinstance(node, nodes.Tasklet))
    is_new = copied.arglist().keys() != sdfg.arglist().keys() or any(each.code_init.code for each in tasklets)
    return copied if is_new else sdfg


def validate(sdfg: dace.SDFG) -> None:
    """
    Validates the SDFG of a program as SDFG.compile does in DaCe 2.0.0a10, before anything in it is lowered.

    Raises CompilationError if DaCe refuses it.
    """
    copied = copy.deepcopy(sdfg)
    for each in copied.all_sdfgs_recursive():
        vars(each)["save"] = _save_nothing
    copied.fill_scope_connectors()
    try:
        copied.validate()
    except InvalidSDFGError as error:
        error.path = None
        raise CompilationError(f"Program '{sdfg.name}' cannot be compiled: DaCe refuses it: {error}") from error


def _save_nothing(*_: Any, **__: Any) -> None:
    """In place of `SDFG.save` of a copy, which DaCe would write into the working directory if it is invalid."""


def compile_sdfg(sdfg: dace.SDFG, folder: Path) -> tuple[dace.SDFG, Path]:
    """
    Compiles an SDFG in a new folder, as SDFG.compile does in DaCe 2.0.0a10. Returns the SDFG as it was when DaCe
    generated the code, which SDFG.compile keeps to itself, and the path of the library.
    """
    copied = copy.deepcopy(sdfg)
    copied.build_folder = str(folder)
    load_nested(copied)
    copied.fill_scope_connectors()
    mode = config.Config.get("compiler", "build_folder_mode")
    objects = codegen.generate_code(copied, validate=False)
    generated = compiler.generate_program_folder(copied, objects, str(folder), folder_mode=mode)
    return copied, Path(compiler.configure_and_compile(generated, copied.name, folder_mode=mode))


def python_of(program: DaceProgram) -> Callable[..., Any]:
    """The function or bound method that a program was made of."""
    if program.methodobj is None:
        return program.f  # type: ignore[no-any-return]
    return program.f.__get__(program.methodobj)  # type: ignore[no-any-return]


def fresh(program: DaceProgram) -> DaceProgram:
    """
    A program of the same function that DaCe has not parsed: what it has compiled is called with what it has found while
    it parsed the program last, and some of what was compiled in, such as functions, is not in its keys.
    """
    made = copy.copy(program)
    made._cache = cached_program.DaceProgramCache(made._eval_closure)
    made.resolver = None
    made.closure_arg_mapping = {}
    made.closure_array_keys = set()
    made.closure_constant_keys = set()
    return made


def program_of(callee: Any) -> DaceProgram | None:
    """The DaCe program that a call of an object calls, through a stub or not; None if it is none."""
    callee = getattr(callee, "dace_program", callee)
    return callee if isinstance(callee, DaceProgram) else None


def refresh(program: DaceProgram) -> None:
    """Reads the globals of a program again, because DaCe keeps copies of them."""
    program.global_vars = parser._get_locals_and_globals(program.f)
    if program.methodobj is not None:
        program.global_vars[program.objname] = program.methodobj
