"""Whether every wheel in a folder is small enough for the package index: python weights/check.py dist"""

from __future__ import annotations

import sys
from pathlib import Path

MOST_BYTES = 100_000_000


def main() -> None:
    wheels = sorted(Path(sys.argv[1]).glob("*.whl"))
    if not wheels:
        sys.exit(f"{sys.argv[1]}: no wheels there; make wheels builds them")
    for wheel in wheels:
        print(f"{wheel.stat().st_size / 1e6:6.1f} MB  {wheel.name}")
    if large := [wheel.name for wheel in wheels if wheel.stat().st_size >= MOST_BYTES]:
        sys.exit(f"too large (at most {MOST_BYTES / 1e6:.0f} MB): {', '.join(large)}; move a system to another package")


if __name__ == "__main__":
    main()
