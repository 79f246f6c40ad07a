"""The commands that README.md and docs/ show are there: programs, subcommands, options, presets, targets, scripts.

    python3 tests/docs/commands_test.py BUILD_FOLDER

Read are blocks marked `sh`, lines that begin with `$ ` in other blocks, and commands in backticks. Nothing of them is run:
programs of the project are asked for `--help`, scripts must have the option in their text.
"""

import functools
import itertools
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pages import PAGES, ROOT, blocks, code_spans

BUILD = Path(sys.argv[1])
PROGRAMS = {
    "infeed": "bin/infeed",
    "infeed-bench": "bench/suite/infeed-bench",
    "infeed-sweep": "bench/infeed-sweep",
    "infeed-demo": "examples/demo/infeed-demo",
}
OTHERS = {"apt-get", "cd", "docker", "pip", "sudo", "cmake", "ctest", "make", "python", "python3"}
OPTION = re.compile(r"--[a-z][\w-]*")
ASSIGNMENT = re.compile(r"\w+=")


def commands() -> Iterator[tuple[str, str]]:
    """Place and text of each command."""
    for page in PAGES:
        for block in blocks(page, "sh", ""):
            text = block.text.replace("\\\n", " ")
            for line in text.splitlines():
                if block.language == "sh" or line.startswith("$ "):
                    yield block.place, line.removeprefix("$ ").strip()
        for line, span in code_spans(page):
            words = span.split()
            if len(words) > 1 and (words[0] in PROGRAMS or words[0] in OTHERS) and "..." not in words:
                yield f"{page.name}:{line}", span


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a line, without comments and assignments."""
    text = re.sub(r"\$\([^)]*\)", "", text)  # its result only goes into an assignment here
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;"):
            if words:
                yield words
            words = []
        elif words or not ASSIGNMENT.match(word):
            words.append(word)


@functools.cache
def help_of(*command: str) -> str:
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@functools.cache
def targets() -> set[str]:
    listed = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "targets", "all"], capture_output=True, text=True, check=True
    )
    return {line.split(":")[0].rsplit("/", 1)[-1] for line in listed.stdout.splitlines()}


def program_faults(program: Path, words: list[str]) -> Iterator[str]:
    if not program.exists():
        return  # not part of this build
    subcommand = words[:1] if program.name == "infeed" and words and not words[0].startswith("-") else []
    if subcommand and not re.search(rf"^ +{subcommand[0]}\b", help_of(str(program)), re.MULTILINE):
        yield f"{program.name} has no {subcommand[0]}"
    yield from option_faults(" ".join([program.name, *subcommand]), help_of(str(program), *subcommand), words)


def option_faults(what: str, text: str, words: list[str]) -> Iterator[str]:
    for word in words:
        option = OPTION.match(word)
        if option and option[0] != "--help" and not re.search(rf"{option[0]}(?![\w-])", text):
            yield f"{what} has no {option[0]}"


def cmake_faults(words: list[str]) -> Iterator[str]:
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    known = {preset["name"] for kind in presets.values() if isinstance(kind, list) for preset in kind}
    for flag, name in itertools.pairwise(words):
        if flag == "--preset" and name not in known:
            yield f"no preset {name}"
    if "--target" in words:
        yield from (f"no target {name}" for name in words[words.index("--target") + 1 :] if name not in targets())
    for word in words:
        variable = re.match(r"-D(INFEED_\w+)", word)
        if variable and variable[1] not in (ROOT / "CMakeLists.txt").read_text() + (ROOT / "README.md").read_text():
            yield f"no switch {variable[1]}"


def path_faults(words: list[str]) -> Iterator[str]:
    """Files of the checkout and of this build folder; what the words name elsewhere is the reader's."""
    for word in words:
        if word.startswith("build/release/") and "*" not in word:
            name = word.removeprefix("build/release/")
            if not (BUILD / name).exists() and Path(name).name not in targets():
                yield f"the build makes no {word}"
        elif re.match(r"(tests|bench|examples|src|docs|\.ci)/", word) and not (ROOT / word).exists():
            yield f"no file {word}"


def faults(words: list[str]) -> Iterator[str]:
    name, rest = words[0], words[1:]
    if name.startswith("python") and rest[:2] == ["-m", "infeed"]:
        name, rest = "infeed", rest[2:]
    elif name.endswith("python") or name == "python3":
        name, rest = (rest[0], rest[1:]) if rest and (ROOT / rest[0]).is_file() else ("python", rest)
    yield from path_faults([name, *rest])
    if Path(name).name in PROGRAMS:
        yield from program_faults(BUILD / PROGRAMS[Path(name).name], rest)
    elif name in ("cmake", "ctest"):
        yield from cmake_faults(rest)
    elif name == "make":
        made = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        yield from (f"no `make {goal}`" for goal in rest if goal not in made and "=" not in goal)
    elif (ROOT / name).is_file() and not name.startswith("build/"):
        yield from option_faults(name, (ROOT / name).read_text(), rest)
    elif name not in OTHERS and "/" not in name:
        yield f"{name} is no program of this project"


def main() -> int:
    shown = list(commands())
    found = [
        f"{place}: {fault}\n    {text}"
        for place, text in shown
        for words in simple_commands(text)
        for fault in faults(words)
    ]
    print("\n".join(found))
    print(f"{len(found)} faults in {len(shown)} lines of commands")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
