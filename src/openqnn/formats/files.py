"""Writing files so that a failed run leaves nothing half-written behind."""

from __future__ import annotations

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
        raise OutputError(f"{target}: cannot be written: {e.strerror or e}", hint="is the disk full?") from e
    except BaseException:
        _remove(temporary)
        raise
    if waiting is not None:
        waiting.append((temporary, target))


class Parked:
    """A file in a folder of its own, until it is put where it belongs. It is gone with this object."""

    def __init__(self, name: str) -> None:
        folder = tempfile.mkdtemp(prefix="openqnn-")
        self.path, self._shared = Path(folder, name), None
        weakref.finalize(self, _clear, folder, os.getpid())

    def put(self, path: str | os.PathLike[str]) -> None:
        """Let the file appear under another name, whole or not at all.

        The first time that is the same file where the file system can do so, which takes no copying.
        """
        with replacing_path(path) as temporary:
            if self._shared is not None or not self._link(temporary):
                self._check()
                shutil.copyfile(self.path, temporary)
                return
        self._shared = Path(path).absolute(), _state(self.path)

    def read(self) -> bytes:
        """What is in the file."""
        self._check()
        return self.path.read_bytes()

    def _link(self, temporary: Path) -> bool:
        link = f"{temporary}.same"
        try:
            os.link(self.path, link)
        except OSError:  # another file system, or one without links
            return False
        os.replace(link, temporary)
        return True

    def _check(self) -> None:
        """Whoever changes the shared file in its place changes ours."""
        if self._shared is not None and _state(self.path) != self._shared[1]:
            raise OutputError(
                f"{self._shared[0]} has been changed since it was written, and there is no other copy",
                hint="make it again, or copy the file that was written before anything changes it",
            )


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


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
