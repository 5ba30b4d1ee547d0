"""The knowledge base: one class for everything a user does with a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from inferlake import maintain
from inferlake.arguments import (
    LayerChoice,
    Moment,
    layers_of,
    listed,
    milliseconds,
    skips_bad,
    source_of,
    transaction_of,
    window_of,
)
from inferlake.errors import InputError, StoreError
from inferlake.evaluate.fixpoint import Limits
from inferlake.export import export, export_patch
from inferlake.maintain import (
    ALGORITHMS,
    Algorithm,
    Change,
    ChangeReport,
    VerifyReport,
)
from inferlake.maintain.changes import Changes, changes, followed
from inferlake.maintain.derive import Derivation
from inferlake.maintain.expiries import expiries
from inferlake.maintain.forget import ForgetReport, forget
from inferlake.maintain.purge import must_purge, purge
from inferlake.maintain.repair import live_rows
from inferlake.maintain.rules import RuleChange
from inferlake.plan.clauses import Layout
from inferlake.plan.compile import Options
from inferlake.progress import Progress, Silent, Stopwatch
from inferlake.rules.load import NONE, RuleNames, compiled, names_of, read_rules
from inferlake.session import Engine, EngineName, Sessions, union
from inferlake.store import ARRANGING, LAYERS, Store, VersionInfo
from inferlake.store.compact import Compacted, compact_facts, compact_terms
from inferlake.store.facts import TRIPLE, TRIPLE_ARITY, argument_columns
from inferlake.store.failures import explained
from inferlake.store.layout import RDF_TYPE
from inferlake.store.table import Snapshot
from inferlake.store.until import clock, is_until
from inferlake.store.vacuum import Vacuumed, vacuum
from inferlake.terms import FULL, TermHash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from inferlake.arguments import Inputs
    from inferlake.stream import Stream, Trigger
    from inferlake.stream.options import OnError


@dataclass(frozen=True)
class Stats:
    """The size of one version."""

    version: int
    asserted: int
    derived: int
    terms: int
    predicates: int
    classes: int
    files: int
    bytes: int
    # What the rules derive besides triples; None where nothing is.
    other_facts: int | None = None
    # The time up to which facts that expire have gone, in milliseconds since 1970.
    clock: int | None = None

    def as_dict(self) -> dict[str, int]:
        """Return the numbers as JSON would have them, without what there is none of."""
        return {name: number for name, number in asdict(self).items() if number is not None}


@dataclass(frozen=True)
class CompactReport:
    """What `compact` did to the facts and to the dictionary."""

    version: int
    facts: Compacted
    terms: Compacted
    engine: str
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class ExportReport:
    """What `export` or `export_changes` wrote."""

    version: int
    triples: int
    engine: str
    seconds: Mapping[str, float]
    # The version that changes begin at.
    from_version: int | None = None


class KnowledgeBase:
    """A store, and the engines that work on it.

    Nothing is created or read before it is needed: a knowledge base that does not exist yet is
    created by its first `load`. One object may serve many calls, from one thread at a time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        engine: EngineName = "auto",
        spark: SparkSession | None = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        version: int | None = None,
        rules: RuleNames | None = None,
        options: Options | None = None,
        hash: TermHash = FULL,
    ) -> None:
        self._rules = None if rules is None else names_of(rules)
        self._options = options or Options()
        self._sessions = Sessions(engine, spark, master, dict(conf or {}))
        self._progress = progress or Silent()
        self._at = version
        self._store = Store.at(os.fspath(path), hash)
        if version is not None:
            self._store.require().snapshot(version)

    def __repr__(self) -> str:
        at = f" at version {self._at}" if self._at is not None else ""
        return f"<KnowledgeBase {self.path}{at}>"

    @property
    def path(self) -> str:
        """Where the store is."""
        return self._store.place.address

    @property
    def reading_engine(self) -> str:
        """The engine that look-ups and frames run on."""
        return self._sessions.for_reading().name

    @property
    def version(self) -> int:
        """The version this object shows: the newest, unless it came from `at`."""
        return self._snapshot().version

    def at(self, version: int) -> KnowledgeBase:
        """Return the knowledge base as it was in `version`, for reading only."""
        past = KnowledgeBase(
            self.path, progress=self._progress, version=version, hash=self._store.hash
        )
        past._sessions = self._sessions
        return past

    def history(self) -> list[VersionInfo]:
        """Return the versions, newest first: time, what was done, counts, engine."""
        self._snapshot()  # refuses what this release cannot read
        return self._store.history()

    def load(
        self,
        *inputs: str | os.PathLike[str] | list[str | os.PathLike[str]] | DataFrame,
        format: str | None = None,
        on_error: Literal["fail", "skip"] = "fail",
        transaction: tuple[str, int] | None = None,
        rules: RuleNames | None = None,
        max_rounds: int | None = None,
        max_facts: int | None = None,
        count: bool = False,
    ) -> ChangeReport:
        """Add the triples of files, folders and globs, or of one DataFrame, as one new version.

        A DataFrame has the columns subject, predicate and object, as text in N-Triples form, and
        the load runs on its session.

        A bad statement stops the load with its place, and nothing is stored; with
        `on_error="skip"` the rest is loaded and the report counts what was left out. A
        `transaction` such as `("nightly", 17)` makes a repeated call with the same or a lower
        number change nothing.

        The version is closed under `rules`, by default those the store has. If they differ from
        those, what the lost ones gave goes and what the new ones give comes. With `max_rounds` or
        `max_facts`, a load that would go further fails and changes nothing. `count` also counts
        what each round derives before repetitions are dropped.
        """
        skips = skips_bad(on_error)
        # A list is what PySpark's readers take.
        named = [i for item in inputs for i in (item if isinstance(item, list) else [item])]
        if not named:
            raise InputError("nothing to load: name a file, a folder, a glob or a DataFrame")
        return self._apply(
            Change(
                add=source_of(named, format),
                operation="load",
                skip_bad=skips,
                transaction=transaction_of(transaction),
                how=self._how(rules, max_rounds, max_facts, count=count),
            )
        )

    def update(
        self,
        *,
        add: Inputs = None,
        remove: Inputs = None,
        patch: Inputs = None,
        algorithm: Algorithm = "auto",
        rules: RuleNames | None = None,
        format: str | None = None,
        on_error: Literal["fail", "skip"] = "fail",
        transaction: tuple[str, int] | None = None,
        window: timedelta | None = None,
        at: Moment | None = None,
        time_column: str | None = None,
        now: Moment | None = None,
        max_rounds: int | None = None,
        max_facts: int | None = None,
        count: bool = False,
    ) -> ChangeReport:
        """Remove triples, add triples and apply patches, in this order, as one new version.

        Each of them is a path or a list of paths; what to add and remove may also be a DataFrame
        with the columns subject, predicate and object. A patch is a file of RDF Patch (`.rdfp`) or
        of SPARQL Update with nothing but INSERT DATA and DELETE DATA (`.ru`).
        To remove what is not asserted changes nothing; the report counts it. What is derived
        follows: whatever no longer holds goes, by `algorithm`: bf, dred, counting, rebuild, or
        auto, which chooses and says why.

        With a `window`, what is added expires: so long after the time of its event, which is in
        the `time_column` of a DataFrame (a timestamp, or milliseconds since 1970), or `at`, by
        default the present. It goes when the clock of the store is advanced that far, by `expire`
        or, before anything else is done, to `now`.
        """
        lasting = window_of(window, at, time_column, add, patch)
        sources = {
            name: source_of(listed(given), format, name)
            for name, given in (("add", add), ("remove", remove), ("patch", patch))
        }
        if not any(source.files for source in sources.values()) and rules is None:
            raise InputError(
                "nothing to change: say what to add, to remove, a patch, or other rules"
            )
        sources["add"] = replace(sources["add"], time_column=time_column)
        return self._apply(
            Change(
                add=sources["add"],
                remove=sources["remove"],
                patch=sources["patch"],
                operation="update",
                skip_bad=skips_bad(on_error),
                transaction=transaction_of(transaction),
                how=self._how(rules, max_rounds, max_facts, count=count, algorithm=algorithm),
                window=lasting,
                clock=None if now is None else milliseconds(now),
            )
        )

    def expire(
        self, now: Moment | None = None, *, transaction: tuple[str, int] | None = None
    ) -> ChangeReport:
        """Advance the clock to `now`, by default the present, and let go what is due by then.

        What was derived from it goes in the same version, without any rule being run: until when
        it holds was found when it was derived. The clock never goes back.
        """
        time = milliseconds(datetime.now(UTC) if now is None else now)
        return self._apply(
            Change(operation="expire", clock=time, transaction=transaction_of(transaction))
        )

    def change_rules(
        self,
        *,
        add: RuleNames = (),
        remove: RuleNames = (),
        algorithm: Algorithm = "auto",
    ) -> ChangeReport:
        """Add and remove rules, by the names that `rules` gives, as one new version."""
        there = self._store.rules_at(self._snapshot()) or ()
        known = ", ".join(text.name for text in there) or "none"
        if not names_of(add) and not names_of(remove):
            raise InputError(f"nothing to change: name rules to add or to remove; it has: {known}")
        if NONE in names_of(add):
            raise InputError(f"none stands for no rules: remove those there are ({known}) instead")
        lost = tuple(one if isinstance(one, str) else one.name for one in names_of(remove))
        rules = RuleChange(read_rules(names_of(add)), lost)
        compiled(rules.of(there))  # before any work
        return self._apply(
            Change(
                operation="rules",
                how=replace(self._how(None, None, None, algorithm=algorithm), rules=rules),
            )
        )

    def _how(
        self,
        rules: RuleNames | None,
        max_rounds: int | None,
        max_facts: int | None,
        *,
        count: bool = False,
        algorithm: Algorithm = "auto",
    ) -> Derivation:
        if algorithm not in ALGORITHMS:
            raise InputError(f"no algorithm {algorithm!r}: choose {', '.join(ALGORITHMS)}")
        return Derivation(
            self._rules if rules is None else names_of(rules),
            Limits(max_rounds, max_facts),
            replace(self._options, counted=count),
            algorithm,
        )

    def _apply(self, change: Change, sessions: Sessions | None = None) -> ChangeReport:
        sessions = sessions or self._sessions
        self._writable(creates=change.operation in ("load", "stream"))
        frames = [s.frame for s in (change.add, change.remove, change.patch) if s.frame is not None]
        if frames:
            engine = sessions.of(frames[0])
        else:
            size = sum(file.text_size for file in change.files)
            if change.operation == "rules":
                size = self._store.text_size(self._snapshot())
            engine = sessions.for_change(size)
        return maintain.apply(self._store, engine, change, self._progress)

    def stream(
        self,
        source: str | os.PathLike[str] | DataFrame,
        *,
        column: str = "value",
        name: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        trigger: str | Trigger = "1s",
        max_files: int | None = 100,
        max_lines: int = 500_000,
        on_error: OnError = "dead-letter",
        rules: RuleNames | None = None,
        algorithm: Algorithm = "auto",
        fold_after: int | None = None,
        window: timedelta | None = None,
        time_column: str | None = None,
    ) -> Stream:
        """Return a stream from `source`, each batch of which becomes one version; `start()` it.

        The source is a folder that receives files, `kafka://host:port/topic`, `-` for standard
        input, or a streaming DataFrame with a `column` of N-Triples or RDF Patch lines. A DataFrame
        with the columns partition and offset, as Kafka's has, counts in that order.

        A stream that is started again goes on where it was: by its `checkpoint`, which is below
        the knowledge base by the stream's `name`, unless you say where. Each stream of DataFrames
        into one knowledge base needs a name of its own. `trigger` is a time such as 5s, once, or
        available-now. With `on_error="fail"` a bad line ends the stream, with its place; else it
        goes to the dead letters. Small files are folded after `fold_after` versions.

        With a `window`, a triple that the stream adds expires so long after its event, and each
        batch first lets go what is due. Events are of the time when they arrive: a file's, when it
        was last written, a line's of Kafka, that of its message; and time goes on by the wall
        clock, also while nothing comes. With a `time_column` of the DataFrame (timestamps, or
        milliseconds since 1970) they have their own times, and only events move the clock.
        """
        from inferlake.stream import Stream, StreamOptions, Trigger
        from inferlake.stream.sail import RenewedSail
        from inferlake.stream.writer import Target

        self._writable(creates=True)
        more = {} if fold_after is None else {"fold_due": fold_after}
        options = StreamOptions(
            trigger=Trigger.of(trigger),
            max_files=max_files,
            max_lines=max_lines,
            on_error=on_error,
            checkpoint=None if checkpoint is None else os.fspath(checkpoint),
            name=name,
            how=self._how(rules, None, None, algorithm=algorithm),
            window=window,
            time_column=time_column,
            **more,
        )
        sail = RenewedSail()
        sessions = replace(self._sessions, sail=sail.session)

        def apply(change: Change) -> ChangeReport:
            return self._apply(change, sessions)

        target = Target(self._store, sessions, apply, self._arities, sail)
        return Stream(source, target, options, column)

    def follow(
        self,
        from_version: int | None = None,
        layer: LayerChoice = "all",
        *,
        poll: float = 1.0,
        until: Callable[[], bool] | None = None,
    ) -> Iterator[Changes]:
        """Yield the changes of each version after `from_version`, as they come; else of new ones.

        Versions that only arrange files are passed over. Looks for new versions every `poll`
        seconds, for ever, or until `until()` is true and no version is left. To go on after a
        pause, keep the `later` of the last changes, and begin from it.
        """
        start = self._snapshot().version if from_version is None else from_version
        engine = self._sessions.for_reading
        return followed(self._store, engine, start, layers_of(layer), poll=poll, until=until)

    def follow_patches(
        self,
        from_version: int | None = None,
        layer: LayerChoice = "all",
        *,
        poll: float = 1.0,
        until: Callable[[], bool] | None = None,
    ) -> Iterator[ExportReport]:
        """Write the changes of each version to standard output as a transaction of RDF Patch.

        A header before each has the number of its version, to go on from.
        """
        from inferlake.stream.sail import RenewedSail

        sail = RenewedSail()
        sessions = replace(self._sessions, sail=sail.session)

        def engine() -> Engine:
            sail.renew_if_large()
            return sessions.for_reading()

        start = self._snapshot().version if from_version is None else from_version
        layers = layers_of(layer)
        try:
            for found in followed(self._store, engine, start, layers, poll=poll, until=until):
                yield self._exported(found, sessions.for_reading())
        finally:
            sail.close()

    def _exported(self, found: Changes, engine: Engine) -> ExportReport:
        """Write the changes of one version to standard output."""
        watch = Stopwatch(self._progress)
        with explained(self._store.place, engine, "the rest was not written"):
            lines = [found.lines(change) for change in ("removed", "added")]
            header = f'H version "{found.later}" .'
            count = export_patch(
                self._store, engine, lines, None, watch, found.require_files, header=header
            )
        return ExportReport(found.later, count, engine.name, watch.seconds, found.earlier)

    def changes(
        self,
        from_version: int | None = None,
        to_version: int | None = None,
        layer: LayerChoice = "all",
    ) -> Changes:
        """Return which triples became true from one version to another, and which ceased to be.

        By default those of the last change up to this version. Iterate over the result, whose rows
        have change (added or removed), subject, predicate and object; or take its `frame`.
        """
        later = self._store.require().snapshot(self._at if to_version is None else to_version)
        start = self._before(later) if from_version is None else from_version
        earlier = self._store.snapshot(start)
        if start > later.version:
            raise InputError(f"version {start} is later than {later.version}: swap them")
        return changes(self._store, self._sessions.for_reading(), earlier, later, layers_of(layer))

    def _before(self, later: Snapshot) -> int:
        """Return the version before the last change, behind which files may have been arranged."""
        for one in self._store.history():
            if one.version <= later.version and one.operation not in ARRANGING:
                return max(0, one.version - 1)
        return 0

    def export_changes(
        self,
        output: str | os.PathLike[str] | None = None,
        from_version: int | None = None,
        to_version: int | None = None,
        layer: LayerChoice = "all",
    ) -> ExportReport:
        """Write changes as RDF Patch to a `.rdfp[.gz]` file or standard output."""
        watch = Stopwatch(self._progress)
        engine = self._sessions.for_reading()
        with explained(self._store.place, engine, "nothing was written"):
            found = self.changes(from_version, to_version, layer)
            target = None if output is None else os.fspath(output)
            lines = [found.lines(change) for change in ("removed", "added")]
            count = export_patch(self._store, engine, lines, target, watch, found.require_files)
        return ExportReport(found.later, count, engine.name, watch.seconds, found.earlier)

    def facts(self, layer: LayerChoice = "all") -> DataFrame:
        """Return the facts as terms in N-Triples form: subject, predicate, object, layer."""
        engine = self._sessions.for_reading()
        return self._store.terms.decode(engine, self.encoded_facts(layer, engine=engine))

    def encoded_facts(
        self, layer: LayerChoice = "all", *, engine: Engine | None = None
    ) -> DataFrame:
        """Return the facts as ids: s, p, o, layer. Much cheaper to join than terms."""
        return self._encoded(engine or self._sessions.for_reading(), self._snapshot(), layer)

    def _encoded(self, engine: Engine, snapshot: Snapshot, layer: LayerChoice = "all") -> DataFrame:
        frames = [
            self._store.facts.live(engine, snapshot, one).selectExpr(*"spo", f"'{one}' AS layer")
            for one in layers_of(layer)
        ]
        return union(frames)

    def export(
        self, output: str | os.PathLike[str] | None = None, layer: LayerChoice = "all"
    ) -> ExportReport:
        """Write the facts as N-Triples to a `.nt[.gz]` file, a folder, or standard output."""
        snapshot = self._snapshot()
        engine = self._sessions.for_change(self._store.text_size(snapshot))
        watch = Stopwatch(self._progress)
        with explained(self._store.place, engine, "nothing was exported"):
            terms = self._store.terms.table.snapshot()
            facts = self._store.terms.decode(engine, self._encoded(engine, snapshot, layer), terms)
            target = None if output is None else os.fspath(output)
            check = partial(self._store.require_files, snapshot, terms)
            count = export(self._store, engine, facts, target, watch, check)
        return ExportReport(snapshot.version, count, engine.name, watch.seconds)

    def stats(self) -> Stats:
        """Count facts, predicates and classes of this version, and what the store holds of them.

        The dictionary serves all versions: terms, and its files and bytes, are those of today.
        """
        snapshot = self._snapshot()
        engine = self._sessions.for_reading()
        with explained(self._store.place, engine, "nothing was counted"):
            row = (
                self._encoded(engine, snapshot)
                .selectExpr(
                    "count_if(layer = 'asserted') AS asserted",
                    "count_if(layer = 'derived') AS derived",
                    "count(DISTINCT p) AS predicates",
                    f"count(DISTINCT IF(p = {RDF_TYPE}, o, NULL)) AS classes",
                )
                .collect()[0]
            )
            self._store.require_files(snapshot)
        dictionary = self._store.terms.table.snapshot()
        return Stats(
            version=snapshot.version,
            asserted=row.asserted,
            derived=row.derived,
            terms=sum(file.rows for file in dictionary.files),
            predicates=row.predicates,
            classes=row.classes,
            files=len(snapshot.files) + len(dictionary.files),
            bytes=sum(file.size for file in snapshot.files + dictionary.files),
            other_facts=_other_facts(snapshot) or None,
            clock=clock(snapshot),
        )

    def compact(self) -> CompactReport:
        """Fold small files and removals into few sorted files; the facts stay the same."""
        self._writable()
        snapshot = self._snapshot()
        engine = self._sessions.for_change(self._store.text_size(snapshot))
        watch = Stopwatch(self._progress)
        with explained(self._store.place, engine, "the facts are as they were"):
            with watch.phase("facts"):
                facts = compact_facts(engine, self._store.facts, self._arities)
            with watch.phase("terms"):
                terms = compact_terms(engine, self._store.terms)
        return CompactReport(facts.version, facts, terms, engine.name, watch.seconds)

    def rules(self) -> tuple[str, ...]:
        """Return the names of the rules that this version is closed under."""
        texts = self._store.rules_at(self._snapshot()) or ()
        return tuple(text.name for text in texts)

    def relation(self, name: str) -> DataFrame:
        """Return the facts of a relation that the rules derive, as terms: c0, c1 and so on, layer.

        Triples are a relation too, but `facts` gives them by better names.
        """
        snapshot = self._snapshot()
        arities = self._arities(snapshot)
        if name not in arities:
            known = ", ".join(sorted(arities)) or "there are none"
            raise InputError(f"no rule knows a relation {name}; relations: {known}")
        engine = self._sessions.for_reading()
        frames = [
            self._store.facts.live(
                engine, snapshot, layer, relation=name, arity=arities[name]
            ).selectExpr("*", f"'{layer}' AS layer")
            for layer in LAYERS
        ]
        columns = argument_columns(arities[name])
        names = {column: f"c{place}" for place, column in enumerate(columns)}
        stored = frames[0].unionAll(frames[1])
        return self._store.terms.decode_columns(engine, stored, names, "layer")

    def expiring(self, relation: str = TRIPLE) -> DataFrame:
        """Return the facts that expire, with the times: until when each is asserted, and stands.

        The columns are subject, predicate, object (of other relations c0, c1 and so on), then
        `asserted_until`, null for what is derived alone, and `until`, both in milliseconds since
        1970. A fact that stands and is not among them never expires; nor does one whose `until` is
        the largest bigint: it is asserted for a time, and follows for ever.
        """
        snapshot = self._snapshot()
        arity = {**self._arities(snapshot), TRIPLE: TRIPLE_ARITY}.get(relation)
        if arity is None:
            raise InputError(f"no rule knows a relation {relation}")
        engine, shape = self._sessions.for_reading(), Layout({relation: arity})
        columns = argument_columns(arity)
        found = expiries(self._store, engine, snapshot, shape, {relation: arity})
        if found is None:
            found = engine.empty(", ".join(f"{name} BIGINT" for name in (*columns, "a", "e")))
        names = {column: f"c{place}" for place, column in enumerate(columns)}
        if relation == TRIPLE:
            names = {"s": "subject", "p": "predicate", "o": "object"}
        times = found.selectExpr(*columns, "a AS asserted_until", "e AS until")
        return self._store.terms.decode_columns(engine, times, names, "asserted_until", "until")

    def _arities(self, snapshot: Snapshot) -> dict[str, int]:
        """Return the relations that a version's rules know, with their numbers of arguments."""
        return compiled(self._store.rules_at(snapshot) or ()).arities

    def verify(self, *, plain: bool = False) -> VerifyReport:
        """Derive this version from its asserted facts again, and compare; change nothing.

        If `plain`, rules run as they are written, without any of the planner's improvements: slow,
        but a mistake of the planner does not hide in the comparison too.
        """
        snapshot = self._snapshot()
        engine = self._sessions.for_change(self._store.text_size(snapshot))
        options = Options(specialised=False, lean=False) if plain else self._options
        return maintain.verify(self._store, engine, snapshot, self._progress, options)

    def forget(self, subject: str, *, dry_run: bool = False) -> ForgetReport:
        """Remove every asserted triple that names an IRI, and what followed from them.

        The current version has nothing left of it. What older versions know goes with the next
        `vacuum` that lets go of them, the IRI itself and the terms that only it used included.
        """
        self._require_present()
        if not dry_run:
            self._writable()
        snapshot = self._snapshot()
        engine = self._sessions.for_change(self._store.text_size(snapshot))
        with explained(self._store.place, engine, "nothing was forgotten"):
            return forget(self._store, engine, subject, dry_run=dry_run, progress=self._progress)

    def vacuum(self, older_than: timedelta = timedelta(days=7)) -> Vacuumed:
        """Delete files that only versions older than `older_than` need.

        If something was forgotten that no kept version knows, its terms are deleted too.
        """
        self._writable()
        if not isinstance(older_than, timedelta):
            raise InputError(f"older_than is a timedelta, not {older_than!r}: timedelta(hours=1)")
        snapshot = self._snapshot()  # refuses what this release cannot read, before any deletion
        done = vacuum(self._store, older_than)
        if must_purge(self._store, done.oldest_kept):
            engine = self._sessions.for_change(self._store.text_size(snapshot))
            with explained(self._store.place, engine, "the dictionary is as it was"):
                terms = purge(self._store, engine, done.oldest_kept)
            done = replace(done, terms=terms, version=self._snapshot().version)
        return done

    def _snapshot(self) -> Snapshot:
        return self._store.require().snapshot(self._at)

    def _writable(self, *, creates: bool = False) -> None:
        """Raise unless the store can be changed, and is there unless the change `creates` it."""
        self._require_present()
        if not creates:
            self._store.require()
        self._store.require_changeable()

    def _require_present(self) -> None:
        if self._at is not None:
            raise StoreError(
                f"{self.path}: version {self._at} is the past and cannot change; open it anew"
            )


def _other_facts(snapshot: Snapshot) -> int:
    """Return how many facts of other relations than triples a version has, without reading them."""
    relations = (file.partition["relation"] for file in snapshot.files)
    others = {name for name in relations if name != TRIPLE and not is_until(name)}
    return live_rows(f for f in snapshot.files if f.partition["relation"] in others)


def open(
    path: str | os.PathLike[str],
    *,
    engine: EngineName = "auto",
    spark: SparkSession | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    rules: RuleNames | None = None,
) -> KnowledgeBase:
    """Open the knowledge base at `path`; the first `load` creates it if there is none.

    `rules` name profiles (rdfs, rdfs-full, owl-horst, owl2rl, none) and rule files. They count for
    every change: the next one brings a store that has others under these. Without them a store
    keeps the rules it has, and a new one gets rdfs.

    `engine` is auto, spark or sail. A `spark` session that the caller has is used for everything;
    else Spark starts when needed, on `master` (local by default; `spark://…`, `sc://…`) with the
    settings `conf`.
    """
    if rules is not None:
        compiled(read_rules(names_of(rules)))  # a mistake is told now, not at the first change
    return KnowledgeBase(
        path,
        engine=engine,
        spark=spark,
        master=master,
        conf=conf,
        progress=progress,
        rules=rules,
    )
