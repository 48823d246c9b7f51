"""Settings of the process that make tensor work on a CPU faster."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

STEP = 64
"""Rows of a product in half precision are best a multiple of this: oneDNN makes code for each number of rows, which
takes a good part of a short product's time, and gigabytes to keep where a thousand numbers come up."""


def spare_rows(rows: int) -> int:
    """How many rows to add, which nobody reads; few where there are few, since they are computed like the others."""
    return -rows % (STEP if rows > STEP else STEP // 8)


def keep_freed_memory() -> None:
    """Tells glibc to keep freed blocks instead of giving them back to the system.

    A training step frees and takes the same tens of megabytes again and again; when each goes back, the
    system hands out fresh zeroed pages every time, which costs a few to some twenty per cent of a step. Elsewhere than
    on glibc there is nothing to tell.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, 1 << 30)
    mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


def return_freed_memory() -> None:
    """Tells glibc to give freed blocks back to the system: after a model was made of another, they are many."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):  # of another C library
        ctypes.CDLL(None).malloc_trim(0)


def keep_made_kernels() -> None:
    """Lets oneDNN, which multiplies in half precision, keep the code that it makes for each shape of a product.

    Batches of like length come in hundreds of shapes, more than it keeps by itself; making the code anew costs some
    six per cent of a step. To be called before the first product; what the user has set stays.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
