"""Reads every #include of the project and fails on one that points up the layers, or on a public header that leaks a dependency.

Run from anywhere: python3 tests/layering_test.py
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Each layer may include itself and the layers named here (transitively closed by hand: the whole list is what it sees).
ALLOWED = {
    "base": [],
    "memory": ["base"],
    "device": ["base"],
    "ring": ["base", "memory"],
    "batch": ["base", "memory", "ring"],
    "decode": ["base", "batch"],
    "transform": ["base", "batch", "decode"],
    "sampler": ["base", "batch"],
    "collate": ["base", "batch"],
    "plugin": ["base", "batch", "dataset"],
    "dataset": ["base", "memory", "batch", "decode", "transform", "collate", "sampler", "plugin"],
    "worker": ["base", "memory", "ring", "batch", "decode", "transform", "sampler", "collate", "dataset"],
    "loader": [
        "base",
        "memory",
        "device",
        "ring",
        "batch",
        "decode",
        "transform",
        "sampler",
        "collate",
        "dataset",
        "worker",
    ],
    "tuner": ["base", "memory", "device", "batch", "dataset", "loader"],
    "exchange": ["base", "memory", "ring", "batch", "worker", "loader"],
    "doctor": ["base", "memory", "loader"],
    "train": ["base", "device"],
}
# The pool takes its knobs from the loader's options; the tables of the C ABI include nothing of ours.
EXCEPTIONS = {
    ("worker", "infeed/loader/options.h"),
    ("base", "infeed/plugin/abi.h"),
    ("device", "infeed/plugin/device_abi.h"),
    ("device", "infeed/plugin/kernel_abi.h"),
    ("train", "infeed/plugin/kernel_abi.h"),
}
FOREIGN = re.compile(r"^(cuda|torch|ATen|boost/|tbb/|oneapi/|jpeglib|png|spng|fmt/|spdlog/|nlohmann/|dnnl|oneapi|omp)")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def layer_of(path: str) -> str | None:
    """The layer of a file below src/ or include/infeed/, or of an included name."""
    parts = path.split("/")
    if parts[0] == "infeed":
        parts = parts[1:]
    return parts[0] if len(parts) > 1 and parts[0] in ALLOWED else None


def faults():
    public = ROOT / "include" / "infeed"
    for top in (public, ROOT / "src"):
        for file in sorted(top.rglob("*")):
            if file.suffix not in (".h", ".cpp", ".cu"):
                continue
            layer = layer_of(str(file.relative_to(top)))
            for name in INCLUDE.findall(file.read_text()):
                where = f"{file.relative_to(ROOT)} includes {name}"
                if top == public and FOREIGN.match(name):
                    yield f"{where}: a public header must not need it"
                if top == public and not name.startswith("infeed/") and "/" in name and (ROOT / "src" / name).exists():
                    yield f"{where}: a public header must not need a private one"
                target = layer_of(name)
                if layer is None or target is None or target == layer or (layer, name) in EXCEPTIONS:
                    continue
                if target not in ALLOWED[layer]:
                    yield f"{where}: {layer} may not see {target}"
    for folder in ("examples", "plugins", "bindings"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".cu"):
                continue
            for name in INCLUDE.findall(file.read_text()):
                if name.startswith("device/kernels/"):  # written once for the simulated device and for GPUs
                    continue
                if layer_of(name) and not name.startswith("infeed/"):
                    yield f"{file.relative_to(ROOT)} includes {name}: {folder} may use include/infeed only"


def main() -> int:
    found = list(faults())
    print("\n".join(found))
    print(f"{len(found)} upward includes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
