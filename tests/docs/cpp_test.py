"""Compiles the C++ blocks of README.md and docs/: one source for those that need the engine, one for those that need LibTorch.

    python3 tests/docs/cpp_test.py OUT.cpp (engine|torch) COMPILER [FLAGS...]

A block that begins with a declaration stands in a namespace of its own, any other in a function. Compilers name page and line.
"""

import re
import subprocess
import sys
from pathlib import Path

from pages import PAGES, Block, blocks

DECLARATION = re.compile(r"(class|struct|extern|inline|template|namespace|using|int main)\b")
INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)
TORCH = re.compile(r"\b(torch|at)::")


def translated(block: Block) -> str:
    text = INCLUDE.sub(
        "", block.text
    )  # they stand at the top, outside of the namespace; the empty lines keep the count
    name = "block_" + re.sub(r"\W", "_", block.place)
    first = next((line for line in text.splitlines() if line and not line.startswith("//")), "")
    opening = f"namespace {name} {{" if DECLARATION.match(first) else f"void {name}();\nvoid {name}() {{"
    return f'{opening}\n#line {block.line} "{block.place.split(":")[0]}"\n{text}}}\n'


def main() -> int:
    out, kind, *compiler = sys.argv[1:]
    wanted = [
        block for page in PAGES for block in blocks(page, "cpp") if bool(TORCH.search(block.text)) == (kind == "torch")
    ]
    includes = ['#include "prelude.h"'] + (['#include "prelude_torch.h"'] if kind == "torch" else [])
    includes += sorted({line for block in wanted for line in INCLUDE.findall(block.text)})
    Path(out).write_text("\n".join([*includes, *map(translated, wanted)]))
    print(f"{len(wanted)} blocks in {out}")
    return subprocess.run([*compiler, "-fsyntax-only", out], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
