"""Samples from everywhere, and what seems wrong about them."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization import CalibrationDataReader

from openqnn.errors import InputError, OpenQnnWarning
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.quant.calibration import calibrate
from openqnn.quant.observe.observers import Watch
from openqnn.quant.samples import samples_of


def graph(batch: int = 1, *, ids: bool = False) -> Graph:
    """An image of 2x3, and perhaps some indices."""
    made = Graph("g")
    b = Builder(made)
    made.add_output(b("Relu", made.add_input("x", DType.FLOAT_32, (batch, 2, 3))))
    if ids:
        made.add_output(b("ElementWiseAbs", made.add_input("ids", DType.INT_32, (batch, 2))))
    return made


def images(count: int, batch: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((batch, 2, 3)).astype(np.float32) for _ in range(count)]


def write_list(folder: Path, lines: list[dict[str, np.ndarray]], head: str = "", names: bool = True) -> Path:
    rows = []
    for i, arrays in enumerate(lines):
        for name, array in arrays.items():
            array.tofile(folder / f"{name}{i}.raw")
        rows.append(" ".join(f"{n}:={n}{i}.raw" if names else f"{n}{i}.raw" for n in arrays))
    path = folder / "list.txt"
    path.write_text(head + "\n".join(rows) + "\n")
    return path


def check(found: Any, want: list[np.ndarray]) -> None:
    got = [sample["x"] for sample in found]
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("head", ["", "%x x\n", "#x\n", "# x\n\n", "#x\n%x\n"])
def test_input_lists(tmp_path: Path, head: str, names: bool) -> None:
    want = images(3)
    samples = samples_of(graph(), write_list(tmp_path, [{"x": a} for a in want], head, names))
    check(samples, want)
    check(samples, want)  # a second time as well
    assert len(samples) == 3  # type: ignore[arg-type]


def test_an_output_line_that_names_nothing_is_told(tmp_path: Path) -> None:
    listed = write_list(tmp_path, [{"x": images(1)[0]}], "%x nobody\n")
    with pytest.warns(OpenQnnWarning, match="no layer or tensor 'nobody'"):
        assert len(list(samples_of(graph(), listed))) == 1


def test_files_are_float32_unless_they_are_native(tmp_path: Path) -> None:
    x, ids = images(1)[0], np.array([[3, 4]], np.int32)
    g = graph(ids=True)
    as_float = write_list(tmp_path, [{"x": x, "ids": ids.astype(np.float32)}])
    assert np.array_equal(next(iter(samples_of(g, as_float)))["ids"], ids)
    native = write_list(tmp_path, [{"x": x, "ids": ids}])
    for how in ({"native": True}, {"native_names": ["ids"]}):
        sample = next(iter(samples_of(g, native, **how)))
        assert np.array_equal(sample["ids"], ids) and sample["ids"].dtype == np.int32
    with pytest.raises(InputError, match="no input 'nobody'"):
        samples_of(g, native, native_names=["nobody"])


def test_lines_of_one_element_make_a_batch(tmp_path: Path) -> None:
    single = images(5)
    path = write_list(tmp_path, [{"x": a} for a in single])
    found = [s["x"] for s in samples_of(graph(2), path)]
    assert [a.shape for a in found] == [(2, 2, 3)] * 3
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate([*single, single[-1]]))


def test_raw_files_of_another_size_or_type_are_refused(tmp_path: Path) -> None:
    path = write_list(tmp_path, [{"x": images(1)[0]}, {"x": images(1)[0].astype(np.float64)}])
    with pytest.raises(InputError, match=r"line 2, input 'x'.*48 bytes, but 24"):
        list(samples_of(graph(), path))
    path = write_list(tmp_path, [{"x": np.zeros(6, np.uint8)}])
    with pytest.raises(InputError, match=r"1 byte.* write the file as float32"):  # its own type is that, too
        list(samples_of(graph(), path))
    path = write_list(tmp_path, [{"x": images(1)[0], "ids": np.float32([[1, 1e12]])}])
    with pytest.raises(InputError, match="beyond int32"):
        list(samples_of(graph(ids=True), path))
    path = write_list(tmp_path, [{"x": images(1)[0], "ids": np.int32([[3, 4]])}])
    with pytest.raises(InputError, match=r"not whole, for int32\n.*--use_native_input_files"):
        list(samples_of(graph(ids=True), path))


def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_list(tmp_path, [{"x": a} for a in images(4)])
    read: list[str] = []
    fromfile = np.fromfile

    def counted(file: Any, *rest: Any) -> Any:
        read.append(Path(file).name)
        return fromfile(file, *rest)

    monkeypatch.setattr(np, "fromfile", counted)
    calibrate(graph(), samples_of(graph(), path), {"x": Watch.EXTREMES})
    assert read == [f"x{i}.raw" for i in range(4)]


def test_numpy_files(tmp_path: Path) -> None:
    want = images(4)
    np.save(tmp_path / "a.npy", np.concatenate(want[:2]))
    np.save(tmp_path / "b.npy", want[2][0])  # without the axis of the batch
    np.savez(tmp_path / "c.npz", x=want[3])
    check(samples_of(graph(), tmp_path), want)
    check(samples_of(graph(), str(tmp_path / "a.npy")), want[:2])
    assert len(samples_of(graph(), tmp_path)) == 4  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"save them by name in an .npz file: x, ids"):
        samples_of(graph(ids=True), tmp_path / "a.npy")


@pytest.mark.parametrize("shape", [(3, 2), (1, 3, 2), (1, 2, 3, 1)])
def test_numpy_files_of_another_shape_are_named(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "turned.npy", np.zeros(shape, np.float32))
    np.savez(tmp_path / "turned.npz", x=np.zeros(shape, np.float32))
    for name in ("turned.npy", "turned.npz"):
        message = rf"{name}: input 'x' has shape {re.escape(str(list(shape)))}, the graph wants \[1, 2, 3\]"
        with pytest.raises(InputError, match=message):
            list(samples_of(graph(), tmp_path / name))


def test_files_that_are_no_samples(tmp_path: Path) -> None:
    (tmp_path / "bad.npy").write_bytes(b"no numpy")
    with pytest.raises(InputError, match=r"bad\.npy cannot be read"):
        samples_of(graph(), tmp_path / "bad.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.npy or \.npz"):
        samples_of(graph(), tmp_path / "empty")
    (tmp_path / "list.txt").write_text("# nothing\n")
    with pytest.raises(InputError, match=r"names no files\n  hint: .*NAME:=PATH"):
        samples_of(graph(), tmp_path / "list.txt")
    with pytest.raises(InputError, match="No such file"):
        samples_of(graph(), tmp_path / "absent.npy")


def test_iterables_mappings_and_arrays() -> None:
    want = images(3)
    check(samples_of(graph(), want), want)
    check(samples_of(graph(), iter(want)), want)
    check(samples_of(graph(), [{"x": a} for a in want]), want)
    check(samples_of(graph(), [(a,) for a in want]), want)
    check(samples_of(graph(), want[0]), want[:1])
    check(samples_of(graph(), {"x": want[0]}), want[:1])
    with pytest.raises(InputError, match="sample 1 has 1 array"):
        list(samples_of(graph(ids=True), want))
    with pytest.raises(InputError, match="int holds no samples"):
        samples_of(graph(), 7)
    with pytest.raises(InputError, match="sample 1 is a float"):
        list(samples_of(graph(), [1.5]))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.zeros((1, 2, 3), np.uint8), "input 'x' is uint8, the graph wants float32\n  hint: "),
        ({"y": np.zeros((1, 2, 3), np.float32)}, "the graph has no input 'y'\n  hint: its inputs: 'x'"),
        ({}, "no array for input 'x'"),
    ],
)
def test_a_sample_that_does_not_fit_is_named(tmp_path: Path, bad: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"sample 3: {words}"):
        list(samples_of(graph(), [*images(2), bad]))
    with pytest.raises(InputError, match=f"sample 1: {words}"):
        list(samples_of(graph(), bad))
    np.savez(tmp_path / "0.npz", x=images(1)[0])
    np.savez(tmp_path / "1.npz", **bad if isinstance(bad, dict) else {"x": bad})
    with pytest.raises(InputError, match=f"1.npz: {words}"):
        list(samples_of(graph(), tmp_path))


class ListReader(CalibrationDataReader):
    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._left = iter(arrays)

    def get_next(self) -> dict[str, Any] | None:  # type: ignore[override]
        array = next(self._left, None)
        return None if array is None else {"x": array}


def test_readers_of_onnx_runtime() -> None:
    want = images(3)
    check(samples_of(graph(), ListReader(want)), want)


# -- warnings


def warned(arrays: list[np.ndarray]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(samples_of(graph(), arrays))
    assert all(issubclass(w.category, OpenQnnWarning) for w in caught)
    return [str(w.message) for w in caught]


def test_good_data_is_not_talked_about() -> None:
    assert warned(images(8)) == []
    assert warned([a * s for a, s in zip(images(4), (0.2, 1, 3, 6), strict=True)]) == []


def test_nan_and_constant_inputs_are_named() -> None:
    arrays = images(4)
    arrays[2][0, 1, 1] = np.nan
    (message,) = warned(arrays)
    assert "'x' has NaN or infinity in sample 3 of 4" in message
    (message,) = warned([np.zeros((1, 2, 3), np.float32)] * 3)
    assert "'x' is 0 in all 3 samples" in message
    (message,) = warned([*images(2), np.ones((1, 2, 3), np.float32)])
    assert "one number all over in sample 3 of 3" in message


def test_another_normalisation_is_noticed() -> None:
    unit = [np.abs(a) / np.abs(a).max() for a in images(5)]
    (message,) = warned([*unit[:3], unit[3] * 255, unit[4]])
    assert "reaches 255 in sample 4 and about 1 in the others" in message
    (message,) = warned([a * 255 for a in unit[:3]] + unit[3:4])
    assert "reaches 1 in sample 4 and about 255" in message
    assert warned([unit[0], unit[1] * 255])
