"""Files to relations of ids, and the dictionary of their terms.

    table files -> cells -> terms and ids --\\
    RDF files -> staged triples -------------+-> a block of distinct facts for each relation
                                             \\-> the distinct terms
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from inferlake import parquet
from inferlake.datalog.files import PARQUET, TABLES, FactFile, as_rdf, check_columns, examine
from inferlake.datalog.tables import Tables
from inferlake.errors import InferlakeError, InputError
from inferlake.evaluate.blocks import FileBlock, Scratch
from inferlake.evaluate.closure import Closure, Rules, evaluate
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.report import Round
from inferlake.input import FRAME, InputFile, stage
from inferlake.plan.clauses import Layout
from inferlake.plan.patterns import Patterns
from inferlake.progress import Progress
from inferlake.rules.model import TRIPLE, Program
from inferlake.session import Engine, is_engine_failure, union
from inferlake.terms import TermHash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class Intake:
    """Takes in the facts of one relation after another; then `terms` and `close` work on all."""

    engine: Engine
    layout: Layout
    scratch: Scratch
    hash: TermHash
    progress: Progress
    # Whether text files begin with a line of names.
    header: bool = False

    blocks: list[FileBlock] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    _terms: list[DataFrame] = field(default_factory=list)
    _tables: list[FactFile] = field(default_factory=list)

    def read(self, relation: str, files: tuple[FactFile, ...]) -> None:
        """Take in the files of a relation. Raises `InputError` with the place of what is wrong."""
        arity = self.layout.arities[relation]
        for file in files:
            check_columns(file, relation, arity)
        tables = tuple(file for file in files if not file.is_rdf)
        rdf = tuple(file for file in files if file.is_rdf)
        parts = [self._table_rows(relation, tables, arity)] if tables else []
        parts += [self._staged(as_rdf(rdf))] if rdf else []
        self._add(relation, [part for part in parts if part is not None])

    def terms(self, constants: Iterable[str]) -> DataFrame:
        """Return `id, term` of all that was taken in and of `constants`, each once.

        Raises `InferlakeError` where two of them have one id.
        """
        texts = sorted(constants)
        parts = [*self._terms]
        if texts:
            ids = pa.array([self.hash.of(text) for text in texts], pa.int64())
            table = pa.table({"id": ids, "term": pa.array(texts, pa.string())})
            parts.append(self.engine.session.createDataFrame(table))
        if not parts:
            return self.engine.empty("id BIGINT, term STRING")
        terms = self._written(union(parts).distinct(), "id BIGINT, term STRING")
        return self.engine.empty("id BIGINT, term STRING") if terms is None else self._sound(terms)

    def close(
        self,
        program: Program,
        terms: DataFrame,
        limits: Limits,
        listen: Callable[[Round], None] = lambda done: None,
    ) -> Closure:
        """Derive all that follows from what was taken in; `terms` is the dictionary."""
        return evaluate(
            self.engine,
            Rules(program, self.hash.of),
            list(self.blocks),
            layout=self.layout,
            scratch=self.scratch,
            terms=lambda: terms,
            limits=limits,
            listen=listen,
        )

    def _sound(self, terms: DataFrame) -> DataFrame:
        asked = terms.selectExpr(
            "count(*) AS terms",
            "count(DISTINCT id) AS ids",
            # What fills up the rows of narrow relations.
            "count_if(id = 0) AS fillers",
            "count_if(instr(term, '\ufffd') > 0) AS replaced",
        )
        found = asked.collect()[0]
        if found.terms != found.ids or found.fillers:
            raise InferlakeError(
                f"two of the {found.terms:,} terms have one id, which happens once in 2^62 pairs;"
                " load the data into a knowledge base, which keeps such terms apart"
            )
        if found.replaced:  # engines put this character where bytes are not UTF-8
            for file in self._tables:
                for _ in file.rows():
                    pass
        return terms

    def _add(self, relation: str, rows: list[DataFrame]) -> None:
        """Make a block of the distinct rows: ids in the columns of the layout."""
        arity = self.layout.arities[relation]
        arguments = self.layout.arguments
        columns = [f"i{n} AS {name}" for n, name in enumerate(arguments[:arity])]
        columns += [f"BIGINT(0) AS {name}" for name in arguments[arity:]]
        if not self.layout.only_triples:
            columns.insert(0, f"BIGINT({self.layout.number(relation)}) AS r")
        self.counts[relation] = 0
        if not rows:
            return
        facts = union([part.selectExpr(*columns) for part in rows]).distinct()
        at, files = self.scratch.write(facts)
        self.counts[relation] = parquet.rows(files)
        pattern = self.layout.row(relation, ["x"] * arity)
        if files:
            self.blocks.append(FileBlock(self.layout, at, files, Patterns([pattern])))

    def read_frame(self, triples: DataFrame) -> None:
        """Take in a frame of subject, predicate and object as facts of the relation `triple`."""
        self._add(TRIPLE, [self._staged((FRAME,), triples)])

    # --- RDF --------------------------------------------------------------------------------------

    def _staged(self, files: tuple[InputFile, ...], frame: DataFrame | None = None) -> DataFrame:
        staged = stage(
            self.engine,
            self.scratch.next(),
            files,
            hash=self.hash,
            progress=self.progress,
            frame=frame,
        )
        self._terms.append(staged.terms.select("id", "term"))
        return staged.triples.selectExpr("s AS i0", "p AS i1", "o AS i2")

    # --- tables -----------------------------------------------------------------------------------

    def _table_rows(
        self, relation: str, files: tuple[FactFile, ...], arity: int
    ) -> DataFrame | None:
        """Return the ids of tables, after their rows were written with ids and terms."""
        tables = Tables(self.engine, self.scratch, self.header)
        terms = [f"t{n}" for n in range(arity)]
        ids = [f"{self.hash.sql(name)} AS i{n}" for n, name in enumerate(terms)]
        encoded = tables.terms(files, arity).selectExpr(*ids, *terms)
        try:
            at, written = self.scratch.write(encoded)
        except Exception as exc:
            if is_engine_failure(exc):
                for file in files:
                    examine(file, relation, arity)
            raise
        self._check_filled(written, relation, files, arity)
        if not written:
            return None
        columns = [f"i{n} BIGINT" for n in range(arity)] + [f"{name} STRING" for name in terms]
        rows = self.engine.session.read.schema(", ".join(columns)).parquet(at.address)
        self._tables += [file for file in files if file.kind in TABLES]
        self._terms += [rows.selectExpr(f"i{n} AS id", f"t{n} AS term") for n in range(arity)]
        return rows

    def _check_filled(
        self,
        written: tuple[parquet.DataFile, ...],
        relation: str,
        files: tuple[FactFile, ...],
        arity: int,
    ) -> None:
        """A cell that is null says that a row was too short, or that Parquet had none."""
        rows = parquet.rows(written)
        if all(parquet.filled(written, f"t{n}") == rows for n in range(arity)):
            return
        for file in files:
            examine(file, relation, arity)
        gaps = [n + 1 for n in range(arity) if parquet.filled(written, f"t{n}") < rows]
        names = ", ".join(file.at.address for file in files if file.kind == PARQUET)
        raise InputError(
            f"{names}: column {gaps[0]} has rows without a value (null), and no fact can be made of"
            " them; fill them in, or leave those rows out"
        )

    def _written(self, frame: DataFrame, columns: str) -> DataFrame | None:
        at, files = self.scratch.write(frame)
        if not files:
            return None
        return self.engine.session.read.schema(columns).parquet(at.address)
