"""The closure of a DataFrame of triples, on the session it lives on. No store is needed."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import uuid
from typing import TYPE_CHECKING

from inferlake.datalog.facts import Intake
from inferlake.errors import InputError
from inferlake.evaluate.blocks import Scratch
from inferlake.evaluate.closure import relation
from inferlake.evaluate.fixpoint import Limits
from inferlake.paths import Place, place
from inferlake.plan.clauses import layout
from inferlake.progress import Silent
from inferlake.rules.load import RuleNames, compiled, names_of, read_rules
from inferlake.rules.model import TRIPLE, Program
from inferlake.session import Engine, Sessions
from inferlake.store.failures import explained
from inferlake.terms import FULL, TermHash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DECODED_SQL = """
    SELECT s.term AS subject, p.term AS predicate, o.term AS object, f.layer
    FROM {facts} f
    JOIN {terms} s ON f.s = s.id JOIN {terms} p ON f.p = p.id JOIN {terms} o ON f.o = o.id"""


def materialize(
    df: DataFrame,
    rules: RuleNames = "rdfs",
    *,
    max_rounds: int | None = None,
    max_facts: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
    hash: TermHash = FULL,
) -> DataFrame:
    """Return the triples of `df` and all that follows: subject, predicate, object, layer.

    `df` has the columns subject, predicate and object, as text in N-Triples form; `rules` name
    profiles (rdfs, rdfs-full, owl-horst, owl2rl, none) and rule files. The layer of a triple is
    asserted or derived. Everything is derived before this returns. Rules that say what must not be
    (`false :- …`) are not asked: load the data into a knowledge base for that.

    The hazard: the result reads files in a scratch folder. By default that is a temporary folder of
    this machine, removed when Python exits. If the session runs elsewhere, name a `scratch`
    folder that they share; what is left there is yours to remove, once the result is written.
    """
    program = compiled(read_rules(names_of(rules)))
    if not hasattr(df, "sparkSession"):
        raise InputError("materialize takes a PySpark DataFrame; to load files, open a store")
    engine = Sessions().of(df)
    folder = _scratch_folder(scratch)
    with explained(folder, engine, "nothing was derived"):
        return _closed(engine, df, program, Scratch(folder), Limits(max_rounds, max_facts), hash)


def _closed(
    engine: Engine,
    df: DataFrame,
    program: Program,
    scratch: Scratch,
    limits: Limits,
    hash: TermHash,
) -> DataFrame:
    shape = layout(program, {TRIPLE: 3})
    intake = Intake(engine, shape, scratch, hash, Silent())
    intake.read_frame(df)
    terms = intake.terms(program.constants)
    closure = intake.close(program, terms, limits)
    asserted = relation(engine, shape, intake.blocks, TRIPLE).selectExpr("*", "'asserted' AS layer")
    derived = closure.relation(TRIPLE, derived_only=True).selectExpr("*", "'derived' AS layer")
    return engine.sql(_DECODED_SQL, facts=asserted.unionAll(derived), terms=terms)


def _scratch_folder(named: str | os.PathLike[str] | None) -> Place:
    if named is not None:
        return place(named).child(f"inferlake-{uuid.uuid4().hex}")
    folder = tempfile.mkdtemp(prefix="inferlake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return place(folder)
