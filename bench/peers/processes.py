"""What a process and all below it use, from /proc."""

import os
from collections import defaultdict
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[str] | None:
    """/proc/PID/stat from the state on; None where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def tree(root: int) -> dict[int, float]:
    """Processes from `root` down, each with its CPU seconds and those of the children it reaped."""
    children: dict[int, list[int]] = defaultdict(list)
    cpu_s: dict[int, float] = {}
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        if (fields := _fields(pid)) is not None:
            children[int(fields[1])].append(pid)
            cpu_s[pid] = sum(map(int, fields[11:15])) * _TICK_S
    found: dict[int, float] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        found[pid] = cpu_s.get(pid, 0.0)
        waiting += children[pid]
    return found


def tree_cpu_s(root: int) -> float:
    return sum(tree(root).values())


def tree_pss_mb(root: int) -> float:
    """Proportional set size: a page that n processes share counts as a page once."""
    total_kb = 0
    for pid in tree(root):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kb * 1024e-6


def machine_busy_s() -> float:
    """CPU seconds that all processes and the hypervisor took so far, over all cores."""
    fields = [int(field) * _TICK_S for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4]  # less idle and waiting for disks
