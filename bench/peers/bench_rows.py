"""E2, E3 and J4 of `make bench`: the engine's W1a and W1b beside the best CPU peer; lines as those of infeed-bench.

    PYTHONPATH=bench .venv/bin/python -m peers.bench_rows build/bench.json [--only E2] [--rounds 5]

Where a peer cannot be had the others are compared; where none can, the row says why it is not measured.
"""

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import contest, data
from peers.contest import Entry, Record, Unmeasured

PEERS = ("tf.data", "DALI", "mlx-data", "SPDL")
WORKERS = 2
LOADED = 0.08  # as in infeed-bench: above it a line is marked


@dataclass(frozen=True)
class Question:
    id: str
    work: str
    must: float
    aim: float


QUESTIONS = (Question("E2", "W1a", 1.5, 1.7), Question("E3", "W1b", 1.0, 1.2))
# The bar that the decoder sets itself, on the figures of E2.
EXACT = Question("J4", "W1a", 2.4, 2.8)


def line(question: Question, what: str, unit: str, rounds: list[float], foreign: float, **more: Any) -> dict[str, Any]:
    """A row with the keys of infeed-bench."""
    value = statistics.median(rounds) if rounds else None
    row = {"id": question.id, "what": what, "value": value, "unit": unit, "must": None, "aim": None, "better": "higher"}
    return row | {"rounds": rounds, "foreign": foreign} | more


def not_measured(question: Question, why: str) -> dict[str, Any]:
    what = f"{question.work} loader by the best CPU peer: not measured: {why}"
    return line(question, what, "x", [], 0.0, must=question.must, aim=question.aim)


def answer(question: Question, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """The loader, each peer, and the loader by the best of them."""
    entries = [Entry(question.work, "infeed-engine", "fork", WORKERS)]
    entries += [Entry(question.work, name, "", WORKERS) for name in PEERS]
    ours, *peers = contest.run(entries, rounds, seconds, data.FOLDER)
    measured = [peer for peer in peers if peer.is_measured]
    if not ours.is_measured or not measured:
        return [not_measured(question, (peers[0] if ours.is_measured else ours).failures[-1])]
    best = max(measured, key=lambda peer: peer.median("rate"))
    foreign = statistics.median(ours.series("foreign") + best.series("foreign"))
    rows = [
        line(question, f"{question.work} loader, {WORKERS} fork workers", "samples/s", ours.series("rate"), foreign)
    ]
    rows += [peer_line(question, peer) for peer in peers]
    what = f"{question.work} loader by the best CPU peer ({best.entry.loader})"
    bars = {"must": question.must, "aim": question.aim}
    rows.append(line(question, what, "x", contest.ratios(ours, best), foreign, **bars))
    if question.work == EXACT.work:
        what = f"{EXACT.work} end to end, exact, by the best CPU peer ({best.entry.loader})"
        bars = {"must": EXACT.must, "aim": EXACT.aim}
        rows.append(line(EXACT, what, "x", contest.ratios(ours, best), foreign, **bars))
    what = f"{question.work} {best.entry.loader}'s CPU a sample by the loader's"
    rows.append(line(question, what, "x", contest.ratios(best, ours, "cpu_us"), foreign))
    return rows


def peer_line(question: Question, peer: Record) -> dict[str, Any]:
    what = f"{question.work} {peer.entry.loader}, {WORKERS} threads"
    if not peer.is_measured:
        return line(question, f"{what}: not measured: {peer.failures[-1]}", "samples/s", [], 0.0)
    return line(question, what, "samples/s", peer.series("rate"), statistics.median(peer.series("foreign")))


def figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.3g}"


def show(row: dict[str, Any]) -> None:
    """As infeed-bench prints its lines."""
    spread = f"[{figure(min(row['rounds']))}..{figure(max(row['rounds']))}]" if row["rounds"] else "-"
    others = f"{row['foreign'] * 100:.0f} %{' *' if row['foreign'] > LOADED else ''}"
    head = f"{row['id']:<4} {row['what']:<74} {figure(row['value']):>7} {row['unit']:<9} {spread:>17}"
    print(f"{head} {figure(row['must']):>5} {figure(row['aim']):>5}  {verdict(row):<7} {others}", flush=True)


def verdict(row: dict[str, Any]) -> str:
    value, must = row["value"], row["must"]
    if value is None or must is None:
        return ""
    sign = 1 if row["better"] == "higher" else -1
    return "aim" if sign * (value - row["aim"]) >= 0 else "ok" if sign * (value - must) >= 0 else "MISSED"


def merge(path: Path, rows: list[dict[str, Any]]) -> None:
    """Puts `rows` in the place of those of the same question, all in the order of their numbers."""
    table = json.loads(path.read_text()) if path.is_file() else {"rows": []}
    ids = {row["id"] for row in rows}
    kept = [row for row in table["rows"] if row["id"] not in ids]
    table["rows"] = sorted(kept + rows, key=lambda row: (row["id"][0], int(row["id"][1:])))
    path.write_text(json.dumps(table, indent=2) + "\n")


def prepare() -> None:
    """Raises Unmeasured where the peers or the images cannot be had."""
    setup = subprocess.run(
        [contest.ROOT / "bench/peers/setup.sh"], check=False, stdout=sys.stderr, stderr=subprocess.PIPE, text=True
    )
    if setup.returncode != 0:
        print(setup.stderr, file=sys.stderr, end="")
        raise Unmeasured((setup.stderr.strip().splitlines() or ["bench/peers/setup.sh failed"])[-1])
    data.provide([question.work for question in QUESTIONS], data.FOLDER)


def main() -> None:
    parser = argparse.ArgumentParser(description="E2 and E3 of `make bench`.")
    parser.add_argument("json", type=Path, help="of infeed-bench; the rows are put into it")
    parser.add_argument("--only", choices=[question.id for question in QUESTIONS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    asked = [question for question in QUESTIONS if options.only in (None, question.id)]
    try:
        prepare()
        rows = [row for question in asked for row in answer(question, options.rounds, options.seconds)]
    except Unmeasured as error:
        rows = [not_measured(question, str(error)) for question in asked]
    for row in rows:
        show(row)
    merge(options.json, rows)


if __name__ == "__main__":
    main()
