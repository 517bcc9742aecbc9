"""Writing files so that a failed run leaves nothing half-written behind."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from openqnn.errors import OutputError

# Files that are complete and wait for others to be so too; None when each takes its place at once.
_WAITING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("waiting", default=None)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A temporary file beside `path` that takes its place when the block ends well, and disappears
    otherwise."""
    with replacing_path(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def replacing_path(path: str | os.PathLike[str]) -> Generator[Path]:
    """The same by name, for writers that open files themselves."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
    except OSError as e:
        raise OutputError(f"{target}: cannot be written: {e.strerror or e}") from e
    temporary, waiting = Path(name), _WAITING.get()
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        if waiting is None:
            os.replace(temporary, target)
    except OSError as e:
        _remove(temporary)
        raise OutputError(f"{target}: cannot be written: {e.strerror or e}", hint=_full(e)) from e
    except OutputError as e:  # whoever wrote knows the file by the name that it has for now
        _remove(temporary)
        e.message = e.message.replace(str(temporary), str(target))
        raise
    except BaseException:
        _remove(temporary)
        raise
    if waiting is not None:
        waiting.append((temporary, target))


def _full(error: OSError) -> str:
    """What to look at, where there was no room."""
    return "is the disk full?" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""


def check_place(path: str | os.PathLike[str]) -> None:
    """OutputError where no file can be put: to know before the work is done that leads to it."""
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{target}: cannot be written: it is a directory")
    folder = next(p for p in target.absolute().parents if p.exists())
    if not folder.is_dir():
        raise OutputError(f"{target}: cannot be written: {folder} is no directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{target}: cannot be written: no permission to write into {folder}")


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
            os.replace(temporary, target)
        except OSError as e:
            raise OutputError(f"{target}: cannot be written: {e.strerror or e}") from e


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
