"""Commands about rules themselves: run a program without a store, and check one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from inferlake.progress import Silent, Stopwatch, one_line

if TYPE_CHECKING:
    from inferlake.cli.app import Settings
    from inferlake.plan.explain import Explanation


def _facts(given: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the paths of each relation that `--facts` names."""
    found: dict[str, list[str]] = {}
    for item in given:
        relation, equals, path = item.partition("=")
        if not (relation and equals and path):
            raise click.BadParameter(
                f"{item!r} does not say whose facts; write RELATION=FILE, such as edge=edges.csv",
                param_hint="--facts",
            )
        found.setdefault(relation, []).append(path)
    return found


@click.command("run")
@click.argument("program")
@click.option(
    "--facts",
    multiple=True,
    metavar="RELATION=PATH",
    help="A file, folder or glob with facts: .csv, .tsv, .facts, .parquet, or RDF; repeatable.",
)
@click.option("-o", "--output", required=True, metavar="DIR", help="A new or empty folder.")
@click.option(
    "--format",
    type=click.Choice(["csv", "tsv", "parquet"]),
    default="csv",
    show_default=True,
    help="What to write: a file for each relation, or a folder of Parquet.",
)
@click.option(
    "--header/--no-header",
    default=False,
    show_default=True,
    help="CSV and TSV inputs begin with a line of column names.",
)
@click.option("--max-rounds", type=click.IntRange(0), help="Fail rather than take more rounds.")
@click.option("--max-facts", type=click.IntRange(0), help="Fail rather than derive more facts.")
@click.option("--fail-on-inconsistency", is_flag=True, help="Exit with 1 if the facts conflict.")
@click.pass_obj
def run_command(
    settings: Settings,
    program: str,
    facts: tuple[str, ...],
    output: str,
    format: str,
    header: bool,
    max_rounds: int | None,
    max_facts: int | None,
    fail_on_inconsistency: bool,
) -> None:
    """Derive what follows from tables by the rules of PROGRAM, and write it to tables.

    The facts of a relation come from CSV, TSV or Parquet files of as many columns as it has
    arguments; RDF files are facts of `triple` (`TE` in VLog's .dlog programs). Every relation that
    a rule derives becomes a file of its name. No knowledge base is needed.
    """
    from inferlake.cli.screen import watcher
    from inferlake.datalog import run

    watching = watcher(quiet=settings.quiet or settings.json)
    try:
        report = run(
            program,
            _facts(facts),
            output,
            format=format,  # type: ignore[arg-type]
            header=header,
            engine=settings.engine,  # type: ignore[arg-type]
            master=settings.master,
            conf=settings.conf,
            max_rounds=max_rounds,
            max_facts=max_facts,
            progress=watching,
        )
    finally:
        watching.close()
    if not settings.json:
        for warning in report.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        for broken in report.contradictions:
            print(f"contradiction: {broken}", file=sys.stderr)
    settings.say(str(report), report.as_dict())
    if report.contradictions and fail_on_inconsistency:
        sys.exit(1)


@click.command("check")
@click.argument("names", nargs=-1, required=True, metavar="FILE|PROFILE...")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_obj
def check_command(settings: Settings, names: tuple[str, ...], as_json: bool) -> None:
    """Read rules as one program, say what is wrong with them, or how each of them will run.

    Starts no engine. Exits with 5, and all that is wrong, if the rules cannot run.
    """
    from inferlake.plan.explain import explain
    from inferlake.rules.load import compiled, read_rules

    settings.json |= as_json
    watch = Stopwatch(Silent())
    with watch.phase("check"):
        found = explain(compiled(read_rules(names)))
    if not settings.json:
        _print_explanation(found)
    joining = _count(found.plans, "joining plan", "joining plans")
    what = (
        f"{_count(len(found.rules), 'rule is', 'rules are')} well formed: {joining},"
        f" in {_count(found.strata, 'stratum', 'strata')}"
    )
    data = {"operation": "check", **found.as_dict()}
    settings.say(one_line(what, watch.seconds, "the driver"), data)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _print_explanation(found: Explanation) -> None:
    for rule in found.rules:
        print(f"{rule.place}: {rule.name}: {rule}")
        for atom in rule.schema:
            print(f"    schema: {atom}")
    for title, names in (("given", found.inputs), ("derived", found.outputs)):
        print(
            f"{title}: {', '.join(f'{name}/{found.relations[name]}' for name in names) or 'none'}"
        )
    for hint in found.hints:
        print(f"hint: {hint}")
