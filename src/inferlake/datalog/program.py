"""Run a Datalog program over files of facts, and write what follows to files, without a store."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from inferlake.datalog.facts import Intake
from inferlake.datalog.files import FactFile, find, looks_headed
from inferlake.datalog.outputs import FORMATS, Format, Outputs, check_output, publish
from inferlake.datalog.report import RelationCount, RunReport
from inferlake.errors import InputError
from inferlake.evaluate.blocks import Scratch
from inferlake.evaluate.closure import Closure
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.report import Contradiction
from inferlake.paths import Place, place
from inferlake.plan.clauses import layout
from inferlake.progress import Progress, Silent, Stopwatch
from inferlake.rules.check import is_auxiliary
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE, Program
from inferlake.rules.parse import VLOG_SUFFIX
from inferlake.session import EngineName, Sessions
from inferlake.store.failures import explained
from inferlake.terms import FULL, TermHash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

# Contradictions of one rule that a report lists.
_SHOWN = 20

# VLog's name for the relation of triples.
_VLOG_TRIPLE = "TE"

# Text in a compressed file is about this many times longer; a guess to choose an engine by.
_INFLATION = 8


def run(
    program: str | os.PathLike[str],
    facts: Mapping[str, Paths],
    output: str | os.PathLike[str],
    *,
    format: Format = "csv",
    header: bool = False,
    engine: EngineName = "auto",
    spark: SparkSession | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    max_rounds: int | None = None,
    max_facts: int | None = None,
    progress: Progress | None = None,
    hash: TermHash = FULL,
) -> RunReport:
    """Derive all that follows from `facts` by `program`, and write it into the folder `output`.

    `facts` names files for each relation: CSV, TSV, Soufflé's `.facts`, Parquet, or RDF, which has
    three columns. With `header`, each CSV and TSV file begins with a line of names, which is passed
    over. `output` must be new or empty; it gets one file for each relation that a rule derives, all
    of them or, on any error, none.
    """
    if format not in FORMATS:
        raise InputError(f"no format {format!r}: choose one of {', '.join(FORMATS)}")
    watch = Stopwatch(progress or Silent())
    name, to = os.fspath(program), place(output)
    rules = compiled(read_rules([name]))
    files = _files(facts, rules, vlog=name.endswith(VLOG_SUFFIX))
    check_output(to)
    chosen = Sessions(engine, spark, master, dict(conf or {})).for_change(_text_size(files))
    with explained(to, chosen, "nothing was written"), _workplace(to) as work:
        scratch = Scratch(work.child("scratch"))
        intake = Intake(chosen, layout(rules), scratch, hash, watch.progress, header)
        with watch.phase("read"):
            for relation, some in files.items():
                intake.read(relation, some)
            terms = intake.terms(rules.constants)
        with watch.phase("derive"):
            limits = Limits(max_rounds, max_facts)
            closure = intake.close(
                rules, terms, limits, lambda done: watch.progress.note(str(done))
            )
            broken, more = _contradictions(closure, terms)
            counts = _counts(intake, closure)
        written = _derived_relations(rules)
        with watch.phase("write"):
            finished = work.child("finished")
            Outputs(closure, terms, scratch).write(written, finished, format)
            publish(finished, to)
    return RunReport(
        program=name,
        output=to.address,
        relations=counts,
        written=written,
        rounds=tuple(closure.rounds),
        engine=chosen.name,
        seconds=dict(watch.seconds),
        contradictions=broken,
        more_contradictions=more,
        warnings=tuple(_warnings(rules, files, header=header)),
    )


def _text_size(files: Mapping[str, tuple[FactFile, ...]]) -> int:
    several = (file for some in files.values() for file in some)
    return sum(file.size * (_INFLATION if file.compression else 1) for file in several)


def _counts(intake: Intake, closure: Closure) -> dict[str, RelationCount]:
    given, derived = intake.counts, closure.counts()
    return {
        relation: RelationCount(given.get(relation, 0), derived.get(relation, 0))
        for relation in sorted(intake.layout.arities)
    }


@contextmanager
def _workplace(output: Place) -> Iterator[Place]:
    """Yield a folder beside `output`, on the same disk, and remove it at the end, come what may."""
    work = place(f"{output.address}.{uuid.uuid4().hex}.tmp")
    try:
        yield work
    finally:
        with suppress(OSError):
            work.remove()


def _files(
    facts: Mapping[str, Paths], program: Program, *, vlog: bool
) -> dict[str, tuple[FactFile, ...]]:
    """Return the files of each relation, or raise `InputError` if the program has no such."""
    arities = program.arities
    found: dict[str, tuple[FactFile, ...]] = {}
    for name, paths in facts.items():
        relation = TRIPLE if vlog and name == _VLOG_TRIPLE else name
        if relation not in arities:
            known = ", ".join(sorted(arities)) or "it has no rules"
            raise InputError(
                f"facts for {name}, which no rule of the program mentions; relations are: {known}"
            )
        files = tuple(file for path in _paths(name, paths) for file in find(os.fspath(path)))
        table = next((file for file in files if not file.is_rdf), None)
        if relation == TRIPLE and table is not None:
            raise InputError(
                f"{table.at.address}: the relation {TRIPLE} takes RDF files; give tables to a"
                f" relation of another name, and make triples of it by a rule"
            )
        found[relation] = found.get(relation, ()) + files
    return found


def _paths(relation: str, given: Any) -> Sequence[str | os.PathLike[str]]:
    several = [given] if isinstance(given, str | os.PathLike) else given
    if isinstance(several, list | tuple) and all(isinstance(p, str | os.PathLike) for p in several):
        return several
    raise InputError(
        f"a {type(given).__name__} is no facts for {relation}: give paths of files (a DataFrame can"
        " be written as Parquet)"
    )


def _derived_relations(program: Program) -> tuple[str, ...]:
    """Return the relations that some rule derives from others, without auxiliary ones."""
    heads = (head.relation for rule in program.rules if rule.body for head in rule.heads)
    return tuple(sorted({name for name in heads if not is_auxiliary(name)}))


def _contradictions(closure: Closure, terms: DataFrame) -> tuple[tuple[Contradiction, ...], bool]:
    broken, more = closure.contradictions(_SHOWN)
    shape = closure.fixpoint.queries.layout
    named = [(one.rule, [shape.named(row) for row in one.facts]) for one in broken]
    ids = {id for _, facts in named for _, args in facts for id in args}
    if not ids:
        return tuple(Contradiction(rule, ()) for rule, _ in named), more
    some = ", ".join(f"BIGINT('{id}')" for id in sorted(ids))
    texts = {row.id: row.term for row in terms.where(f"id IN ({some})").collect()}
    return tuple(
        Contradiction(rule, tuple((name, tuple(texts[id] for id in args)) for name, args in facts))
        for rule, facts in named
    ), more


def _warnings(
    program: Program, files: Mapping[str, tuple[FactFile, ...]], *, header: bool
) -> Iterator[str]:
    derived = {head.relation for rule in program.rules for head in rule.heads}
    asked = dict.fromkeys(atom.relation for rule in program.rules for atom in rule.body)
    for name in asked:
        if name not in derived and name not in files:
            yield f"no facts of {name}: no rule derives it; give some with --facts {name}=FILE"
    for file in (file for some in files.values() for file in some if not header):
        if looks_headed(file):
            yield (
                f"{file.at.address}: the first row looks like names of columns, and was taken for"
                " a fact; say --header if it is not"
            )
