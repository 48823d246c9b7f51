"""Settings of the process that make tensor work on a CPU faster."""

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
"""How long a thread that has nothing to do looks for work before it sleeps, for the OpenMP that torch comes with: GNU's
on Linux (1,000 looks, some 50 µs; 300,000 by itself) and LLVM's or Intel's elsewhere (1 ms; 200 by itself)."""

WAITING_BY_USER = ("OMP_WAIT_POLICY", *WAITING)
"""Who sets one of these has chosen how threads wait."""

STEP = 64
"""Rows of a product in half precision are best a multiple of this: oneDNN makes code for each number of rows, which
takes a good part of a short product's time, and gigabytes to keep where a thousand numbers come up."""


def spare_rows(rows: int) -> int:
    """How many rows to add, which nobody reads; few where there are few, since they are computed like the others."""
    return -rows % (STEP if rows > STEP else STEP // 8)


def with_spare_rows(rows: Tensor) -> Tensor:
    """Rows (rows, width) with the spare ones behind them, which are zeros."""
    from torch.nn.functional import pad  # not above: `let_waiting_threads_sleep` comes before it

    return pad(rows, (0, 0, 0, spare_rows(len(rows))))


def let_waiting_threads_sleep() -> None:
    """Lets the threads of tensor work sleep soon after they have nothing to do; to be called before torch is imported.

    By themselves they look for work for many milliseconds after every product. On an idle machine nobody notices; where
    another program wants the cores too, each waits for threads that only look, and a reply of a second takes a minute.
    What the user has set stays. After torch is imported this has no effect.
    """
    if not any(name in os.environ for name in WAITING_BY_USER):
        os.environ.update(WAITING)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def computing_threads() -> int:
    """How many threads share out a product here, unless told otherwise: as many as the user or torch chose."""
    import torch  # not above: `let_waiting_threads_sleep` comes before it

    return torch.get_num_threads()


def compute_with(threads: int) -> None:
    """How many threads share out the products of the thread that calls this; others keep their number."""
    import torch

    # At its first product a thread takes the number that was set last, by whichever thread. To ask for it comes before.
    torch.get_num_threads()
    torch.set_num_threads(threads)


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

    Batches of like length come in hundreds of shapes, more than it keeps by itself; compiling again costs some
    six per cent of a step. To be called before the first product; what the user has set stays.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
