"""Writes infeed/train/_train.pyi: python bindings/python/train_stub.py bindings/python/infeed/train/_train.pyi

nanobind.stubgen makes it. Inside the class Tensor `float`, `bool`, `int`, `dtype` and `device` would mean its own methods and
properties: there they get other names.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HIDDEN = "bool|float|int|dtype|device"
ALIASES = "\n".join(f"_{name} = {name}" for name in HIDDEN.split("|"))
PATTERNS = Path(__file__).with_name("train_stub.patterns")


def renamed(line: str) -> str:
    """The annotations of one signature; names of functions and arguments stay."""
    head, name, signature = re.match(r"(\s*def )(\w+)(\(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    return head + name + re.sub(rf"(?<=-> )(?=(?:{HIDDEN})\b)|\b(?=(?:{HIDDEN})\b(?!\s*:))", "_", signature)


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "_train.pyi"
        command = [sys.executable, "-m", "nanobind.stubgen", "-P", "-q", "-m", "infeed.train._train"]
        subprocess.run([*command, "-p", str(PATTERNS), "-o", str(made)], check=True)
        lines = made.read_text().splitlines(keepends=True)
    inside, out = False, []
    for line in lines:
        if line.startswith("class Tensor"):
            out.append(ALIASES + "\n\n")
            inside = True
        elif inside and not line.startswith("#") and line[:1] not in (" ", "\n"):
            inside = False
        out.append(renamed(line) if inside and re.match(r"\s+def \w+\(", line) else line)
    target.write_text("".join(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
