"""File and system errors, each described in one line: what, where, and what to do."""

from __future__ import annotations

import errno
import os
import re

UNFINISHED = re.compile(r"(?<=/)?\.([^/]+?)(?:\.[0-9a-f]+\.tmp|\.writing|\.old)(?=/|$)")
"""Temporary names of files that are still being written. Messages show the name that the user gave instead."""

FILE_PROBLEMS: dict[int, str] = {
    errno.EACCES: "no permission to read or write there; change the permissions, or name another place",
    errno.EPERM: "not allowed there; change the permissions, or name another place",
    errno.EROFS: "is on a read-only file system; name another place",
    errno.ENOSPC: "no space is left on the disk; free some, or name a place on another disk",
    errno.EDQUOT: "the disk quota is used up; free some space, or name a place on another disk",
    errno.EFBIG: "the file grows larger than the system allows; name a place on another disk",
    errno.ENOENT: "no such file or folder; check the name",
    errno.EISDIR: "is a folder, where a file is expected; name a file in it",
    errno.ENOTDIR: "a part of this path is a file, where a folder is expected; check the name",
    errno.EEXIST: "already exists; name another place",
    errno.ENOTEMPTY: "is a folder with something in it; name another place",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: "is a link that leads back to itself; repair it, or name another place",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.EIO: "the disk could not be read or written; check it, or name a place on another disk",
}


def describe(problem: BaseException) -> str:
    """Describe a problem in one line. Our own messages stay as they are; system errors get a hint what to do."""
    if isinstance(problem, UnicodeDecodeError):
        return _not_text(problem)
    if isinstance(problem, OSError) and problem.errno is not None:
        return _of_file(problem)
    return str(problem) or type(problem).__name__


def _of_file(problem: OSError) -> str:
    message = FILE_PROBLEMS.get(problem.errno or 0, problem.strerror or "cannot be read or written")
    name = problem.filename if problem.filename2 is None else problem.filename2  # the target, if it was a move
    if name is None or isinstance(name, int):
        return message
    place = UNFINISHED.sub(r"\1", os.fsdecode(name))
    if problem.errno == errno.EEXIST and os.path.isfile(place):
        message = "is a file, where a folder is expected; name another place"
    return f"{place}: {message}"


def _not_text(problem: UnicodeDecodeError) -> str:
    byte = problem.object[problem.start]
    return (
        f"the byte 0x{byte:02x} at position {problem.start + 1} of what was read is not {problem.encoding.upper()}; "
        "save it as UTF-8 text (iconv -f LATIN1 -t UTF-8 turns an older encoding into it)"
    )
