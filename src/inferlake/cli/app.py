"""Commands: one function each, no logic. They read arguments, call the library and print."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from inferlake.cli.bench import bench_group
from inferlake.cli.changes import (
    changes_command,
    expire_command,
    forget_command,
    load_command,
    rules_command,
    update_command,
)
from inferlake.cli.rules import check_command, run_command
from inferlake.cli.stream import stream_command
from inferlake.cli.times import Duration
from inferlake.cli.unread import Commands
from inferlake.errors import InferlakeError
from inferlake.progress import Silent, Stopwatch, counted, one_line, shown_time

if TYPE_CHECKING:
    from inferlake.kb import KnowledgeBase
    from inferlake.store import VersionInfo

_INTERRUPTED = 130


@dataclass
class Settings:
    """What was said before the command."""

    engine: str = "auto"
    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    json: bool = False
    quiet: bool = False

    @contextmanager
    def opened(self, path: str, *, watched: bool = True) -> Iterator[KnowledgeBase]:
        """Yield the knowledge base at `path`, with progress on the screen if it is `watched`."""
        from inferlake.cli.screen import watcher
        from inferlake.kb import KnowledgeBase

        watching = watcher(quiet=self.quiet or self.json or not watched)
        try:
            yield KnowledgeBase(
                path,
                engine=self.engine,  # type: ignore[arg-type]
                master=self.master,
                conf=self.conf,
                progress=watching,
            )
        finally:
            watching.close()

    def note(self, line: str) -> None:
        """Tell what a command is about to do, if that takes a while."""
        if not self.json and not self.quiet:
            print(line, file=sys.stderr)

    def say(self, line: str, data: Any) -> None:
        """End a command: its one line, or its data as JSON."""
        if self.json:
            print(json.dumps(data, default=str))
        elif not self.quiet:
            print(line, file=sys.stderr)


def _settings(text: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for item in text:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.BadParameter(f"{item!r} is no setting; write --conf key=value")
        pairs[name] = value
    return pairs


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "sail"]),
    default="auto",
    show_default=True,
    help="Where plans run: Apache Spark, Sail in this process, or whichever fits the work.",
)
@click.option("--master", metavar="URL", help="A Spark master (spark://…) or Connect URL (sc://…).")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show the traceback of an error.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but results and errors.")
@click.version_option(package_name="inferlake", prog_name="inferlake")
@click.pass_context
def cli(
    context: click.Context,
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    """Load RDF into a versioned store of Delta tables, on Apache Spark or in this process.

    KB is the folder of a knowledge base, local or s3://, gs://, abfss://.
    """
    context.obj = Settings(engine, master, _settings(conf), as_json, quiet)


@cli.command()
@click.argument("kb")
@click.option("--version", type=int, help="A version of the past; `history` lists them.")
@click.option("--plain", is_flag=True, help="Run the rules as written, without the planner: slow.")
@click.pass_obj
def verify(settings: Settings, kb: str, version: int | None, plain: bool) -> None:
    """Derive all of KB from its asserted facts again, and compare; exit with 1 if they differ."""
    with settings.opened(kb) as opened:
        report = (opened if version is None else opened.at(version)).verify(plain=plain)
    if not settings.json:
        for difference in report.differences:
            print(difference, file=sys.stderr)
    settings.say(str(report), report.as_dict())
    if not report.ok:
        sys.exit(1)


@cli.command()
@click.argument("kb")
@click.option(
    "-o", "--output", metavar="FILE.nt[.gz]|DIR", help="Where to; standard output if none."
)
@click.option(
    "--layer",
    type=click.Choice(["all", "asserted", "derived"]),
    default="all",
    show_default=True,
    help="Everything, only what was loaded, or only what follows from it.",
)
@click.option("--version", type=int, help="A version of the past; `history` lists them.")
@click.pass_obj
def export(
    settings: Settings, kb: str, output: str | None, layer: str, version: int | None
) -> None:
    """Write the facts of KB as N-Triples."""
    output = None if output == "-" else output
    with settings.opened(kb) as opened:
        source = opened if version is None else opened.at(version)
        report = source.export(output, layer=layer)  # type: ignore[arg-type]
    what = f"exported {counted(report.triples, 'triple')} of version {report.version}"
    line = one_line(what, report.seconds, report.engine, triples=report.triples)
    if output is None:
        # Standard output is the data itself.
        settings.json = False
    settings.say(line, {"operation": "export", **asdict(report)})


@cli.command()
@click.argument("kb")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--version", type=int, help="A version of the past; `history` lists them.")
@click.pass_obj
def stats(settings: Settings, kb: str, as_json: bool, version: int | None) -> None:
    """Count the facts, terms, predicates, classes, files and bytes of KB."""
    settings.json |= as_json
    watch = Stopwatch(Silent())
    with settings.opened(kb) as opened, watch.phase("count"):
        source = opened if version is None else opened.at(version)
        found = source.stats().as_dict()
    if not settings.json:
        width = max(map(len, found))
        for name, value in found.items():
            shown = shown_time(value) if name == "clock" else f"{value:,}"
            print(f"{name:{width}}  {shown:>15}")
    what = f"counted version {found['version']}"
    settings.say(one_line(what, watch.seconds, opened.reading_engine), found)


@cli.command()
@click.argument("kb")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_obj
def history(settings: Settings, kb: str, as_json: bool) -> None:
    """List the versions of KB: when, what was done, how much came and went, where it ran."""
    settings.json |= as_json
    watch = Stopwatch(Silent())
    with settings.opened(kb) as opened, watch.phase("read"):
        versions = opened.history()
    if not settings.json:
        _print_history(versions)
    what = f"{len(versions):,} versions"
    data = [asdict(version) for version in versions]
    settings.say(one_line(what, watch.seconds, "the driver"), data)


def _print_history(versions: list[VersionInfo]) -> None:
    print(
        f"{'version':>7}  {'time (UTC)':19}  {'operation':9}  {'added':>12}  {'removed':>9}"
        f"  {'derived':>12}  {'withdrawn':>9}  {'engine':6}  rules; notes"
    )
    oldest = max((one.info.get("oldest_kept", 0) for one in versions), default=0)
    for one in versions:
        when = one.time.strftime("%Y-%m-%d %H:%M:%S")
        added, removed = one.info.get("added", 0), one.info.get("removed", 0)
        derived, withdrawn = one.info.get("derived", 0), one.info.get("withdrawn", 0)
        notes = [", ".join(one.info.get("rules", {}).get("names", ())), *_notes(one)]
        if one.version < oldest:
            notes.append("vacuumed")
        print(
            f"{one.version:>7}  {when}  {one.operation:9}  {added:>12,}  {removed:>9,}"
            f"  {derived:>12,}  {withdrawn:>9,}  {one.info.get('engine', ''):6}"
            f"  {'; '.join(filter(None, notes))}"
        )


def _notes(one: VersionInfo) -> Iterator[str]:
    """Yield what else there is to say of a version."""
    if one.info.get("algorithm") == "rebuild" and one.info.get("withdrawn"):
        yield "everything derived again"
    if one.info.get("expired"):
        yield f"{counted(one.info['expired'], 'fact')} expired"
    if "clock" in one.info:
        yield f"clock at {shown_time(one.info['clock'])}"


@cli.command()
@click.argument("kb")
@click.pass_obj
def compact(settings: Settings, kb: str) -> None:
    """Fold the small files of KB into few sorted ones; the facts stay the same."""
    with settings.opened(kb) as opened:
        report = opened.compact()
    before = report.facts.files_before + report.terms.files_before
    after = report.facts.files_after + report.terms.files_after
    what = f"compacted {before:,} files to {after:,}; version {report.version}"
    settings.say(
        one_line(what, report.seconds, report.engine), {"operation": "compact", **asdict(report)}
    )


@cli.command()
@click.argument("kb")
@click.option(
    "--older-than",
    type=Duration(),
    default="7d",
    show_default=True,
    help="Keep every version that was current within this time: 7d, 12h, 0.",
)
@click.pass_obj
def vacuum(settings: Settings, kb: str, older_than: timedelta) -> None:
    """Delete files of KB that only old versions need."""
    watch = Stopwatch(Silent())
    with settings.opened(kb) as opened, watch.phase("delete"):
        report = opened.vacuum(older_than)
    what = (
        f"deleted {report.files:,} files, {report.bytes:,} bytes;"
        f" versions from {report.oldest_kept} on are kept; version {report.version}"
    )
    if report.terms:
        what += f"; deleted {counted(report.terms, 'term')} of what was forgotten"
    line = one_line(what, watch.seconds, "the driver")
    settings.say(line, {"operation": "vacuum", **asdict(report)})


@cli.group()
def generate() -> None:
    """Make data for tests and benchmarks."""


@generate.command()
@click.option("--universities", type=click.IntRange(1), required=True, help="How many.")
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds give equal data.")
@click.option("-o", "--output", required=True, metavar="DIR", help="A new or empty folder.")
@click.option("--gzip/--no-gzip", default=False, help="Compress the files.")
@click.option(
    "--ontology/--no-ontology", default=False, help="Write the schema too: univ-bench.nt."
)
@click.pass_obj
def lubm(
    settings: Settings, universities: int, seed: int, output: str, gzip: bool, ontology: bool
) -> None:
    """Write the Lehigh University Benchmark as N-Triples."""
    from inferlake.generate import generate_lubm
    from inferlake.session import Sessions

    sessions = Sessions(settings.engine, None, settings.master, settings.conf)  # type: ignore[arg-type]
    # Whatever the size: nothing is shuffled or kept, and Sail is several times as fast.
    engine = sessions.for_reading()
    watch = Stopwatch(Silent())
    with watch.phase("generate"):
        report = generate_lubm(
            engine.session,
            universities,
            seed=seed,
            out=output,
            compression="gzip" if gzip else None,
            ontology=ontology,
        )
    what = f"wrote {report.triples:,} triples in {report.files:,} files to {output}"
    line = one_line(what, watch.seconds, engine.name, triples=report.triples)
    settings.say(line, {"operation": "generate", **asdict(report), "seconds": watch.seconds})


_BEFORE = {"--engine", "--master", "--conf", "--json", "--verbose", "-v", "--quiet", "-q"}


def _misplaced(exc: click.ClickException) -> str:
    """Return what to do about an option that stands behind the command and belongs before it."""
    if isinstance(exc, click.NoSuchOption) and exc.option_name in _BEFORE and exc.ctx is not None:
        command = exc.ctx.command_path.removeprefix(exc.ctx.find_root().command_path).strip()
        return f"{exc.option_name} goes before the command: inferlake {exc.option_name} … {command}"
    return ""


for command in (
    load_command,
    update_command,
    rules_command,
    stream_command,
    changes_command,
    expire_command,
    forget_command,
    run_command,
    check_command,
    bench_group,
):
    cli.add_command(command)
for command in cli.commands.values():
    command.epilog = (
        "Before the command: --engine, --master, --conf, --json, -v, -q; see inferlake --help."
    )


def main() -> None:
    """Run the command line; every foreseen failure is one message and its own exit code."""
    # Imports make many objects and no garbage: to look for it would take a tenth of their time.
    gc.set_threshold(50_000)
    # An interrupt has py4j tell of its own trouble in fifty lines, unless someone else takes them.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        cli(standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        if advice := _misplaced(exc):
            print(advice, file=sys.stderr)
        sys.exit(exc.exit_code)
    except (click.Abort, KeyboardInterrupt):
        print("interrupted; what was not committed is not in the store", file=sys.stderr)
        sys.stderr.flush()
        # Not sys.exit: PySpark would call its server once more, and wait ten minutes for an answer.
        os._exit(_INTERRUPTED)
    except InferlakeError as exc:
        if any(re.fullmatch("--verbose|-[a-z]*v[a-z]*", word) for word in sys.argv[1:]):
            traceback.print_exc()
        print(f"inferlake: {exc}", file=sys.stderr)
        sys.exit(exc.exit_code)
