"""What the pages of the documentation hold: fenced blocks, names in backticks, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCE = re.compile(r"^ *```(\w*)\s*$")
# In the line before a block: it is checked as far as that goes without running it.
NOT_RUN = re.compile(r"^<!-- not run: .+ -->$")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int  # of the first line of text, from 1
    language: str  # of the fence; empty where it has none
    text: str
    runs: bool  # false behind a `<!-- not run: why -->`

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """The blocks of a page whose fence names one of the languages."""
    lines = page.read_text().splitlines()
    begin = None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence is None:
            continue
        if begin is None:
            begin = number
            continue
        language = FENCE.match(lines[begin])[1]
        if language in languages:
            runs = not (begin > 0 and NOT_RUN.match(lines[begin - 1]))
            yield Block(page, begin + 2, language, "\n".join(lines[begin + 1 : number]) + "\n", runs)
        begin = None
    if begin is not None:
        raise SyntaxError(f"{page}:{begin + 1}: this block has no end")


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page that are in no block, with their numbers."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def code_spans(page: Path) -> Iterator[tuple[int, str]]:
    """What stands in backticks, with its line."""
    for number, line in prose(page):
        for span in re.findall(r"`([^`]+)`", line):
            yield number, span
