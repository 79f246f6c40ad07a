#!/usr/bin/env python3
"""infeed beside other loaders: works x loaders x workers, interleaved, a table and JSON.

    .venv/bin/python bench/compare.py --work W4 --peers torch --rounds 5 --json FILE
    .venv/bin/python bench/compare.py --all

The works are those of peers/works.py, what is counted is told in peers/measure.py. A rate is the median of the rounds,
a ratio the median of the rounds' ratios. The peers are installed into build/peers-venv by peers/setup.sh; a peer that
is missing, fails or does not end is reported and the others go on.
"""

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from peers import LOADERS, WORKS, contest, data
from peers.contest import Entry, Record, Unmeasured

PEERS = [name for name, loader in LOADERS.items() if not loader.ours]
OURS = [name for name, loader in LOADERS.items() if loader.ours]
LOADED = 0.08  # above this share of the cores in others' hands, rates are a lower bound


def names(known: list[str]) -> Any:
    """An argument type: some of `known`, with commas between, in any case."""

    def parse(text: str) -> list[str]:
        by_lower = {name.lower(): name for name in known}
        picked = [by_lower.get(part.strip().lower(), "") for part in text.split(",") if part.strip()]
        if "" in picked:
            raise argparse.ArgumentTypeError(f"{text!r}: known are {', '.join(known)}")
        return picked

    return parse


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="infeed beside other loaders. Lists have commas between.")
    parser.add_argument("--work", type=names(list(WORKS)), default=["W1a"], help=f"of {', '.join(WORKS)}")
    parser.add_argument("--peers", type=names(PEERS), default=["torch"], help=f"of {', '.join(PEERS)}")
    parser.add_argument("--loaders", type=names(OURS), default=OURS, help=f"of infeed's own: {', '.join(OURS)}")
    parser.add_argument("--variant", action="append", help="only this one; may come several times")
    parser.add_argument("--workers", default="0,2", help="worker processes or threads; 0 where a loader has it")
    parser.add_argument("--all", action="store_true", help="all works beside all peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement, from its first batch on")
    parser.add_argument("--data", type=Path, default=data.FOLDER, help="train/CLASS/*.jpg and tokens.u16")
    parser.add_argument("--json", type=Path, help="writes the rows to this file")
    parser.add_argument("--no-setup", action="store_true", help="takes the peers as they are installed")
    options = parser.parse_args(arguments)
    if options.all:
        options.work, options.peers = list(WORKS), PEERS
    options.data = options.data.resolve()
    options.workers = [int(count) for count in options.workers.split(",")]
    return options


def plan(options: argparse.Namespace) -> list[Entry]:
    """Work by work, so that a round of one work is short."""
    return [
        Entry(work, name, variant, workers)
        for work in options.work
        for name in [*options.loaders, *options.peers]
        for variant in LOADERS[name].works.get(work, ())
        if not options.variant or variant in options.variant or variant == ""
        for workers in options.workers
        if workers > 0 or variant in LOADERS[name].without_workers(work)
    ]


def set_up(peers: list[str]) -> None:
    """Installs the peers; where that fails, what is there must do."""
    command = [contest.ROOT / "bench/peers/setup.sh", *(["ffcv"] if "FFCV" in peers else [])]
    if subprocess.run(command, check=False).returncode != 0:
        print("Going on with the peers that are installed.", file=sys.stderr)


def rival(ours: Record, name: str, workers: int, records: list[Record]) -> Record | None:
    """What `name` did on the same work: in the same variant where it has that, else in its first."""
    found = [r for r in records if (r.entry.work, r.entry.loader, r.entry.workers) == (ours.entry.work, name, workers)]
    same = [r for r in found if r.entry.variant == ours.entry.variant]
    other = next(iter(same + found), None)
    return other if other is not None and other is not ours and other.is_measured else None


def row(ours: Record, records: list[Record]) -> dict[str, Any]:
    """The row of --json. `ratios`: this loader's rate by that of each other with as many workers, and with none."""
    entry = ours.entry
    result: dict[str, Any] = dataclasses.asdict(entry)
    if not ours.is_measured:
        return result | {"not_measured": ours.failures[-1]}
    for key in ("rate", "cpu_us", "pss_mb", "first_ms", "foreign"):
        result[key] = ours.median(key)
    result |= {"rounds": ours.series("rate"), "ratios": {}, "cpu_ratios": {}}
    for name in sorted({record.entry.loader for record in records}):
        for key, workers in ((name, entry.workers), (f"{name} num_workers=0", 0)):
            other = rival(ours, name, workers, records)
            if other is not None and (rates := contest.ratios(ours, other)):
                result["ratios"][key] = statistics.median(rates)
                result["cpu_ratios"][key] = statistics.median(contest.ratios(other, ours, "cpu_us") or [0.0])
    return result


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    columns = "work | loader | workers | samples/s | range | CPU a sample | memory | first batch | by torch's | others"
    lines = [f"| {columns} |", "|---" * (columns.count("|") + 1) + "|"]
    for each in rows:
        head = f"| {each['work']} | {' '.join(filter(None, (each['loader'], each['variant'])))} | {each['workers']} |"
        if "not_measured" in each:
            lines.append(f"{head} not measured: {each['not_measured']} | | | | | | |")
            continue
        by_torch = each["ratios"].get("torch")
        figures = (
            f"{each['rate']:,.0f}",
            f"{min(each['rounds']):,.0f} to {max(each['rounds']):,.0f}",
            f"{each['cpu_us']:,.1f} us" if each["cpu_us"] < 100 else f"{each['cpu_us']:,.0f} us",
            f"{each['pss_mb']:,.0f} MB",
            f"{each['first_ms']:,.0f} ms",
            f"{by_torch:.2f}" if by_torch else "-",
            f"{each['foreign'] * 100:.0f} %{'*' if each['foreign'] > LOADED else ''}",
        )
        lines.append(f"{head} {' | '.join(figures)} |")
    return "\n".join(lines)


def main() -> int:
    options = parse()
    if not options.no_setup and (options.peers != ["torch"] or data.has_images(options.work)):
        set_up(options.peers)
    try:
        data.provide(options.work, options.data)
    except Unmeasured as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 1
    records: list[Record] = []
    for work in options.work:
        entries = [entry for entry in plan(options) if entry.work == work]
        records += contest.run(entries, options.rounds, options.seconds, options.data)
    rows = [row(record, records) for record in records]
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    return 0 if all(record.is_measured for record in records) else 1


if __name__ == "__main__":
    sys.exit(main())
