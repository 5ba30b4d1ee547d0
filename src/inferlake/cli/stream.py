"""The command that follows a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from inferlake.cli.times import Duration

if TYPE_CHECKING:
    from inferlake.cli.app import Settings


@click.command("stream")
@click.argument("kb")
@click.argument("source")
@click.option(
    "--trigger",
    default="1s",
    show_default=True,
    metavar="5s|once|available-now",
    help="A batch every so often; or what is there now, as one batch or as several, and end.",
)
@click.option(
    "--max-files", type=click.IntRange(1), default=100, show_default=True, help="Files in a batch."
)
@click.option(
    "--max-lines",
    type=click.IntRange(1),
    default=500_000,
    show_default=True,
    help="Lines in a batch from Kafka or standard input.",
)
@click.option(
    "--window",
    type=Duration(),
    metavar="10m|2h|7d",
    help="What is added expires so long after it came, with what follows from it.",
)
@click.option("--checkpoint", metavar="DIR", help="By default KB/streams/NAME.")
@click.option("--name", help="What to call the stream; by default the source says.")
@click.option(
    "--on-error",
    type=click.Choice(["dead-letter", "fail"]),
    default="dead-letter",
    show_default=True,
    help="A bad line is put aside with its place and the reason, or ends the stream.",
)
@click.option(
    "--rules",
    multiple=True,
    metavar="PROFILE|FILE",
    help="The rules from now on, if others than KB has; repeatable.",
)
@click.pass_obj
def stream_command(
    settings: Settings, kb: str, source: str, rules: tuple[str, ...], **options: Any
) -> None:
    """Follow SOURCE: each batch of it, and what follows from it, becomes a version of KB.

    SOURCE is a folder that receives RDF files or RDF Patch, kafka://host:port/topic, or - for lines
    from standard input. Lines are N-Triples, which are added, or RDF Patch. Started again, it goes
    on where it was, and no batch counts twice. Ctrl-C ends it after the batch in hand.

    With --window, what came expires: that long after its file was last written, its message was
    sent to Kafka, or its line was read. What was loaded stays.
    """
    from inferlake.cli.live import view
    from inferlake.stream.running import attended

    with (
        settings.opened(kb, watched=False) as opened,
        view(as_json=settings.json, quiet=settings.quiet) as show,
    ):
        when = "" if source == "-" else ", as soon as Spark is there"
        settings.note(f"following {source}{when}")
        started = opened.stream(source, rules=rules or None, **options).start(listener=show)
        done = attended(started)
    settings.say(str(done), done.as_dict())
