"""Sessions on fixed-point graphs: real numbers in and out, stored integers when asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import InputError
from openqnn.ir import Graph
from openqnn.ir.graph_text import parse_graph
from openqnn.runtime.boundary import random_inputs
from tests.qnn.nets import needs_htp

TEXT = """
graph "relu" {
  input %x: ufixed8[1,4] <scale=[0.05] offset=[-128] bits=8 symmetric=false> as float32[1,4]
  %y: ufixed8[1,4] <scale=[0.025] offset=[0] bits=8 symmetric=false> = Relu(%x)
  output %y as float32[1,4]
}
"""
X = np.array([[-1.01, 0.3, 1.49, 9.0]], np.float32)
STORED_X = np.array([[108, 134, 158, 255]], np.uint8)  # halves to even, saturated
STORED_Y = np.array([[0, 12, 60, 254]], np.uint8)


def relu() -> Graph:
    return parse_graph(TEXT)


@pytest.mark.parametrize("backend", ["cpu", pytest.param("htp", marks=needs_htp)])
def test_real_numbers_by_default_stored_ones_when_native(backend: str) -> None:
    with openqnn.Session(relu(), backend) as session:
        real = session.run({"x": X})["y"]
        stored = session.run({"x": STORED_X}, native=True)["y"]
    assert (stored.dtype, stored.shape) == (np.uint8, (1, 4))
    np.testing.assert_array_equal(stored, STORED_Y)
    assert real.dtype == np.float32
    np.testing.assert_allclose(real, STORED_Y * 0.025, rtol=1e-6)


def test_intermediate_tensors_are_real_too() -> None:
    with openqnn.Session(relu()) as session:
        real = session.run({"x": X}, ["x", "y"])["x"]
        stored = session.run({"x": STORED_X}, ["x"], native=True)["x"]
    np.testing.assert_allclose(real, (STORED_X - 128.0) * 0.05, rtol=1e-6)
    np.testing.assert_array_equal(stored, STORED_X)


@needs_htp
def test_files_of_the_vendor_are_alike(tmp_path: Path) -> None:
    relu().save(tmp_path / "m.dlc")
    openqnn.compile(relu()).save(tmp_path / "m.bin")
    for file in ("m.dlc", "m.bin"):
        with openqnn.Session(tmp_path / file, "htp") as session:
            (y,) = session.run({"x": X}).values()
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, STORED_Y * 0.025, rtol=1e-6, err_msg=file)


@pytest.mark.parametrize(
    ("array", "native", "words"),
    [
        (STORED_X, False, "native=True"),
        (X, True, "wants ufixed8"),
        (X, True, "without native=True"),
        (np.full((1, 4), np.nan, np.float32), False, "NaN"),
        (np.full((1, 4), 300), True, "beyond ufixed8"),
    ],
)
def test_what_is_not_meant_is_refused(array: np.ndarray, native: bool, words: str) -> None:
    with openqnn.Session(relu()) as session, pytest.raises(InputError) as caught:
        session.run({"x": array}, native=native)
    assert words in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("backend", ["cpu", pytest.param("htp", marks=needs_htp)])
def test_single_numbers(backend: str) -> None:
    """A model may have inputs without axes."""
    with openqnn.Session(parse_graph(TEXT.replace("[1,4]", "[]")), backend) as session:
        for given in (np.float32(0.3), np.asarray(0.3, np.float32)):
            found = session.run({"x": given})["y"]
            assert isinstance(found, np.ndarray) and found.shape == () and found == pytest.approx(0.3)
        assert session.run({"x": np.uint8(134)}, native=True)["y"] == 12


def test_random_inputs_are_real_numbers() -> None:
    assert random_inputs(relu())["x"].dtype == np.float32
