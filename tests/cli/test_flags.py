"""Every documented flag of every tool is declared, tested by name somewhere, and published."""

from __future__ import annotations

from pathlib import Path

import pytest

from openqnn.cli.command import Tool, tool_parser
from openqnn.options.field import Option
from tests.cli.flags.page import PAGE, TOOLS, declared, documented, page
from tests.cli.tool import assert_refused, tool

MODEL = {
    "qnn-onnx-converter": ["-i", "m.onnx"],
    "qairt-converter": ["-i", "m.onnx"],
    "qnn-tflite-converter": ["-i", "m.tflite"],
    "qnn-pytorch-converter": ["-i", "m.pt2"],
    "qnn-tensorflow-converter": ["-i", "m.pb"],
    "qairt-quantizer": ["--input_dlc", "m.dlc"],
}
GOLDEN = Path(__file__).with_name("help")
HELP = ("-h", "--help")
NEWER = {
    "--act_bitwidth", "--weights_bitwidth", "--bias_bitwidth", "--act_quantizer_calibration",
    "--param_quantizer_calibration", "--act_quantizer_schema", "--param_quantizer_schema",
    "--percentile_calibration_value", "--float_fallback", "--floatFallback", "--dump_encoding_json",
    "--block_size",
}  # fmt: skip
# Flags of qnn-onnx-converter that its siblings have too.
OF_ONNX = {
    "--preserve_io", "--dry_run", "--dump_custom_io_config_template", "--keep_int64_inputs", "--custom_ops",
}  # fmt: skip
DEVICE = {"--target", "--place", "--target_os", "--libraries"}
# Operations of the user's, wherever a model is read.
OWN = {
    "--custom_ops", "--op_package_config", "-opc", "--converter_op_package_lib", "-cpl", "--op_packages",
    "--op_package_lib", "-opl",
}  # fmt: skip
OURS = {
    "qnn-tensorflow-converter": {"--tf_validate_models", *OF_ONNX, *NEWER},
    "qnn-pytorch-converter": {
        "--dump_custom_io_config_template",
        "--keep_int64_inputs",
        "--custom_ops",
        *NEWER,
    },
    "qnn-tflite-converter": {"--tflite_signature_name", *OF_ONNX, *NEWER},
    # the short name of encodings, and what the newer quantizer has and the older converters have not
    "qnn-onnx-converter": {"-e", "--custom_ops", *NEWER},
    "qairt-quantizer": {
        "--param_quantizer",
        "--act_quantizer",
        "--act_bw",
        "--weight_bw",
        "--block_size",
        "--bias_bw",
        "--float_fallback",
        "--quantization_overrides",
        "--use_native_dtype",
        "--custom_ops",
    },
    "qairt-converter": {"-e", "--custom_ops", "--caffemodel", "--caffe_bin"},
    # HTP compiles float graphs for a SoC, and the original has no flag for it
    "qnn-net-run": {"--soc", "--custom_ops", *DEVICE},
    "qnn-context-binary-generator": {"--soc", "--htp_arch", "--custom_ops"},
    "qnn-platform-validator": {"--output_dir", "--target", "--place", "--libraries"},
    "qnn-accuracy-debugger": {"--args_config", *DEVICE, *OWN},
    "qnn-bench": OWN,
    "qnn-architecture-checker": OWN,
    "qnn-quantization-checker": OWN,
    # two dashes where the original has one, and what it has not
    "qnn-accuracy-evaluator": {
        *(
            f"--{name}"
            for name in (
                "model",
                "target_arch",
                "backend",
                "preproc_file",
                "comparator",
                "tol_thresh",
                "act_bw",
                "bias_bw",
                "input_info",
                "onnx_symbol",
                "device_id",
                "work_dir",
                "silent",
                "debug",
                "config",
                "calib_file",
                "inference_schema",
                "inference_schema_tag",
                "batchsize",
                "set_global",
                "use_memory_plugins",
            )
        ),
        "-trust",
        "--trust",
        "-jobs",
        "--jobs",
        "-on",
        "--on",
        *OWN,
    },
    "qnn-netron": {"--run_code", "--work_dir", "--port", "--no_browser", *OWN},
    "qnn-throughput-net-run": {
        "--html",
        "--require_stable",
        "--sample_config",
        "--version",
        "--scenario",
        "--duration",
        "--queries",
        "--target_qps",
        "--latency_bound",
        *OWN,
    },
}
_CONVERTER = {
    "--target_device", "--target_backend", "--target_soc_model", "--optimization_level", "--log_level",
    "--onnx_summary", "--preserve_onnx_output_order", "--remove_unused_inputs",
}  # fmt: skip
_QUANTIZER = {
    "--enable_per_row_quantized_bias", "--disable_relu_squashing", "--use_dynamic_16_bit_weights",
    "--pack_4_bit_weights",
}  # fmt: skip
LATER = {
    # later SDKs, and guides that people follow
    "qnn-onnx-converter": {"--float_bitwidth", "--float_bias_bitwidth", *_CONVERTER, *_QUANTIZER},
    "qairt-converter": {
        "--source_model_input_shape", "--input_dim", "--source_model_output_layout", "--desired_input_layout",
        "--desired_output_layout", "--preserve_io_datatype", "--onnx_skip_simplification", *_CONVERTER,
    },
    "qairt-quantizer": {"--preserve_io_datatype", *_QUANTIZER},
    "qnn-net-run": {"--soc_model", "--htp_socs"},
    "qnn-context-binary-generator": {"--soc_model", "--htp_socs", "--input_list", "--optimization_level"},
    "qnn-model-lib-generator": {"--target_backends"},
    "qnn-profile-viewer": {"--config"},
}  # fmt: skip
REFUSED = [(t, o) for t in TOOLS for o in declared(t) if o.refusal]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda t: t.name)
def test_every_documented_flag_is_declared(tool: Tool) -> None:
    options = [set(o.names) for o in declared(tool)]
    missing = [f for f in documented(tool) if f[0] not in HELP and not any(set(f) <= o for o in options)]
    assert not missing


@pytest.mark.parametrize("tool", TOOLS, ids=lambda t: t.name)
def test_no_flag_is_declared_that_is_not_documented(tool: Tool) -> None:
    known = {name for flag in documented(tool) for name in flag}
    kind = "qnn-onnx-converter" if tool.name.endswith("-converter") and tool.name != "qairt-converter" else ""
    known |= OURS.get(tool.name, set()) | LATER.get(kind or tool.name, set())
    assert not {name for o in declared(tool) for name in o.names} - known


@pytest.mark.parametrize(("owner", "option"), REFUSED, ids=lambda x: getattr(x, "label", None))
def test_a_refused_flag_says_why(owner: Tool, option: Option) -> None:
    words = [] if "metavar" not in option.settings else ["value"]
    for name in option.names:
        result = tool(owner.name, *MODEL.get(owner.name, ()), name, *words)
        assert_refused(result, option.label, option.refusal, code=2)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.cli.flags.page"


@pytest.mark.parametrize("owner", TOOLS, ids=lambda t: t.name)
def test_help_is_as_recorded(owner: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """`help/` is the record; delete a file and run the test to write it anew, then read the change."""
    monkeypatch.setenv("NO_COLOR", "1")
    golden, text = GOLDEN / f"{owner.name}.txt", tool_parser(owner).format_help()
    if not golden.exists():
        golden.write_text(text, encoding="utf-8")
        pytest.fail(f"{golden.name} was written: read it and run again")
    assert text == golden.read_text(encoding="utf-8")
    assert tool(owner.name, "--help").out == text


def test_rivals_exclude_each_other() -> None:
    result = tool("qnn-onnx-converter", "-i", "m", "-p", "a", "--op_package_config", "b.xml")
    assert_refused(result, "not allowed with argument", code=2)
