"""
Making a call plan: the one place where the two signatures of a program meet.

A program's user passes nested tuples of fields and scalars; the compiled SDFG takes a flat list of addresses, scalars
and symbols. The planner answers for each slot of that list: which part of which argument is its value? It works in two
steps. `Flattening` takes the parameters apart into leaves, each with the contract that it must satisfy. `Connection`
then finds the sources of each slot among the leaves.

Several fields may show the same symbol: the size `n` of one array is the size of the next. As in TVM's argument binder,
the first leaf that shows a symbol defines it, and every later one asserts that it has the same value. So for `add(a:
[n], b: [n], c: [n])` slot `n` is the size of `a`, and two assertions compare `b` and `c` with it. All definitions come
before all assertions, because a symbol may be used in an argument before the one that defines it.

`make_plan` is a total function of the two signatures: every plan that it returns can be rendered, and every refusal is
a `PlanError` that names the program and the argument.
"""

from __future__ import annotations

from gtstub.plan.connection import Connection
from gtstub.plan.flattening import Flattening
from gtstub.plan.model import CallPlan, Collection, FieldLeaf, Tuple
from gtstub.plan.names import check_names
from gtstub.plan.signatures import Signatures
from gtstub.signature.model import ProgramSignature, SdfgSignature


def make_plan(sdfg: SdfgSignature, program: ProgramSignature) -> CallPlan:
    """Joins the two signatures of a program. Raises PlanError if they contradict each other."""
    signatures = Signatures(sdfg, program)
    flat = Flattening(signatures)
    check_names(
        program.name,
        sdfg.name,
        library=sdfg.library,
        parameters=[parameter.name for parameter in program.parameters],
        leaves=[leaf.name for leaf in flat.leaves],
        tuples=[node.name for node in flat.nodes if isinstance(node, Tuple | Collection)],
        dims=[dim for leaf in flat.leaves if isinstance(leaf, FieldLeaf) for dim in leaf.dims],
        keys=[key for collection in flat.collections for key in collection.keys],
    )
    connection = Connection(signatures, flat.leaves)
    return CallPlan(
        name=program.name,
        sdfg_name=sdfg.name,
        library=sdfg.library,
        parameters=flat.parameters,
        leaves=flat.leaves,
        collections=flat.collections,
        slots=connection.slots,
        assertions=connection.assertions,
        init=connection.slots_named(sdfg.init),
        memory_symbols=connection.slots_named(sdfg.memory_symbols),
        workspaces=sdfg.workspaces,
    )
