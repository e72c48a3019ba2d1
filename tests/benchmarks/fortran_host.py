"""
A host in Fortran that calls a program through its module, with whole arrays and with sections of larger ones.

As a library it has `open_program`, `time_whole`, `time_sections` and `time_turns` of both, and `time_bound` and
`time_step` of a bound call; as a program it makes calls that callgrind counts.
The stub is compiled into both; what they open is the entry's, which was generated from the same signatures.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from gtstub.install import FOLDER, INCLUDE, RUNTIME
from gtstub.stub.codegen.hosts.fortran import Argument, make_interface
from gtstub.stub.plan.model import CallPlan, FieldLeaf
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature
from tests.benchmarks.c_host import CALLS, STEP, count_instructions
from tests.support.fortran_hosts import MODULES
from tests.support.stubs import render_stub

SIZE = 8
"""Of an axis that is not fixed."""


def is_missing() -> bool:
    return shutil.which("gfortran") is None


def build(sdfg: SdfgSignature, program: ProgramSignature, folder: Path) -> tuple[Path, Path]:
    """The library and the program, in a folder of their own."""
    folder = folder / "fortran"
    folder.mkdir(exist_ok=True)
    texts = render_stub(sdfg, program, fortran=True)
    files = {
        f"{program.name}_stub.h": texts.header,
        f"{program.name}_stub.c": texts.source,
        "stub.f90": texts.module,
        "host.f90": _source(make_plan(sdfg, program)),
        "main.f90": MAIN,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    c = ["gcc", "-std=c11", "-O2", "-fPIC", "-DGTS_FORTRAN", f"-I{INCLUDE}", "-c", f"{program.name}_stub.c"]
    subprocess.run([*c, "-o", "stub.o"], cwd=folder, check=True)
    modules = [str(FOLDER / "fortran" / f"{module}.f90") for module in MODULES]
    fortran = ["gfortran", "-std=f2018", "-O2", "-fPIC", *modules, "stub.f90", "host.f90"]
    runtime = ["stub.o", f"-L{RUNTIME.parent}", f"-l:{RUNTIME.name}", f"-Wl,-rpath,{RUNTIME.parent}"]
    subprocess.run([*fortran, "-shared", *runtime, "-o", "fortran_host.so"], cwd=folder, check=True)
    subprocess.run([*fortran, "main.f90", *runtime, "-o", "fortran_host"], cwd=folder, check=True)
    return folder / "fortran_host.so", folder / "fortran_host"


def instructions(program: Path, entry: Path, c_host: Path, library: Path) -> dict[str, float]:
    """
    Of a call, its descriptors included, above the SDFG itself called from C with constants; of a start and of a program
    in a step above the SDFG itself called with values from memory.
    """
    bare, memory = (
        count_instructions(name, [c_host, entry, library, str(CALLS)]) for name in ("time_bare", "time_memory")
    )
    command = [program, entry, str(CALLS)]
    return {
        "gtstub from Fortran": count_instructions("time_whole", command) - bare,
        "gtstub from Fortran, sections": count_instructions("time_sections", command) - bare,
        "bound from Fortran": count_instructions("time_bound", command) - memory,
        "step from Fortran": count_instructions("time_step", command) - memory,
    }


# --- The text of the host ---------------------------------------------------------------------------------------------


def _value(argument: Argument) -> str:
    one = {"logical": ".true.", "integer": "1", "real": "1.0"}[argument.type]
    return f"{one}_{argument.kind}"


def _array(argument: Argument, leaf: FieldLeaf) -> tuple[list[str], list[str], str]:
    """Declarations, allocations, and the section of the larger array that is as large as the smaller one."""
    sizes = [SIZE if axis.fixed.size is None else axis.fixed.size for axis in leaf.axes]
    steps = [2 if axis.fixed.stride is None else 1 for axis in leaf.axes]
    large = f"l_{argument.name}"
    shapes = {argument.name: sizes, large: [1 + step * size for step, size in zip(steps, sizes, strict=True)]}
    colons = ", ".join(":" * argument.dims.count(":"))
    declarations = [f"{argument.type}({argument.kind}), allocatable, target :: {name}({colons})" for name in shapes]
    allocations = [
        f"allocate ({name}({', '.join(map(str, shape))}), source={_value(argument)})" for name, shape in shapes.items()
    ]
    return declarations, allocations, f"{large}({', '.join(f'2::{step}' for step in steps)})"


def _source(plan: CallPlan) -> str:
    interface = make_interface(plan)
    declarations: list[str] = []
    allocations: list[str] = []
    whole, sections = ["program"], ["program"]
    for argument, leaf in zip(interface.arguments, plan.arguments, strict=True):
        if isinstance(leaf, FieldLeaf):
            declared, allocated, section = _array(argument, leaf)
            declarations += declared
            allocations += allocated
            whole.append(argument.name)
            sections.append(section)
        else:
            whole.append(_value(argument))
            sections.append(_value(argument))
    bases = [f"call gts_set_index_base(program, '{leaf.path}', 1)" for leaf in plan.connectivities]
    return f"""\
module host
    use, intrinsic :: iso_c_binding
    use gtstub, only: gts_action, gts_bound_call, gts_open, gts_program, gts_set_index_base, gts_start, gts_step, &
        gts_step_new, gts_step_run
    use {interface.module}
    implicit none
    type(gts_program) :: program
    type(gts_bound_call) :: bound
    type(gts_step) :: step
    {_lines(declarations, 4)}

contains

    subroutine open_program(entry, length) bind(c)
        integer(c_int), value :: length
        character(kind=c_char), intent(in) :: entry(length)
        character(len=length) :: path

        path = transfer(entry, path)
        call gts_open(path, program)
        {_lines([*bases, *allocations], 8)}
        {_call(interface.binding, [*whole, "bound"], exits=False)}
        call gts_step_new('step', spread(gts_action(call=bound), 1, {STEP}), step)
    end subroutine

{_loop("time_whole", interface.procedure, [whole])}
{_loop("time_sections", interface.procedure, [sections])}
{_loop("time_turns", interface.procedure, [whole, sections])}
{_loop("time_bound", "gts_start", [["bound"]])}
{_loop("time_step", "gts_step_run", [["step"]], STEP)}
end module
"""


def _lines(lines: list[str], indent: int) -> str:
    return f"\n{' ' * indent}".join(lines)


def _loop(name: str, procedure: str, arguments: list[list[str]], step: int = 0) -> str:
    """A function that makes calls with each of some lists of arguments in turn, `step` or one call each time."""
    step = step or len(arguments)
    calls = "\n            ".join(_call(procedure, each) for each in arguments)
    return f"""\
    ! Seconds for `count` calls, or for the next larger multiple of {step}; negative after a refusal.
    function {name}(count) result(seconds) bind(c)
        integer(c_long), value :: count
        real(c_double) :: seconds
        integer(c_long) :: i
        integer(c_int64_t) :: begin, end, rate
        integer :: stat

        call system_clock(begin, rate)
        do i = 1, count, {step}
            {calls}
        end do
        call system_clock(end)
        seconds = real(end - begin, c_double) / real(rate, c_double)
        if (stat /= 0) seconds = -1
    end function
"""


def _call(procedure: str, arguments: list[str], *, exits: bool = True) -> str:
    lines = [f"call {procedure}( &", *(f"    {argument}, &" for argument in arguments), "    stat)"]
    return _lines([*lines, "if (stat /= 0) exit"] if exits else [*lines[:-2], lines[-2].replace(", &", ")")], 12)


MAIN = """\
program main
    use, intrinsic :: iso_c_binding
    use host
    implicit none
    character(len=4096) :: entry, count
    integer(c_long) :: calls

    call get_command_argument(1, entry)
    call get_command_argument(2, count)
    read (count, *) calls
    call open_program(entry, len_trim(entry, c_int))
    if (time_whole(calls) < 0 .or. time_sections(calls) < 0) error stop 1
    if (time_bound(calls) < 0 .or. time_step(calls) < 0) error stop 1
end program
"""
