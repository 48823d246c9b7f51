"""Problems of files and of the system, each as one line: what, where, and the way out."""

from __future__ import annotations

import errno
import os
import re

UNFINISHED = re.compile(r"(?<=/)?\.([^/]+?)(?:\.[0-9a-f]+\.tmp|\.writing|\.old)(?=/|$)")
"""What is written under another name until it is whole: messages speak of the name that was asked for."""

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
    """One line on a problem. Messages of our own stay as they are; the system's get the way out."""
    if isinstance(problem, UnicodeDecodeError):
        return _not_text(problem)
    if isinstance(problem, OSError) and problem.errno is not None:
        return _of_file(problem)
    return str(problem) or type(problem).__name__


def _of_file(problem: OSError) -> str:
    message = FILE_PROBLEMS.get(problem.errno or 0, problem.strerror or "cannot be read or written")
    name = problem.filename if problem.filename2 is None else problem.filename2  # of a move, where to
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
