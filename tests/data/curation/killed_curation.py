"""`listenwell curate` that is killed at the nth time that it puts something in its place: killed_curation.py N WORDS…

An odd N is right before, an even one right after it. N = 0 is never.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from typing import Any

from listenwell.cli import main

DIES_AT, *WORDS = sys.argv[1:]
calls = 0


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        global calls
        calls += 2
        if calls - 1 == int(DIES_AT):
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*args, **options)
        if calls == int(DIES_AT):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return call


for module, name in ((os, "replace"), (os, "rename"), (os, "unlink"), (os, "mkdir"), (shutil, "rmtree")):
    setattr(module, name, counted(getattr(module, name)))
if __name__ == "__main__":
    main(WORDS)
    print(calls)
