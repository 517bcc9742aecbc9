"""Command lines that people publish run as they stand, but for the names of files.

Each test is one script, in a shell that sources the envsetup.sh of an `openqnn sdk-tree`. The long sweep runs
all of them once more with the console scripts of the package and no SDK: its paths lead nowhere then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.tool import openqnn
from tests.libraries import need
from tests.onnx_models import save

pytestmark = pytest.mark.skipif(
    not Path(sys.executable).with_name("qairt-dlc-info").exists(), reason="the package is not installed"
)
CONFIG = """// quantization_config.json
{
  "activation_encodings": {
    "conv1/Relu:0": {"bitwidth": 8, "max": 6.0, "min": 0.0, "scale": 0.023529, "offset": 0}
  },
  "param_encodings": {
    "conv1.weight": {"bitwidth": 8, "max": 2.5, "min": -2.5, "scale": 0.019608, "offset": 127}
  },
  "activation_bitwidth": 8,
  "param_bitwidth": 8,
  "bias_bitwidth": 32
}
"""


def network(path: Path, source: str = "input", bias: bool = True) -> Path:
    """The tutorial's network with fewer channels: two convolutions, the mean, a matrix."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> TensorProto:
        return numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)

    weights = [weight("conv1.weight", 8, 3, 3, 3), weight("conv2.weight", 16, 8, 3, 3), weight("fc", 16, 10)]
    biases = [weight("conv1.bias", 8), weight("conv2.bias", 16)] if bias else []
    names = [[b.name] for b in biases] or [[], []]
    nodes = [
        helper.make_node("Conv", [source, "conv1.weight", *names[0]], ["a"], name="c1", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="r1"),
        helper.make_node("Conv", ["b", "conv2.weight", *names[1]], ["c"], name="c2", pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["d"], name="r2"),
        helper.make_node("GlobalAveragePool", ["d"], ["e"], name="pool"),
        helper.make_node("Flatten", ["e"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "fc"], ["output"], name="fc"),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info(source, TensorProto.FLOAT, ["batch_size", 3, 32, 32])],
        [info("output", TensorProto.FLOAT, ["batch_size", 10])], [*weights, *biases],
    )  # fmt: skip
    return save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sdk") / "tree"
    result = openqnn("sdk-tree", root)
    assert result.code == 0, result.err
    return root


@pytest.fixture(params=["sdk-tree", pytest.param("installed", marks=pytest.mark.slow)])
def folder(tmp_path: Path, tree: Path, request: pytest.FixtureRequest) -> Path:
    for library in ("htp", "ir", "cpu"):
        need(library)
    setup = (
        f"source {tree}/bin/envsetup.sh" if request.param == "sdk-tree" else "export QNN_SDK_ROOT=$PWD/no-sdk"
    )
    (tmp_path / "setup.sh").write_text(f"{setup}\nSDK=$QNN_SDK_ROOT\n")
    for name in ("simple_model.onnx", "model.onnx"):
        network(tmp_path / name)
    (tmp_path / "quantization_config.json").write_text(CONFIG)
    image = np.random.default_rng(1).random((1, 3, 32, 32)).astype(np.float32)
    image.tofile(tmp_path / "image.raw")
    np.moveaxis(image, 1, -1).tofile(tmp_path / "nhwc.raw")
    (tmp_path / "input_data.txt").write_text("image.raw\n")
    (tmp_path / "nhwc.txt").write_text("nhwc.raw\n")
    return tmp_path


def run(folder: Path, script: str) -> str:
    """The script's output, all of it; every command must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    for name in ("ANDROID_NDK_ROOT", "ANDROID_NDK_HOME", "QNN_SDK_ROOT"):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"source setup.sh\n{script}"], cwd=folder, env=environment,
        text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


def test_the_six_commands_of_the_tutorial(folder: Path) -> None:
    said = run(folder, """
qnn-onnx-converter --input_network simple_model.onnx --output_path simple_model.cpp \
    --input_dim input 1,3,32,32 --quantization_overrides quantization_config.json
qnn-model-lib-generator -c simple_model.cpp -b simple_model.bin -t x86_64-linux-clang -l simple_model \
    -o simple_model_qnn.so
qnn-onnx-converter --input_network model.onnx --output_path model_quantized.cpp --input_dim input 1,3,32,32 \
    --quantization_overrides quantization_config.json --target_device hexagon --optimization_level high
qnn-model-lib-generator -c model_quantized.cpp -b model_quantized.bin -t aarch64-android -l model_optimized \
    -o model_optimized.so --target_backends htp,gpu,cpu
qnn-context-binary-generator --model model_optimized.so --backend libQnnHtp.so \
    --output_dir ./context_binaries --input_list input_data.txt --optimization_level high
qnn-onnx-converter --input_network model.onnx --output_path model.cpp --debug --log_level verbose
""")  # fmt: skip
    assert "note: --target_device" in said
    assert "runs on no device" in said
    assert (folder / "simple_model_qnn.so").is_file()


def test_a_source_without_a_suffix_and_default_targets(folder: Path) -> None:
    run(folder, """
qnn-onnx-converter --input_network model.onnx --output_path x -d input 1,3,32,32 --input_list nhwc.txt \
    --act_bw 16 --bias_bw 32
mv x x.cpp
qnn-model-lib-generator -c x.cpp -b x.bin -o lib
qnn-context-binary-generator --model lib/x86_64-linux-clang/libx.so --binary_file x_ctx \
    --backend $SDK/lib/x86_64-linux-clang/libQnnHtp.so
test -f output/x_ctx.bin
""")  # fmt: skip


def test_native_inputs_of_a_compiled_context(folder: Path) -> None:
    """The inputs of the graph in fixed point have 16 bits, and so have the files."""
    stored = np.random.default_rng(2).integers(0, 1 << 16, (1, 32, 32, 3)).astype(np.uint16)
    stored.tofile(folder / "native.raw")
    (folder / "native.txt").write_text("native.raw\n")
    run(folder, """
qnn-onnx-converter --input_network model.onnx --output_path y -d input 1,3,32,32 --input_list nhwc.txt \
    --act_bw 16 --bias_bw 32
mv y y.cpp
qnn-model-lib-generator -c y.cpp -b y.bin -o lib -t x86_64-linux-clang
qnn-context-binary-generator --model lib/x86_64-linux-clang/liby.so --binary_file y --backend libQnnHtp.so
qnn-net-run --retrieve_context output/y.bin --backend libQnnHtp.so --input_list native.txt \
    --use_native_input_files --use_native_output_files --output_dir out
""")  # fmt: skip
    assert (folder / "out" / "Result_0" / "output_native.raw").stat().st_size == 10 * 2


def test_several_inputs_behind_one_flag_and_a_dlc_of_the_older_tool(folder: Path) -> None:
    info = helper.make_tensor_value_info
    ends = [info(name, TensorProto.FLOAT, ["n", 4]) for name in "aby"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "g", ends[:2], ends[2:])
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8),
        folder / "two.onnx",
    )
    np.ones(8, np.float32).tofile(folder / "ones.raw")
    (folder / "two.txt").write_text("ones.raw ones.raw\n")
    said = run(folder, """
qnn-onnx-converter --input_network two.onnx -o two.dlc --input_dim a 2,4 b 2,4 --input_layout a NF
qnn-net-run --dlc_path two.dlc --backend libQnnCpu.so --input_list two.txt --output_dir out
""")  # fmt: skip
    assert "two.dlc is a DLC, as qairt-converter writes it" in said
    assert np.array_equal(np.fromfile(folder / "out" / "Result_0" / "y.raw", np.float32), np.full(8, 2))


def test_half_precision_and_rows(folder: Path) -> None:
    run(folder, """
qnn-onnx-converter -i model.onnx -o half.cpp -d input 1,3,32,32 --float_bitwidth 16
qnn-onnx-converter -i model.onnx -o rows.cpp -d input 1,3,32,32 --input_list nhwc.txt --act_bw 16 \
    --use_per_row_quantization --enable_per_row_quantized_bias --float_bitwidth 32
""")  # fmt: skip


def test_a_dlc_with_the_types_and_the_names_of_its_source(folder: Path) -> None:
    network(folder / "named.onnx", source="onnx::Conv_0")
    (folder / "named.txt").write_text("onnx::Conv_0:=image.raw\n")
    said = run(folder, """
qairt-converter --input_network named.onnx --source_model_input_shape onnx::Conv_0 1,3,32,32 \
    --onnx_skip_simplification --preserve_io_datatype -o named.dlc
qairt-quantizer --input_dlc named.dlc --input_list named.txt --act_bitwidth 16 --preserve_io_datatype \
    -o named_q.dlc 2>/dev/null || \
qairt-quantizer --input_dlc named.dlc --input_list named.txt --act_bitwidth 16 --preserve_io_datatype \
    --output_dlc named_q.dlc
qairt-dlc-info -i named_q.dlc
qairt-quantizer --input_dlc named.dlc --input_list named.txt --preserve_io_datatype onnx::Conv_0 \
    --output_dlc by_name.dlc
qairt-dlc-info -i by_name.dlc
""")  # fmt: skip
    inputs = [line for line in said.splitlines() if line.startswith("  input onnx__Conv_0")]
    assert len(inputs) == 2 and all("float32" in line for line in inputs)


def test_layouts_and_the_tools_about_dlcs(folder: Path) -> None:
    said = run(folder, """
qairt-converter -i model.onnx -o l.dlc -d input 1,3,32,32 --source_model_input_layout input NCHW \
    --desired_input_layout input NHWC --source_model_output_layout output NF --desired_output_layout output NF
qairt-dlc-prepare --input_dlc l.dlc --output_dlc p.dlc --htp_socs sm8650
qairt-dlc-info -i p.dlc
qairt-dlc-to-json --input_dlc p.dlc --output_json p.json
qairt-dlc-diff -i1 l.dlc -i2 p.dlc
snpe-dlc-info -i p.dlc
""")  # fmt: skip
    assert "1x32x32x3" in said


def test_flags_of_later_converters(folder: Path) -> None:
    run(folder, """
qairt-converter -i model.onnx -o a.dlc --target_backend HTP --onnx_summary -d input 1,3,32,32 \
    --desired_input_color_encoding input rgb rgb
qnn-onnx-converter -i model.onnx -o b.cpp --preserve_onnx_output_order --remove_unused_inputs \
    --input_dim input 1,3,32,32
""")  # fmt: skip


def test_two_targets(folder: Path) -> None:
    said = run(folder, """
qnn-onnx-converter -i model.onnx -o m.cpp -d input 1,3,32,32
qnn-model-lib-generator -c m.cpp -b m.bin -t x86_64-linux-clang aarch64-android -o libs
test -f libs/x86_64-linux-clang/libm.so
""")  # fmt: skip
    assert "not built: aarch64-android" in said


def test_eight_bits_on_the_cpu_library_and_what_scripts_look_for(folder: Path) -> None:
    network(folder / "plain.onnx", bias=False)
    said = run(folder, """
qnn-onnx-converter -i plain.onnx -o q.cpp -d input 1,3,32,32 --input_list nhwc.txt
qnn-model-lib-generator -c q.cpp -b q.bin -t x86_64-linux-clang -o .
qnn-net-run --model x86_64-linux-clang/libq.so --backend $SDK/lib/x86_64-linux-clang/libQnnCpu.so \
    --input_list nhwc.txt --debug --perf_profile burst --shared_buffer > log.txt 2>&1
grep "Finished Executing Graphs" log.txt
""")  # fmt: skip
    assert "Finished" in said


@pytest.mark.parametrize("chip", ["--htp_socs sm8750", "--soc_model 69", "--soc 'Snapdragon 8 Elite'"])
def test_a_context_for_a_chip(chip: str, folder: Path) -> None:
    run(folder, f"""
qairt-converter -i model.onnx -o m.dlc -d input 1,3,32,32
qnn-context-binary-generator --dlc_path m.dlc --model libQnnModelDlc.so --backend libQnnHtp.so {chip} \
    --binary_file model.bin --input_output_tensor_mem_type memhandle
test -f output/model.bin.bin
qnn-net-run --retrieve_context output/model.bin.bin --model libQnnModelDlc.so --backend QnnHtp.dll \
    --input_list input_data.txt
""")  # fmt: skip


def test_paths_of_the_sdk_in_every_place(folder: Path) -> None:
    """Tools by their paths, the converter's .dlc, overrides, float fallback, JSON files of HTP."""
    tools = "$SDK/bin/x86_64-linux-clang/" if "source" in (folder / "setup.sh").read_text() else ""
    libraries = "$SDK/lib/x86_64-linux-clang"
    (folder / "outer.json").write_text(
        '{"backend_extensions": {"shared_library_path": "libQnnHtpNetRunExtensions.so",'
        ' "config_file_path": "inner.json"}}'
    )
    (folder / "inner.json").write_text(
        '{"graphs": [{"graph_names": ["f"], "vtcm_mb": 8, "fp16_relaxed_precision": 1}]}'
    )
    said = run(folder, f"""
{tools}qnn-onnx-converter -i model.onnx -o a.cpp --input_dim input 1,3,32,32 --float_bw 16 --no_simplification
{tools}qairt-converter -i model.onnx -o f.dlc -d input 1,3,32,32 \\
    --quantization_overrides quantization_config.json
{tools}qairt-quantizer --input_dlc f.dlc --float_fallback --output_dlc g.dlc
{tools}qnn-net-run --dlc_path f.dlc --model {libraries}/libQnnModelDlc.so --config_file outer.json \\
    --backend {libraries}/libQnnHtp.so --input_list input_data.txt --output_dir out
test -f out/Result_0/output.raw
""")  # fmt: skip
    assert "Finished Executing Graphs" in said
