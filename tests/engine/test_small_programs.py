"""Programs of a few lines, each of which once came out wrong, or nearly."""

from __future__ import annotations

import pytest

from inferlake.evaluate.reference import Fact, closure, contradictions
from inferlake.plan.compile import Options
from inferlake.rules.load import RuleText, compiled
from inferlake.session import Engine
from tests.property.closing import close

PREFIX = "@prefix : <e:> .\n"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
LIMITS = "@schema [?c, :limit, ?n] . "


def fact(text: str) -> Fact:
    """Return a fact of local names and numbers: a relation and its terms, or a triple."""
    name, *terms = text.split()
    args = tuple(f'"{t}"^^<{INTEGER}>' if t.isdigit() else f"<e:{t}>" for t in terms)
    return (name, args) if name in ("node", "edge") else ("triple", (f"<e:{name}>", *args))


PROGRAMS = {
    # A rule of a later stratum must see what an earlier one made, and by which rule.
    "strata": (
        "[?x, :p, ?z] :- [?x, :e, ?y], [?y, :e, ?z] .[?x, :q, ?z] :- [?x, :p, ?z], [?x, :n, ?w] .",
        ["a e b", "b e c", "a n w"],
    ),
    # Two relations that would each be the reason to leave out the other.
    "each-other": (
        "[?x, :p, ?z] :- [?x, :e, ?y], [?y, :f, ?z] . [?x, :r, ?z] :- [?x, :e, ?y], [?y, :f, ?z] ."
        "[?x, :q, ?z] :- [?x, :p, ?z], [?x, :n, ?w] . [?x, :q, ?z] :- [?x, :r, ?z], [?x, :n, ?w] .",
        ["a e b", "b f c", "a n w"],
    ),
    "false-constants": ("node(?x) :- edge(?x, ?y), 1 > 2 .", ["edge a b"]),
    "true-constants": ("node(:c) :- 1 < 2 . edge(?x, ?x) :- node(?x), node(?x) .", ["node a"]),
    "case": (
        "@schema [?x, :sub, ?y] . false :- [?c, :sub, ?C], [?C, :p, ?c] .",
        ["a sub b", "b p a"],
    ),
    "all-is-schema": (
        "@schema [?x, ?p, ?y] . [?x, :q, ?y] :- [?x, :p, ?y], [?y, :p, ?z] .",
        ["a p b", "b p c"],
    ),
    "anonymous": ("node(?_0) :- edge(?_0, _), edge(_, ?_0) .", ["edge a b", "edge b c"]),
    "not-closed": (
        "[?x, :b, ?y] :- [?x, :a, ?y] . [?x, :c, ?y] :- [?x, :b, ?y] ."
        "[?x, :a, ?z] :- [?x, :c, ?y], [?y, :c, ?z] . [?x, :d, ?z] :- [?x, :c, ?y], [?y, :a, ?z] .",
        ["u a v", "v a w", "w a x", "x a y"],
    ),
    # Values that the schema puts into a rule, one or several, are compared by their texts.
    "one-limit": (
        LIMITS + "[?x, :over, ?c] :- [?c, :limit, ?n], [?x, :size, ?m], ?m > ?n .",
        ["c limit 5", "a size 7", "b size 3"],
    ),
    "two-limits": (
        LIMITS + "[?x, :over, ?c] :- [?c, :limit, ?n], [?x, :size, ?m], ?m > ?n .",
        ["c limit 5", "d limit 10", "a size 7", "b size 3", "e size 11"],
    ),
    "limit-and-constant": (
        LIMITS + "[?x, :over, ?c] :- [?c, :limit, ?n], [?x, :size, ?m], ?m > ?n, ?n > 6 .",
        ["c limit 5", "d limit 10", "a size 7", "e size 11"],
    ),
    "limits-alone": (
        LIMITS + "[?c, :above, ?d] :- [?c, :limit, ?n], [?d, :limit, ?m], ?n > ?m .",
        ["c limit 5", "d limit 10"],
    ),
    "broken-limit": (
        LIMITS + "false :- [?c, :limit, ?n], [?x, :size, ?m], ?m > ?n .",
        ["c limit 5", "a size 7", "b size 3"],
    ),
}


@pytest.mark.parametrize(
    "options", [Options(), Options(specialised=False)], ids=["specialised", "plain"]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_small_program_equals_the_reference(engine: Engine, name: str, options: Options) -> None:
    text, written = PROGRAMS[name]
    program, facts = compiled([RuleText(f"{name}.dl", PREFIX + text)]), list(map(fact, written))
    expected = closure(program, facts)
    found = close(engine, program, facts, options=options)
    assert found.facts == expected
    assert found.contradictions == contradictions(program, expected)
