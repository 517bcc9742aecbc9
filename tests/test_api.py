"""The Python API: what a session takes, gives and refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openqnn
from openqnn import errors
from openqnn.formats.oqnn import write_oqnn
from openqnn.ir import DType, Graph
from openqnn.qnn.library import find_library
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs
from tests.onnx_models import add_weight, model, relu, save, tensor

X = np.asarray([[-1, 0, 1], [2, -3, 4]], np.float32)


@pytest.fixture
def graph() -> Graph:
    """x -> Neg -> middle -> Relu -> y"""
    nodes = [helper.make_node("Neg", ["x"], ["middle"]), helper.make_node("Relu", ["middle"], ["y"])]
    return openqnn.convert(model(nodes))


def typed(dtype: int, op: str = "Add") -> Graph:
    """y = x op x, in a type."""
    infos = [[tensor(n, (2,), dtype)] for n in "xy"]
    return openqnn.convert(model([helper.make_node(op, ["x", "x"], ["y"])], *infos))


# --- running


def test_a_session_gives_arrays_by_name(graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        assert session.input_names == ["x"]
        assert session.output_names == ["y"]
        result = session.run({"x": X})
    assert list(result) == ["y"]
    assert result["y"].dtype == np.float32
    assert np.array_equal(result["y"], np.maximum(-X, 0))


def test_lists_and_views_are_taken_as_arrays(graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        turned = np.asfortranarray(X)[::-1]
        assert np.array_equal(session.run({"x": turned})["y"], np.maximum(-turned, 0))
        assert np.array_equal(session.run({"x": X.tolist()})["y"], np.maximum(-X, 0))


def test_a_session_opens_models_and_graph_files(tmp_path: Path) -> None:
    path = save(relu(), tmp_path / "m.onnx")
    openqnn.convert(path).save(tmp_path / "m.oqnn")
    for source in (path, str(path), tmp_path / "m.oqnn"):
        with openqnn.Session(source, threads=1) as session:
            assert np.array_equal(session.run({"x": X})["y"], np.maximum(X, 0))


def test_results_do_not_change_with_the_next_run(graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        first = session.run({"x": X})["y"]
        kept = first.copy()
        session.run({"x": X * 7})
    assert np.array_equal(first, kept)


# --- intermediate tensors


def test_intermediate_tensors_by_name(graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        result = session.run({"x": X}, ["y", "middle"])
        assert list(result) == ["y", "middle"]
        assert np.array_equal(result["middle"], -X)
        assert np.array_equal(session.run({"x": X}, ["middle"])["middle"], -X)


def test_inputs_and_weights_can_be_asked_for() -> None:
    with openqnn.Session(openqnn.convert(add_weight(np.ones((2, 3), np.float32)))) as session:
        result = session.run({"x": X}, ["x", "w"])
    assert np.array_equal(result["x"], X)
    assert np.array_equal(result["w"], np.ones((2, 3)))


def test_a_name_that_is_nearly_right_is_suggested(graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        with pytest.raises(errors.InputError, match="no tensor 'midle'\n  hint: did you mean 'middle'"):
            session.run({"x": X}, ["midle"])
        with pytest.raises(errors.InputError, match="no tensor 'zzzzz'\n  hint: `openqnn inspect --text`"):
            session.run({"x": X}, ["zzzzz"])


# --- many samples


def test_many_samples_come_out_in_their_order() -> None:
    """Several are under way at once; the small ones overtake nobody."""
    graph = openqnn.convert(model_path("mtcnn_onet"), input_shapes=static_shapes("mtcnn_onet"))
    chance = np.random.default_rng(0)
    shape = graph.ports[graph.inputs[0].name].shape
    samples = [{graph.inputs[0].name: chance.standard_normal(shape).astype(np.float32)} for _ in range(9)]
    with openqnn.Session(graph) as session:
        want = [session.run(s) for s in samples]
        found = list(session.run_many(samples))
    assert len(found) == len(want)
    for a, b in zip(want, found, strict=True):
        assert list(a) == list(b)
        assert all(np.allclose(a[name], b[name], atol=1e-5) for name in a)


@pytest.mark.parametrize("count", [0, 1, 16, 17, 100])
def test_small_samples_go_together(graph: Graph, count: int) -> None:
    with openqnn.Session(graph, threads=2) as session:
        found = list(session.run_many({"x": X * i} for i in range(count)))
        again = list(session.run_many([{"x": X}]))
    assert len(found) == count
    assert all(np.array_equal(results["y"], np.maximum(-X * i, 0)) for i, results in enumerate(found))
    assert np.array_equal(again[0]["y"], np.maximum(-X, 0))


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs, too, have a task for each sample."""
    monkeypatch.setattr("openqnn.runtime.cpu.executable.LEAST_TASK", 1)


@pytest.mark.usefixtures("beside")
def test_samples_are_taken_as_results_are(graph: Graph) -> None:
    taken: list[int] = []

    def samples() -> Iterator[dict[str, np.ndarray]]:
        for i in range(100):
            taken.append(i)
            yield {"x": X * i}

    with openqnn.Session(graph, threads=2) as session:
        results = session.run_many(samples(), ["middle"])
        assert not taken
        assert np.array_equal(next(results)["middle"], -X * 0)
        assert np.array_equal(next(results)["middle"], -X)
        assert len(taken) < 10
        results.close()


@pytest.mark.usefixtures("beside")
def test_a_sample_that_does_not_fit_ends_them(graph: Graph) -> None:
    with openqnn.Session(graph, threads=2) as session:
        results = session.run_many([{"x": X}, {"x": X}, {"x": X[:1]}, {"x": X}])
        with pytest.raises(errors.InputError, match="input 'x' has shape"):
            list(results)
        assert np.array_equal(session.run({"x": X})["y"], np.maximum(-X, 0))
    with pytest.raises(errors.UsageError, match="closed"):
        session.run_many([{"x": X}])


# --- what does not fit


def test_missing_and_unknown_inputs(graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        with pytest.raises(errors.InputError, match="no array for input 'x'"):
            session.run({})
        with pytest.raises(errors.InputError, match="the graph has no input 'z'\n  hint: its inputs: 'x'"):
            session.run({"x": X, "z": X})


@pytest.mark.parametrize("given", [X, [X], None])
def test_arrays_without_names_are_refused(graph: Graph, given: object) -> None:
    wanted = r"arrays go in by the names of inputs, and a \w+ has none\n  hint: \{'x': array\}"
    with openqnn.Session(graph) as session:
        with pytest.raises(errors.InputError, match=wanted):
            session.run(given)  # pyright: ignore[reportArgumentType]
        with pytest.raises(errors.UsageError, match=r"list of names, not 'y'\n  hint: outputs=\['y'\]"):
            session.run({"x": X}, "y")


@pytest.mark.parametrize("shape", [(2, 4), (3, 2), (6,), (1, 2, 3), ()])
def test_wrong_shapes(graph: Graph, shape: tuple[int, ...]) -> None:
    message = rf"input 'x' has shape \[{', '.join(map(str, shape))}\], the graph wants \[2, 3\]"
    with openqnn.Session(graph) as session, pytest.raises(errors.InputError, match=message):
        session.run({"x": np.zeros(shape, np.float32)})


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.complex64, np.object_, "U3", "datetime64[s]"])
def test_wrong_types(graph: Graph, dtype: object) -> None:
    with openqnn.Session(graph) as session, pytest.raises(errors.InputError, match="input 'x' is "):
        session.run({"x": np.zeros((2, 3), dtype)})  # type: ignore[call-overload]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_floats_of_another_width_are_taken(graph: Graph, dtype: type) -> None:
    with openqnn.Session(graph) as session:
        result = session.run({"x": X.astype(dtype)})["y"]
    assert result.dtype == np.float32 and np.array_equal(result, np.maximum(-X, 0))


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.UINT64])
def test_integers_are_computed_in_32_bits_and_checked(dtype: int) -> None:
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    graph = typed(dtype)
    assert graph.inputs[0].dtype in (DType.INT_32, DType.UINT_32)
    with openqnn.Session(graph) as session:
        result = session.run({"x": np.asarray([3, 1 << 20], kind)})["y"]
        assert result.dtype == kind and result.tolist() == [6, 1 << 21]
        with pytest.raises(errors.InputError, match=r"input 'x' has values beyond u?int32"):
            session.run({"x": np.asarray([0, 1 << 40], kind)})


def test_doubles_come_back_as_doubles() -> None:
    with openqnn.Session(typed(TensorProto.DOUBLE)) as session:
        result = session.run({"x": np.asarray([1.5, -2.5])})["y"]
    assert result.dtype == np.float64 and result.tolist() == [3, -5]


def test_constants_beyond_32_bits_are_refused() -> None:
    infos = [[tensor(n, (2,), TensorProto.INT64)] for n in "xy"]
    big = onnx.numpy_helper.from_array(np.asarray([1 << 40, 1]), "w")
    proto = model([helper.make_node("Add", ["x", "w"], ["y"], name="sum")], *infos, [big])
    with pytest.raises(errors.UnsupportedError, match=r"1099511627776, beyond int32 \(at 'sum'\)"):
        openqnn.convert(proto)


def test_a_closed_session(graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        pass
    session.close()
    for outputs in (None, ["middle"]):
        with pytest.raises(errors.UsageError, match="the session is closed"):
            session.run({"x": X}, outputs)


def test_every_problem_of_a_user_is_one_of_ours(tmp_path: Path) -> None:
    family = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert all(issubclass(e, errors.OpenQnnError | Warning) for e in family)
    with pytest.raises(errors.ModelError, match="no such file"):
        openqnn.load(tmp_path / "gone.oqnn")
    with pytest.raises(errors.ModelError, match="no such file"):
        openqnn.Session(tmp_path / "gone.onnx")
    with pytest.raises(errors.UsageError, match="the model has no input 'z'"):
        openqnn.convert(relu(), input_shapes={"z": (1,)})


@pytest.mark.parametrize(
    ("package", "words", "hint"),
    [
        ("", r"Blur 'b' \(onnx node /b\): there is no op", "convert the model again"),
        ('"mine"::', r"operation 'Blur' of package 'mine' is not known", "--custom_ops"),
    ],
)
def test_a_graph_file_with_an_unknown_operation(package: str, words: str, hint: str, tmp_path: Path) -> None:
    text = f"""graph "g" {{
      input %x: float32[1,4]
      %y: float32[1,4] = {package}Blur(%x) name "b" @ "onnx node /b"
      output %y
    }}"""
    path = tmp_path / "m.oqnn"
    write_oqnn(path, text, {})
    for use in (openqnn.load, openqnn.Session, openqnn.compile):
        with pytest.raises(errors.ModelError, match=rf"m\.oqnn: {words}") as e:
            use(path)
        assert hint in e.value.hint
    with pytest.raises(errors.ModelError, match="looks like an OpenQNN graph"):
        openqnn.convert(path)


# --- check


def test_check_reports_what_is_supported() -> None:
    report = openqnn.check(model_path("mnist_conv"))
    assert report.ok
    assert report.supported["Conv"] == 2
    assert not report.problems


def test_check_goes_on_behind_problems() -> None:
    nodes = [helper.make_node("Nope", ["x"], ["a"], name="n"), helper.make_node("Relu", ["x"], ["y"])]
    report = openqnn.check(model([*nodes, helper.make_node("Relu", ["a"], ["b"])]))
    assert [(p.op, p.node) for p in report.problems] == [("Nope", "n")]
    assert dict(report.supported) == {"Relu": 1}


def test_check_raises_what_is_no_matter_of_ops(tmp_path: Path) -> None:
    with pytest.raises(errors.ModelError):
        openqnn.check(tmp_path / "gone.onnx")
    with pytest.raises(errors.DynamicShapeError, match="dynamic dimensions"):
        openqnn.check(model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ("n", 3))]))


# --- the vendor's library


def _has_vendor() -> bool:
    try:
        return bool(find_library("libQnnCpu.so"))
    except errors.LibraryError:
        return False


vendor = pytest.mark.skipif(not _has_vendor(), reason="Qualcomm's libraries are not installed")


@vendor
@pytest.mark.parametrize("name", ["mnist_conv", "mtcnn_onet"])
def test_the_vendor_library_gives_the_same_numbers(name: str) -> None:
    graph = openqnn.convert(
        model_path(name), input_shapes={k: v.shape for k, v in sample_inputs(name).items()}
    )
    with openqnn.Session(graph) as ours, openqnn.Session(graph, backend="libQnnCpu.so") as theirs:
        found, wanted = theirs.run(sample_inputs(name)), ours.run(sample_inputs(name))
    assert list(found) == list(wanted)
    for key, array in wanted.items():
        assert (found[key].shape, found[key].dtype) == (array.shape, array.dtype)
        np.testing.assert_allclose(found[key], array, rtol=1e-3, atol=1e-4 * np.abs(array).max())


@vendor
def test_intermediate_tensors_of_the_vendor_library(graph: Graph) -> None:
    with openqnn.Session(graph, backend="libQnnCpu.so") as session:
        assert list(session.run({"x": X})) == ["y"]
        result = session.run({"x": X}, ["middle", "y"])
        assert list(result) == ["middle", "y"]
        np.testing.assert_array_equal(result["middle"], -X)
        with pytest.raises(errors.InputError, match="no tensor 'midle'"):
            session.run({"x": X}, ["midle"])


def test_a_library_that_is_not_there(graph: Graph) -> None:
    with pytest.raises(errors.LibraryError, match="libNothing"):
        openqnn.Session(graph, backend="libNothing.so")


def test_a_folder_where_the_file_should_go(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(errors.OutputError, match="Is a directory") as caught:
        graph.save(tmp_path)
    assert not caught.value.hint


def test_a_graph_saves_a_dlc_whatever_was_imported(tmp_path: Path) -> None:
    """With only `openqnn.ir` imported, an .oqnn container was written under that name."""
    program = (
        "from openqnn.ir import DType, Graph; from openqnn.ops import Builder\n"
        "graph = Graph('g'); x = graph.add_input('x', DType.FLOAT_32, (1, 4))\n"
        "graph.add_output(Builder(graph)('Relu', x)); graph.save('x.dlc')"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert [node.op for node in openqnn.load(tmp_path / "x.dlc").nodes] == ["Relu"]
