"""From files to staged triples: everything that is checked before the store is touched.

    files -> split by the engine -> terms -> undecided lines -> parsed with pyoxigraph
                                      \\________________________________/
                                                 triples, terms

Validity is decided by term, not by line: a line that splits into three parts is right if each part
is a term, and there are several times fewer distinct terms than lines. What the pattern of
`terms.shape` leaves undecided goes to the parser as the line that it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from inferlake import parquet
from inferlake.errors import EngineError, InferlakeError, InputError
from inferlake.input.files import InputFile, read_failure
from inferlake.input.locate import Bad, locate
from inferlake.input.parse import PARSED_SQL, Parser
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.progress import Progress
from inferlake.session import Engine, is_engine_failure
from inferlake.terms import TermHash, is_canonical_sql, scoped_sql
from inferlake.terms.shape import SCOPE_LENGTH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# One job reads at most so many files, each a branch of its plan, and about so many bytes, so that
# progress shows and a plan stays small; at least a twentieth of all, so that a cluster has work.
_FILES_A_JOB = 64
_BYTES_A_JOB = 256 * 2**20
_JOBS = 20

# So many bad lines are shown with their places; all are counted.
SHOWN = 5


@dataclass(frozen=True)
class Staged:
    """Triples that are valid and encoded, but not yet compared with what is stored.

    `triples` has ids `s, p, o` and their terms `s_term, p_term, o_term`, with repetitions;
    `terms` has each `id, term` once, or more often where a parser was needed. If `clashing`, two
    terms of this input share an id.
    """

    triples: DataFrame
    terms: DataFrame
    triples_read: int
    term_count: int
    clashing: bool
    bad: tuple[Bad, ...]
    bad_count: int
    graphs_dropped: int


def stage(
    engine: Engine,
    folder: Place,
    files: tuple[InputFile, ...],
    *,
    hash: TermHash,
    progress: Progress,
    skip_bad: bool = False,
) -> Staged:
    """Parse `files` below the new folder `folder` and return what they hold.

    Raises `InputError`, with the place of the first bad statement, unless `skip_bad`. Nothing but
    `folder` is written. The driver holds the list of files and a few bad lines, never the data.
    """
    try:
        return _Stage(engine, folder, files, hash, progress).run(skip_bad=skip_bad)
    except InferlakeError:
        raise
    except Exception as exc:
        if not (is_engine_failure(exc) or isinstance(exc, OSError)):
            raise
        failure = read_failure(files)
        if failure is not None:
            raise failure from exc
        raise EngineError(f"{engine.name} failed while reading the input: {exc}") from exc


@dataclass(frozen=True)
class _Stage:
    """The steps of `stage`, each writing one folder and returning a frame over it."""

    engine: Engine
    folder: Place
    files: tuple[InputFile, ...]
    hash: TermHash
    progress: Progress

    def run(self, *, skip_bad: bool) -> Staged:
        split, split_files = self._split()
        seen, seen_files = self._seen(split, "seen")
        undecided = self._undecided(split, split_files, seen, seen_files)
        parsed, parsed_files = self._parsed(undecided)
        bad_count = parquet.filled(parsed_files, "message")
        bad = self._bad(parsed) if bad_count else ()
        if bad and not skip_bad:
            raise InputError(_refusal(bad, bad_count))
        triples, terms, term_files = split, seen, seen_files
        if parsed_files:
            good = parsed.where("message IS NULL").drop("message", "line", "column", "text")
            also, also_files = self._seen(good, "seen-parsed")
            triples = _decided(split, seen).unionByName(good)
            terms = seen.where("canonical = 1").unionByName(also)
            term_files = seen_files + also_files
        return Staged(
            triples=triples.select("s", "p", "o", "s_term", "p_term", "o_term"),
            terms=terms.select("id", "term"),
            triples_read=parquet.rows(split_files)
            - parquet.filled(split_files, "rest")
            + parquet.filled(parsed_files, "s_term"),
            term_count=parquet.rows(term_files),
            clashing=any(f.maxs["clash"] for f in term_files),
            bad=bad,
            bad_count=bad_count,
            graphs_dropped=self._graphs(triples, split_files + parsed_files),
        )

    # --- lines ----------------------------------------------------------------------------------

    def _split(self) -> tuple[DataFrame, tuple[DataFile, ...]]:
        """Split the lines that the engine can read into terms; the rest of a line stays whole."""
        by_engine = [n for n, file in enumerate(self.files) if file.split_by_engine]
        written: tuple[DataFile, ...] = ()
        folders = []
        for job, numbers in enumerate(_jobs(self.files, by_engine)):
            at = self.folder.child(f"split-{job}")
            graphs = self.files[numbers[0]].format == "nq"
            frame = self.engine.sql(
                _split_sql(self.hash, graphs=graphs), lines=self._lines(numbers)
            )
            files = parquet.write(frame, at)
            if files:
                folders.append(at.address)
                written += files
            size = sum(self.files[n].size for n in numbers)
            self.progress.advance(size=size, triples=parquet.rows(files))
        return self._read(folders, _SPLIT_COLUMNS), written

    def _lines(self, numbers: list[int]) -> DataFrame:
        """Return the lines of some files, each with its file's number and blank node scope.

        One branch a file, because Sail cannot tell which file a row came from.
        """

        def of(number: int) -> DataFrame:
            file = self.files[number]
            lines = self.engine.session.read.text(file.address)
            return lines.selectExpr(f"{number} AS file", f"'{file.scope}' AS scope", "value")

        return reduce(lambda one, other: one.unionAll(other), map(of, numbers))

    # --- terms ----------------------------------------------------------------------------------

    def _seen(self, triples: DataFrame, name: str) -> tuple[DataFrame, tuple[DataFile, ...]]:
        """Return the distinct terms of `triples`, each with a flag whether its shape is decided.

        Grouping by id alone is several times faster than by the strings. If it shows two terms of
        one id, which practically never happens, the group is by both after all.
        """
        # The pattern has braces, which `sql` would take for frames.
        checked = ("*", f"INT({is_canonical_sql('term')}) AS canonical")
        frame = self.engine.sql(_seen_sql("id"), triples=triples).selectExpr(*checked)
        files = parquet.write(frame, self.folder.child(name))
        if any(file.maxs["clash"] for file in files):
            name = f"{name}-apart"
            frame = self.engine.sql(_seen_sql("id, term"), triples=triples).selectExpr(*checked)
            files = parquet.write(frame, self.folder.child(name))
            files = tuple(replace(file, maxs={**file.maxs, "clash": 1}) for file in files)
        at = [self.folder.child(name).address] if files else []
        return self._read(at, _SEEN_COLUMNS), files

    # --- what needs a parser --------------------------------------------------------------------

    def _undecided(
        self,
        split: DataFrame,
        split_files: tuple[DataFile, ...],
        seen: DataFrame,
        seen_files: tuple[DataFile, ...],
    ) -> DataFrame | None:
        """Return the lines for the parser: those not split, and those with an undecided term."""
        lines = []
        if parquet.filled(split_files, "rest"):
            lines.append(split.where("rest IS NOT NULL").selectExpr("file", "rest AS line"))
        if any(not file.mins["canonical"] for file in seen_files):
            odd = seen.where("canonical = 0").selectExpr("id")
            rows = split.where("rest IS NULL")
            for column in ("s", "p", "o"):
                hit = self.engine.sql(_SEMI_SQL.format(column=column), rows=rows, odd=odd)
                lines.append(hit.selectExpr("file", f"{_LINE_SQL} AS line"))
        if parquet.filled(split_files, "g_term"):
            odd = split.where(f"g_term IS NOT NULL AND NOT {is_canonical_sql('g_term')}")
            lines.append(odd.selectExpr("file", f"{_LINE_SQL} AS line"))
        if not lines:
            return None
        return reduce(lambda one, other: one.unionAll(other), lines).distinct()

    def _parsed(self, undecided: DataFrame | None) -> tuple[DataFrame, tuple[DataFile, ...]]:
        """Parse the undecided lines and the files that are not split."""
        parser = Parser(self.files)
        frames = []
        if undecided is not None:
            raw = undecided.selectExpr("file", "CAST(line AS BINARY) AS line")
            frames.append(raw.mapInArrow(parser.lines, PARSED_SQL))
        whole = [n for n, file in enumerate(self.files) if not file.split_by_engine]
        if whole:
            numbers = pa.table({"file": pa.array(whole, pa.int32())})
            # One row a partition: a file is the smallest piece of work there is.
            spread = self.engine.session.createDataFrame(numbers).repartition(len(whole))
            frames.append(spread.mapInArrow(parser.documents, PARSED_SQL))
        at = self.folder.child("parsed")
        if not frames:
            return self._read([], _PARSED_COLUMNS), ()
        rows = reduce(lambda one, other: one.unionAll(other), frames)
        files = parquet.write(self.engine.sql(_parsed_sql(self.hash), rows=rows), at)
        size = sum(self.files[n].size for n in whole)
        self.progress.advance(size=size, triples=parquet.filled(files, "s_term"))
        return self._read([at.address] if files else [], _PARSED_COLUMNS), files

    def _bad(self, parsed: DataFrame) -> tuple[Bad, ...]:
        rows = (
            parsed.where("message IS NOT NULL")
            .selectExpr("file", "line", "column", "text", "message")
            .orderBy("file", "line", "text")
            .limit(SHOWN)
            .collect()
        )
        found = (
            (Bad(self.files[r.file].address, r.line, r.column, r.text, r.message), r.file)
            for r in rows
        )
        return tuple(locate(bad, self.files[number]) for bad, number in found)

    def _graphs(self, triples: DataFrame, files: tuple[DataFile, ...]) -> int:
        if not parquet.filled(files, "g_term"):
            return 0
        return triples.selectExpr("count(DISTINCT g_term) AS graphs").collect()[0].graphs

    def _read(self, folders: list[str], columns: str) -> DataFrame:
        if not folders:
            return self.engine.empty(columns)
        return self.engine.session.read.schema(columns).parquet(*folders)


def _decided(split: DataFrame, seen: DataFrame) -> DataFrame:
    """Return the split rows all of whose terms are canonical."""
    odd = seen.where("canonical = 0").selectExpr("id")
    rows = split.where(f"rest IS NULL AND (g_term IS NULL OR {is_canonical_sql('g_term')})")
    for column in ("s", "p", "o"):
        rows = rows.join(odd.withColumnRenamed("id", column), column, "left_anti")
    return rows.drop("rest")


def _jobs(files: tuple[InputFile, ...], numbers: list[int]) -> Iterator[list[int]]:
    """Cut the numbers of `files` into jobs of one format, some files and some bytes each."""
    limit = max(_BYTES_A_JOB, sum(files[n].size for n in numbers) // _JOBS)
    job: list[int] = []
    size = 0
    for n in sorted(numbers, key=lambda n: (files[n].format, n)):
        full = len(job) == _FILES_A_JOB or size + files[n].size > limit
        if job and (full or files[n].format != files[job[0]].format):
            yield job
            job, size = [], 0
        job.append(n)
        size += files[n].size
    if job:
        yield job


# --- SQL ----------------------------------------------------------------------------------------

_TERMS = "s_term STRING, p_term STRING, o_term STRING, g_term STRING"
_IDS = "s BIGINT, p BIGINT, o BIGINT"
_SPLIT_COLUMNS = f"file INT, {_TERMS}, rest STRING, {_IDS}"
_SEEN_COLUMNS = "id BIGINT, term STRING, clash INT, canonical INT"
_PARSED_COLUMNS = (
    f"file INT, {_TERMS}, {_IDS}, message STRING, line BIGINT, column BIGINT, text STRING"
)

_SEMI_SQL = "SELECT rows.* FROM {{rows}} rows LEFT SEMI JOIN {{odd}} odd ON rows.{column} = odd.id"


def _unscoped(term: str) -> str:
    label = f"concat('_:', substring({term}, {SCOPE_LENGTH + 3}))"
    return f"IF(startswith({term}, '_:'), {label}, {term})"


# The line that a split row came from: splitting at single spaces loses nothing.
_LINE_SQL = (
    f"concat({_unscoped('s_term')}, ' ', p_term, ' ', {_unscoped('o_term')},"
    f" IF(g_term IS NULL, '', concat(' ', {_unscoped('g_term')})), ' .')"
)


def _split_sql(hash: TermHash, *, graphs: bool) -> str:
    """Return SQL that splits `{lines}`: subject, space, predicate, space, object, space, dot."""
    graph = "NULL"
    object = "tail"
    if graphs:
        # A last word that looks like a name and has no quote in it is the graph: inside a literal
        # there would be a quote behind it.
        last = "substring_index(tail, ' ', -1)"
        named = f"(startswith({last}, '<') OR startswith({last}, '_:')) AND instr({last}, '\"') = 0"
        graph = f"IF({last} <> tail AND {named}, {last}, NULL)"
        object = "IF(graph IS NULL, tail, left(tail, length(tail) - length(graph) - 1))"
    scoped = {
        "s_term": scoped_sql("subject", "scope"),
        "p_term": "predicate",
        "o_term": scoped_sql("object", "scope"),
        "g_term": scoped_sql("graph", "scope"),
    }
    terms = ", ".join(f"IF(whole, NULL, {sql}) AS {name}" for name, sql in scoped.items())
    return f"""
        WITH words AS (
            SELECT file, scope, value, split(value, ' ', 3) AS word FROM {{lines}}
            WHERE value <> '' AND NOT startswith(value, '#')
        ), parts AS (
            SELECT file, scope, value, get(word, 0) AS subject, get(word, 1) AS predicate,
                   left(get(word, 2), length(get(word, 2)) - 2) AS tail,
                   NOT coalesce(endswith(get(word, 2), ' .') AND startswith(get(word, 1), '<')
                       AND (startswith(value, '<') OR startswith(value, '_:'))
                       AND is_valid_utf8(value), FALSE) AS whole
            FROM words
        ), quads AS (
            SELECT file, scope, value, subject, predicate, tail, whole, {graph} AS graph FROM parts
        ), named AS (
            SELECT file, scope, value, subject, predicate, {object} AS object, graph, whole
            FROM quads
        ), split AS (
            SELECT file, {terms}, IF(whole, value, NULL) AS rest FROM named
        )
        SELECT file, s_term, p_term, o_term, CAST(g_term AS STRING) AS g_term, rest,
               {hash.sql("s_term")} AS s, {hash.sql("p_term")} AS p, {hash.sql("o_term")} AS o
        FROM split"""


def _seen_sql(key: str) -> str:
    return f"""
        WITH seen AS (
            SELECT s AS id, s_term AS term FROM {{triples}} WHERE s_term IS NOT NULL
            UNION ALL
            SELECT p, p_term FROM {{triples}} WHERE p_term IS NOT NULL GROUP BY p, p_term
            UNION ALL
            SELECT o, o_term FROM {{triples}} WHERE o_term IS NOT NULL
        ), grouped AS (
            SELECT id, min(term) AS first, max(term) AS last FROM seen GROUP BY {key}
        )
        SELECT id, first AS term, INT(first <> last) AS clash FROM grouped"""


def _parsed_sql(hash: TermHash) -> str:
    return f"""
        SELECT file, s AS s_term, p AS p_term, o AS o_term, g AS g_term,
               {hash.sql("s")} AS s, {hash.sql("p")} AS p, {hash.sql("o")} AS o,
               message, line, column, text
        FROM {{rows}}"""


def _refusal(bad: tuple[Bad, ...], count: int) -> str:
    more = f"\n({count - 1} more bad statements)" if count > 1 else ""
    return f"{bad[0]}{more}\nNothing was loaded. Mend the input, or load the rest with --on-error skip."
