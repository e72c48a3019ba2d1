"""
The planner joins the two signatures of a program (signature/model.py) into a `CallPlan` (model.py).

A caller passes nested tuples of fields and scalars; the compiled SDFG takes a flat list of slots: addresses, scalars
and symbols. `Flattening` (flattening.py) splits the parameters into leaves, each with its contract. `check_names`
(names.py) checks that all names are valid in C. `Connection` (connection.py) finds the source of each slot.

Several fields may contain the same symbol, as arrays of one size `n` do. As in TVM's argument binder, the first leaf
that contains a symbol defines it, and each later one asserts the same value: for `add(a: [n], b: [n], c: [n])`, slot
`n` is the size of `a`, and two assertions compare `b` and `c` with it. All definitions come before all assertions,
because an argument may use a symbol that a later argument defines.

`make_plan` is a total function: every plan that it returns is C that compilers accept without a warning, and every
error is a `PlanError` that names the program and the argument.
"""

from __future__ import annotations

from gtstub.stub.plan.bounds import call_bounds, claims_of_dimensions, constant_bounds, unneeded_arrays, used_facts
from gtstub.stub.plan.connection import Connection
from gtstub.stub.plan.flattening import Flattening
from gtstub.stub.plan.model import CallPlan, FieldLeaf
from gtstub.stub.plan.names import check_names
from gtstub.stub.plan.signatures import Signatures
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature


def make_plan(sdfg: SdfgSignature, program: ProgramSignature) -> CallPlan:
    """Joins the two signatures of a program. Raises PlanError if they contradict each other."""
    signatures = Signatures(sdfg, program)
    claims = list(claims_of_dimensions(signatures))
    flat = Flattening(signatures, constant_bounds(claims))
    names = {
        "program": [program.name],
        "SDFG": [sdfg.name],
        "parameter": [parameter.name for parameter in program.parameters],
        "dimension": [dim for leaf in flat.leaves if isinstance(leaf, FieldLeaf) for dim in leaf.dims],
        "key": [key for collection in flat.collections for key in collection.keys],
        "argument": [leaf.name for leaf in flat.leaves],
        "slot": [argument.name for argument in (*sdfg.arguments, *signatures.shapes.symbols)],
        "workspace": [workspace.storage for workspace in sdfg.workspaces],
        "tuple": [tuple_.name for tuple_ in flat.tuples],
    }
    check_names(program.name, sdfg.library, names)
    connection = Connection(signatures, flat.leaves)
    bounds = call_bounds(signatures, claims, flat.leaves)
    unneeded = unneeded_arrays(signatures.bounds.claims)
    return CallPlan(
        name=program.name,
        sdfg_name=sdfg.name,
        library=sdfg.library,
        device=sdfg.device,
        parameters=flat.parameters,
        leaves=flat.leaves,
        collections=flat.collections,
        slots=connection.slots,
        symbols=connection.symbols,
        assertions=connection.assertions,
        required_shapes=connection.required_shapes,
        init=connection.slots_named(sdfg.init),
        memory_symbols=connection.memory_symbols(),
        workspaces=sdfg.workspaces,
        bounds=bounds,
        known=signatures.bounds.known,
        unknown=signatures.bounds.unknown,
        unneeded=tuple(leaf.path for leaf in flat.leaves if leaf.name in unneeded),
        facts=used_facts(signatures, bounds),
    )
