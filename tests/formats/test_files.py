"""Files that wait until they are put where they belong."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from openqnn.errors import OutputError
from openqnn.formats.files import Parked


def parked(data: bytes = b"compiled") -> Parked:
    file = Parked("context.bin")
    file.path.write_bytes(data)
    return file


def test_the_first_name_shares_the_file_and_others_have_copies(tmp_path: Path) -> None:
    file = parked()
    file.put(tmp_path / "first" / "a.bin")
    file.put(tmp_path / "b.bin")
    found = [tmp_path / "first" / "a.bin", tmp_path / "b.bin"]
    assert [path.read_bytes() for path in found] == [b"compiled"] * 2
    if found[0].stat().st_dev == file.path.stat().st_dev:
        assert found[0].samefile(file.path)
    assert not found[0].samefile(found[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.bin", "first"]


def test_files_have_the_users_permissions(tmp_path: Path) -> None:
    file, mask = parked(), os.umask(0o027)
    try:
        file.put(tmp_path / "a.bin")
        file.put(tmp_path / "b.bin")
    finally:
        os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a.bin", "b.bin")] == [0o640] * 2


def test_another_file_system_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*names: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    file = parked()
    file.put(tmp_path / "a.bin")
    (tmp_path / "a.bin").write_bytes(b"mine")
    assert file.read() == b"compiled"


def test_what_was_changed_is_not_passed_on(tmp_path: Path) -> None:
    file = parked()
    file.put(tmp_path / "a.bin")
    if not (tmp_path / "a.bin").samefile(file.path):
        pytest.skip("the folder for temporary files is on another file system")
    (tmp_path / "a.bin").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"a\.bin has been changed since"):
        file.put(tmp_path / "b.bin")
    with pytest.raises(OutputError, match=r"a\.bin has been changed since"):
        file.read()
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_a_file_that_is_replaced_or_removed_stays(tmp_path: Path) -> None:
    file = parked()
    file.put(tmp_path / "a.bin")
    (tmp_path / "a.bin").unlink()
    file.put(tmp_path / "b.bin")
    assert (tmp_path / "b.bin").read_bytes() == b"compiled"


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
