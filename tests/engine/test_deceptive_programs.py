"""Programs that look like something simpler than they are: each once gave a wrong result."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferlake.errors import LimitReached
from inferlake.evaluate.reference import closure
from inferlake.kb import KnowledgeBase
from inferlake.maintain.change import _Work
from inferlake.plan.compile import Options
from inferlake.rules.parse import parse
from inferlake.session import Engine
from tests.property.closing import close

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def triples(text: str) -> list:
    """Return `x p y` triples of the namespace e:, one to a word of three."""
    terms = {"a": TYPE}
    return [
        ("triple", tuple(t if t[0] == '"' else terms.get(t, f"<e:{t}>") for t in line.split()))
        for line in text.split(",")
    ]


CASES = {
    "a path through one of two nodes is not transitivity": (
        "[r1] [?x, :p, ?z] :- [?x, :p, :h1], [:h1, :p, ?z] ."
        " [r2] [?x, :p, ?z] :- [?x, :p, :h2], [:h2, :p, ?z] .",
        "x p h1,h1 p z,h2 p w",
        Options(),
    ),
    "nor is one through nodes that the schema names": (
        "@schema [?y, a, :Hub] . [hub] [?x, :p, ?z] :- [?y, a, :Hub], [?x, :p, ?y], [?y, :p, ?z] .",
        "h1 a Hub,h2 a Hub,x p h1,h1 p z,h2 p w",
        Options(),
    ),
    "nor is one to them": (
        "@schema [?y, a, :Hub] . [hub] [?x, :p, ?z] :- [?z, a, :Hub], [?x, :p, ?y], [?y, :p, ?z] .",
        "h1 a Hub,h2 a Hub,a0 p a1,a1 p h1,b p a0",
        Options(),
    ),
    "braces in a text are text": (
        '[t] [?x, :big, "yes"] :- [?x, :v, ?y], ?y < "a{f0}c" . ',
        'x v "a",y v "b"',
        Options(),
    ),
    "what an expander of the past made meets new entries": (
        "@schema [?x, :P, ?y] . @schema [?x, :Q, ?y] ."
        " [p] [?x, ?d, ?y] :- [?c, :P, ?d], [?x, ?c, ?y] ."
        " [q] [?x, ?d, ?y] :- [?c, :Q, ?d], [?x, ?c, ?y] ."
        " [mkp] [?x, :P, ?y] :- [?x, :mp, ?y], [?y, :mp2, ?z] ."
        " [mkq] [?x, :Q, ?y] :- [?x, :mq, ?y], [?y, :mq2, ?w], [?w, :P, ?v] .",
        "c1 P d1,s c1 o,u0 mp v0,u1 mp v1,u2 mp v2,u3 mp v3,v0 mp2 z,v1 mp2 z,v2 mp2 z,v3 mp2 z,"
        "d1 mq e1,e1 mq2 u1",
        Options(driver_facts=3),
    ),
    "schema that a doubling brings about is doubled too": (
        "@schema [?x, :sub, ?y], [?p, a, :Trans] ."
        " [t] [?x, ?p, ?z] :- [?p, a, :Trans], [?x, ?p, ?y], [?y, ?p, ?z] ."
        " [k] [:c0, :sub, :d0] :- [:n1, :sub, :n4] .",
        "sub a Trans,n1 sub n2,n2 sub n3,n3 sub n4,d0 sub e",
        Options(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_deceptive_program_equals_the_reference(engine: Engine, case: str) -> None:
    rules, facts, options = CASES[case]
    program = parse(f"@prefix : <e:> . {rules}")
    given = triples(facts)
    assert close(engine, program, given, options=options).facts == closure(program, given)


def test_triples_of_too_many_classes_to_name_are_no_other_facts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferlake.evaluate.described._MOST", 1)
    program = parse(
        "@prefix : <e:> . [type] [?x, a, ?y] :- [?x, :p, ?y] ."
        " [has] has(?x, ?q) :- [?x, ?q, ?y], [?y, :flag, ?z] ."
        " [three] three(?x, ?q, ?y) :- [?x, ?q, ?y], [?y, :flag, ?z] ."
    )
    given = triples("x p c,y p d,c flag z")
    assert close(engine, program, given).facts == closure(program, given)


def test_a_limit_leaves_no_file_of_what_was_to_be(tmp_path: Path) -> None:
    (tmp_path / "more.dl").write_text(
        "@prefix : <e:> . [n] next(?x, ?y) :- [?x, :p, ?y] ."
        " [p] [?x, :p, ?z] :- next(?x, ?y), next(?y, ?z) ."
    )
    lines = [f"<e:n{n}> <e:p> <e:n{n + 1}> .\n" for n in range(40)]
    (tmp_path / "a.nt").write_text("".join(lines))
    (tmp_path / "b.nt").write_text("<e:b> <e:p> <e:n0> .\n")
    (tmp_path / "gone.nt").write_text(lines[3])
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    kb.load(tmp_path / "a.nt", rules="none")
    there = set(Path(kb.path, "facts").rglob("*.parquet"))
    with pytest.raises(LimitReached):
        kb.update(
            add=tmp_path / "b.nt",
            remove=tmp_path / "gone.nt",
            rules=str(tmp_path / "more.dl"),
            max_rounds=4,
        )
    assert set(Path(kb.path, "facts").rglob("*.parquet")) == there


def test_a_program_of_many_relations_takes_a_second_load(tmp_path: Path) -> None:
    """As many frames as relations, one inside the other, were too deep for a protocol buffer."""
    count = 60
    rules = [
        f"r{n}(?x, ?y) :- [?x, :p{n}, ?y] . q{n}(?x, ?z) :- r{n}(?x, ?y), r{after}(?y, ?z) ."
        for n, after in enumerate([*range(1, count), 0])
    ]
    (tmp_path / "many.dl").write_text("@prefix : <e:> .\n" + "\n".join(rules))
    lines = [f"<e:n{n}> <e:p{n}> <e:n{n + 1}> .\n" for n in range(count)]
    (tmp_path / "a.nt").write_text("".join(lines))
    (tmp_path / "b.nt").write_text("<e:m0> <e:p0> <e:n1> .\n")
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules=str(tmp_path / "many.dl"))
    kb.load(tmp_path / "a.nt")
    assert kb.load(tmp_path / "b.nt").derived == 2  # r0 and q0 of the new node


def test_a_load_that_names_no_rules_leaves_another_writers_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.nt").write_text(f"<e:{name}> <e:p> <e:o> .\n")
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    kb.load(tmp_path / "a.nt")
    asserted = _Work._asserted

    def overtaken(self, base, store):
        if self.change.how.rules is None and kb.version == 1:
            other = KnowledgeBase(kb.path, engine="sail")
            other.load(tmp_path / "b.nt", rules="owl-horst")
        return asserted(self, base, store)

    monkeypatch.setattr(_Work, "_asserted", overtaken)
    kb.load(tmp_path / "c.nt")
    assert kb.version == 3
    assert kb.rules() == ("owl-horst",)
    assert kb.stats().asserted == 3


def test_rules_that_a_crash_cut_in_half_are_written_again(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<e:a> <e:p> <e:o> .\n")
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    kb.load(tmp_path / "a.nt")
    (book,) = Path(kb.path, "rules").iterdir()
    book.write_bytes(book.read_bytes()[:30])
    kb.load(tmp_path / "a.nt", rules="rdfs")
    assert kb.rules() == ("rdfs",)
