"""The command `infeed`: `infeed prepare --help`, or `python -m infeed prepare --help`."""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PLACES = (os.path.join(_HERE, "bin", "infeed"), os.path.join(_HERE, "..", "..", "bin", "infeed"))  # wheel, build tree


def main() -> None:
    """Becomes the program that came with this package."""
    for path in _PLACES:
        if os.access(path, os.X_OK):
            os.execv(path, ["infeed", *sys.argv[1:]])
    sys.exit("infeed: this build of the package has no command; build it with INFEED_BUILD_TOOLS.")


if __name__ == "__main__":
    main()
