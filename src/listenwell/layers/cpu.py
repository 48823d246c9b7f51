"""Process settings that speed up tensor operations on a CPU."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
"""How long an idle thread spins before it sleeps, for the OpenMP runtime that torch ships with: GNU's on Linux
(1,000 spins, about 50 µs; the default is 300,000) and LLVM's or Intel's elsewhere (1 ms; the default is 200)."""

WAITING_BY_USER = ("OMP_WAIT_POLICY", *WAITING)
"""A user who sets one of these has chosen how threads wait."""

STEP = 64
"""The number of rows of a half-precision product should be a multiple of this: oneDNN compiles a kernel for each number
of rows, which takes a good part of a short product's time, and gigabytes of cache for a thousand different numbers."""


def spare_rows(rows: int) -> int:
    """How many padding rows to add: fewer for small inputs, since they are computed like the others."""
    return -rows % (STEP if rows > STEP else STEP // 8)


def with_spare_rows(rows: Tensor) -> Tensor:
    """Rows (rows, width), followed by padding rows of zeros."""
    from torch.nn.functional import pad  # not above: `let_waiting_threads_sleep` comes before it

    return pad(rows, (0, 0, 0, spare_rows(len(rows))))


def let_waiting_threads_sleep() -> None:
    """Make torch's idle threads sleep soon instead of spinning. Call before torch is imported.

    By default they spin for many milliseconds after every product. On an idle machine nobody notices; when another
    program needs the cores too, each waits for threads that only spin, and a reply of a second takes a minute. What the
    user has set is kept. After torch is imported, this has no effect.
    """
    if not any(name in os.environ for name in WAITING_BY_USER):
        os.environ.update(WAITING)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def computing_threads() -> int:
    """How many threads a product uses here by default: as many as the user or torch chose."""
    import torch  # not above: `let_waiting_threads_sleep` comes before it

    return torch.get_num_threads()


def compute_with(threads: int) -> None:
    """Set how many threads the products of the calling thread use; other threads keep their number."""
    import torch

    # At its first product, a thread adopts the number last set by any thread. Asking for the number does this now.
    torch.get_num_threads()
    torch.set_num_threads(threads)


def keep_freed_memory() -> None:
    """Tell glibc to keep freed blocks instead of returning them to the system.

    Training steps free and allocate the same tens of megabytes again and again; if they are returned, the
    system hands out fresh zeroed pages every time, which costs from a few to about twenty per cent of a step. Without
    glibc, this does nothing.
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
    """Tell glibc to return freed blocks to the system: converting a model into another form leaves many."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def keep_made_kernels() -> None:
    """Let oneDNN, which computes half-precision products, cache the kernels that it compiles for each shape.

    Batches of similar length come in hundreds of shapes, more than it caches by default; recompiling costs about
    six per cent of a step. Call before the first product. What the user has set is kept.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
