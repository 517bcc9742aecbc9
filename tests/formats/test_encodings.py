"""Encodings files of every version: read, written, converted, and refused with a place and a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openqnn.errors import InputError
from openqnn.formats.encodings import (
    OUTPUT_CHANNEL,
    VERSIONS,
    Blocks,
    Kind,
    Parameter,
    TensorEncoding,
    left_out,
    looks_like_encodings,
    read_encodings,
    settled,
    write_encodings,
)

ACTIVATION, PARAM = Kind.ACTIVATION, Kind.PARAM


def stored(folder: Path, content: Any) -> Path:
    path = folder / "m.encodings"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def legacy(activations: Any = None, params: Any = None, **more: Any) -> dict[str, Any]:
    return {"activation_encodings": activations or {}, "param_encodings": params or {}, **more}


def flat(activations: Any = (), params: Any = ()) -> dict[str, Any]:
    made = {"activation_encodings": list(activations), "param_encodings": list(params)}
    return {"version": "1.0.0", **made}


def onnx_like(*entries: dict[str, Any], version: str = "2.0.0") -> dict[str, Any]:
    return {"version": version, "encodings": list(entries)}


def the_one(folder: Path, content: Any) -> TensorEncoding:
    (entry,) = read_encodings(stored(folder, content)).tensors.values()
    return entry


# --- 0.4 to 0.6.1


def test_the_documented_example_has_zero_points_for_offsets(tmp_path: Path) -> None:
    conv = {"bitwidth": 8, "max": 12.82344407824954, "min": 0.0, "offset": 0, "scale": 0.050288015993135454}
    given_ = {"max": 0.9960872825108046, "min": -1.0039304197656937, "scale": 0.007843206675594112}
    content = legacy({"Conv1:0": [conv], "input:0": [{"bitwidth": 8, "offset": 127, **given_}]}, {})
    found = read_encodings(stored(tmp_path, content))
    assert found.version == "0.4"
    assert found.tensors["Conv1:0"].offsets == (0,)
    image = found.tensors["input:0"]
    assert (image.offsets, image.scales) == ((-127,), (0.007843206675594112,))
    assert (image.kind, image.bitwidth, image.symmetric, image.signed) == (ACTIVATION, 8, False, False)
    assert (image.low, image.high) == ((-1.0039304197656937,), (0.9960872825108046,))


def test_the_documented_asymmetric_weight(tmp_path: Path) -> None:
    weight = {"bitwidth": 8, "is_symmetric": "False", "max": 3.0387749017453665, "min": -2.059169834735364}
    entry = the_one(tmp_path, legacy({}, {"w": [{**weight, "offset": -103, "scale": 0.019991940143061618}]}))
    assert (entry.offsets, entry.axis, entry.symmetric, entry.kind) == ((-103,), None, False, PARAM)
    assert entry.limits()[0] == pytest.approx((-2.059169834735364, 3.0387749017453665))


def channel(scale: float, **more: Any) -> dict[str, Any]:
    return {"bitwidth": 8, "is_symmetric": "True", "offset": -128.0, "scale": scale, **more}


def test_the_documented_weight_by_channel(tmp_path: Path) -> None:
    scales = (0.005520610358771377, 0.004116586343509945, 0.005801794566507415)
    entry = the_one(tmp_path, legacy({}, {"w": [channel(s) for s in scales]}))
    assert (entry.scales, entry.offsets) == (scales, (0, 0, 0))
    assert (entry.axis, entry.symmetric, entry.signed) == (OUTPUT_CHANNEL, True, True)
    assert entry.unsigned_offsets == (-128, -128, -128)


def test_the_documented_mixed_precision_file(tmp_path: Path) -> None:
    floats = [{"bitwidth": 32, "dtype": "float"}]
    whole = [{"bitwidth": 8, "dtype": "int"}]
    content = legacy({"conv2_1": floats, "data_0": whole}, {"conv2_w_0": floats}, version="0.5.0")
    found = read_encodings(stored(tmp_path, content)).tensors
    assert found["conv2_1"] == TensorEncoding("conv2_1", 32, ACTIVATION, is_float=True)
    assert found["data_0"] == TensorEncoding("data_0", 8, ACTIVATION)
    assert found["conv2_w_0"].kind is PARAM


def test_a_range_alone_is_kept(tmp_path: Path) -> None:
    entry = the_one(tmp_path, legacy({"x": [{"bitwidth": 16, "min": -1, "max": 3}]}))
    assert (entry.scales, entry.low, entry.high, entry.limits()) == ((), (-1.0,), (3.0,), [(-1.0, 3.0)])


def test_zero_for_the_middle_of_signed_integers(tmp_path: Path) -> None:
    """The range tells it from an encoding that starts at zero."""
    below = the_one(tmp_path, legacy({}, {"w": channel(0.1, offset=0, min=-12.8, max=12.7)}))
    above = the_one(tmp_path, legacy({}, {"w": channel(0.1, offset=0, min=0, max=25.5)}))
    assert (below.unsigned_offsets, above.unsigned_offsets) == ((-128,), (0,))


# --- 1.0.0


INT = {"name": "x", "enc_type": "PER_TENSOR", "dtype": "INT", "bw": 8, "is_sym": False}


def test_version_1(tmp_path: Path) -> None:
    act = {**INT, "scale": [0.5], "offset": [-3.0]}
    weight = {**INT, "name": "w", "enc_type": "PER_CHANNEL", "is_sym": True, "bw": 4}
    weight |= {"scale": [0.1, 0.2], "offset": [-8, -8]}
    half = {"name": "h", "enc_type": "PER_TENSOR", "dtype": "FLOAT", "bw": 16}
    found = read_encodings(stored(tmp_path, flat([act, half], [weight]))).tensors
    assert found["x"] == TensorEncoding("x", 8, ACTIVATION, scales=(0.5,), offsets=(-3,))
    assert found["h"] == TensorEncoding("h", 16, ACTIVATION, is_float=True)
    assert found["w"] == TensorEncoding(
        "w", 4, PARAM, symmetric=True, signed=True, scales=(0.1, 0.2), offsets=(0, 0), axis=OUTPUT_CHANNEL
    )


def test_version_1_has_offsets_between_integers(tmp_path: Path) -> None:
    entry = the_one(
        tmp_path, flat([{**INT, "bw": 2, "scale": [1.0], "offset": [-2], "zero_point_shift": [0.5]}])
    )
    assert entry.offsets == (-1.5,)


def test_version_1_has_blocks(tmp_path: Path) -> None:
    block = {**INT, "enc_type": "PER_BLOCK", "is_sym": True, "bw": 4, "block_size": 16}
    entry = the_one(tmp_path, flat([], [{**block, "scale": [1.0, 2.0, 3.0, 4.0], "offset": [-8] * 4}]))
    assert (entry.blocks, entry.scales, entry.offsets) == (Blocks(16), (1.0, 2.0, 3.0, 4.0), (0,) * 4)


LPBQ = {
    "name": "w", "enc_type": "LPBQ", "dtype": "INT", "bw": 8, "compressed_bw": 4, "is_sym": True,
    "scale": [0.5, 0.25], "offset": [-128, -128], "per_block_int_scale": [1, 16, 16, 3], "block_size": 16,
}  # fmt: skip


def test_version_1_has_low_power_blocks(tmp_path: Path) -> None:
    entry = the_one(tmp_path, flat([], [LPBQ]))
    assert entry.blocks == Blocks(16, multiples=(1, 16, 16, 3), expanded_bits=8)
    assert (entry.bitwidth, entry.scales, entry.signed) == (4, (0.5, 0.25), True)


# --- 2.0.0 and 2.1.0


def test_version_2(tmp_path: Path) -> None:
    x = {"name": "x", "output_dtype": "uint8", "y_scale": 0.02, "y_zero_point": 128}
    w = {"name": "w", "output_dtype": "int8", "y_scale": [0.1, 0.2], "axis": 0}
    found = read_encodings(stored(tmp_path, onnx_like(x, w))).tensors
    assert found["x"] == TensorEncoding("x", 8, scales=(0.02,), offsets=(-128,))
    assert found["w"] == TensorEncoding(
        "w", 8, symmetric=True, signed=True, scales=(0.1, 0.2), offsets=(0, 0), axis=0
    )


def test_version_2_has_blocks(tmp_path: Path) -> None:
    block = {"name": "w", "output_dtype": "int4", "axis": -2, "block_size": 8}
    entry = the_one(tmp_path, onnx_like({**block, "y_scale": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}))
    assert entry.blocks == Blocks(8, 0, (2, 3))
    assert (entry.axis, entry.scales) == (1, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))


LOW_POWER = {
    "name": "w", "output_dtype": "int4", "axis": 1, "block_size": 16,
    "per_block_int_scale": [[1, 16], [16, 3]], "per_channel_float_scale": [[0.5], [0.25]],
}  # fmt: skip


def test_low_power_blocks_of_both_versions_2_are_the_same(tmp_path: Path) -> None:
    old = the_one(tmp_path, onnx_like(LOW_POWER))
    inner = {"x": [[1, 16], [16, 3]], "x_scale": [0.5, 0.25], "axis": 0}
    new = {"name": "w", "output_dtype": "int4", "axis": 1, "block_size": 16, "y_scale": inner}
    assert the_one(tmp_path, onnx_like(new, version="2.1.0")) == old
    assert old.blocks == Blocks(16, 1, (2, 2), (1, 16, 16, 3), 8)
    assert old.axis == 0


# --- between versions


def written(folder: Path, entries: list[TensorEncoding], version: str) -> dict[str, TensorEncoding]:
    write_encodings(folder / "out.json", entries, version)
    return dict(read_encodings(folder / "out.json").tensors)


EVERYWHERE = [
    TensorEncoding("x", 8, ACTIVATION, scales=(0.1,), offsets=(-7,)),
    TensorEncoding("y", 16, ACTIVATION, scales=(0.1,), offsets=(-32768,)),
    TensorEncoding("s", 8, ACTIVATION, symmetric=True, signed=True, scales=(0.1,), offsets=(0,)),
    TensorEncoding("b", 32, PARAM, symmetric=True, signed=True, scales=(1e-9,), offsets=(0,)),
]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_every_version_can_say(version: str, tmp_path: Path) -> None:
    found = written(tmp_path, EVERYWHERE, version)
    for entry in EVERYWHERE:
        kind = Kind.UNKNOWN if version >= "2" else entry.kind
        assert replace(found[entry.name], low=(), high=()) == replace(entry, kind=kind)
        assert found[entry.name].limits() == entry.limits()


@pytest.mark.parametrize("version", VERSIONS[:3])
def test_channels_without_an_axis(version: str, tmp_path: Path) -> None:
    weight = the_one(tmp_path, legacy({}, {"w": [channel(0.1), channel(0.2)]}))
    assert replace(written(tmp_path, [weight], version)["w"], low=(), high=()) == weight


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0"])
def test_channels_with_an_axis(version: str, tmp_path: Path) -> None:
    weight = TensorEncoding("w", 8, symmetric=True, signed=True, scales=(0.1, 0.2), offsets=(0, 0), axis=1)
    assert written(tmp_path, [weight], version) == {"w": weight}


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0"])
def test_low_power_blocks_round_trip(version: str, tmp_path: Path) -> None:
    entry = the_one(tmp_path, onnx_like(LOW_POWER))
    assert written(tmp_path, [entry], version) == {"w": entry}


def test_low_power_blocks_to_version_1(tmp_path: Path) -> None:
    entry = replace(the_one(tmp_path, onnx_like(LOW_POWER)), kind=PARAM)
    assert written(tmp_path, [entry], "1.0.0")["w"] == the_one(tmp_path, flat([], [LPBQ]))


def test_blocks_of_a_matrix_are_written_by_output_channel(tmp_path: Path) -> None:
    """[in, out] in version 2; version 1.0.0 has the blocks of one output channel together."""
    grid = Blocks(8, 0, (2, 3))
    entry = TensorEncoding("w", 4, PARAM, signed=True, symmetric=True, axis=1, blocks=grid)
    entry = replace(entry, scales=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), offsets=(0,) * 6)
    assert written(tmp_path, [entry], "1.0.0")["w"].scales == (1.0, 4.0, 2.0, 5.0, 3.0, 6.0)
    assert written(tmp_path, [entry], "2.0.0")["w"] == replace(entry, kind=Kind.UNKNOWN)


def test_floats_are_said_by_silence_from_version_2_on(tmp_path: Path) -> None:
    entries = [EVERYWHERE[0], TensorEncoding("h", 16, ACTIVATION, is_float=True)]
    assert left_out(entries, "2.0.0") == ["h"]
    assert left_out(entries, "1.0.0") == []
    assert list(written(tmp_path, entries, "2.0.0")) == ["x"]
    assert written(tmp_path, entries, "0.6.1")["h"] == written(tmp_path, entries, "1.0.0")["h"] == entries[1]


@given(
    bits=st.sampled_from([2, 4, 8, 16, 32]), symmetric=st.booleans(), version=st.sampled_from(VERSIONS),
    scale=st.floats(1e-30, 1e30), data=st.data(),
)  # fmt: skip
def test_no_version_changes_numbers(
    bits: int, symmetric: bool, version: str, scale: float, data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    middle = 1 << (bits - 1)
    offset = 0 if symmetric else data.draw(st.integers(1 - 2 * middle, 0))
    entry = TensorEncoding("x", bits, ACTIVATION, scales=(scale,), offsets=(offset,))
    entry = replace(entry, symmetric=symmetric, signed=symmetric)
    found = written(tmp_path_factory.mktemp("e"), [entry], version)["x"]
    assert (found.scales, found.offsets, found.signed) == (entry.scales, entry.offsets, entry.signed)


WIDTH = TensorEncoding("t", 8, ACTIVATION)
BLOCKED = TensorEncoding(
    "t", 4, PARAM, signed=True, symmetric=True, scales=(1.0, 2.0), offsets=(0, 0), axis=OUTPUT_CHANNEL,
    blocks=Blocks(8),
)  # fmt: skip
WIDE = replace(BLOCKED, axis=0, blocks=Blocks(8, 1, (2, 1), (1, 2), 12))
BY_CHANNEL = replace(BLOCKED, blocks=None)


@pytest.mark.parametrize(
    ("entry", "version", "words"),
    [
        (TensorEncoding("t", 16, ACTIVATION, is_float=True), "0.4", "version 0.4 has no floating point"),
        (BLOCKED, "0.6.1", "versions below 1.0.0 have no encodings of blocks"),
        (replace(BY_CHANNEL, offsets=(3, 4)), "0.6.1", "only where they are symmetric"),
        (replace(WIDTH, scales=(1.0,), offsets=(-1.5,)), "0.6.1", "have whole offsets only"),
        (WIDTH, "1.0.0", "only a width is given, and version 1.0.0 wants a scale"),
        (WIDTH, "2.0.0", "only a width is given, and versions from 2.0.0 want a scale"),
        (replace(EVERYWHERE[0], name="t", kind=Kind.UNKNOWN), "1.0.0", "nothing says which one this is"),
        (BLOCKED, "2.0.0", "the axis of the blocks is not known"),
        (BY_CHANNEL, "2.0.0", "the axis of the channels is not known"),
        (WIDE, "2.0.0", "only where the expanded width (12) is twice the stored one (4)"),
        (WIDTH, "3.0.0", '"3.0.0" is not known'),
    ],
)
def test_what_a_version_cannot_say(entry: TensorEncoding, version: str, words: str, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    with pytest.raises(InputError) as caught:
        write_encodings(target, [entry], version)
    assert words in caught.value.message and str(target) in caught.value.message
    assert "tensor 't'" in caught.value.message or version == "3.0.0"
    assert not target.exists()


def test_only_version_2_1_says_other_widths_of_multiples(tmp_path: Path) -> None:
    assert written(tmp_path, [WIDE], "2.1.0")["t"] == replace(WIDE, kind=Kind.UNKNOWN)


# --- files that make no sense


def act(**fields: Any) -> dict[str, Any]:
    return legacy({"x": [{"bitwidth": 8, "scale": 0.1, "offset": 0} | fields]})


def one(**fields: Any) -> dict[str, Any]:
    return flat([INT | {"scale": [0.1], "offset": [0]} | fields])


def two(**fields: Any) -> dict[str, Any]:
    return onnx_like({"name": "x", "output_dtype": "uint8", "y_scale": 0.1} | fields)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1", "is no JSON"),
        ("[1]", "is no encodings file"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": 1, "a": 2}', "'a' appears twice"),
        ({"version": "9"}, "field 'version': \"9\" is not known"),
        ({"version": ["1.0.0"]}, "field 'version'"),
        ({}, "field 'activation_encodings': missing; both sections must be there"),
        ({"activation_encodings": {}}, "field 'param_encodings': missing"),
        ({"activation_encodings": []}, "is a list, as in version 1.0.0"),
        ({"activation_encodings": 3}, "field 'activation_encodings': expected an object"),
        (legacy({"x": []}), "tensor 'x': its list of encodings is empty"),
        (legacy({"x": 3}), "tensor 'x': expected a list of encodings, found 3"),
        (legacy({"x": [3]}), "tensor 'x': expected an object, found 3"),
        (legacy({"x": [{}]}), "tensor 'x': field 'bitwidth': missing"),
        (act(bitwidth="8"), "tensor 'x': field 'bitwidth': expected a whole number, found \"8\""),
        (act(bitwidth=64), "tensor 'x': field 'bitwidth': 64 bits; expected 2 to 32"),
        (act(bitwidth=8.5), "field 'bitwidth': expected a whole number"),
        (act(scale=0), "tensor 'x': field 'scale': scales are positive, found 0"),
        (act(scale="a"), "tensor 'x': field 'scale': expected a finite number"),
        (act(scale=float("nan")), "tensor 'x': field 'scale': expected a finite number"),
        (act(offset=None), "tensor 'x': field 'offset': missing, and 'scale' and 'offset' belong together"),
        (act(offset=300), "tensor 'x': field 'offset': zero is not among the integers of 8 bits"),
        (act(min=-1), "tensor 'x': field 'max': missing"),
        (act(min=2, max=1), "tensor 'x': field 'min': is above 'max'"),
        (act(dtype="half"), "tensor 'x': field 'dtype': expected one of int, float"),
        (act(dtype="float"), "tensor 'x': field 'bitwidth': floats of 8 bits are not known"),
        (act(is_symmetric="perhaps"), "tensor 'x': field 'is_symmetric': expected"),
        (act(is_symetric="True"), "tensor 'x': field 'is_symetric': unknown"),
        (legacy({}, {"w": [channel(0.1), channel(0.1, offset=-3)]}), "symmetric, with an offset of -128"),
        (legacy({}, {"w": [channel(0.1), channel(0.1, is_symmetric="False")]}), "are symmetric, always"),
        (legacy({}, {"w": [channel(0.1), channel(0.1, bitwidth=4)]}), "differs between channels"),
        (legacy({}, {"w": [channel(0.1), channel(None)]}), "field 'scale': missing in 1 of 2 channels"),
        (legacy({}, {"w": [{"bitwidth": 16, "dtype": "float"}] * 2}), "floats have no encodings by channel"),
        (legacy({"x": [channel(0.1)]}, {"x": [channel(0.1)]}), "tensor 'x': has two entries"),
        ({"version": "1.0.0"}, "field 'activation_encodings': missing"),
        (flat([{}]), "field 'name': missing"),
        (flat([INT]), "tensor 'x': field 'scale': missing"),
        (one(enc_type="PER_ROW"), "tensor 'x': field 'enc_type': expected one of PER_TENSOR"),
        (one(scale=[]), "tensor 'x': field 'scale': expected finite numbers"),
        (one(scale=[0.1, 0.2]), "2 scales, but PER_TENSOR has one"),
        (one(enc_type="PER_CHANNEL", scale=[0.1, 0.2]), "field 'offset': 2 scales but 1 offsets"),
        (one(offset=[3]), "field 'offset': offsets are zero or below"),
        (one(zero_point_shift=[0.1, 0.2]), "field 'zero_point_shift': 2 shifts for 1 scales"),
        (one(dtype="FLOAT", enc_type="PER_CHANNEL"), "field 'enc_type': floats are PER_TENSOR"),
        (one(enc_type="PER_BLOCK"), "field 'block_size': missing"),
        (one(enc_type="PER_BLOCK", block_size=0), "field 'block_size': blocks have at least one element"),
        (flat([], [LPBQ | {"bw": 3}]), "field 'bw': 3 bits are fewer than the 4"),
        (flat([], [LPBQ | {"per_block_int_scale": [1, 2, 3]}]), "3 blocks cannot be shared by 2 channels"),
        (flat([], [LPBQ | {"per_block_int_scale": [0, 1]}]), "expected whole numbers from 1 on"),
        (flat([], [LPBQ | {"offset": [0, 0]}]), "field 'offset': LPBQ is symmetric, with an offset of -128"),
        ({"version": "2.0.0"}, "field 'encodings': missing"),
        (two(output_dtype="float8e4m3fn"), "field 'output_dtype': QNN has no encodings of type"),
        (two(y_scale=None), "tensor 'x': field 'y_scale': missing"),
        (two(y_scale=[0.1, 0.2]), "tensor 'x': field 'axis': missing, while there are 2 scales"),
        (two(axis=0), "tensor 'x': field 'axis': there is one scale"),
        (two(y_scale=[[0.1], [0.2, 0.3]]), "field 'y_scale': its lists are empty or of different lengths"),
        (two(y_scale=[[0.1], [0.2]], axis=0), "field 'y_scale': nested lists are for blocks"),
        (two(y_zero_point=[1, 2]), "field 'y_zero_point': its shape [2] is not that of 'y_scale', []"),
        (two(y_zero_point=256), "field 'y_zero_point': zero is not among the integers of 8 bits"),
        (two(y_scale={"x": [[1]], "x_scale": 1}), "field 'y_scale': an object is for version 2.1.0"),
        (two(y_scale=[[0.1], [0.2]], axis=2, block_size=4), "field 'axis': the scales [2, 1] have no axis 2"),
        (onnx_like(LOW_POWER | {"output_dtype": "uint4"}), "low-power blocks are of signed integers"),
        (onnx_like(LOW_POWER | {"per_channel_float_scale": [[1.0]]}), "4 blocks do not fit 1 channels"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_one_clear_error(content: Any, words: str, tmp_path: Path) -> None:
    path = stored(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_encodings(path)
    assert words in caught.value.message
    assert caught.value.message.startswith(f"{path}: ")


def test_files_that_are_no_text_or_not_there(tmp_path: Path) -> None:
    binary = tmp_path / "b"
    binary.write_bytes(b"\xff\xfe\x00{")
    for path, words in ((binary, "is not a text file"), (tmp_path / "no", "cannot be read: No such file")):
        with pytest.raises(InputError, match=words):
            read_encodings(path)


def test_encodings_are_told_from_models(tmp_path: Path) -> None:
    assert looks_like_encodings(stored(tmp_path, "\ufeff \n{}"))
    assert not looks_like_encodings(stored(tmp_path, "graph {"))
    assert not looks_like_encodings(tmp_path / "no")


# --- what the model tells


def test_the_model_tells_kinds_and_axes(tmp_path: Path) -> None:
    known = {"w": Parameter((2, 3, 1, 1), 0, 1), "c": Parameter((4,))}
    weight = the_one(tmp_path, legacy({}, {"w": [channel(0.1), channel(0.2)]}))
    assert settled(weight, known, "f") == replace(weight, axis=0)
    for name, kind in (("c", PARAM), ("x", ACTIVATION)):
        entry = TensorEncoding(name, 8, scales=(0.1,), offsets=(0,))
        assert settled(entry, known, "f") == replace(entry, kind=kind)


def test_the_model_tells_what_contradicts_it(tmp_path: Path) -> None:
    weight = the_one(tmp_path, legacy({}, {"w": [channel(0.1), channel(0.2)]}))
    with pytest.raises(InputError, match="f: tensor 'w': 2 encodings for 3 output channels"):
        settled(weight, {"w": Parameter((3, 2), 0, 1)}, "f")
    with pytest.raises(InputError, match="field 'block_size': 2 blocks, the tensor has 2 channels of 2"):
        settled(BLOCKED, {"t": Parameter((2, 9), 0, 1)}, "f")


@pytest.mark.parametrize(
    "entry",
    [
        TensorEncoding(
            "t", 4, PARAM, signed=True, symmetric=True, scales=tuple(map(float, range(1, 7))),
            offsets=(0,) * 6, axis=1, blocks=Blocks(8, 0, (2, 3)),
        ),
        replace(WIDE, blocks=Blocks(8, 1, (2, 2, 1, 1), (1, 2, 3, 4), 8)),
        replace(WIDE, axis=1, blocks=Blocks(8, 0, (2, 2), (1, 2, 3, 4), 8)),
    ],
)  # fmt: skip
def test_blocks_come_back_from_version_1_by_the_model(entry: TensorEncoding, tmp_path: Path) -> None:
    assert entry.blocks is not None and isinstance(entry.axis, int)
    shape = [n * (8 if i == entry.blocks.axis else 1) for i, n in enumerate(entry.blocks.shape)]
    known = {"t": Parameter(tuple(shape), entry.axis, entry.blocks.axis)}
    flattened = written(tmp_path, [entry], "1.0.0")["t"]
    assert flattened.axis == OUTPUT_CHANNEL
    assert settled(flattened, known, "f") == entry


# --- files of aimet-onnx 2.42: a network for digits, and weights by block as in tests/quant/test_aimet.py


def theirs(name: str, version: str) -> dict[str, TensorEncoding]:
    path = Path(__file__).with_name("aimet") / f"{name}-{version}.encodings"
    return dict(read_encodings(path).tensors)


def test_aimets_files_of_all_versions_say_the_same() -> None:
    old, flattened, new = (theirs("mnist", v) for v in ("0.6.1", "1.0.0", "2.0.0"))
    assert len(old) == len(flattened) == 13
    assert len(new) == 17  # tensors that only move values are in it too
    for name, entry in old.items():
        assert replace(entry, low=(), high=()) == flattened[name]
        assert (entry.scales, entry.unsigned_offsets) == (new[name].scales, new[name].unsigned_offsets)
    assert {n: (e.axis, e.channels) for n, e in new.items() if e.axis is not None} == {
        "Parameter5": (0, 8), "Parameter87": (0, 16)
    }  # fmt: skip


@pytest.mark.parametrize("name", ["blocks", "low_power"])
def test_aimets_blocks_of_both_versions_are_the_same(name: str) -> None:
    known = {"w": Parameter((12, 8, 1, 1), 0, 1), "m": Parameter((12, 3), 1, 0)}
    flattened, grid = theirs(name, "1.0.0"), theirs(name, "2.0.0")
    for tensor, parameter in known.items():
        assert settled(flattened[tensor], known, "f") == replace(grid[tensor], kind=PARAM)
        blocks = grid[tensor].blocks
        assert blocks is not None and blocks.size == 4 and blocks.axis == parameter.block_axis
        assert blocks.low_power == (name == "low_power")
