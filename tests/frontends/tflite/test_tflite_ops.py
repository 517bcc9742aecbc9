"""Every builtin TFLite operator that the frontend claims, in a model of its own, against LiteRT."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

import openqnn
from openqnn.frontends.tflite import open_tflite
from openqnn.frontends.tflite.refusals import REFUSALS
from openqnn.frontends.tflite.table import TABLE
from tests.frontends.tflite.build import Array, T, single
from tests.frontends.tflite.cases import CASES, Case
from tests.frontends.tflite.litert import interpreter, litert_outputs, random_inputs
from tests.frontends.tflite.page import PAGE, page
from tests.frontends.tflite.quantize_case import INT4, INT8, INT16X8, UINT8, quantized_model

QUICK = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD-relu", "SOFTMAX", "MEAN", "PAD"}
FORMS = {"int8": INT8, "uint8": UINT8, "int16x8": INT16X8, "int4": INT4}
WITHIN_ONE = 0.99
# HTP computes these in another way; what it gives is within so many steps.
STEPS = {
    "SQUARED_DIFFERENCE": 2,
    "int16x8 EXP": 128, "int16x8 LOG": 64, "int16x8 LOGISTIC": 4, "int16x8 TANH": 4, "int16x8 LEAKY_RELU": 4,
    "int16x8 GELU": 48, "int16x8 SOFTMAX": 16, "int16x8 RESIZE_BILINEAR": 512,
}  # fmt: skip
LITERT_IS_WRONG = {"int16x8 PRELU"}  # by a quarter of the range
ELSEWHERE = {  # in test_tflite_control.py and test_tflite_encodings.py
    "CALL", "CALL_ONCE", "IF", "WHILE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE",
    "STABLEHLO_COMPOSITE", "QUANTIZE", "DEQUANTIZE", "DENSIFY", "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN", "RNN", "SVDF", "LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN", "BROADCAST_ARGS",
}  # fmt: skip


def float_model(case: Case) -> bytes:
    return single(case.op, case.inputs, [T((), kind) for kind in case.outputs], case.kind, **case.options)


def inputs_of(case: Case, model: bytes) -> dict[str, Array]:
    found = random_inputs(model)
    for name, array in found.items():
        if array.dtype == np.float32:
            found[name] = (case.low + (case.high - case.low) * array).astype(np.float32)
        elif array.dtype == np.int32:
            found[name] = array % 19 - 9
    return found


def run(graph: openqnn.Graph, inputs: dict[str, Array], backend: str = "cpu") -> dict[str, Array]:
    with openqnn.Session(graph, backend=backend) as session:
        return session.run(inputs)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
@pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")
def test_it_computes_what_litert_does(case: Case) -> None:
    model = float_model(case)
    inputs = inputs_of(case, model)
    wanted = litert_outputs(model, inputs)
    found = run(openqnn.convert(model), inputs)
    for name, array in wanted.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        if array.dtype == np.float32:
            np.testing.assert_allclose(found[name], array, atol=1e-4 * max(float(np.abs(array).max()), 1e-6))
        else:
            np.testing.assert_array_equal(found[name], array)


def check_quantized(case: Case, form: str, backend: str) -> None:
    model = float_model(case)
    wanted_real = litert_outputs(model, inputs_of(case, model))
    quantized = quantized_model(case, wanted_real, FORMS[form])
    try:
        inputs = random_inputs(quantized)
        wanted = litert_outputs(quantized, inputs)
    except (RuntimeError, ValueError) as e:
        pytest.skip(f"LiteRT has no such kernel: {e}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", openqnn.OpenQnnWarning)
        graph = openqnn.quantize(openqnn.convert(quantized), float_fallback=True)
    details = {d["name"]: d["quantization"] for d in interpreter(quantized).get_input_details()}
    found = run(graph, {n: real_if_wide(a, details[n]) for n, a in inputs.items()}, backend)
    outputs = {d["name"]: d["quantization"] for d in interpreter(quantized).get_output_details()}
    steps = STEPS.get(case.op, STEPS.get(f"{form} {case.op}", 1))
    for name, array in wanted.items():
        ours = stored_if_wide(found[name], array, outputs[name])
        apart = np.abs(ours.astype(np.int64) - array.astype(np.int64))
        assert np.mean(apart <= steps) >= WITHIN_ONE, f"{name}: up to {apart.max()} steps apart"


def real_if_wide(array: Array, quantization: tuple[float, int]) -> Array:
    """16-bit tensors are real numbers outside of our graphs."""
    scale, zero = quantization
    return (
        ((array.astype(np.float32) - zero) * scale).astype(np.float32) if array.dtype == np.int16 else array
    )


def stored_if_wide(found: Array, wanted: Array, quantization: tuple[float, int]) -> Array:
    scale, zero = quantization
    if wanted.dtype != np.int16:
        return found
    return np.clip(np.round(found / scale) + zero, -32768, 32767).astype(np.int16)


@pytest.mark.parametrize("case", [c for c in CASES if c.quantized and c.id in QUICK], ids=lambda c: c.id)
def test_integers_are_within_a_step(case: Case) -> None:
    check_quantized(case, "int8", "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", [c for c in CASES if c.quantized], ids=lambda c: c.id)
def test_integers_of_all_kinds_are_within_a_step(case: Case, form: str) -> None:
    if f"{form} {case.op}" in LITERT_IS_WRONG:
        pytest.skip("LiteRT's own kernel is wrong here")
    check_quantized(case, form, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c.quantized], ids=lambda c: c.id)
def test_integers_are_within_a_step_on_htp(case: Case) -> None:
    check_quantized(case, "int8", "htp")


def test_every_operator_has_a_case() -> None:
    assert open_tflite.FAMILIES
    known = {name for domain, name in TABLE.known() if not domain and not name.startswith("STABLEHLO")}
    assert known - {c.op for c in CASES} - ELSEWHERE - REFUSALS.keys() == set()


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.frontends.tflite.page"
