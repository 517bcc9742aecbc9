"""File locks that the system lets go with the process, where it has them; and descriptors of folders."""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where locked files could not be read by others either
    fcntl = None


def file_lock(handle: int, *, wait: bool = False) -> bool:
    """Take the lock of an open file; False where somebody has it, or the file system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def folder_lock(path: str | os.PathLike[str], *, wait: bool = False) -> int | None:
    """A descriptor that locks a folder; None where folders cannot be opened."""
    if fcntl is None:
        return None
    handle = os.open(path, os.O_RDONLY)
    file_lock(handle, wait=wait)
    return handle


def is_locked_by_nobody(path: str | os.PathLike[str]) -> bool:
    """Whether no process holds the lock of a file or folder; False where that cannot be told."""
    if fcntl is None:
        return False
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        return file_lock(handle)
    finally:
        os.close(handle)


def synced(path: Path) -> None:
    """Wait until a file is on the disk: a power cut must not leave an empty one under its final name."""
    handle = os.open(path, os.O_RDWR if fcntl is None else os.O_RDONLY)  # Windows syncs what it may write
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def needs_closing_first() -> bool:
    """Whether a file must be closed before it is renamed, as on Windows."""
    return fcntl is None
