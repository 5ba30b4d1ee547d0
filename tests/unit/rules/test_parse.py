"""Rule files: every construct, and every mistake with its place."""

from __future__ import annotations

import pytest

from inferlake.errors import RuleError
from inferlake.rules.check import checked
from inferlake.rules.model import (
    TRIPLE,
    Atom,
    Comparison,
    Kind,
    Program,
    Rule,
    Slot,
    Source,
    Term,
    Var,
)
from inferlake.rules.parse import PREFIXES, parse

XSD = PREFIXES["xsd"]
TYPE = Term(f"<{PREFIXES['rdf']}type>")
X, Y, Z = Var("x"), Var("y"), Var("z")


def rule(text: str, file: str = "f.dl") -> Rule:
    (found,) = parse(text, file).rules
    return found


def slot(text: str, before: str = "") -> Slot:
    """Return a term or variable as a rule's atom has it."""
    return rule(f"{before} p({text}) .").heads[0].args[0]


def typed(text: str, kind: str) -> Term:
    return Term(f'"{text}"^^<{XSD}{kind}>')


def error(text: str, file: str = "f.dl") -> str:
    """Return what is wrong with a text, be it found by the parser or by the checks."""
    with pytest.raises(RuleError) as found:
        checked(parse(text, file))
    return str(found.value)


# --- Statements ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n\t\r\n", "# only this", "% only this\n", "#\n%\n#"])
def test_a_file_may_say_nothing(text: str) -> None:
    assert parse(text) == Program()


def test_a_rule_has_a_name_heads_atoms_and_tests() -> None:
    found = rule(
        "[r-1] [?x, a, ?y], p(?x) :- [?x, ?p, ?y], ?x != ?y, q(?x, ?z), is_iri(?z), ?z<=3 ."
    )
    assert found == Rule(
        "r-1",
        (Atom(TRIPLE, (X, TYPE, Y)), Atom("p", (X,))),
        (Atom(TRIPLE, (X, Var("p"), Y)), Atom("q", (X, Z))),
        (Comparison(X, "!=", Y), Kind("is_iri", (Z,)), Comparison(Z, "<=", typed("3", "integer"))),
    )
    assert found.source == Source("f.dl", 1, 8)  # of the first term of the first head


def test_a_rule_without_a_name_is_called_after_its_line() -> None:
    assert [r.name for r in parse("p(1) .\n\n[x] p(2) . p(3) .").rules] == ["line1", "x", "line3"]


def test_a_rule_may_span_lines_and_share_them() -> None:
    found = parse("p(?x)\n  :-\n q(?x)\n,\nr(?x)\n. p(1) . p(2)\n.").rules
    assert [str(r) for r in found] == [
        "[line1] p(?x) :- q(?x), r(?x) .",
        f"[line6] p({typed('1', 'integer')}) .",
        f"[line6] p({typed('2', 'integer')}) .",
    ]
    assert [(r.source.line, r.source.column) for r in found] == [(1, 1), (6, 3), (6, 10)]


def test_a_fact_is_a_rule_without_a_body() -> None:
    assert rule("[?x, a, ?x] .").body == ()
    assert rule("p(<a:b>) .").heads == (Atom("p", (Term("<a:b>"),)),)


def test_a_contradiction_has_no_head() -> None:
    found = rule("[c] false :- p(?x), q(?x) .")
    assert found.is_constraint and found.heads == () and len(found.body) == 2
    assert found.source == Source("f.dl", 1, 5)


def test_the_relation_of_triples_has_two_spellings() -> None:
    assert rule("[?x, ?y, ?z] .").heads == rule("triple(?x, ?y, ?z) .").heads


def test_what_a_rule_prints_is_the_same_rule() -> None:
    texts = [
        '[n] [?x, a, ?y] :- p(?x, "\\"\\\\\\n"@en-GB, ?y), ?x != <a:b#c>, is_iri(?y) .',
        "[n] false :- [?x, ?x, 1.5e3], is_blank(?x) .",
        "[n] p(-1) .",
    ]
    for text in texts:
        assert parse(str(rule(text))).rules == (rule(text),)


def test_schema_patterns_are_kept_in_order() -> None:
    found = parse("@schema [?x, a, ?y], p(?x) .\n@schema p(?x),\n q(1) .").schema
    assert found == (
        Atom(TRIPLE, (X, TYPE, Y)),
        Atom("p", (X,)),
        Atom("p", (X,)),
        Atom("q", (typed("1", "integer"),)),
    )


def test_two_programs_together_count_what_they_share_once() -> None:
    one = parse("@schema p(?x, _) .\n[n] p(?x, 1) :- q(?x, _, _) .", "one.dl")
    other = parse("r(_) :- s(_) . [n] p(?x, 1) :- q(?x, _, _) . @schema p(?x, _) .", "other.dl")
    both = one + other
    assert [r.name for r in both.rules] == ["n", "line1"]
    assert len(both.schema) == 1 and both.rules[0].source.file == "one.dl"


@pytest.mark.parametrize("word", ["prefixed", "nothing", "falsehood", "trueish", "a", "_aux", "A"])
def test_relations_may_begin_like_words_of_the_language(word: str) -> None:
    assert rule(f"{word}(?x) :- {word}(?x) .").heads == (Atom(word, (X,)),)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_of_any_system_count_lines(end: str) -> None:
    found = parse(end.join(["# one", "p(1) .", "% three", "", "p(2) ."]))
    assert [r.source.line for r in found.rules] == [2, 5]
    assert error(end.join(["p(1) .", "", "p(?z) ."])).startswith("R102 f.dl:3:1: ")


def test_comments_end_with_their_line() -> None:
    assert rule("p(?x) # , r(?x)\n :- % no\n q(?x) . # p(2) .").body == (Atom("q", (X,)),)


# --- Terms --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("?x", X),
        ("?_x1", Var("_x1")),
        ("X", Var("X")),
        ("Xyz_1", Var("Xyz_1")),
        ("<a:b>", Term("<a:b>")),
        ("<http://e/#a?b%20>", Term("<http://e/#a?b%20>")),
        ("<http://e/é𝔸>", Term("<http://e/é𝔸>")),
        ("rdf:type", TYPE),
        ("xsd:", Term(f"<{XSD}>")),
        ("rdfs:a.b-c", Term(f"<{PREFIXES['rdfs']}a.b-c>")),
        ("owl:a:b%20", Term(f"<{PREFIXES['owl']}a:b%20>")),
        ("owl:1", Term(f"<{PREFIXES['owl']}1>")),
        ('""', Term('""')),
        ('"a # % . b"', Term('"a # % . b"')),
        ('"ü𝔸\u2028"', Term('"ü𝔸\u2028"')),
        (r'"\u00fc\U0001D538"', Term('"ü𝔸"')),
        (r'"\t\n\r\"\\\'"', Term(r'"\t\n\r\"\\' + "'\"")),
        ('"a"@EN-us', Term('"a"@en-us')),
        ('"a" @de', Term('"a"@de')),
        ('"a"^^xsd:string', Term('"a"')),
        (f'"a"^^<{XSD}string>', Term('"a"')),
        ('"a"^^xsd:integer', typed("a", "integer")),
        ('"a" ^^ <e:t#x>', Term('"a"^^<e:t#x>')),
        ("true", typed("true", "boolean")),
        ("false", typed("false", "boolean")),
        ("0", typed("0", "integer")),
        ("-007", typed("-007", "integer")),
        ("+1", typed("+1", "integer")),
        (".5", typed(".5", "decimal")),
        ("-1.50", typed("-1.50", "decimal")),
        ("1e5", typed("1e5", "double")),
        ("1.E-5", typed("1.E-5", "double")),
        ("+.5e+0", typed("+.5e+0", "double")),
    ],
)
def test_terms(text: str, term: Slot) -> None:
    assert slot(text) == term


def test_a_dot_after_a_number_ends_the_statement() -> None:
    assert rule("p(?x) :- q(?x), ?x>1.").tests == (Comparison(X, ">", typed("1", "integer")),)
    assert rule("p(?x) :- q(?x), ?x>1.5.").tests == (Comparison(X, ">", typed("1.5", "decimal")),)


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons_need_no_spaces(operator: str) -> None:
    found = rule(f"p(?x) :- q(?x,?y,?z),?x{operator}?y,?y{operator}?z,?z>-1 .").tests
    assert [str(test) for test in found[:2]] == [f"?x {operator} ?y", f"?y {operator} ?z"]


def test_what_stands_between_less_and_greater_is_no_iri() -> None:
    assert len(rule("p(?x) :- q(?x,?y,?z),?x<?y,?y>?z .").tests) == 2


def test_a_is_the_type_in_the_middle_of_a_triple_only() -> None:
    assert rule("[?x, a, ?y] .").heads[0].args[1] == TYPE
    assert error("[?x, a, a] .").startswith("R106 f.dl:1:9: a is neither")
    assert error("p(a) .").startswith("R106 f.dl:1:3: ")


def test_every_underscore_is_another_variable() -> None:
    (atom,) = rule("p(1) :- q(_, _, ?_0, ?_1, ?x) .").body
    assert len({*atom.args}) == 5


def test_prefixes_are_known_or_declared_before_use() -> None:
    text = "@prefix e: <e:1#> . p(e:a) . PREFIX e: <e:2#> p(e:a) . prefix : <e:3#> . p(:a, :) ."
    found = [arg for r in parse(text).rules for arg in r.heads[0].args]
    assert found == [Term(f"<e:{end}>") for end in ("1#a", "2#a", "3#a", "3#")]
    assert error("p(e:a) . @prefix e: <e:> .").startswith("R105 f.dl:1:3: unknown prefix e:")


def test_prefixes_of_one_file_are_not_those_of_another() -> None:
    parse("@prefix mine: <e:> . p(mine:a) .")
    assert error("p(mine:a) .").startswith("R105 ")


@pytest.mark.parametrize(
    ("name", "args"), [("is_literal", "?x"), ("is_ill_typed", "?x"), ("has_datatype", "?x, ?y")]
)
def test_tests_of_kind_are_tests_and_not_atoms(name: str, args: str) -> None:
    found = rule(f"p(?x) :- q(?x, ?y), {name}({args}) .")
    assert found.body == (Atom("q", (X, Y)),)
    assert isinstance(found.tests[0], Kind) and found.tests[0].name == name


# --- VLog ---------------------------------------------------------------------------------------


def test_vlog_has_a_rule_to_a_line() -> None:
    text = (
        "RP0(A) :- TE(A,rdf:type,<http://e/#C>)\r\n\r\n% note\n# note\n// note\n"
        "  TE(A,<e:p>,B):-RP1(A,B) . % note\nRP1(A,_) :- TE(A,B,_), RP0(B)"
    )
    found = parse(text, "x/rules.dlog").rules
    a, b = Var("A"), Var("B")
    assert found[0].heads == (Atom("RP0", (a,)),)
    assert found[0].body == (Atom(TRIPLE, (a, TYPE, Term("<http://e/#C>"))),)
    assert found[1].heads == (Atom(TRIPLE, (a, Term("<e:p>"), b)),)
    assert [(r.name, r.source.line, r.source.column) for r in found] == [
        ("line1", 1, 1),
        ("line6", 6, 3),
        ("line7", 7, 1),
    ]


def test_only_vlog_calls_triples_te() -> None:
    assert rule("TE(?x, ?y, ?z) .").heads[0].relation == "TE"


def test_vlog_literals_may_hold_what_unicode_takes_for_a_line_end() -> None:
    found = parse('p("a\u2028b\x85\x0c")\nq(1)', "f.dlog").rules
    assert [r.source.line for r in found] == [1, 2]


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start"),
    [
        # Syntax.
        ("p(?x) :- q(?x) r(?x) .", "R101 f.dl:1:16: cannot read 'r(?x)' here"),
        ("p(1) .\n p(1,) .", "R101 f.dl:2:6: cannot read ')' here; expected a variable"),
        ("p(1)) .", "R101 f.dl:1:5: cannot read ')' here; expected a dot"),
        ("[?x, ?y] .", "R101 f.dl:1:8: cannot read ']' here; expected a comma"),
        ("p(?é) .", "R101 f.dl:1:3: cannot read '?é)' here"),
        ("p('a') .", "R101 f.dl:1:3: cannot read \"'a')\" here"),
        ('p("a\nb") .', "R101 f.dl:1:3: cannot read '\"a' here"),
        ("p(1) .\n. ", "R101 f.dl:2:1: cannot read '.' here"),
        ("# \u2028\np(1)) .", "R101 f.dl:2:5: cannot read ')' here"),
        ("p(<http://a b>) .", "R101 f.dl:1:3: cannot read '<http://a' here"),
        ("\ufeffp(1) .", "R101 f.dl:1:1: "),
        ("p(?x) :- q(?x), not ?x = 1 .", "R101 f.dl:1:21: "),
        ("@schema .", "R101 f.dl:1:9: "),
        # The end, where something else should stand.
        ("p(1)", "R101 f.dl:1:5: the file ends in the middle of a statement; expected a dot"),
        ("p(1) .\nq(?x\n\n", "R101 f.dl:2:5: the file ends in the middle of a statement"),
        ("p(1) :- ", "R101 f.dl:1:8: the file ends in the middle of a statement"),
        ("@prefix", "R101 f.dl:1:8: the file ends in the middle of a statement"),
        ("false", "R101 f.dl:1:6: the file ends in the middle of a statement"),
        # Terms.
        ("p(<b>) .", "R101 f.dl:1:3: not an absolute IRI: b"),
        ("@prefix b: <b> .", "R101 f.dl:1:12: not an absolute IRI: b"),
        (r'p(1, "\x") .', "R101 f.dl:1:6: not a literal: "),
        (r'p("\uD800") .', "R101 f.dl:1:3: not a literal: "),
        ('p("a"^^<b>) .', "R101 f.dl:1:3: not a literal: "),
        ('p("a"^^rdf:langString) .', "R101 f.dl:1:3: not a literal: "),
        ('p("a"@toolonglanguage) .', "R101 f.dl:1:3: not a literal: "),
        # Variables that nothing binds.
        ("p(1) .\n [n] p(?x, ?y, ?x) :- q(?x) .", "R102 f.dl:2:6: in rule n, head variable ?y "),
        ("p(?x) :- is_iri(?x) .", "R102 f.dl:1:1: in rule line1, head variable ?x is not bound"),
        ("p(?x) :- q(?x), ?y != ?x .", "R103 f.dl:1:1: in rule line1, ?y in ?y != ?x is not"),
        ("p(1) :- is_iri(?z) .", "R103 f.dl:1:1: in rule line1, ?z in is_iri(?z) is not bound"),
        # Numbers of arguments.
        (
            "p(1) .\n\n q(?x) :- p(?x, ?x) .",
            "R104 f.dl:3:2: in rule line3, p has 2 arguments here and 1 at f.dl:1:1; use one",
        ),
        ("triple(1) .", "R104 f.dl:1:1: in rule line1, triple has 1 arguments here and 3;"),
        ("p(?x) :- triple(?x, 1, 2, 3) .", "R104 f.dl:1:1: in rule line1, triple has 4 arguments"),
        ("p() .", "R104 f.dl:1:1: in rule line1, p has no arguments; give it one"),
        ("p(?x) :- q(?x, ?y), is_iri(?x, ?y) .", "R104 f.dl:1:21: is_iri takes 1 arguments"),
        ("p(?x) :- q(?x), has_datatype(?x) .", "R104 f.dl:1:17: has_datatype takes 2 arguments"),
        (
            "@schema p(?x) .\np(1, 2) .",
            "R104 @schema p(?x): p has 1 arguments here and 2 at f.dl:2",
        ),
        ("@schema triple(?x) .", "R104 @schema [?x]: triple has 1 arguments here and 3;"),
        # Names.
        ("p(ex:a) .", "R105 f.dl:1:3: unknown prefix ex: — declare it: @prefix ex: <http"),
        ("p(1,\n :a) .", "R105 f.dl:2:2: unknown prefix : "),
        ('p("a"^^ex:t) .', "R105 f.dl:1:8: unknown prefix ex: "),
        ("p(abc) .", "R106 f.dl:1:3: abc is neither a variable nor a term; write ?abc"),
        ("[?x, knows, ?y] .", "R106 f.dl:1:6: knows is neither"),
        ("p(_x) .", "R106 f.dl:1:3: _x is neither"),
        ("p(?x) :- q(?x), ?x = a .", "R106 f.dl:1:22: a is neither"),
        # What is not RDF.
        ("p(_:b) .", "R107 f.dl:1:3: a blank node means nothing outside its file"),
        ("[?x, a, _:b1] :- p(?x) .", "R107 f.dl:1:9: a blank node"),
        ('["a", a, <e:b>] .', 'R107 f.dl:1:2: in rule line1, "a" cannot stand there in a triple'),
        ("[<e:b>, 1, <e:b>] .", 'R107 f.dl:1:2: in rule line1, "1"^^'),
        # What is not supported.
        ("p(?x) :- q(?x), not r(?x) .", "R108 f.dl:1:21: negation is not supported"),
        ("p(?x) :- q(?x), ~[?x, a, ?x] .", "R108 f.dl:1:19: negation is not supported"),
        ("p(?x) :- q(?x), ! is_iri(?x) .", "R108 f.dl:1:19: negation is not supported"),
        ("p(1) . false .", "R109 f.dl:1:8: in rule line1, false without a body"),
        ("[c] false :- 1 > 2 .", "R109 f.dl:1:5: in rule c, false without a body"),
        ("is_iri(?x) :- q(?x) .", "R110 f.dl:1:1: is_iri is a test; use it in the body"),
        ("p(?x),\nis_blank(?x) :- q(?x) .", "R110 f.dl:2:1: is_blank is a test"),
        ("@schema [?x, a, ?y], is_iri(?x) .", "R110 f.dl:1:22: is_iri is a test"),
    ],
)
def test_errors_name_their_place_and_remedy(text: str, start: str) -> None:
    assert error(text).startswith(start)


def test_all_wrong_lines_of_vlog_are_told_at_once() -> None:
    told = error("p(a) :- q(A)\nq(1)\np(A) :- q(A) r(A)\n", "f.dlog")
    assert [line.split()[:2] for line in told.splitlines()] == [
        ["R106", "f.dlog:1:3:"],
        ["R101", "f.dlog:3:14:"],
    ]


@pytest.mark.parametrize("file", ["f.dl", "f.dlog"])
@pytest.mark.parametrize(("wrong", "code"), [("p{}(a) :- q(A) .", "R106"), ("p{}(?x) .", "R102")])
def test_of_many_wrong_statements_the_first_are_told(file: str, wrong: str, code: str) -> None:
    lines = error("\n".join(wrong.format(n) for n in range(30)), file).splitlines()
    assert len(lines) == 21 and lines[19].startswith(f"{code} {file}:20:")
    assert lines[20] == "and 10 more that are wrong; mend these first"


def test_all_statements_that_are_wrong_are_told_at_once() -> None:
    wrong = ["p(a) :- q(A) .", "p(?x) :- r(?x, rdf:type, no:c) .", "p(?x) :- not q(?x) ."]
    told = error("\n".join([*wrong, "p(?y) :- q(?x) .", "q(1, 2) ."]))
    assert [line.split()[:2] for line in told.splitlines()] == [
        ["R106", "f.dl:1:3:"],
        ["R105", "f.dl:2:26:"],
        ["R108", "f.dl:3:14:"],
        ["R102", "f.dl:4:1:"],
        ["R104", "f.dl:5:1:"],
    ]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("\n\np(a) :- q(A)", "R106 f.dlog:3:3: a is neither"),
        ("q(1)\np(A) :-\nq(A)", "R101 f.dlog:2:8: the file ends in the middle of a statement"),
        ("q(1)\n  p(A) :- q(A) r(A)", "R101 f.dlog:2:16: cannot read 'r(A)' here"),
        ("p(A) :- q(A). r(A) :- q(A)", "R101 f.dlog:1:15: cannot read 'r(A)' here"),
        ("@prefix e: <e:> .", "R101 f.dlog:1:1: "),
        ("q(1)\np(A) :- ~q(A)", "R108 f.dlog:2:10: "),
        ("q(1)\np(A) :- q(B)", "R102 f.dlog:2:1: in rule line2, head variable ?A"),
        ("p(e:a)", "R105 f.dlog:1:3: "),
    ],
)
def test_errors_in_vlog_files_name_the_line_of_the_file(text: str, start: str) -> None:
    assert error(text, "f.dlog").startswith(start)
