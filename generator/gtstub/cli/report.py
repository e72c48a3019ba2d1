"""
What the command line shows: call plans as JSON and as tables, generated code, documents through a jq filter.

A terminal gets its own width and colours. Anything else gets plain text: a row a line, nothing cut off.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gtstub.errors import GtstubError
from gtstub.plan.describe import c_type, describe_leaf, describe_source, describe_statics
from gtstub.plan.model import (
    AxisValue,
    CallPlan,
    Data,
    FieldLeaf,
    Leaf,
    Metric,
    Node,
    ScalarLeaf,
    Slot,
    Source,
    StaticLeaf,
    Tuple,
    Unused,
)
from gtstub.util.console import make_console, make_error_console, make_table, print_parts

if TYPE_CHECKING:
    from gtstub.backends.choice import Choice, Setting
    from gtstub.backends.choice import Table as BackendTable
    from gtstub.toolchain.doctor import Check

PLAN_SCHEMA = "gtstub/call-plan/1"

MOST_NAMES = 6
"""A sentence counts what it would otherwise list, beyond this many; the JSON has all."""


class FilterError(GtstubError):
    """A jq filter is malformed, or does not fit the document."""

    exit_code = 2


# --- Plans as JSON ----------------------------------------------------------------------------------------------------


def plan_to_json(plan: CallPlan) -> dict[str, Any]:
    """The plan as docs/formats.md describes it: the same for the same plan, whatever made it."""

    def source(value: Source) -> dict[str, Any]:
        return {**_source_to_json(value), "text": describe_source(value, plan)}

    return {
        "schema": PLAN_SCHEMA,
        "name": plan.name,
        "sdfg_name": plan.sdfg_name,
        "parameters": [_node_to_json(node) for node in plan.nodes],
        "leaves": [_leaf_to_json(leaf) for leaf in plan.leaves],
        "slots": [
            {
                "index": slot.index,
                "name": slot.name,
                "dtype": slot.dtype,
                "is_array": slot.is_array,
                "c_type": c_type(slot),
                "source": source(slot.source),
            }
            for slot in plan.slots
        ],
        "assertions": [
            {"symbol": assertion.symbol, "first": source(assertion.first), "later": source(assertion.later)}
            for assertion in plan.assertions
        ],
        "init": [plan.slots[i].name for i in plan.init],
        "memory_symbols": [plan.slots[i].name for i in plan.memory_symbols],
        "workspaces": [{"storage": workspace.storage, "device": workspace.device} for workspace in plan.workspaces],
    }


def _node_to_json(node: Node) -> dict[str, Any]:
    match node:
        case Tuple():
            keys = {} if node.keys is None else {"keys": list(node.keys)}
            return {"path": node.path, **keys, "elements": [_node_to_json(element) for element in node.elements]}
        case Unused():
            return {"path": node.path, "leaf": None}
        case _:
            return {"path": node.path, "leaf": node.name}


def _leaf_to_json(leaf: Leaf) -> dict[str, Any]:
    name: dict[str, Any] = {"name": leaf.name, "path": leaf.path}
    if isinstance(leaf, ScalarLeaf):
        return {**name, "kind": "zero_dim_field" if leaf.is_field else "scalar", "dtype": leaf.dtype}
    if isinstance(leaf, StaticLeaf):
        value = leaf.value if math.isfinite(leaf.value) else str(leaf.value)  # as in the program signature
        return {**name, "kind": "static", "dtype": leaf.dtype, "value": value}
    return {
        **name,
        "kind": "connectivity" if leaf.is_connectivity else "field",
        "dtype": leaf.dtype,
        "device": leaf.device,
        "written": leaf.written,
        "axes": [{"dim": axis.dim, "fixed": axis.fixed.given, "taken": list(axis.taken)} for axis in leaf.axes],
    }


def _source_to_json(source: Source) -> dict[str, Any]:
    match source:
        case Data(leaf):
            return {"kind": "data", "leaf": leaf}
        case AxisValue(leaf, axis, property_):
            return {"kind": "axis", "leaf": leaf, "axis": axis, "property": property_}
        case Metric(name):
            return {"kind": "metric", "name": name}
        case _:
            return {"kind": "value", "leaf": source.leaf}


# --- Plans as tables --------------------------------------------------------------------------------------------------


def print_plan(plan: CallPlan) -> None:
    """The whole call plan: arguments and their contracts, slots and their sources, what must agree, the handle."""
    arguments = make_table("argument", "leaf", "contract", "slots")
    taken: dict[str, list[str]] = {}
    for slot in plan.slots:
        if not isinstance(slot.source, Metric):
            taken.setdefault(slot.source.leaf, []).append(str(slot.index))
    for leaf in plan.leaves:
        arguments.add_row(leaf.path, leaf.name, _describe_contract(leaf), " ".join(taken.get(leaf.name, ())))
    slots = make_table("slot", "C type", "name", "source")
    for slot in plan.slots:
        slots.add_row(str(slot.index), c_type(slot), slot.name, describe_source(slot.source, plan))
    print_parts(_title(plan), arguments, slots, "\n".join((*_agreements(plan), *_remarks(plan))))


def print_slots(plan: CallPlan) -> None:
    """One row for each slot: C type, name, source, and what the source must satisfy."""
    leaves = {leaf.name: leaf for leaf in plan.leaves}
    slots = make_table("slot", "C type", "name", "source", "contract")
    for slot in plan.slots:
        contract = "; ".join(_describe_slot_contract(slot, plan, leaves))
        slots.add_row(str(slot.index), c_type(slot), slot.name, describe_source(slot.source, plan), contract)
    print_parts(_title(plan), slots, "\n".join(_remarks(plan)))


def _title(plan: CallPlan) -> str:
    filled = f"{len(plan.slots)} slots, filled from {len(plan.taken)} leaves"
    return f"Program '{plan.name}', SDFG '{plan.sdfg_name}': {filled}."


def _describe_contract(leaf: Leaf) -> str:
    if not isinstance(leaf, FieldLeaf):
        return describe_leaf(leaf)
    return f"{describe_leaf(leaf)}, on {leaf.device}"


def _describe_slot_contract(slot: Slot, plan: CallPlan, leaves: dict[str, Leaf]) -> Iterator[str]:
    match slot.source:
        case Data(leaf):
            yield _describe_contract(leaves[leaf])
        case AxisValue():
            yield f"fits {slot.dtype}"
        case Metric():
            return
        case _:
            yield _describe_contract(leaves[slot.source.leaf])
    for assertion in plan.assertions:
        if assertion.symbol == slot.name:
            yield f"equals {describe_source(assertion.later, plan)}"


def _agreements(plan: CallPlan) -> Iterator[str]:
    if plan.assertions:
        yield "Must agree:"
    for assertion in plan.assertions:
        first, later = describe_source(assertion.first, plan), describe_source(assertion.later, plan)
        yield f"  {assertion.symbol}: {later} with {first}"


def _remarks(plan: CallPlan) -> Iterator[str]:
    if statics := describe_statics(plan):
        yield f"Compiled in: {', '.join(statics)}."
    unused = [f"'{path}'" for node in plan.nodes for path in _unused(node)]
    if unused:
        yield f"Not used by the SDFG: {', '.join(unused)}."
    if plan.init:
        symbols = [f"'{plan.slots[i].name}'" for i in plan.init]
        what = ", ".join(symbols) if len(symbols) <= MOST_NAMES else f"{len(symbols)} symbols"
        handle = f"Handle: initialised at the first call with {what}"
        memory = [f"'{plan.slots[i].name}'" for i in plan.memory_symbols]
        if memory:
            handle += f", again when {'one of ' if memory[1:] else ''}{', '.join(memory)} changes"
        yield f"{handle}."
    else:
        yield "Handle: initialised when the program is loaded."
    for workspace in plan.workspaces:
        yield f"Workspace: the caller lends memory in '{workspace.storage}' on {workspace.device}."


def _unused(node: Node) -> Iterator[str]:
    match node:
        case Unused(path):
            yield path
        case Tuple():
            for element in node.elements:
                yield from _unused(element)
        case _:
            return


def print_checks(checks: Sequence[Check]) -> None:
    """What `gtstub doctor` found: a row each, and below the table what to do about it."""
    table = make_table("", "what", "found")
    for check in checks:
        table.add_row("ok" if check.ok else "MISSING", check.name, check.found)
    print_parts(table, "\n".join(f"{check.name}: {check.advice}" for check in checks if check.advice))


# --- Tables of backends -----------------------------------------------------------------------------------------------


def print_choice(choice: Choice, sources: Sequence[tuple[str, Path]], note: str) -> None:
    """
    What compiles a program, and a row for each option: its value, the line that decided it, what that overrode. `note`
    is the last line, if it is not empty.
    """
    table = make_table("option", "value", "decided by", "overrode")
    names = _short_names(sources)
    used: dict[Path, str] = {}

    def place(setting: Setting) -> str:
        used[setting.file] = names[setting.file]
        return f"{names[setting.file]}:{setting.line} [{setting.section}]"

    for reason in choice.reasons:
        setting, before = reason.setting, reason.overrode.setting if reason.overrode else None
        overrode = f"{json.dumps(before.value)}, {place(before)}" if before else ""
        table.add_row(setting.option, json.dumps(setting.value), place(setting), overrode)
    machine = f"{choice.device} '{choice.arch}'" if choice.arch else f"unknown {choice.device}"
    files = "\n".join(f"{name}: {file}" for file, name in used.items())
    head = f"Program '{choice.program}', tag '{choice.tag}', {machine}: backend '{choice.backend}'."
    print_parts(head, table, files, note)


def print_tables(sources: Sequence[tuple[str, Path]], tables: Sequence[BackendTable]) -> None:
    """Where tables of backends are looked for, and all that they say, in the order of the files."""
    names = _short_names(sources)
    files = make_table("table", "file", "")
    for _, file in sources:
        files.add_row(names[file], str(file), "" if file.exists() else "not there")
    settings = make_table("line", "section", "option", "value")
    for table in tables:
        for setting in table.settings:
            line = f"{names[setting.file]}:{setting.line}"
            settings.add_row(line, f"[{setting.section}]", setting.option, json.dumps(setting.value))
    print_parts(files, settings)


def print_dace_config(file: Path, settings: Sequence[tuple[str, Any, str]]) -> None:
    """The DaCe configuration, a row a setting: name, value, what decided it; what is not DaCe's default comes first."""
    table = make_table("setting", "value", "decided by")
    for name, value, by in sorted(settings, key=lambda row: (row[2] == "DaCe", row[2] == "gtstub", row[0])):
        table.add_row(name, json.dumps(value), by)
    print_parts(f"gtstub: {file}", table)


def _short_names(sources: Sequence[tuple[str, Path]]) -> dict[Path, str]:
    """A table is called by who speaks in it; one that the environment names, by its file."""
    return {file: who if who in ("gtstub", "user") else str(file) for who, file in sources}


# --- Code and documents -----------------------------------------------------------------------------------------------


def print_code(text: str) -> None:
    """C code, with colours on a terminal, byte for byte anywhere else."""
    console = make_console()
    if not console.is_terminal:
        click.echo(text, nl=False)
        return
    from rich.syntax import Syntax

    console.print(Syntax("", "c", theme="ansi_dark").highlight(text), soft_wrap=True, end="")


def print_document(document: dict[str, Any], filter_: str | None) -> None:
    """JSON, or what a jq filter makes of it: a result a line, text without quotes as a shell wants it."""
    results = [document] if filter_ is None else _filtered(document, filter_)
    for result in results:
        click.echo(result if isinstance(result, str) else json.dumps(result, indent=1, ensure_ascii=False))


def _filtered(document: dict[str, Any], filter_: str) -> list[Any]:
    import jq

    try:
        return list(jq.compile(filter_).input_value(document))
    except ValueError as error:
        # libjq adds where in the filter, on lines of their own; a filter that calls error("") gives no reason.
        reason = (
            (str(error).splitlines() or ["it fails"])[0].removeprefix("jq: error: ").partition(" at <top-level>")[0]
        )
        raise FilterError(f"The jq filter '{filter_}' does not work: {reason}.") from None


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Says on a terminal what takes its time."""
    console = make_error_console()
    with console.status(f"{what} ...") if console.is_terminal else contextlib.nullcontext():
        yield
