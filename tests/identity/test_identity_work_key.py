"""The work key is a digest of a set of ids."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st
from turnledger.identity import work_key

# A busy machine is no failure.
unhurried = settings(deadline=None)

blanks = st.text(" \t\r\n\u00a0\u2003", max_size=3)
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp")), min_size=1)
id_lists = st.lists(words, min_size=1, max_size=6)


@unhurried
@given(id_lists, st.data())
def test_order_repeats_and_blanks_do_not_matter(ids: list[str], data: st.DataObject) -> None:
    """The same triggers give the same key, however the inbox lists them."""
    repeated = data.draw(st.permutations([*ids, *data.draw(st.lists(st.sampled_from(ids)))]))
    padded = [data.draw(blanks) + item + data.draw(blanks) for item in repeated]
    assert work_key([*padded, data.draw(blanks)]) == work_key(ids)


@unhurried
@given(id_lists, id_lists)
def test_other_triggers_give_another_key(one: list[str], other: list[str]) -> None:
    """Two batches share a key only when they hold the same triggers."""
    assert (work_key(one) == work_key(other)) == (set(one) == set(other))


@unhurried
@given(id_lists)
def test_a_key_is_the_first_half_of_a_sha256(ids: list[str]) -> None:
    """Sorted bytes, joined with newlines: what an engine in any language computes."""
    joined = b"\n".join(sorted({item.encode() for item in ids}))
    assert work_key(ids) == hashlib.sha256(joined).hexdigest()[:32]


def test_no_ids_give_the_empty_key() -> None:
    """A turn that nothing triggered has no work key, and the ledger does not record it."""
    assert work_key([]) == work_key(["", " \n"]) == work_key("") == work_key(iter(())) == ""


def test_a_bare_string_is_one_id() -> None:
    """A forgotten list does not make one key of all the anagrams of an id."""
    assert work_key("ab") == work_key(["ab"]) != work_key("ba")


def test_what_is_not_unicode_is_replaced() -> None:
    """A lone surrogate has no bytes; the client sends U+FFFD for it."""
    assert work_key(["a\ud800"]) == work_key(["a\ufffd"])
