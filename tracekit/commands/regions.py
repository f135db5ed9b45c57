"""`tracekit regions`: the address space of the program over time, from the snapshots in a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.sizes import rounded

if TYPE_CHECKING:
    from tracekit.address_space import Snapshot


@click.command("regions")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: all snapshots with all regions.")
@click.option("--at", type=float, metavar="SECONDS", help="The regions of the last snapshot before this time.")
@click.argument("trace", type=click.Path())
def command(trace: str, as_json: bool, at: float | None) -> None:
    """Show what the address space held, at each snapshot of `record --snapshots`, and its regions at the last one."""
    from tracekit.address_space import read_snapshots

    with TraceReader(trace) as reader:
        snapshots = read_snapshots(reader)
    if not snapshots:
        raise TracekitError(
            f"{trace} has no snapshots of the address space: `tracekit record --snapshots 1s` takes them"
        )
    if as_json:
        click.echo(json.dumps({"snapshots": [snapshot.as_json() for snapshot in snapshots]}, ensure_ascii=False))
        return
    chosen = [snapshot for snapshot in snapshots if at is None or snapshot.time <= at] or snapshots[:1]
    click.echo(f"{over_time(snapshots)}\n\n{regions_of(chosen[-1])}")


def over_time(snapshots: list[Snapshot]) -> str:
    """A row for each snapshot: accessible bytes by use."""
    from tracekit.region_uses import USES

    head = f"{'TIME':>10}  {'RESIDENT':>9}" + "".join(f"  {use.upper():>9}" for use in USES)
    rows = [
        f"{snapshot.time:>8.3f} s  {rounded(snapshot.resident):>9}"
        + "".join(f"  {rounded(snapshot.bytes_of(use)):>9}" for use in USES)
        for snapshot in snapshots
    ]
    return "\n".join(["ADDRESS SPACE over time", head, *rows])


def regions_of(snapshot: Snapshot) -> str:
    """A row for each region of a snapshot."""
    rows = [
        f"{region.first:>14x}  {rounded(region.bytes):>9}  {region.protection}  {region.use:<9}  "
        + (f"thread {region.thread}" if region.thread else region.name)
        for region in snapshot.regions
    ]
    return "\n".join([f"REGIONS at {snapshot.time:.3f} s", *(row.rstrip() for row in rows)])
