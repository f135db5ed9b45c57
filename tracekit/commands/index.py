"""`tracekit index`: snapshots into a trace, so that parts of it are found without a replay of what lies before."""

from __future__ import annotations

import click

from tracekit.commands.progress import progress_line
from tracekit.counted import counted


@click.command("index")
@click.option("--remove", is_flag=True, help="Take the snapshots out instead; the trace is what it was before.")
@click.argument("traces", nargs=-1, required=True, type=click.Path(), metavar="TRACE...")
def command(remove: bool, traces: tuple[str, ...]) -> None:
    """Put snapshots into each TRACE, from which replay can begin: `--from`, windows and segments find their places.

    The file is replaced by one that holds both, when that is whole; snapshots take 2 % of it at most, or 64 KB. What
    the trace says and the hash that names it stay as they are. A trace that has snapshots is left alone.
    """
    from tracekit.replay.snapshot_index import put_into, take_out

    for trace in traces:
        if remove:
            with progress_line():
                gone = take_out(trace)
            click.echo(f"{trace}: {'the snapshots are taken out' if gone else 'there were no snapshots'}")
            continue
        with progress_line():
            made = put_into(trace)
        if not made.snapshots:
            click.echo(f"{trace}: is found as fast without snapshots")
            continue
        share = f"{100 * made.snapshot_bytes / made.trace_bytes:.2f}% of it"
        there = "" if made.is_new else " were there before"
        click.echo(f"{trace}: {counted(made.snapshots, 'snapshot')}{there}, {made.snapshot_bytes:,} bytes ({share})")
