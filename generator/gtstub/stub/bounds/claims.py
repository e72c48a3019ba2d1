"""Summarises the accesses of an SDFG as the elements that each call is sure to access."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from gtstub.stub.bounds.access import OTHER, Access, Allocation, BoundedLoop, Conditions, Lookup, Unread
from gtstub.stub.bounds.conditions import unknown_in
from gtstub.stub.bounds.extremes import extremes
from gtstub.stub.bounds.narrowing import cases, narrowed
from gtstub.stub.bounds.needs import Needs
from gtstub.stub.bounds.regions import accesses
from gtstub.stub.bounds.simplify import MOST_ENDS, is_at_least, normalized, says, simplified
from gtstub.stub.sdfg.model import Sdfg
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression, Operation, Product, Term, parse, unwrapped
from gtstub.stub.signature.model import Bounds, Claim, Condition, Extent, Follow, Unknown, Use

MOST_COLUMNS = 64
"""A stub has the columns of a table as the bits of a word."""

MOST_CLAIMS = 1000
"""What a signature may contain (signature/schema/sdfg.schema.json)."""


def bounds_of(sdfg: Sdfg, scalars: Mapping[str, DType], *, has_domains: bool, evaluates_both: bool = False) -> Bounds:
    """
    The bounds of an SDFG with these scalar arguments. An SDFG of unknown form has no claims.

    If the program `has_domains`, a call can add elements to an array that the program reads but need not have. If it
    `evaluates_both` sides of a choice that depends on data, it needs the elements of both.
    """
    try:
        found = accesses(sdfg, scalars, evaluates_both=evaluates_both)
        bounds = _bounds_of(found.accesses, sdfg, has_domains=has_domains)
        # Only sizes of arguments cannot be negative.
        sizes = {size for each in sdfg.containers.values() if not each.is_transient for size in each.shape}
        temporaries = _temporaries((*_sizes(found.allocations), *_borders(found.accesses)), sizes)
        symbols = [*(each.symbols for each in bounds.claims), *(each.symbols for each in temporaries)]
        used = frozenset().union(*symbols)
        facts = tuple(each for each in found.facts if each.name in used)
        return dataclasses.replace(bounds, facts=facts, temporaries=temporaries or None)
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError, RecursionError, MemoryError):
        names = sorted(name for name, each in sdfg.containers.items() if not each.is_transient)
        return Bounds(0, (), tuple(Unknown(name, OTHER, 1) for name in names))


def _bounds_of(found: Sequence[Access | Unread], sdfg: Sdfg, *, has_domains: bool) -> Bounds:
    shapes = {name: each.shape for name, each in sdfg.containers.items()}
    needs, known = Needs(found), 0
    needed: list[Claim] = []
    others: list[Claim] = []
    unknown: collections.Counter[tuple[str, str]] = collections.Counter()
    unsure: list[tuple[str, str, Sequence[Claim]]] = []
    for access in found:
        if isinstance(access, Unread):
            unknown[access.array, access.why] += not access.is_temporary
        elif access.sizes is None or any(isinstance(each, Lookup) for each in access.axes):
            made = _claims(access)
            if made is None:
                unknown[access.array, OTHER] += access.sizes is None
                continue
            known += 1
            can_add = has_domains and not access.is_write and access.sizes is None
            is_real = sdfg.containers[access.array].dtype in _REAL if can_add else False
            parts = []
            for case, claim in made:
                parts += _needed_claims(case, claim, needs, is_real=is_real) if can_add else [claim]
            needed += parts
            if can_add:
                others += [_without_unknown(claim) for _, claim in made]
            elif why := unknown_in(access.conditions):
                unsure.append((access.array, why, parts))
    kept = [each for each in simplified(_by_condition(needed), shapes) if not unknown_in(each.when)]
    more = simplified(_by_condition(others), shapes, kept)
    if len(kept) + len(more) > MOST_CLAIMS:
        raise ValueError("there are too many claims")
    for array, why, claims in unsure:
        if not all(says(kept, _without_unknown(each)) for each in claims):
            known -= 1
            unknown[array, why] += 1
    left = tuple(Unknown(array, why, count) for (array, why), count in sorted(unknown.items()) if count)
    return Bounds(known, (*kept, *(dataclasses.replace(each, is_needed=False) for each in more)), left)


_REAL = ("float32", "float64")


def _by_condition(claims: Iterable[Claim]) -> Iterable[Claim]:
    """The same claims, those under the same conditions as one."""
    found: dict[Conditions, Claim] = {}
    for claim in claims:
        if (when := normalized(claim.when)) is not None:  # else a range is empty: no element is accessed
            before = found.get(when, Claim(when, (), ()))
            found[when] = Claim(when, (*before.uses, *claim.uses), (*before.follows, *claim.follows))
    return found.values()


def _needed_claims(access: Access, claim: Claim, needs: Needs, *, is_real: bool) -> list[Claim]:
    """
    The part of the claim of an access on which results depend. Where that is too much to tell, elements that are real
    count as not needed: if results do depend on missing ones, they are NaN.
    """
    rounds = needs.rounds(access.unit)
    if rounds is None:
        return [] if is_real else [claim]
    parts = [_claim(each.of(access)) for each in rounds]
    return [claim] if None in parts else [part for part in parts if part is not None]


def _claims(access: Access) -> list[tuple[Access, Claim]] | None:
    """What an access claims in each case of its conditions; None if its elements are not known."""
    made: list[tuple[Access, Claim]] = []
    found = cases(access)
    for each in found or ():
        if (claim := _claim(each)) is None:
            return None
        made.append((each, claim))
    return None if found is None else made


def _without_unknown(claim: Claim) -> Claim:
    return dataclasses.replace(claim, when=tuple(each for each in claim.when if not unknown_in((each,))))


# --- Temporaries ------------------------------------------------------------------------------------------------------


def _temporaries(found: Iterable[Extent], natural: Set[object]) -> tuple[Extent, ...]:
    """What may be negative if no symbol in `natural` is, that under few conditions first."""
    negative = [each for each in found if _may_be_negative(each.size, natural) and not unknown_in(each.when)]
    kept: list[Extent] = []
    for made in sorted(negative, key=lambda each: (len(each.when), str(each))):
        is_said = any(
            set(other.when) <= set(made.when) and dataclasses.replace(other, when=made.when) == made for other in kept
        )
        if not is_said:
            kept.append(made)
    if len(kept) > MOST_CLAIMS or any(len(each.when) > MOST_ENDS for each in kept):
        raise ValueError("there are too many temporaries")
    return tuple(kept)


def _sizes(allocations: Iterable[Allocation]) -> Iterator[Extent]:
    """The sizes of temporaries."""
    for each in allocations:
        if None in each.sizes:
            continue
        factors = [(axis, unwrapped(each)) for axis, size in enumerate(each.sizes) for each in size or ()]
        for number, (axis, size) in enumerate(factors):
            # A temporary without elements is allowed, whatever its other sizes are.
            others = (Condition(Expression(), "<", other) for i, (_, other) in enumerate(factors) if i != number)
            for when, least in _least(size, each.loops, (*each.conditions, *others)):
                yield Extent(when, each.name, axis, least)


def _borders(found: Iterable[Access | Unread]) -> Iterator[Extent]:
    """
    How far what is written to temporaries is from their ends, on axes on which as many elements are written in each
    call. gt4py writes the elements between the domain and what lies around it on their own, and that many of them also
    for a domain that ends before it begins, for which the temporary has no element.
    """
    for access in found:
        if isinstance(access, Unread) or access.sizes is None or not access.is_write:
            continue
        for _, claim in _claims(dataclasses.replace(access, sizes=None)) or ():
            if (when := normalized(claim.when)) is None:
                continue
            for use in claim.uses:
                (first,), (last,), size = use.lowest, use.highest, access.sizes[use.axis]
                if size is not None and (last - first).is_constant:
                    for distance in (first, size - last - 1):
                        yield Extent(when, use.array.partition("#")[0], use.axis, distance)


def _least(
    size: Expression, loops: tuple[BoundedLoop, ...], conditions: Conditions
) -> Iterator[tuple[tuple[Condition, ...], Expression]]:
    """The least value of a size over the rounds of loops in each case of conditions; nothing if it is not known."""
    for _, claim in _claims(Access("", loops, conditions, ((size, size),))) or ():
        if (when := normalized(claim.when)) is not None:
            yield when, claim.uses[0].lowest[0]


def _may_be_negative(size: Expression, natural: Set[object]) -> bool:
    return parse(str(size)) == size and not _is_natural(size, natural) and not is_at_least(size, Expression())


def _is_natural(value: Expression, natural: Set[object]) -> bool:
    """Whether a value is a sum of symbols in `natural`, and of quotients of them."""

    def is_one(term: Term) -> bool:
        if isinstance(term, Operation):
            return term.divisor > 0 and _is_natural(term.left, natural)
        return natural >= set(term.of) if isinstance(term, Product) else term in natural

    return value.constant >= 0 and all(factor > 0 and is_one(term) for term, factor in value.terms)


# --- One access -------------------------------------------------------------------------------------------------------


def _claim(access: Access) -> Claim | None:
    """What an access claims in all rounds of its loops; None if its elements are not known."""
    spans = (
        (first, last) for first, last in (each for each in access.axes if not isinstance(each, Lookup)) if first != last
    )
    # Without the variables that both ends have.
    has_elements = (Condition(Expression(), "<", last - first + 1) for first, last in spans)
    few = narrowed(dataclasses.replace(access, conditions=(*access.conditions, *has_elements)))
    if few is None:
        return None
    access, variables = few, access.variables.keys()
    when = [each for each in access.conditions if isinstance(each, Condition)]  # which are all
    # The others have rounds in each round of those around them.
    outer = (loop for loop in access.loops if not (loop.first.symbols | loop.last.symbols) & variables)
    when += (Condition(loop.first, "<", loop.last + 1) for loop in outer)
    uses: list[Use] = []
    follows: list[Follow] = []
    for axis, indices in enumerate(access.axes):
        if isinstance(indices, Lookup):
            follow = _follow(access, axis, indices)
            if follow is None:
                return None
            follows.append(follow)
            continue
        first, last = indices
        lowest, highest = extremes(first, last, access.loops)
        if lowest is None or highest is None:
            return None
        if access.sizes is None:
            uses.append(Use(access.array, axis, (lowest,), (highest,)))
    claim = Claim(tuple(when), tuple(uses), tuple(follows))
    if claim.symbols & variables:
        return None
    return claim if all(parse(str(each)) == each for each in claim.expressions) else None  # within the limits


def _follow(access: Access, axis: int, lookup: Lookup) -> Follow | None:
    first, last = extremes(lookup.row, lookup.row, access.loops)
    left, right = extremes(lookup.column, lookup.column, access.loops)
    variables = access.variables.keys()
    if first is None or last is None or left is None or right is None or lookup.plus.symbols & variables:
        return None
    if not _is_dense(lookup, variables):
        return None
    if not left.is_constant or not right.is_constant or not 0 <= left.constant <= right.constant < MOST_COLUMNS:
        return None
    columns = tuple(range(left.constant, right.constant + 1))
    found = Follow(lookup.table, (first,), (last,), columns, lookup.plus, lookup.skips)
    if access.sizes is None:
        return dataclasses.replace(found, array=access.array, axis=axis)
    size = access.sizes[axis]
    return None if size is None else dataclasses.replace(found, size=size)


def _is_dense(lookup: Lookup, variables: Set[str]) -> bool:
    """Whether all elements between the first and the last row, in all these columns, are read."""
    terms = [Expression(0, (term,)) for index in (lookup.row, lookup.column) for term in index.terms]
    moving = [term for term in terms if term.symbols & variables]
    names = [name for term in moving for name in term.symbols & variables]
    return all(abs(factor) == 1 for term in moving for _, factor in term.terms) and len(names) == len(set(names))
