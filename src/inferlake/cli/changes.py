"""Commands that change a knowledge base, and the one that tells what changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from inferlake.cli.times import Duration, Moment
from inferlake.progress import counted, one_line

if TYPE_CHECKING:
    from datetime import datetime

    from inferlake.cli.app import Settings
    from inferlake.maintain import ChangeReport

# As in `maintain.choice`, which would take a second to import.
_ALGORITHMS = ("auto", "bf", "dred", "counting", "rebuild")

_algorithm = click.option(
    "--algorithm",
    type=click.Choice(_ALGORITHMS),
    default="auto",
    show_default=True,
    help="How to find what no longer follows; auto chooses, and says why.",
)
_layer = click.option(
    "--layer",
    type=click.Choice(["all", "asserted", "derived"]),
    default="all",
    show_default=True,
    help="Everything, only what was loaded, or only what follows from it.",
)


def _deriving(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that read triples and derive from them."""
    options = (
        click.option(
            "--format",
            help="nt, nq, ttl, trig, rdf, jsonld or n3 (patches: rdfp or ru); by default the suffix"
            " says.",
        ),
        click.option(
            "--on-error",
            type=click.Choice(["fail", "skip"]),
            default="fail",
            show_default=True,
            help="A bad statement stops the change, or is skipped and counted.",
        ),
        click.option("--max-rounds", type=click.IntRange(0), help="Fail rather than take more."),
        click.option("--max-facts", type=click.IntRange(0), help="Fail rather than derive more."),
        click.option(
            "--count", is_flag=True, help="Count derivations before repetitions are dropped."
        ),
        click.option(
            "--fail-on-inconsistency", is_flag=True, help="Exit with 1 if the facts conflict."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("load")
@click.argument("kb")
@click.argument("inputs", nargs=-1, required=True, metavar="FILE|DIR|GLOB...")
@click.option(
    "--rules",
    multiple=True,
    metavar="PROFILE|FILE",
    help="rdfs, rdfs-full, owl-horst, owl2rl, none, or a rule file; repeatable. By default the"
    " rules that KB has, and rdfs for a new one.",
)
@_deriving
@click.pass_obj
def load_command(
    settings: Settings,
    kb: str,
    inputs: tuple[str, ...],
    rules: tuple[str, ...],
    fail_on_inconsistency: bool,
    **options: Any,
) -> None:
    """Add RDF files, and all that follows from them, to KB as one new version.

    Creates KB if there is none.
    """
    with settings.opened(kb) as opened:
        report = opened.load(*inputs, rules=rules or None, **options)
    _tell(settings, report, fail=fail_on_inconsistency)


@click.command("update")
@click.argument("kb")
@click.option(
    "--remove",
    multiple=True,
    metavar="FILE|DIR|GLOB",
    help="Triples that are no longer asserted; repeatable.",
)
@click.option(
    "--add", multiple=True, metavar="FILE|DIR|GLOB", help="Triples to assert; repeatable."
)
@click.option(
    "--patch",
    multiple=True,
    metavar="FILE",
    help="RDF Patch (.rdfp), or INSERT DATA and DELETE DATA of SPARQL (.ru); repeatable.",
)
@click.option(
    "--rules",
    multiple=True,
    metavar="PROFILE|FILE",
    help="The rules from now on, if others than KB has; repeatable.",
)
@click.option(
    "--window", type=Duration(), help="What is added expires, so long after --at: 90s, 10m, 7d."
)
@click.option("--at", type=Moment(), help="The time of what is added; by default the present.")
@click.option("--now", type=Moment(), help="First, let facts go that have expired by this time.")
@_algorithm
@_deriving
@click.pass_obj
def update_command(
    settings: Settings,
    kb: str,
    rules: tuple[str, ...],
    remove: tuple[str, ...],
    add: tuple[str, ...],
    patch: tuple[str, ...],
    fail_on_inconsistency: bool,
    **options: Any,
) -> None:
    """Remove triples from KB, add others, and repair what follows, as one new version.

    Removals come first, then additions, then patches in their order: the last word on a triple
    counts. To remove what is not asserted changes nothing, and is counted.
    """
    with settings.opened(kb) as opened:
        report = opened.update(add=add, remove=remove, patch=patch, rules=rules or None, **options)
    _tell(settings, report, fail=fail_on_inconsistency)


@click.command("expire")
@click.argument("kb")
@click.option("--now", type=Moment(), help="By default the present.")
@click.pass_obj
def expire_command(settings: Settings, kb: str, now: datetime | int | None) -> None:
    """Let go what has expired in KB by a time, with what followed from it; no rule is run.

    Triples added with --window expire. A time is 2026-01-31T12:00:00Z, or milliseconds since 1970.
    """
    with settings.opened(kb) as opened:
        report = opened.expire(now)
    _tell(settings, report)


@click.command("rules")
@click.argument("kb")
@click.option("--add", multiple=True, metavar="PROFILE|FILE", help="Rules to add; repeatable.")
@click.option("--remove", multiple=True, metavar="NAME", help="Rules to remove; repeatable.")
@_algorithm
@click.pass_obj
def rules_command(
    settings: Settings, kb: str, add: tuple[str, ...], remove: tuple[str, ...], algorithm: str
) -> None:
    """List the rules of KB, or change them: what follows is repaired, as one new version.

    A rule file that changed is read anew with --add.
    """
    with settings.opened(kb) as opened:
        if add or remove:
            report = opened.change_rules(
                add=add,
                remove=remove,
                algorithm=algorithm,  # type: ignore[arg-type]
            )
            _tell(settings, report)
            return
        names = opened.rules()
    if settings.json:
        settings.say("", list(names))
        return
    for name in names:
        print(name)
    if not names and not settings.quiet:
        print(f"{kb}: no rules; what is loaded is all there is", file=sys.stderr)


@click.command("changes")
@click.argument("kb")
@click.option("--from", "from_version", type=int, help="By default the version before --to.")
@click.option("--to", "to_version", type=int, help="By default the newest.")
@_layer
@click.option("-o", "--output", metavar="FILE.rdfp[.gz]", help="Where to; standard output if none.")
@click.option(
    "--follow", is_flag=True, help="Each version after --from, as they come; Ctrl-C ends."
)
@click.pass_obj
def changes_command(
    settings: Settings,
    kb: str,
    from_version: int | None,
    to_version: int | None,
    layer: str,
    output: str | None,
    follow: bool,
) -> None:
    """Write what became true in KB, and what ceased to be, as RDF Patch.

    With --follow, each version is a transaction, and a line `H version "N" .` before it says which:
    --from N goes on behind it.
    """
    output = None if output == "-" else output
    if follow:
        if output is not None or to_version is not None:
            raise click.UsageError(
                "--follow writes to standard output, and has no end: leave out --output and --to"
            )
        _follow(settings, kb, from_version, layer)
        return
    with settings.opened(kb) as opened:
        report = opened.export_changes(
            output,
            from_version,
            to_version,
            layer,  # type: ignore[arg-type]
        )
    what = (
        f"wrote {counted(report.triples, 'change')} from version {report.from_version}"
        f" to {report.version}"
    )
    if output is None:
        settings.json = False  # standard output is the data itself
    line = one_line(what, report.seconds, report.engine)
    settings.say(line, {"operation": "changes", **asdict(report)})


def _follow(settings: Settings, kb: str, from_version: int | None, layer: str) -> None:
    from inferlake.stream.running import Interrupts

    told = 0
    with settings.opened(kb, watched=False) as opened, Interrupts() as interrupts:
        for _ in opened.follow_patches(from_version, layer, until=interrupts.came):  # type: ignore[arg-type]
            told += 1
    settings.json = False  # standard output is the data itself
    settings.say(f"wrote the changes of {counted(told, 'version')}", None)


@click.command("forget")
@click.argument("kb")
@click.option("--subject", required=True, metavar="IRI", help="What to forget; written in full.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.pass_obj
def forget_command(settings: Settings, kb: str, subject: str, dry_run: bool) -> None:
    """Remove every asserted triple that names an IRI, and what followed from them.

    A vacuum then deletes what older versions knew of it.
    """
    with settings.opened(kb) as opened:
        report = opened.forget(subject, dry_run=dry_run)
    if dry_run and settings.quiet and not settings.json:
        print(report)  # it is what was asked for
    else:
        settings.say(str(report), report.as_dict())


def _tell(settings: Settings, report: ChangeReport, *, fail: bool = False) -> None:
    """Say what a change did, and with which exit code."""
    if not settings.json:
        for bad in report.bad:
            print(f"skipped {bad}", file=sys.stderr)
        for broken in report.contradictions:
            print(f"contradiction: {broken}", file=sys.stderr)
    settings.say(str(report), report.as_dict())
    if report.contradictions and fail:
        sys.exit(1)
