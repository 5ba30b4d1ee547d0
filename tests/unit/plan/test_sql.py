"""Plans as SQL text, where the text is stable enough to be looked at."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from inferlake.plan.clauses import Check, Clause, Layout
from inferlake.plan.groups import Group, grouped
from inferlake.plan.linear import Entry
from inferlake.plan.specialise import Template
from inferlake.plan.sql import (
    FactInput,
    LiteralInput,
    Query,
    Range,
    TableInput,
    TermInput,
    add_expansion,
    add_variant,
    add_witnesses,
    backward,
    id_sql,
    variants,
    witness_variables,
)

TRIPLES = Layout({"triple": 3})
NEW, OLD, ALL = Range.NEW, Range.OLD, Range.ALL


def group(*clauses: Clause) -> Group:
    (found,) = grouped({Template(clause): {()} for clause in clauses})
    return found


def select(one: Group, *ranges: Range, texts: dict[int, str] | None = None) -> tuple[str, Query]:
    query = Query(TRIPLES, texts=texts or {})
    add_variant(query, one, ranges, "here")
    (text,) = query.selects
    return text, query


def expansion(*entries: Entry, layout: Layout = TRIPLES) -> Query:
    query = Query(layout)
    add_expansion(query, entries, "here")
    return query


# --- Variants -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(6))
def test_variants_give_each_new_match_once(n: int) -> None:
    # A match is old or new in each of its places.
    holds = {OLD: {OLD}, NEW: {NEW}, ALL: {OLD, NEW}}
    made = Counter(
        match
        for ranges in variants(n)
        for match in itertools.product(*(sorted(holds[r], key=str) for r in ranges))
    )
    expected = set(itertools.product((OLD, NEW), repeat=n)) - {(OLD,) * n}
    assert set(made) == expected and set(made.values()) <= {1}
    assert len(list(variants(n))) == n


# --- Joins --------------------------------------------------------------------------------------

TRANSITIVE = group(Clause("t", ("x", 4, "z"), (("x", 4, "y"), ("y", 4, "z"))))


def test_a_join_begins_with_what_is_new() -> None:
    first, query = select(TRANSITIVE, NEW, ALL)
    assert first == (
        "SELECT a0.s AS s, BIGINT('4') AS p, a1.o AS o FROM {f0} a0 JOIN {f1} a1 ON a1.s = a0.o"
        " WHERE a0.p = BIGINT('4') AND a1.p = BIGINT('4')"
    )
    assert [i.range for i in query.inputs.values() if isinstance(i, FactInput)] == [NEW, ALL]
    second, query = select(TRANSITIVE, OLD, NEW)
    assert second == (
        "SELECT a0.s AS s, BIGINT('4') AS p, a1.o AS o FROM {f0} a1 JOIN {f1} a0 ON a0.o = a1.s"
        " WHERE a1.p = BIGINT('4') AND a0.p = BIGINT('4')"
    )
    assert [i.range for i in query.inputs.values() if isinstance(i, FactInput)] == [NEW, OLD]


def test_a_thousand_rules_are_one_select_with_a_table() -> None:
    some = [Clause("t", ("x", n, "z"), (("x", n, "y"), ("y", 8, "z"))) for n in range(10, 2010, 2)]
    text, query = select(group(*some), NEW, ALL)
    assert text == (
        "SELECT a0.s AS s, a0.p AS p, a1.o AS o FROM {f0} a0 JOIN {f1} k ON a0.p = k.k0"
        " JOIN {f2} a1 ON a1.s = a0.o WHERE a1.p = BIGINT('8')"
    )
    (table,) = (one for one in query.inputs.values() if isinstance(one, TableInput))
    assert table.columns == ("k0",) and len(table.rows) == 1000


def test_atoms_that_share_variables_are_joined_before_those_that_do_not() -> None:
    one = group(Clause("n", ("x", 2, "u"), (("x", 4, "y"), ("u", 6, "z"), ("y", 8, "z"))))
    text, _ = select(one, NEW, ALL, ALL)
    assert text.index(" a0 ") < text.index(" a2 ON a2.s = a0.o") < text.index(" a1 ON a1.o = a2.o")
    assert "CROSS" not in text


def test_of_atoms_with_as_many_known_places_the_one_with_constants_is_joined_first() -> None:
    """Who has the same class as x are many, who is the same as x few."""
    same = Clause("same", ("x", "p", "o"), (("y", "p", "o"), ("y", 6, "x")))
    text, _ = select(backward(group(same)), NEW, ALL, ALL)
    assert text.index(" a2 ON a2.o = a0.s") < text.index(" a1 ON a1.s = a2.s")


def test_parameters_are_no_facts_to_join_with() -> None:
    """What x is linked with comes before all members of a class, though the rule names it."""
    some = [
        Clause("some", ("x", 2, n), (("x", n + 1, "y"), ("y", 2, n + 2))) for n in range(10, 40, 4)
    ]
    text, query = select(backward(group(*some)), NEW, ALL, ALL)
    assert any(isinstance(one, TableInput) for one in query.inputs.values())
    assert text.index(" a1 ON a1.s = a0.s") < text.index(" a2 ON a2.s = a1.o")


def test_atoms_that_share_nothing_are_a_product() -> None:
    one = group(Clause("n", ("x", 2, "u"), (("x", 4, "y"), ("u", 6, "z"))))
    assert "CROSS JOIN {f1} a1" in select(one, NEW, ALL)[0]


def test_a_variable_repeated_in_an_atom_is_a_filter() -> None:
    one = group(Clause("n", ("x", 2, "x"), (("x", 4, "x"), ("x", 6, "y"))))
    text, _ = select(one, NEW, ALL)
    assert "a0.o = a0.s" in text.split(" WHERE ")[1]


def test_checks_of_ids_need_no_dictionary() -> None:
    checks = (Check("is_iri", ("x",)), Check("!=", ("x", "z")), Check("=", ("z", -6)))
    text, query = select(
        group(Clause("n", ("x", 2, "z"), (("x", 4, "y"), ("y", 4, "z")), checks)), NEW, ALL
    )
    assert text.endswith(
        " AND (a0.s >= 0 AND a0.s & 1 = 0) AND a0.s <> a1.o AND a1.o = BIGINT('-6')"
    )
    assert not any(isinstance(one, LiteralInput | TermInput) for one in query.inputs.values())


def test_checks_of_texts_join_the_dictionary() -> None:
    one = group(
        Clause("n", ("x", 2, "y"), (("x", 4, "y"), ("y", 4, "z")), (Check(">=", ("y", "z")),))
    )
    text, query = select(one, NEW, ALL)
    assert "JOIN {f2} t2 ON t2.id = a0.o JOIN {f2} t3 ON t3.id = a1.o" in text
    assert "t2.number >= t3.number" in text
    assert [type(one) for one in query.inputs.values()] == [FactInput, FactInput, LiteralInput]


def test_only_ill_typed_literals_are_asked_for_where_they_do() -> None:
    checks = (Check("is_ill_typed", ("y",)), Check("<", ("y", -6)))
    one = group(Clause("n", ("x", 2, "y"), (("x", 4, "y"),), checks))
    _, query = select(one, NEW, texts={-6: '"a"'})
    asked = [one for one in query.inputs.values() if isinstance(one, LiteralInput)]
    assert asked == [LiteralInput(ill=True), LiteralInput()]


def test_a_datatype_is_looked_up_among_all_terms() -> None:
    one = group(Clause("n", ("x", 2, "d"), (("x", 4, "d"),), (Check("has_datatype", ("x", "d")),)))
    text, query = select(one, NEW)
    assert "JOIN {f1} t1 ON t1.id = a0.s JOIN {f2} t2 ON t2.id = a0.o" in text
    assert [type(one) for one in query.inputs.values()] == [FactInput, LiteralInput, TermInput]


def test_constants_in_checks_of_texts_are_written_out() -> None:
    five = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    one = group(Clause("n", ("x", 2, "y"), (("x", 4, "y"),), (Check("<", ("y", -6)),)))
    text, _ = select(one, NEW, texts={-6: five})
    assert "t1.number < DOUBLE('5.0')" in text and "-6" not in text


@pytest.mark.parametrize("id", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_ids_are_written_as_text(id: int) -> None:
    assert id_sql(id) == f"BIGINT('{id}')"


# --- Constraints --------------------------------------------------------------------------------


def test_columns_of_parameters_differ_in_more_than_case() -> None:
    origin = (("c", 2, "C"), ("x", "c", "C"))
    one = Group(("n",), Clause("n", None, origin[1:]), ("c", "C"), frozenset({(4, 6)}), origin)
    query = Query(TRIPLES)
    add_witnesses(query, 3, one, (Range.ALL,), 21, None)
    assert witness_variables(one) == ("c", "C", "x")
    assert query.selects == [
        "(SELECT * FROM (SELECT 3 AS broken, array(a0.p, a0.o, a0.s) AS bindings"
        " FROM {f0} a0 JOIN {f1} k ON a0.p = k.k0 AND a0.o = k.k1) found LIMIT 21)"
    ]


# --- The expander -------------------------------------------------------------------------------


def test_a_hierarchy_is_one_scan() -> None:
    query = expansion(*(Entry(("v0", 2, n), ("v0", 2, n + 2)) for n in range(20, 2020, 2)))
    assert query.selects == [
        "SELECT f.s AS s, k.h1 AS p, k.h2 AS o FROM {f1} f JOIN {f0} k ON f.p = k.g1 AND f.o = k.g2"
    ]
    table = query.inputs["f0"]
    assert isinstance(table, TableInput) and len(table.rows) == 1000
    assert table.columns == ("g1", "g2", "h0", "h1", "h2", "template")
    assert table.rows[0] == (2, 20, 0, 2, 22, 0)


def test_each_kind_of_guard_is_one_scan() -> None:
    query = expansion(
        Entry(("v0", 2, 20), ("v0", 2, 22)),
        Entry(("v0", 4, "v2"), ("v0", 6, "v2")),
        Entry(("v0", 8, "v0"), ("v0", 2, 20)),
        Entry(("v0", "v1", "v2"), ("v1", 2, 26)),
        Entry((30, "v1", "v2"), ("v2", "v1", 30), (Check("is_resource", ("v2",)),)),
        Entry(("v0", "v0", "v0"), ("v0", 2, 28)),
    )
    joins = [select.split(" FROM ")[1] for select in query.selects]
    assert joins == [
        "{f1} f JOIN {f0} k ON f.p = k.g1 AND f.o = k.g2",
        "{f3} f JOIN {f2} k ON f.p = k.g1",
        "{f5} f JOIN {f4} k ON f.p = k.g1 WHERE f.s = f.o",
        "{f7} f CROSS JOIN {f6} k",
        "{f9} f JOIN {f8} k ON f.s = k.g0 WHERE f.o >= 0",
        "{f11} f CROSS JOIN {f10} k WHERE f.s = f.p AND f.s = f.o",
    ]
    assert all(one.range is NEW for one in query.inputs.values() if isinstance(one, FactInput))


def test_heads_of_one_guard_come_from_where_their_template_says() -> None:
    query = expansion(
        Entry(("v0", 4, "v2"), ("v0", 6, "v2")),
        Entry(("v0", 4, "v2"), ("v0", 8, "v2")),
        Entry(("v0", 4, "v2"), ("v2", 2, 22), (Check("is_resource", ("v2",)),)),
    )
    assert query.selects == [
        "SELECT CASE WHEN k.template IN (0) THEN f.s ELSE f.o END AS s, k.h1 AS p,"
        " CASE WHEN k.template IN (0) THEN f.o ELSE k.h2 END AS o"
        " FROM {f1} f JOIN {f0} k ON f.p = k.g1 WHERE (k.template NOT IN (1) OR f.o >= 0)"
    ]


def test_filling_in_a_head_is_zero() -> None:
    query = expansion(
        Entry((0, "v1", "v2", None), (1, "v1", None, None)),
        layout=Layout({"edge": 2, "node": 1, "triple": 3}),
    )
    assert query.selects == [
        "SELECT k.h0 AS r, f.s AS s, k.h2 AS p, k.h3 AS o FROM {f1} f JOIN {f0} k ON f.r = k.g0"
    ]
    table = query.inputs["f0"]
    assert isinstance(table, TableInput) and table.rows == ((0, 1, 0, 0, 0, 0),)


def test_selects_are_put_together_with_repetitions() -> None:
    query = Query(TRIPLES)
    for ranges in variants(2):
        add_variant(query, TRANSITIVE, ranges, "here")
    assert query.union.count(" UNION ALL ") == 1 and len(query.inputs) == 4
