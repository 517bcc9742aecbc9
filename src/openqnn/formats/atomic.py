"""Writing files so that a failed run leaves nothing half-written behind, and no other file is lost.

What is written takes the place of a file of the same kind only; links are followed; what is no regular
file (a device, a pipe) is written into and never replaced. Files in the making are locked, so that those of
a process that was killed can be told from those of one that works, in another container perhaps, and removed.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from openqnn.errors import OutputError
from openqnn.formats.sniff import kind_of
from openqnn.worker.file_lock import file_lock, folder_lock, is_locked_by_nobody, needs_closing_first, synced

# Files that are complete and wait for others to be so too; None when each takes its place at once.
_WAITING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("waiting", default=None)
_ANY_KIND: ContextVar[bool] = ContextVar("any_kind", default=False)

PARTIAL = ".part"
_LONGEST = 150  # bytes of a name in that of its partial file: file systems allow 255
_YOUNG = 60.0  # seconds: a partial file may not be locked yet
_STREAMS = ("/dev/", "/proc/")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A temporary file beside `path` that takes its place when the block ends well, and disappears
    otherwise."""
    with replacing_path(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def replacing_path(path: str | os.PathLike[str]) -> Generator[Path]:
    """A temporary file by its name, for writers that open files themselves."""
    target = Path(path)
    try:
        temporary, lock = _partial_file(target)
    except OSError as e:
        raise OutputError(f"{target}: cannot be written: {e.strerror or e}") from e
    waiting = _WAITING.get()
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~umask())
        check_kind(target, kind_of(temporary))
        synced(temporary)
        if needs_closing_first():
            lock = _closed(lock)
        if waiting is None:
            _publish(temporary, target)
    except OSError as e:
        _remove(temporary)
        raise OutputError(f"{target}: cannot be written: {e.strerror or e}", hint=full_disk(e)) from e
    except OutputError as e:  # whoever wrote knows the file by the name that it has for now
        _remove(temporary)
        e.message = e.message.replace(str(temporary), str(target))
        raise
    except BaseException:
        _remove(temporary)
        raise
    finally:
        _closed(lock)
    if waiting is not None:
        waiting.append((temporary, target))


@contextmanager
def partial_folder(target: str | os.PathLike[str]) -> Generator[Path]:
    """A folder beside `target` to work in, which goes with the block; OSError where none can be made."""
    place = Path(os.path.realpath(target))
    place.parent.mkdir(parents=True, exist_ok=True)
    _clear_remains(place)
    folder = Path(tempfile.mkdtemp(prefix=_prefix(place), suffix=PARTIAL, dir=place.parent))
    lock = folder_lock(folder)
    try:
        os.chmod(folder, 0o777 & ~umask())
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _closed(lock)


@contextmanager
def replacing_any_kind(allowed: bool = True) -> Generator[None]:
    """For who was told to replace whatever is there."""
    token = _ANY_KIND.set(allowed)
    try:
        yield
    finally:
        _ANY_KIND.reset(token)


def full_disk(error: OSError) -> str:
    """What to look at, where there was no room."""
    return "is the disk full?" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""


def check_place(path: str | os.PathLike[str]) -> None:
    """OutputError where no file can be put: to know before the work is done that leads to it."""
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{target}: cannot be written: it is a directory")
    if is_stream(target):
        return
    folder = next(p for p in Path(os.path.realpath(target)).parents if p.exists())
    if not folder.is_dir():
        raise OutputError(f"{target}: cannot be written: {folder} is no directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{target}: cannot be written: no permission to write into {folder}")


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that is written into, not replaced; OutputError for a disk or a socket."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OutputError(f"{path}: cannot be written: it is a {'disk' if stat.S_ISBLK(mode) else 'socket'}")
    standard = os.path.abspath(path).startswith(_STREAMS)  # /dev/stdout may be a regular file
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or (standard and stat.S_ISREG(mode))


class Parked:
    """A file in a folder of its own, of which copies are put where they belong. It goes with this object."""

    def __init__(self, name: str) -> None:
        folder = tempfile.mkdtemp(prefix="openqnn-")
        self.path = Path(folder, name)
        weakref.finalize(self, _clear, folder, os.getpid())

    def put(self, path: str | os.PathLike[str]) -> None:
        """Let a copy appear, whole or not at all. The kernel copies: nothing passes through this process."""
        with replacing_path(path) as temporary:
            shutil.copyfile(self.path, temporary)

    def read(self) -> bytes:
        """What is in the file."""
        return self.path.read_bytes()


def _clear(folder: str, process: int) -> None:
    if os.getpid() == process:  # a copy of the process has no claim to it
        shutil.rmtree(folder, ignore_errors=True)


def _partial_file(target: Path) -> tuple[Path, int]:
    """An empty file beside the target, or what a link there leads to, and the descriptor that locks it."""
    if is_stream(target):
        handle, name = tempfile.mkstemp(prefix="openqnn-", suffix=PARTIAL)
        return Path(name), handle
    place = Path(os.path.realpath(target))
    place.parent.mkdir(parents=True, exist_ok=True)
    _clear_remains(place)
    handle, name = tempfile.mkstemp(prefix=_prefix(place), suffix=PARTIAL, dir=place.parent)
    file_lock(handle)  # without locks nothing is ever removed either
    return Path(name), handle


def _closed(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def _prefix(place: Path) -> str:
    return f".{os.fsencode(place.name)[:_LONGEST].decode(errors='ignore')}."


def _clear_remains(place: Path) -> None:
    """Remove what processes left that were killed while they wrote to this place."""
    prefix = _prefix(place)
    with suppress(OSError):
        found = [e.path for e in os.scandir(place.parent) if e.name.startswith(prefix)]
        for path in found:
            if path.endswith(PARTIAL) and _is_abandoned(path):
                Path(path).unlink() if not os.path.isdir(path) else shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: str) -> bool:
    """Whether nobody holds the lock; the system lets it go with the process, however that ends."""
    if time.time() - os.stat(path, follow_symlinks=False).st_mtime < _YOUNG:
        return False
    return is_locked_by_nobody(path)


def check_kind(target: Path, kind: str) -> None:
    """OutputError where the target is a file of another kind than what is to take its place."""
    if _ANY_KIND.get() or not target.is_file() or is_stream(target):
        return
    old = kind_of(target)
    if old not in ("", kind):
        raise OutputError(
            f"{target} is {old}, and {kind or 'an empty file'} would take its place",
            hint="give another name, or remove the file first",
        )


def _publish(temporary: Path, target: Path) -> None:
    if not is_stream(target):
        os.replace(temporary, os.path.realpath(target))
        return
    with temporary.open("rb") as file, target.open("wb") as stream:
        shutil.copyfileobj(file, stream)
    _remove(temporary)


def _remove(temporary: Path) -> None:
    with suppress(FileNotFoundError):
        temporary.unlink()


@contextmanager
def together() -> Generator[None]:
    """The files that are written inside appear when the whole block ends well, all of them or none."""
    waiting: list[tuple[Path, Path]] = []
    token = _WAITING.set(waiting)
    try:
        yield
        _move(waiting)
    finally:
        _WAITING.reset(token)
        for temporary, _ in waiting:
            _remove(temporary)


def _move(waiting: list[tuple[Path, Path]]) -> None:
    blocked = next((target for _, target in waiting if target.is_dir()), None)
    if blocked is not None:
        raise OutputError(f"{blocked}: cannot be written: it is a directory")
    for temporary, target in waiting:
        try:
            _publish(temporary, target)
        except OSError as e:
            raise OutputError(f"{target}: cannot be written: {e.strerror or e}") from e


def umask() -> int:
    """The rights that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
