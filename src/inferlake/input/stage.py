"""From files to staged triples: everything that is checked before the store is touched.

    files -> split by the engine -> terms -> undecided lines -> parsed with pyoxigraph
                                      \\________________________________/
                                                 triples, terms

Validity is decided by term, not by line: a line that splits into three parts is right if each part
is a term, and there are several times fewer distinct terms than lines. What the pattern of
`terms.shape` leaves undecided goes to the parser as the line that it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from inferlake import parquet
from inferlake.errors import EngineError, InferlakeError, InputError
from inferlake.input.files import InputFile, examined
from inferlake.input.frames import TIMED, frame_error, frame_lines
from inferlake.input.locate import Bad, locate
from inferlake.input.parse import Parser
from inferlake.input.rejects import rejects
from inferlake.input.rows import PARSED_SQL
from inferlake.input.small import is_small, parsed_here, terms_here
from inferlake.input.split import line_sql, split_lines
from inferlake.input.times import time_term
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.progress import Progress, counted
from inferlake.session import Engine, is_engine_failure, union
from inferlake.terms import TermHash, is_canonical_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# One job reads at most so many files, each a branch of its plan, and about so many bytes, so that
# progress shows and a plan stays small; at least a twentieth of all, so that a cluster has work.
_FILES_A_JOB = 64
_BYTES_A_JOB = 512 * 2**20
_JOBS = 20

# From so many files on, they are read as one: a branch of a plan costs more than a file of so few
# bytes. Larger ones take longer, should it turn out that each has to be read by itself after all.
_MANY_FILES = 8
_SMALL_FILE = 8 * 2**20

# Up to so many triples are looked up one by one.
FEW = 256

# So many bad lines are shown with their places; all are counted.
SHOWN = 5


@dataclass(frozen=True)
class Staged:
    """Triples that are valid and encoded, but not yet compared with what is stored.

    `triples` has ids `s, p, o` and their terms `s_term, p_term, o_term`, with repetitions; those of
    files of changes also have `sign`, which is 1 or -1, and a `place` that tells their order.
    `terms` has each `id, term` at least once; each id just once if `terms_once`. Terms that are
    only deleted are not among them: a deletion leaves no text behind.
    """

    triples: DataFrame
    terms: DataFrame
    terms_once: bool
    # The triples and the terms with their ids, if few enough to look up one by one; else None. The
    # terms may be more than those of the triples: statements that were skipped had terms too.
    few: frozenset[tuple[int, int, int]] | None
    few_terms: frozenset[tuple[int, str]] | None
    triples_read: int
    term_count: int
    bad: tuple[Bad, ...]
    bad_count: int
    graphs_dropped: int
    # The files, and the rows that stand for their errors, if there are any.
    files: tuple[InputFile, ...] = ()
    errors: DataFrame | None = None

    def rejects(self) -> Iterator[Bad]:
        """Yield every bad statement, as long as the stage's folder is there."""
        return iter(()) if self.errors is None else rejects(self.files, self.errors)


def stage(
    engine: Engine,
    folder: Place,
    files: tuple[InputFile, ...],
    *,
    hash: TermHash,
    progress: Progress,
    skip_bad: bool = False,
    frame: DataFrame | None = None,
    stored_labels: bool = False,
    time_column: str | None = None,
) -> Staged:
    """Parse `files` below the new folder `folder` and return what they hold.

    If triples come as a `frame` of the engine's, `files` is just the stand-in `FRAME`. The files
    are all of triples, or all of changes. With `stored_labels`, a blank node whose label has a
    scope is that of the store; other labels belong to their file, or to all patches. Times of
    events, in a `time_column` of the frame or as the files have them, come back in the column
    `g_term`: see `times.time_sql`.

    Raises `InputError`, with the place of the first bad statement, unless `skip_bad`. Nothing but
    `folder` is written. The driver holds the list of files and a few bad lines, never the data.
    """
    if stored_labels:
        files = tuple(f if f.in_turn else replace(f, stored_labels=True) for f in files)
    if time_column is not None:
        files = (TIMED,)
    work = _Stage(engine, folder, files, hash, progress, frame, time_column)
    try:
        return work.run(skip_bad=skip_bad)
    except InferlakeError:
        raise
    except Exception as exc:
        if not (is_engine_failure(exc) or isinstance(exc, OSError)):
            raise
        marked = files if frame is not None else examined(files)
        if marked != files:
            again = folder.child("again")
            return stage(engine, again, marked, hash=hash, progress=progress, skip_bad=skip_bad)
        raise EngineError(f"{engine.name} failed while reading the input: {exc}") from exc


@dataclass(frozen=True)
class _Written:
    """A frame over files just written, with their footers."""

    frame: DataFrame
    files: tuple[DataFile, ...]

    def filled(self, column: str) -> int:
        return parquet.filled(self.files, column)


@dataclass
class _Stage:
    """The steps of `stage`, each writing one folder; None stands for a step with nothing to do."""

    engine: Engine
    folder: Place
    files: tuple[InputFile, ...]
    hash: TermHash
    progress: Progress
    frame: DataFrame | None
    time_column: str | None = None

    @cached_property
    def _small(self) -> bool:
        return self.frame is None and is_small(self.files)

    def run(self, *, skip_bad: bool) -> Staged:
        split, seen = (None, None) if self._small else self._split_terms()
        odd = seen.frame.where("canonical = 0") if seen and _some_odd(seen) else None
        undecided = self._undecided(split, odd) if split else None
        parsed = self._parsed(undecided)
        bad_count = parsed.filled("message") if parsed else 0
        bad = self._bad(parsed.frame) if parsed and bad_count else ()
        if bad and not skip_bad:
            raise InputError(_refusal(bad, bad_count))
        good = parsed.frame.where("message IS NULL") if parsed else None
        added = good.where("coalesce(sign, 1) = 1") if good is not None else None
        also = self._also_seen(added) if added is not None else None
        decided = self._dated(_decided(split, odd)) if split else None
        columns = (*_TRIPLE, "sign", "place") if self._changes else _TRIPLE
        triples = [f.select(*columns) for f in (decided, good) if f is not None]
        triples = union(triples or [self.engine.empty(_PARSED_COLUMNS).select(*columns)])
        # What a parser wrote is canonical, whatever the pattern thinks of it.
        terms = [seen.frame.where("canonical = 1")] if seen else []
        terms = union(terms + ([also.frame] if also else []) or [self.engine.empty(_SEEN_COLUMNS)])
        read = sum(part.filled("s_term") for part in (split, parsed) if part)
        if odd is not None or (split and split.filled("g_term")):
            read = triples.count()  # lines with an undecided term were counted twice
        # Which of the changes count is for the engine to tell, whether they are few or many.
        few = None if self._changes else self._few(triples, split, read, plain=parsed is None)
        few_terms = self._few_terms([s for s in (seen, also) if s])
        return Staged(
            triples=triples,
            terms=terms,
            terms_once=also is None and self._once(terms, few_terms),
            few=few,
            few_terms=None if few_terms is None else frozenset(few_terms),
            triples_read=read,
            term_count=sum(parquet.rows(s.files) for s in (seen, also) if s),
            bad=bad,
            bad_count=bad_count,
            graphs_dropped=self._graphs(triples, split, parsed),
            files=self.files,
            errors=parsed.frame.where("message IS NOT NULL") if parsed and bad_count else None,
        )

    @property
    def _changes(self) -> bool:
        return any(file.has_changes for file in self.files)

    # --- lines ----------------------------------------------------------------------------------

    def _split_terms(self) -> tuple[_Written | None, _Written | None]:
        """Return the lines that the engine can read, split into terms, and their distinct terms.

        Many files are read as one, and once more one by one if it matters which of them a line is
        from: that of a blank node, or one for the parser.
        """
        by_engine = [n for n, file in enumerate(self.files) if file.split_by_engine]
        if self._are_many_small(by_engine):
            split = self._split(by_engine, "together", self._lines_together)
            if split is None:
                return None, None
            if not split.filled("rest") and not any(f.maxs["blank"] for f in split.files):
                seen = self._seen(split.frame, "seen-together")
                odd = seen is not None and _some_odd(seen)
                if not odd and not _odd_graphs(split):
                    return split, seen
            self.progress.advance(size=-sum(self.files[n].size for n in by_engine))
        split = self._split(by_engine, "split", self._lines)
        return split, self._seen(split.frame, "seen") if split else None

    def _are_many_small(self, numbers: list[int]) -> bool:
        if self.frame is not None or self._has_dates or len(numbers) < _MANY_FILES:
            return False
        return sum(self.files[n].size for n in numbers) <= _SMALL_FILE * len(numbers)

    def _split(
        self, by_engine: list[int], name: str, lines_of: Callable[[list[int]], DataFrame]
    ) -> _Written | None:
        """Split the lines of some files into terms; what does not split stays whole."""
        written: tuple[DataFile, ...] = ()
        for job, numbers in enumerate(_jobs(self.files, by_engine)):
            one = self.files[numbers[0]]
            graphs, stored = one.format == "nq", one.stored_labels
            lines = lines_of(numbers)
            lines = split_lines(lines, self.hash, graphs=graphs, stored_labels=stored)
            files = self._write(lines, f"{name}-{job}")
            written += files
            size = sum(self.files[n].size for n in numbers)
            self.progress.advance(size=size, triples=parquet.rows(files))
        split = self._over(written, _SPLIT_COLUMNS)
        numbered = ("INT(file) AS file", *_TRIPLE, "rest")
        return split and replace(split, frame=split.frame.selectExpr(*numbered))

    def _lines(self, numbers: list[int]) -> DataFrame:
        """Return the lines of some files, each with its file's number and blank node scope.

        One branch a file, because Sail cannot tell which file a row came from. Their numbers are
        texts: Spark writes other constants into the code that it generates, and would compile that
        anew for each file.
        """
        if self.frame is not None:
            return frame_lines(self.frame, self.time_column)

        def of(number: int) -> DataFrame:
            file = self.files[number]
            lines = self.engine.session.read.text(file.address)
            return lines.selectExpr(f"'{number}' AS file", f"'{file.scope}' AS scope", "value")

        return union([of(number) for number in numbers])

    def _lines_together(self, numbers: list[int]) -> DataFrame:
        """Return the lines of some files as if they were one, in one scan."""
        lines = self.engine.session.read.text([self.files[n].address for n in numbers])
        return lines.selectExpr(f"'{numbers[0]}' AS file", "'' AS scope", "value")

    @property
    def _has_dates(self) -> bool:
        return any(file.at is not None for file in self.files)

    def _dated(self, rows: DataFrame) -> DataFrame:
        """Return split rows with the times of their files, where those have any."""
        if not self._has_dates:
            return rows
        times = [None if file.at is None else time_term(file.at) for file in self.files]
        dates = pa.table({"file": pa.array(range(len(times)), pa.int32()), "g_term": times})
        return rows.drop("g_term").join(self.engine.session.createDataFrame(dates), "file")

    # --- terms ----------------------------------------------------------------------------------

    def _seen(self, triples: DataFrame, name: str) -> _Written | None:
        """Return the distinct terms of `triples`, each with a flag whether its shape is decided."""
        terms = self.engine.sql(_SEEN_SQL, triples=triples)
        # The pattern has braces, which `sql` would take for frames.
        checked = terms.selectExpr("*", f"INT({is_canonical_sql('term')}) AS canonical")
        return self._over(self._write(checked, name), _SEEN_COLUMNS)

    def _also_seen(self, parsed: DataFrame) -> _Written | None:
        """Return the distinct terms of triples that the parser read."""
        if not self._small:
            return self._seen(parsed, "seen-parsed")
        return self._over(self._keep(terms_here(self._parsed_here), "seen-parsed"), _SEEN_COLUMNS)

    def _few_terms(self, seen: list[_Written]) -> list[tuple[int, str]] | None:
        """Return the terms with their ids if they are few, without a job."""
        if sum(parquet.rows(part.files) for part in seen) > 3 * FEW:
            return None
        parts = (parquet.read_rows(self.folder, part.files, ["id", "term"]) for part in seen)
        return [(id, term) for rows in parts for id, term in rows]

    def _once(self, terms: DataFrame, few: list[tuple[int, str]] | None) -> bool:
        """Tell whether no two terms of one source share an id, which practically never happens."""
        if few is not None:
            return len(few) == len({id for id, _ in few})
        return terms.selectExpr("count(*) = count(DISTINCT id) AS once").collect()[0].once

    # --- what needs a parser --------------------------------------------------------------------

    def _undecided(self, split: _Written, odd: DataFrame | None) -> DataFrame | None:
        """Return the lines for the parser: those not split, and those with an undecided term."""
        lines = []
        if split.filled("rest"):
            lines.append(split.frame.where("rest IS NOT NULL").selectExpr("file", "rest AS line"))
        rows, doubts = split.frame.where("rest IS NULL"), []
        if odd is not None:
            ids = odd.select("id").distinct()
            for column in "spo":
                flagged = ids.selectExpr(f"id AS {column}", f"TRUE AS odd_{column}")
                rows = rows.join(flagged, column, "left")
                doubts.append(f"odd_{column} IS NOT NULL")
        if split.filled("g_term"):
            doubts.append(f"(g_term IS NOT NULL AND NOT {is_canonical_sql('g_term')})")
        if doubts:
            doubtful = rows.where(" OR ".join(doubts)).join(self._scopes(), "file")
            lines.append(doubtful.selectExpr("file", f"{line_sql()} AS line"))
        return union(lines) if lines else None

    def _scopes(self) -> DataFrame:
        """Return the blank node scope of each file, by its number."""
        numbers = pa.array(range(len(self.files)), pa.int32())
        scopes = pa.table({"file": numbers, "scope": [file.scope for file in self.files]})
        return self.engine.session.createDataFrame(scopes)

    def _parsed(self, undecided: DataFrame | None) -> _Written | None:
        """Parse the undecided lines and the files that are not split."""
        if self._small:
            return self._over(self._keep(self._parsed_here, "parsed"), _PARSED_COLUMNS)
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
        if not frames:
            return None
        files = self._write(union(frames).selectExpr(*_parsed_columns(self.hash)), "parsed")
        size = sum(self.files[n].size for n in whole)
        self.progress.advance(size=size, triples=parquet.filled(files, "s_term"))
        return self._over(files, _PARSED_COLUMNS)

    @cached_property
    def _parsed_here(self) -> pa.Table:
        """Small files, parsed on the driver."""
        return parsed_here(self.files, self.hash)

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
        if self.frame is not None:
            return tuple(frame_error(bad) for bad, _ in found)
        return tuple(locate(bad, self.files[number]) for bad, number in found)

    # --- small answers --------------------------------------------------------------------------

    def _few(
        self, triples: DataFrame, split: _Written | None, read: int, *, plain: bool
    ) -> frozenset[tuple[int, int, int]] | None:
        """Return the ids of the triples if they are few; without a job if no parser was used."""
        if read > FEW:
            return None
        if self._small:
            columns = [self._parsed_here.column(name).to_pylist() for name in "spo"]
            rows = [row for row in zip(*columns, strict=True) if row[0] is not None]
        elif plain:
            rows = parquet.read_rows(self.folder, split.files, "spo") if split else []
        else:
            rows = triples.select(*"spo").collect()
        return frozenset((s, p, o) for s, p, o in rows)

    def _graphs(self, triples: DataFrame, *parts: _Written | None) -> int:
        timed = any(file.timed for file in self.files)
        if timed or not any(part.filled("g_term") for part in parts if part):
            return 0
        return triples.selectExpr("count(DISTINCT g_term) AS graphs").collect()[0].graphs

    def _write(self, frame: DataFrame, name: str) -> tuple[DataFile, ...]:
        """Write `frame` into a folder and describe its files by their paths below the stage's."""
        files = parquet.write(frame, self.folder.child(name), how=parquet.PASSING)
        return tuple(replace(file, path=f"{name}/{file.path}") for file in files)

    def _keep(self, table: pa.Table, name: str) -> tuple[DataFile, ...]:
        """Write a table of the driver's as `_write` would a frame."""
        files = parquet.write_table(table, self.folder.child(name), how=parquet.PASSING)
        return tuple(replace(file, path=f"{name}/{file.path}") for file in files)

    def _over(self, files: tuple[DataFile, ...], columns: str) -> _Written | None:
        """Return the frame over written files, or None where nothing was written."""
        if not files:
            return None
        folders = sorted({file.path.split("/")[0] for file in files})
        addresses = [self.folder.child(name).address for name in folders]
        return _Written(self.engine.session.read.schema(columns).parquet(*addresses), files)


def _some_odd(seen: _Written) -> bool:
    return any(not file.mins.get("canonical") for file in seen.files)


def _odd_graphs(split: _Written) -> bool:
    """Tell whether the names of graphs need a parser; those are not among the terms."""
    if not split.filled("g_term"):
        return False
    doubtful = f"g_term IS NOT NULL AND NOT {is_canonical_sql('g_term')}"
    return bool(split.frame.where(doubtful).limit(1).collect())


def _decided(split: _Written, odd: DataFrame | None) -> DataFrame:
    """Return the split rows all of whose terms are canonical."""
    rows = split.frame.where("rest IS NULL") if split.filled("rest") else split.frame
    if split.filled("g_term"):
        rows = rows.where(f"g_term IS NULL OR {is_canonical_sql('g_term')}")
    if odd is not None:
        for column in ("s", "p", "o"):
            rows = rows.join(odd.selectExpr(f"id AS {column}"), column, "left_anti")
    return rows


def _jobs(files: tuple[InputFile, ...], numbers: list[int]) -> Iterator[list[int]]:
    """Cut the numbers of `files` into jobs of one kind, some files and some bytes each.

    Sail reads files of different compressions in one scan as if all had that of the first.
    """

    def kind(n: int) -> tuple[str, str]:
        return files[n].format, files[n].compression or ""

    limit = max(_BYTES_A_JOB, sum(files[n].size for n in numbers) // _JOBS)
    job: list[int] = []
    size = 0
    for n in sorted(numbers, key=lambda n: (kind(n), n)):
        full = len(job) == _FILES_A_JOB or size + files[n].size > limit
        if job and (full or kind(n) != kind(job[0])):
            yield job
            job, size = [], 0
        job.append(n)
        size += files[n].size
    if job:
        yield job


# --- SQL ----------------------------------------------------------------------------------------

_TRIPLE = ("s", "p", "o", "s_term", "p_term", "o_term", "g_term")
_TERMS = "s_term STRING, p_term STRING, o_term STRING, g_term STRING"
_IDS = "s BIGINT, p BIGINT, o BIGINT"
_SPLIT_COLUMNS = f"file STRING, {_TERMS}, rest STRING, {_IDS}"
_SEEN_COLUMNS = "id BIGINT, term STRING, canonical INT"
_PARSED_COLUMNS = (
    f"file INT, {_TERMS}, {_IDS}, sign INT, place BIGINT,"
    " message STRING, line BIGINT, column BIGINT, text STRING"
)


_SEEN_SQL = """
    SELECT DISTINCT id, term FROM (
        SELECT s AS id, s_term AS term FROM {triples} WHERE s_term IS NOT NULL
        UNION ALL
        SELECT p, p_term FROM {triples} WHERE p_term IS NOT NULL GROUP BY p, p_term
        UNION ALL
        SELECT o, o_term FROM {triples} WHERE o_term IS NOT NULL)"""


def _parsed_columns(hash: TermHash) -> list[str]:
    """Return the columns of parsed rows: terms under the names of split rows, and their ids."""
    terms = [f"{c} AS {c}_term" for c in "spog"]
    ids = [f"{hash.sql(c)} AS {c}" for c in "spo"]
    return ["file", *terms, *ids, "sign", "place", "message", "line", "column", "text"]


def _refusal(bad: tuple[Bad, ...], count: int) -> str:
    more = f"\n({counted(count - 1, 'more bad statement')})" if count > 1 else ""
    advice = "Nothing was changed. Mend the input, or leave it out with --on-error skip."
    return f"{bad[0]}{more}\n{advice}"
