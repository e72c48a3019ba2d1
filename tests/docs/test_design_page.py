"""docs/design.md says of each word that is used without a lock what the code does with it."""

from __future__ import annotations

import re

from tests.support.weak_memory import PAGE, atomics, protocols, rows, table


def test_every_atomic_operation_is_in_one_row() -> None:
    found = atomics()
    assert len(found) > 15
    assert [str(each) for each in found if sum(row.has(each) for row in rows()) != 1] == []


def test_every_row_has_the_orders_of_the_code() -> None:
    found = atomics()
    for row in rows():
        here = [each for each in found if row.has(each)]
        assert row.operations == {each.text for each in here}, row
        assert row.words == {each.word for each in here}, row
        assert row.files == {each.path for each in here}, row


def test_orders_that_are_not_relaxed_have_a_protocol() -> None:
    for row in rows():
        orders = {order for operation in row.operations for order in operation.split() if order in ORDERS}
        assert row.protocol in protocols() or (row.protocol == "" and orders <= {"relaxed"}), row


ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")


def test_words_without_atomic_operations_are_in_the_code() -> None:
    for words, files, _ in table("### Without atomic operations"):
        names = re.findall(r"`(\w+)`", words)
        texts = [(PAGE.parent / path).read_text(encoding="utf-8") for path in re.findall(r"\]\(([^)]+)\)", files)]
        assert [name for name in names if not any(re.search(rf"\b{name}\b", text) for text in texts)] == []
        assert all(any(re.search(rf"\b{name}\b", text) for name in names) for text in texts), files
