"""Input lists: the lines that name tensors, and those that name files."""

from __future__ import annotations

from pathlib import Path

import pytest

from openqnn.formats.input_list import read_input_list


@pytest.mark.parametrize(
    ("head", "outputs"),
    [
        ("", ()),
        ("%a b\n", ("a", "b")),
        ("#layer\n", ("layer",)),
        ("#layer\n%a b\n", ("layer", "a", "b")),
        ("#layer\n# a remark\n", ("layer",)),
        ("# a remark\n#layer\n", ("layer",)),
    ],
)
def test_tensors_that_are_wanted(tmp_path: Path, head: str, outputs: tuple[str, ...]) -> None:
    (tmp_path / "x.raw").write_bytes(b"1234")
    path = tmp_path / "list.txt"
    path.write_text(f"{head}x.raw\n%later\n", encoding="utf-8")
    found = read_input_list(path)
    assert found.outputs == outputs and len(found.lines) == 1
