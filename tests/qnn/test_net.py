from __future__ import annotations

import pickle

import numpy as np
import pytest

from openqnn.qnn import abi
from openqnn.qnn.net import NetQuant
from tests.qnn.nets import ConvRelu, static


def test_tensors_compare_by_their_data() -> None:
    ones = static("w", np.ones(3, np.float32))
    assert ones == static("w", np.ones(3, np.float32))
    assert ones != static("w", np.zeros(3, np.float32))
    assert ones != static("v", np.ones(3, np.float32))
    assert len({ones, static("w", np.ones(3, np.float32))}) == 1


def test_a_net_survives_pickling() -> None:
    net = ConvRelu().quantized_net()
    assert pickle.loads(pickle.dumps(net)) == net


@pytest.mark.parametrize(
    ("scales", "offsets", "axis"),
    [((1.0, 2.0), (0,), 0), ((1.0, 2.0), (0, 0), None), ((), (), None)],
)
def test_a_contradicting_encoding_is_refused(
    scales: tuple[float, ...], offsets: tuple[int, ...], axis: int | None
) -> None:
    with pytest.raises(ValueError, match="scale"):
        NetQuant(scales, offsets, axis)


@pytest.mark.parametrize("name", ["int8", "uint32", "float16", "float32", "int64", "bool"])
def test_numpy_types_round_trip(name: str) -> None:
    assert abi.numpy_dtype(abi.dtype_code(name)) == np.dtype(name)


def test_fixed_point_is_stored_in_integers() -> None:
    assert abi.numpy_dtype(abi.UFIXED_16) == np.uint16
    assert abi.dtype_code("uint16") == abi.UINT_16


@pytest.mark.parametrize(("minor", "entries"), [(32, 71), (36, 72), (39, 72), (40, 75)])
def test_interface_length_follows_the_core_api(minor: int, entries: int) -> None:
    assert abi.interface_length(minor) == entries
