"""Subgraphs, signatures, variables, cells and custom operators of TFLite models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from flatbuffers import flexbuffers

import openqnn
from openqnn.errors import UnsupportedError, UsageError
from tests.frontends.tflite.build import Body, Op, T, const, model, single
from tests.frontends.tflite.litert import interpreter, litert_outputs

X = np.random.default_rng(1).random((2, 3)).astype(np.float32)


def run(source: bytes, inputs: dict[str, Any], **settings: Any) -> dict[str, Any]:
    with openqnn.Session(openqnn.convert(source, **settings)) as session:
        return session.run(inputs)


def twice(factor: float) -> Body:
    return Body(
        [T((2, 3)), const(np.float32(factor)), T((2, 3))],
        [Op("MUL", [0, 1], [2], {}, "MulOptions")],
        [0],
        [2],
    )


def test_another_subgraph_is_called() -> None:
    main = Body([T((2, 3)), T((2, 3))], [Op("CALL", [0], [1], {"subgraph": 1}, "CallOptions")], [0], [1])
    np.testing.assert_allclose(run(model(main, twice(2)), {"t0": X})["t1"], X * 2, rtol=1e-6)


def test_a_composite_is_its_decomposition() -> None:
    options: dict[str, Any] = {"name": "my.double", "decompositionSubgraphIndex": 1}
    options["compositeAttributes"] = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
    ops = [Op("STABLEHLO_COMPOSITE", [0], [1], options, "StableHLOCompositeOptions")]
    source = model(Body([T((2, 3)), T((2, 3))], ops, [0], [1]), twice(2))
    np.testing.assert_allclose(
        run(source, {"t0": X})["t1"], litert_outputs(source, {"t0": X})["t1"], rtol=1e-6
    )


@pytest.mark.parametrize("chosen", [True, False])
def test_a_branch_is_chosen(chosen: bool) -> None:
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    tensors = [T((), "bool"), T((2, 3)), T((2, 3))]
    source = model(
        Body(tensors, [Op("IF", [0, 1], [2], options, "IfOptions")], [0, 1], [2]), twice(2), twice(3)
    )
    inputs = {"t0": np.asarray(chosen), "t1": X}
    np.testing.assert_allclose(run(source, inputs)["t2"], X * (2 if chosen else 3), rtol=1e-6)


def loop(limit: T, op: str = "WHILE", kind: str = "WhileOptions") -> bytes:
    """x doubles while a counter is below a limit."""
    state = [T((), "int32"), T((2, 3)), T((), "int32")]
    ends = [T((), "int32"), T((2, 3)), T((), "int32")]
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    feeds = [1] if limit.data is not None else [1, 2]
    main = Body(
        [const(0), T((2, 3)), limit, *ends],
        [Op(op, [0, 1, 2], [3, 4, 5], options, kind)],
        feeds,
        [4],
    )
    condition = Body([*state, T((), "bool")], [Op("LESS", [0, 2], [3], {}, "LessOptions")], [0, 1, 2], [3])
    ops = [Op("ADD", [0, 3], [4], {}, "AddOptions"), Op("ADD", [1, 1], [5], {}, "AddOptions")]
    return model(
        main, condition, Body([*state, const(1), T((), "int32"), T((2, 3))], ops, [0, 1, 2], [4, 5, 2])
    )


@pytest.mark.parametrize("op", [("WHILE", "WhileOptions"), ("STABLEHLO_WHILE", "StablehloWhileOptions")])
def test_a_loop_of_known_length_is_unrolled(op: tuple[str, str]) -> None:
    np.testing.assert_allclose(run(loop(const(3), *op), {"t1": X})["t4"], X * 8, rtol=1e-6)


def test_a_loop_of_unknown_length_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="how often the loop runs is only known at run time"):
        openqnn.convert(loop(T((), "int32")))


def test_signatures_are_chosen_by_name() -> None:
    source = model(twice(2), twice(3), signatures={"double": 0, "triple": 1})
    found = run(source, {"t0": X}, source_options={"signature": "triple"})
    np.testing.assert_allclose(found["t2"], X * 3, rtol=1e-6)
    with pytest.raises(UsageError, match="no signature 'half'") as e:
        openqnn.convert(source, source_options={"signature": "half"})
    assert "'double', 'triple'" in e.value.hint


def sums() -> bytes:
    """A resource variable that adds up what it is given; it starts as 0.5."""
    handle = T((), "RESOURCE")
    named = {"sharedName": "total"}
    ops = [
        Op("CALL_ONCE", [], [], {"initSubgraphIndex": 1}, "CallOnceOptions"),
        Op("VAR_HANDLE", [], [1], named, "VarHandleOptions"),
        Op("READ_VARIABLE", [1], [2], {}, "ReadVariableOptions"),
        Op("ADD", [0, 2], [3], {}, "AddOptions"),
        Op("ASSIGN_VARIABLE", [1, 3], [], {}, "AssignVariableOptions"),
    ]
    main = Body([T((2, 3)), handle, T((2, 3)), T((2, 3))], ops, [0], [3])
    start = [
        Op("VAR_HANDLE", [], [0], named, "VarHandleOptions"),
        Op("ASSIGN_VARIABLE", [0, 1], [], {}, "AssignVariableOptions"),
    ]
    return model(main, Body([handle, const(np.full((2, 3), 0.5, np.float32))], start, [], []))


def test_variables_become_inputs_and_outputs() -> None:
    with pytest.warns(openqnn.OpenQnnWarning, match="keeps state: 'total'.*all start as 0.5"):
        graph = openqnn.convert(sums())
    assert [v.name for v in graph.inputs] == ["t0", "total"]
    judge = interpreter(sums())
    state = np.full((2, 3), 0.5, np.float32)
    with openqnn.Session(graph) as session:
        for _ in range(3):
            found = session.run({"t0": X, "total": state})
            state = found["total_out"]
            judge.set_tensor(judge.get_input_details()[0]["index"], X)
            judge.invoke()
            wanted = judge.get_tensor(judge.get_output_details()[0]["index"])
            np.testing.assert_allclose(found["t3"], wanted, rtol=1e-6)


# -- cells ---------------------------------------------------------------------------------------------------


def weights(*shape: int) -> T:
    return const(np.random.default_rng(sum(shape)).uniform(-0.5, 0.5, shape).astype(np.float32))


def cell(op: str) -> tuple[bytes, dict[str, np.ndarray[Any, Any]]]:
    """A layer over data [2, 4, 5] or [2, 5] with 3 units."""
    states = [T((2, 3), variable=True), T((2, 3), variable=True)]
    op, _, merged = op.partition("-")
    outputs = [T(())]
    gates = [weights(3, 5)] * 4 + [weights(3, 3)] * 4 + [None] * 3 + [weights(3)] * 4 + [None] * 2
    options: dict[str, Any] = {"fusedActivationFunction": 4}
    if op.startswith("BIDIRECTIONAL"):
        options |= {
            "mergeOutputs": bool(merged),
            "timeMajor": bool(merged),
        }  # merged by batch, LiteRT reads beyond its state
        outputs = [T(())] if merged else [T(()), T(())]
        kind = f"Bidirectional{'SequenceLSTM' if 'LSTM' in op else 'SequenceRNN'}Options"
        layer = [weights(3, 5), weights(3, 3), weights(3), states[0]]
        both = [*gates, *(g and replace(g, data=-np.asarray(g.data)) for g in gates), *states, *states]
        inputs = [T((4, 2, 5) if merged else (2, 4, 5)), *(both if "LSTM" in op else [*layer, *layer])]
        inputs += [None] * (48 if "LSTM" in op else 12)
        inputs = inputs[: 48 if "LSTM" in op else 12]
    elif op.endswith("LSTM"):
        inputs = [T((2, 4, 5) if "SEQUENCE" in op else (2, 5)), *gates, *states]
        kind = "UnidirectionalSequenceLSTMOptions" if "SEQUENCE" in op else "LSTMOptions"
    elif op == "SVDF":
        inputs = [T((2, 5)), weights(6, 5), weights(6, 4), weights(3), T((2, 24), variable=True)]
        kind, options = "SVDFOptions", {"rank": 2, "fusedActivationFunction": 0}
    else:
        data = T((2, 4, 5)) if "SEQUENCE" in op else T((2, 5))
        inputs = [data, weights(3, 5), weights(3, 3), weights(3), states[0]]
        kind = "SequenceRNNOptions" if "SEQUENCE" in op else "RNNOptions"
    source = single(op, inputs, outputs, kind, **options)
    first = inputs[0]
    assert first is not None
    return source, {"t0": np.random.default_rng(3).uniform(-1, 1, first.shape).astype(np.float32)}


CELLS = [
    "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "RNN", "SVDF", "LSTM",
    "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM-merged", "BIDIRECTIONAL_SEQUENCE_RNN",
    "BIDIRECTIONAL_SEQUENCE_RNN-merged",
]  # fmt: skip


@pytest.mark.parametrize("op", CELLS)
@pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")
def test_cells_keep_their_state(op: str) -> None:
    source, inputs = cell(op)
    graph = openqnn.convert(source)
    judge = interpreter(source)
    states = {v.name: np.zeros(v.shape, np.float32) for v in graph.inputs if v.name not in inputs}
    assert states
    with openqnn.Session(graph) as session:
        for _ in range(2):
            found = session.run(inputs | states)
            states = {name: found[f"{name}_out"] for name in states}
            judge.set_tensor(judge.get_input_details()[0]["index"], inputs["t0"])
            judge.invoke()
            for detail in judge.get_output_details():
                np.testing.assert_allclose(
                    found[detail["name"]], judge.get_tensor(detail["index"]), atol=1e-5
                )


# -- custom operators ----------------------------------------------------------------------------------------


def detector(regular: bool) -> tuple[bytes, dict[str, Any]]:
    options = {
        "max_detections": 5, "max_classes_per_detection": 1, "detections_per_class": 100,
        "use_regular_nms": regular, "nms_score_threshold": 0.2, "nms_iou_threshold": 0.5, "num_classes": 3,
        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
    }  # fmt: skip
    chance = np.random.default_rng(5)
    anchors = const(chance.uniform(0.2, 0.8, (20, 4)).astype(np.float32))
    inputs = [T((1, 20, 4), name="boxes"), T((1, 20, 4), name="scores"), anchors]
    results = [T((), name=n) for n in ("found", "classes", "best", "count")]
    source = single("TFLite_Detection_PostProcess", inputs, results, custom=bytes(flexbuffers.Dumps(options)))
    boxes = chance.normal(size=(1, 20, 4)).astype(np.float32)
    return source, {"boxes": boxes, "scores": chance.random((1, 20, 4)).astype(np.float32)}


@pytest.mark.parametrize("regular", [False, True])
def test_detections(regular: bool) -> None:
    source, inputs = detector(regular)
    wanted = litert_outputs(source, inputs)
    found = run(source, inputs)
    count = int(wanted["count"][0])
    assert count == int(found["count"][0]) > 1
    for name in ("found", "classes", "best"):
        np.testing.assert_allclose(found[name][:, :count], wanted[name][:, :count], atol=1e-5)


def test_an_operator_of_another_framework_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="custom operator 'FlexErf'") as e:
        openqnn.convert(single("FlexErf", [T((2, 3))], [T((2, 3))]))
    assert "--custom_ops" in str(e.value)
