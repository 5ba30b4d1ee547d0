"""An id is the same wherever it is computed: in Python, on Sail, on Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferlake.session import Engine
from inferlake.terms import FULL, TermHash
from inferlake.terms.ids import is_iri, is_resource

from .terms import EDGES, characters, many, terms

texts = st.text(characters | st.sampled_from(EDGES)) | terms
anything = st.one_of(texts, *(texts.map(start.format) for start in ('"{}', "<{}", "_:{}")))


@pytest.mark.parametrize("bits", [62, 31, 3])
def test_python_and_an_engine_give_a_term_the_same_id(engine: Engine, bits: int) -> None:
    hash = TermHash(bits)
    batch = list(dict.fromkeys([*many(anything, 500), "", '"', "x" * 5000, '"é' * 1000]))
    frame = engine.session.createDataFrame(pa.table({"term": batch}))
    by_engine = {
        r.term: r.id for r in frame.selectExpr("term", f"{hash.sql('term')} AS id").collect()
    }
    assert by_engine == {term: hash.of(term) for term in batch}


@given(anything)
def test_only_literals_have_negative_ids(term: str) -> None:
    assert (FULL.of(term) < 0) == term.startswith('"')


@given(anything, st.integers(1, 62))
def test_an_id_of_fewer_bits_is_the_end_of_the_full_one(term: str, bits: int) -> None:
    mask = (1 << bits) - 1 << 1 | 1  # the lowest bit tells blank nodes
    assert TermHash(bits).of(term) & mask == FULL.of(term) & mask
    assert 0 <= TermHash(bits).of(term) & (2**63 - 1) <= mask


@given(anything)
def test_an_id_tells_what_may_be_subject_and_predicate(term: str) -> None:
    id = FULL.of(term)
    assert is_resource(id) == (not term.startswith('"'))
    assert is_iri(id) == (not term.startswith(('"', "_:")))
