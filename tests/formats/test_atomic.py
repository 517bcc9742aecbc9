"""Files that wait until they are put where they belong."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from openqnn.errors import OutputError
from openqnn.formats.atomic import Parked, replacing


def parked(data: bytes = b"compiled") -> Parked:
    file = Parked("context.bin")
    file.path.write_bytes(data)
    return file


def test_every_name_has_a_copy_of_its_own(tmp_path: Path) -> None:
    file = parked()
    file.put(tmp_path / "first" / "a.bin")
    (tmp_path / "first" / "a.bin").write_bytes(b"mine")
    file.put(tmp_path / "b.bin")
    assert (tmp_path / "b.bin").read_bytes() == file.read() == b"compiled"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.bin", "first"]


def test_files_have_the_users_permissions(tmp_path: Path) -> None:
    file, mask = parked(), os.umask(0o027)
    try:
        file.put(tmp_path / "a.bin")
        file.put(tmp_path / "b.bin")
    finally:
        os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a.bin", "b.bin")] == [0o640] * 2


def test_the_folder_goes_with_the_object_in_its_own_process() -> None:
    file = parked()
    folder = file.path.parent
    pid = os.fork()
    if not pid:  # the copy's object ends with it, and leaves the folder alone
        del file
        gc.collect()
        os._exit(0)
    os.waitpid(pid, 0)
    assert file.read() == b"compiled"
    del file
    gc.collect()
    assert not folder.exists()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="taken: cannot be written"):
        parked().put(tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_file_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves the old file or the new one, and no empty one."""
    synced: list[tuple[int, bytes]] = []
    real = os.fsync

    def watched(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, target.read_bytes()))
        real(handle)

    target = tmp_path / "m.oqnn"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", watched)
    with replacing(target) as file:
        file.write(b"new")
    assert (target.stat().st_ino, b"old") in synced
    assert target.read_bytes() == b"new"
