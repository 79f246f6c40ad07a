"""Every file, folder and name in backticks, and every link, of README.md and docs/ leads somewhere.

A name is there if a file of the sources has it as a word; those of the system and of other libraries that none has are listed
in one of these files, foreign_names.txt.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pages import PAGES, ROOT, code_spans, prose

SOURCES = (".ci", "bench", "bindings", "cmake", "examples", "include", "plugins", "src", "tests")
TEXTS = {"", *".c .cmake .cpp .cu .dict .h .in .json .pml .py .pyi .sh .toml .txt".split()}
NAME = re.compile(r"[.\w:~]+(\(\))?")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
NOT_OURS = re.compile(r"^[/~$]|://|[<>$]|^build/|^\.\./")  # of the system, of the reader, or a pattern


def files() -> Iterator[Path]:
    yield from (file for file in ROOT.iterdir() if file.is_file() and file.suffix != ".md")
    for folder in SOURCES:
        yield from (file for file in (ROOT / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts)


FILES = list(files())
NAMES = "\n".join(f"/{file.relative_to(ROOT)}" for file in FILES) + "\n"


def words() -> set[str]:
    known = {
        "_".join(file.relative_to(ROOT / "tests").with_suffix("").parts)
        for file in FILES
        if file.match("tests/*/*_test.cpp")
    }
    for file in FILES:
        if file.suffix in TEXTS:
            known.update(re.findall(r"\w+", file.read_text(errors="ignore")))
    return known


def is_there(path: str) -> bool:
    """A path from the top or from any folder below it; without its suffix, or as a test's name, too."""
    if (ROOT / path).exists() or (ROOT / "docs" / path).exists():
        return True
    test = re.sub(r"^python/(\w+)$", r"python/test_\1", path.rstrip("/"))
    pattern = re.escape(test).replace(r"\*", "[^/]*")
    return re.search(rf"/{pattern}(_test)?(\.\w+)?(/|$)", NAMES, re.MULTILINE) is not None


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def link_faults(page: Path) -> Iterator[str]:
    for line, text in prose(page):
        for target, anchor in LINK.findall(text):
            file = page.parent / target if target else page
            if not file.exists():
                yield f"{page.name}:{line}: the link to {target} leads nowhere"
            elif anchor and anchor not in anchors(file):
                yield f"{page.name}:{line}: {file.name} has no #{anchor}"


def name_faults(page: Path, known: set[str]) -> Iterator[str]:
    for line, span in code_spans(page):
        if NOT_OURS.search(span):
            continue
        if "/" in span and " " not in span and "=" not in span:
            if not is_there(span):
                yield f"{page.name}:{line}: no file or folder `{span}`"
        elif NAME.fullmatch(span):
            unknown = [word for word in re.findall(r"[A-Za-z_]\w*", span) if word not in known]
            if unknown and not is_there(span):
                yield f"{page.name}:{line}: nothing is named `{span}` ({', '.join(unknown)})"


def main() -> int:
    known = words()
    found = [fault for page in PAGES for fault in (*link_faults(page), *name_faults(page, known))]
    print("\n".join(found))
    print(f"{len(found)} faults in {len(PAGES)} pages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
