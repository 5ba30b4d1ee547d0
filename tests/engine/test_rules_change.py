"""Rules that come and go: the store is then closed under what is left, no less and no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from inferlake.errors import InputError, NotAStore, RuleError, StoreError
from inferlake.kb import KnowledgeBase
from inferlake.maintain import ALGORITHMS, Algorithm
from inferlake.session import Engine

EX = "http://example.org/"
SUB_CLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
PREFIX = f"@prefix : <{EX}> .\n"

FAMILY = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:ann :parent :bea . :bea :parent :cid . :cid :parent :dan . :eve :parent :dan .
:ann a :Woman . :Woman rdfs:subClassOf :Person . :parent rdfs:domain :Person .
:ann :ancestor :dan .
"""

ANCESTOR = """
[one] [?x, :ancestor, ?y] :- [?x, :parent, ?y] .
[more] [?x, :ancestor, ?z] :- [?x, :ancestor, ?y], [?y, :parent, ?z] .
"""
# Shares a rule with the one above, and what it derives with the profile.
RELATED = """
[one] [?x, :ancestor, ?y] :- [?x, :parent, ?y] .
[type] [?x, a, :Person] :- [?x, :parent, ?y] .
[fact] [:ann, :likes, "cheese"] .
pair(?x, ?y) :- [?x, :parent, ?z], [?y, :parent, ?z], ?x != ?y .
[pairs] [?x, :with, ?y] :- pair(?x, ?y) .
wide(?x, ?y, ?z, ?x) :- [?x, :parent, ?y], [?y, :parent, ?z] .
"""

Write = Callable[[str, str], str]

# What these tests ask is the driver's or the log's doing, and would take minutes on Spark.
on_sail = pytest.mark.parametrize("engine", ["sail"], indirect=True)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a rule file and returns its name."""

    def run(name: str, rules: str) -> str:
        (tmp_path / name).write_text(PREFIX + rules)
        return str(tmp_path / name)

    return run


@pytest.fixture
def start(engine: Engine, tmp_path: Path) -> Callable[..., KnowledgeBase]:
    """A function that loads the family under rules, into a store of that name."""

    def run(*rules: str, at: str = "kb", turtle: str = FAMILY) -> KnowledgeBase:
        (tmp_path / "family.ttl").write_text(turtle)
        kb = KnowledgeBase(tmp_path / at, engine=engine.name)
        kb.load(tmp_path / "family.ttl", rules=rules or "none")
        return kb

    return run


def layers(kb: KnowledgeBase) -> dict[str, set[tuple[str, ...]]]:
    """Return the triples by layer, and the facts of other relations by theirs."""
    found: dict[str, list[tuple[str, ...]]] = {"asserted": [], "derived": []}
    for row in kb.facts().collect():
        found[row.layer].append((row.subject, row.predicate, row.object))
    for relation in kb._arities(kb._snapshot()).keys() - {"triple"}:
        found[relation] = [tuple(row) for row in kb.relation(relation).collect()]
    assert all(len(rows) == len(set(rows)) for rows in found.values()), "a fact is there twice"
    return {name: set(rows) for name, rows in found.items()}


def derived(kb: KnowledgeBase, local: str) -> set[tuple[str, str]]:
    """Return the derived triples of a predicate, by local names."""
    rows = kb.facts("derived").where(f"predicate = '<{EX}{local}>'").collect()
    return {(row.subject[len(EX) + 1 : -1], row.object[len(EX) + 1 : -1]) for row in rows}


# --- whatever the algorithm ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_step_equals_a_load_under_the_same_rules(
    algorithm: Algorithm, engine: Engine, start: Callable[..., KnowledgeBase], write: Write
) -> None:
    if engine.name == "spark" and algorithm != "bf":
        pytest.skip("slow on Spark; removals have tests of their own there")
    ancestor, related = write("ancestor.dl", ANCESTOR), write("related.dl", RELATED)
    steps: list[tuple[Sequence[str], Sequence[str], tuple[str, ...]]] = [
        ([ancestor], [], (ancestor,)),
        ([related, "rdfs"], [], (ancestor, related, "rdfs")),
        ([], [ancestor], (related, "rdfs")),
        ([ancestor], ["rdfs"], (related, ancestor)),
        ([], [related, ancestor], ()),
    ]
    if engine.name == "spark":
        steps = [([related, "rdfs"], [], (related, "rdfs")), ([], [related], ("rdfs",))]
    kb = start()
    asserted = layers(kb)["asserted"]
    for number, (add, remove, rules) in enumerate(steps):
        before = kb.version
        report = kb.change_rules(add=add, remove=remove, algorithm=algorithm)
        assert (report.operation, report.version) == ("rules", before + 1)
        assert kb.rules() == report.rules == rules
        now = layers(kb)
        fresh = start(*rules, at=f"fresh-{number}")
        assert now == layers(fresh)
        assert now["asserted"] == asserted
        assert kb.verify().ok


# --- one thing at a time -------------------------------------------------------------------------


def test_rules_derive_what_they_would_have_and_take_it_with_them(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    kb, rules = start(), write("ancestor.dl", ANCESTOR)
    added = kb.change_rules(add=rules)
    pairs = {("ann", "bea"), ("bea", "cid"), ("cid", "dan"), ("eve", "dan"), ("ann", "cid")}
    assert derived(kb, "ancestor") == {*pairs, ("bea", "dan")}, "ann and dan are asserted"
    assert (added.derived, added.withdrawn, added.added, added.removed) == (6, 0, 0, 0)

    removed = kb.change_rules(remove=rules)
    assert layers(kb)["derived"] == set()
    assert (removed.derived, removed.withdrawn) == (0, 6)
    assert kb.rules() == ()
    assert len(layers(kb)["asserted"]) == 8


def test_what_other_rules_derive_too_stays(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    typed = write("typed.dl", "[type] [?x, a, :Person] :- [?x, :parent, ?y] .")
    kb = start("rdfs")
    before = layers(kb)
    assert kb.change_rules(add=typed).derived == 0
    assert layers(kb) == before
    assert kb.change_rules(remove="rdfs").withdrawn == 0, "it all follows from the other rule too"
    assert layers(kb) == before
    assert kb.change_rules(remove=typed).withdrawn == len(before["derived"]) == 4


@on_sail
def test_the_same_rules_again_change_nothing(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    rules = write("related.dl", RELATED)
    kb = start(rules, "rdfs")
    before = layers(kb)
    report = kb.change_rules(add=[rules, "rdfs"])
    assert (report.derived, report.withdrawn, report.rounds) == (0, 0, ())
    assert (kb.rules(), layers(kb)) == ((rules, "rdfs"), before)
    assert list(kb.changes()) == []


@on_sail
def test_a_file_that_changed_is_read_anew(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    rules = write("ancestor.dl", ANCESTOR)
    kb = start(rules)
    write("ancestor.dl", ANCESTOR.replace(":ancestor", ":elder"))
    assert derived(kb, "ancestor") and not derived(kb, "elder"), "the store keeps the text it read"
    report = kb.change_rules(add=rules)
    assert (report.derived, report.withdrawn) == (7, 6)
    assert kb.rules() == (rules,)
    assert not derived(kb, "ancestor")
    assert len(derived(kb, "elder")) == 7


@on_sail
def test_rules_of_another_name_and_the_same_text_are_known_by_their_name(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    one, other = write("one.dl", ANCESTOR), write("other.dl", ANCESTOR)
    kb = start(one)
    report = kb.change_rules(add=other, remove=one)
    assert (report.derived, report.withdrawn) == (0, 0)
    assert kb.rules() == report.rules == (other,)
    kb.change_rules(remove=other)
    assert kb.rules() == ()


@on_sail
def test_a_relation_may_get_another_number_of_arguments(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    rules = write("seen.dl", "seen(?x) :- [?x, :parent, ?y] .\n[?x, :is, ?x] :- seen(?x) .")
    kb = start(rules, "rdfs")
    assert len(kb.relation("seen").collect()) == 4
    for body, arity in (
        ("seen(?x, ?y, ?z, ?x)", 4),
        ("seen(?x, ?y)", 2),
    ):
        write(
            "seen.dl",
            f"{body} :- [?x, :parent, ?y], [?y, :parent, ?z] .\n[?x, :is, ?y] :- {body} .",
        )
        report = kb.change_rules(add=rules, algorithm="bf")
        assert report.algorithm == "rebuild"
        assert "relation seen has another number of arguments now" in str(report)
        rows = [tuple(row) for row in kb.relation("seen").collect()]
        assert len(rows) == 2 and all(len(row) == arity + 1 for row in rows)
        assert derived(kb, "is") == {("ann", "bea"), ("bea", "cid")}
        assert kb.verify().ok
        kb.compact()
        assert sorted(map(tuple, kb.relation("seen").collect())) == sorted(rows)
    # A version of the past is read with the rules that it had.
    assert {len(row) for row in kb.at(1).relation("seen").collect()} == {2}
    write("seen.dl", "seen(?x) :- [?x, :parent, ?y] .")
    with pytest.raises(RuleError, match="R104"):
        kb.change_rules(add=[rules, write("more.dl", "seen(?x, ?y) :- [?x, :parent, ?y] .")])


@on_sail
def test_relations_go_with_their_last_rule(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    kb = start(write("related.dl", RELATED))
    rules = kb.rules()[0]
    assert kb.relation("pair").count() == 2
    assert kb.stats().other_facts == sum(kb.relation(name).count() for name in ("pair", "wide"))
    kb.change_rules(remove=rules)
    assert kb.stats().other_facts is None
    with pytest.raises(InputError, match="no rule knows a relation pair"):
        kb.relation("pair")
    kb.change_rules(add=rules)
    assert kb.relation("pair").count() == 2
    assert kb.relation("wide").count() == 2


def test_constraints_come_and_go(start: Callable[..., KnowledgeBase], write: Write) -> None:
    kb = start("rdfs")
    rules = write("not.dl", "[childless] false :- [?x, :parent, ?y], [?x, a, :Woman] .")
    report = kb.change_rules(add=rules)
    assert [one.rule for one in report.contradictions] == ["childless"]
    assert kb.change_rules(remove=rules).contradictions == ()


@on_sail
def test_facts_schema_and_rules_change_in_one_version(
    start: Callable[..., KnowledgeBase], write: Write, tmp_path: Path
) -> None:
    kb, ancestor = start("rdfs"), write("ancestor.dl", ANCESTOR)
    (tmp_path / "add.ttl").write_text(f"{PREFIX} :dan :parent :fay . :fay a :Woman .")
    (tmp_path / "remove.ttl").write_text(
        f"{PREFIX} :bea :parent :cid . :Woman <{SUB_CLASS}> :Person . :ann :ancestor :dan ."
    )
    other = start("rdfs", at="other")
    algorithms: list[Algorithm] = ["auto", "rebuild"]
    for at, algorithm in zip((kb, other), algorithms, strict=True):
        report = at.update(
            add=tmp_path / "add.ttl",
            remove=tmp_path / "remove.ttl",
            rules=["rdfs", ancestor],
            algorithm=algorithm,
        )
        assert (report.version, report.added, report.removed) == (2, 2, 3)
        assert at.rules() == ("rdfs", ancestor)
        assert derived(at, "ancestor") == {
            *(("ann", "bea"), ("cid", "dan"), ("eve", "dan"), ("dan", "fay")),
            *(("cid", "fay"), ("eve", "fay")),
        }
        assert at.verify().ok
    (tmp_path / "all.nt").write_text(
        "".join(f"{' '.join(fact)} .\n" for fact in layers(kb)["asserted"])
    )
    fresh = KnowledgeBase(tmp_path / "fresh", engine=kb.reading_engine)  # type: ignore[arg-type]
    fresh.load(tmp_path / "all.nt", rules=["rdfs", ancestor])
    assert layers(kb) == layers(fresh) == layers(other)

    back = kb.update(
        add=tmp_path / "remove.ttl", remove=tmp_path / "add.ttl", rules="rdfs", algorithm="bf"
    )
    assert (back.added, back.removed, back.version) == (3, 2, 3)
    assert list(kb.changes(1)) == []


@on_sail
def test_an_update_may_change_nothing_but_the_rules(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    kb, ancestor = start("rdfs"), write("ancestor.dl", ANCESTOR)
    report = kb.update(rules=ancestor)
    assert (report.added, report.removed, report.read) == (0, 0, 0)
    assert kb.rules() == (ancestor,)
    assert layers(kb) == layers(start(ancestor, at="fresh"))


# --- what is refused -----------------------------------------------------------------------------


@pytest.fixture
def sail(tmp_path: Path) -> KnowledgeBase:
    """The family under rdfs on Sail, for what no engine sees."""
    (tmp_path / "family.ttl").write_text(FAMILY)
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    kb.load(tmp_path / "family.ttl", rules="rdfs")
    return kb


def test_wrong_rules_change_nothing(sail: KnowledgeBase, write: Write) -> None:
    before = layers(sail), sail.version, sorted(Path(sail.path, "rules").iterdir())
    good = write("good.dl", ANCESTOR)
    for wrong, message in (
        (write("syntax.dl", "[?x, :p, ?y] :- [?x, :q ."), r"R101 .*syntax\.dl:2:"),
        (write("unsafe.dl", "[?x, :p, ?z] :- [?x, :q, ?y] ."), r"R102 .*unsafe\.dl:2:"),
        ("no-such-file.dl", "neither a profile .* nor a file"),
    ):
        for change in (
            lambda wrong=wrong: sail.change_rules(add=[good, wrong], remove="rdfs"),
            lambda wrong=wrong: sail.update(rules=[good, wrong]),
        ):
            with pytest.raises(RuleError, match=message):
                change()
    assert (layers(sail), sail.version) == before[:2]
    assert sorted(Path(sail.path, "rules").iterdir()) == before[2]
    assert sail.rules() == ("rdfs",)


def test_rules_that_are_not_there_cannot_be_removed(sail: KnowledgeBase) -> None:
    with pytest.raises(InputError, match="no rules owl2rl in the store; it has: rdfs"):
        sail.change_rules(remove="owl2rl", add="owl-horst")
    with pytest.raises(InputError, match="no rules none in the store; it has: rdfs"):
        sail.change_rules(remove=["rdfs", "none"])
    assert (sail.rules(), sail.version) == (("rdfs",), 1)


def test_a_change_without_rules_is_refused(sail: KnowledgeBase) -> None:
    with pytest.raises(InputError, match="nothing to change: name rules to add or to remove"):
        sail.change_rules()
    with pytest.raises(InputError, match=r"none stands for no rules: remove those .*rdfs"):
        sail.change_rules(add="none")
    with pytest.raises(InputError, match="no algorithm 'guess': choose auto, bf"):
        sail.change_rules(add="rdfs", algorithm="guess")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="nothing to change: say what to add, to remove, a patch"):
        sail.update()
    assert sail.version == 1


def test_where_no_store_is_none_is_created(tmp_path: Path) -> None:
    kb = KnowledgeBase(tmp_path / "none", engine="sail")
    for call in (lambda: kb.change_rules(add="rdfs"), lambda: kb.update(rules="rdfs"), kb.rules):
        with pytest.raises(NotAStore, match="no store there; `inferlake load` creates one"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_the_past_keeps_its_rules(sail: KnowledgeBase) -> None:
    past = sail.at(1)
    sail.change_rules(remove="rdfs")
    assert (past.rules(), sail.rules()) == (("rdfs",), ())
    with pytest.raises(StoreError, match="the past and cannot change"):
        past.change_rules(add="rdfs")


def test_a_load_after_a_change_keeps_the_rules(
    sail: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    sail.change_rules(add=write("ancestor.dl", ANCESTOR), remove="rdfs")
    rules = sail.rules()
    (tmp_path / "more.ttl").write_text(f"{PREFIX} :fay :parent :ann .")
    sail.load(tmp_path / "more.ttl")
    assert sail.rules() == rules
    assert {("fay", "ann"), ("fay", "bea"), ("fay", "dan")} <= derived(sail, "ancestor")


@on_sail
def test_rules_that_say_the_same_stay_whatever_they_are_called(
    start: Callable[..., KnowledgeBase], write: Write
) -> None:
    """A rule without a name is called after its line, which a comment before it moves."""
    unnamed = ANCESTOR.replace("[one] ", "").replace("[more] ", "")
    kb = start(write("mine.dl", unnamed))
    before = layers(kb)
    report = kb.update(remove=[], rules=write("mine.dl", f"# Who is whose ancestor.\n{unnamed}"))
    assert (report.algorithm, report.derived, report.withdrawn) == ("", 0, 0)
    assert layers(kb) == before and kb.verify().ok
    # Beside a new rule, it is not asked again what follows from them.
    rest = "[new] [?x, :elder, ?y] :- [?x, :ancestor, ?y] ."
    report = kb.update(remove=[], rules=write("mine.dl", f"# New.\n# Rules.\n{unnamed}{rest}"))
    assert [done.new for done in report.rounds] == [report.derived] == [7]
    assert kb.verify().ok
