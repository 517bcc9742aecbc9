"""Options of qnn-accuracy-debugger, by the part of the tool that they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option

RUNTIMES = (
    "cpu", "gpu", "dsp", "dspv65", "dspv66", "dspv68", "dspv69", "dspv73", "dspv75", "dspv79", "htp",
)  # fmt: skip
ARCHITECTURES = (
    "aarch64-android", "aarch64_android", "aarch64-android-clang6.0", "x86_64-linux-clang",
)  # fmt: skip
ALGORITHMS = ("layerwise", "cumulative-layerwise", "oneshot-layerwise")
QUANTIZERS = ("tf", "enhanced", "adjusted", "symmetric")
TYPES = ("int8", "uint8", "int16", "uint16", "float32")


@dataclass(frozen=True)
class DebuggerModes:
    """What to run; without one of these all of it: diagnosis, engine and verification."""

    framework_diagnosis: bool = option(
        False, "--framework_diagnosis", exclusive="mode", help="run the model in its framework"
    )
    inference_engine: bool = option(
        False, "--inference_engine", exclusive="mode", help="run the model on a QNN library"
    )
    verification: bool = option(
        False, "--verification", exclusive="mode", help="hold the engine's tensors against golden ones"
    )
    compare_encodings: bool = option(
        False, "--compare_encodings", exclusive="mode", help="hold a model's encodings against AIMET's"
    )
    tensor_inspection: bool = option(
        False, "--tensor_inspection", exclusive="mode", help="plot golden and target tensors"
    )


@dataclass(frozen=True)
class DebuggerFolders:
    """Where results go."""

    working_dir: str = option(
        "working_directory", "-w", "--working_dir", metavar="DIR",
        help="the folder of all results (default: working_directory)",
    )  # fmt: skip
    output_dirname: str = option(
        "", "--output_dirname", metavar="NAME", help="name of this run's folder (default: date and time)"
    )
    args_config: str = option(
        "", "--args_config", metavar="JSON",
        help="a file with options by name; what the command line says counts more",
    )  # fmt: skip
    verbose: bool = option(False, "-v", "--verbose", help="tell more")


@dataclass(frozen=True)
class DebuggerModel:
    """The source model."""

    framework: tuple[str, ...] = option(
        (), "-f", "--framework", metavar="NAME", nargs="+",
        help="onnx, tflite, tensorflow or pytorch, in any case; a version may follow",
    )  # fmt: skip
    model_path: str = option("", "-m", "--model_path", "--model1_path", metavar="FILE", help="the model")
    input_tensor: tuple[tuple[str, ...], ...] = option(
        (), "-i", "--input_tensor", metavar="WORD", nargs="+", repeat=True, row=tuple,
        help='an input: "name" 1,3,224,224 file.raw [float32]; repeat for several',
    )  # fmt: skip
    output_tensor: tuple[str, ...] = option(
        (), "-o", "--output_tensor", metavar="NAME", repeat=True, help="an output; repeat for several"
    )


@dataclass(frozen=True)
class DiagnosisOptions:
    """Framework diagnosis."""

    disable_graph_optimization: bool = option(
        False, "--disable_graph_optimization", help="run the framework without optimizations"
    )
    onnx_custom_op_lib: str = option(
        "", "--onnx_custom_op_lib", metavar="LIBRARY", help="a library of operations for ONNX Runtime"
    )


@dataclass(frozen=True)
class EngineStage:
    """Inference engine: where to start."""

    stage: str = option(
        "source", "--stage", metavar="STAGE", choices=("source", "converted", "compiled"),
        help="source (default), converted (model.cpp and .bin) or compiled (a model library)",
    )  # fmt: skip
    runtime: str = option(
        "", "-r", "--runtime", metavar="NAME", choices=RUNTIMES,
        help="cpu, htp, or dspv68 to dspv79: the simulator for that architecture",
    )  # fmt: skip
    architecture: str = option(
        "", "-a", "--architecture", metavar="NAME", choices=ARCHITECTURES,
        help="x86_64-linux-clang: libraries of this host; with a device, what runs there is asked of it",
    )  # fmt: skip
    input_list: str = option("", "-l", "--input_list", metavar="FILE", help="a list of raw input files")
    engine_path: str = option(
        "", "-p", "--engine_path", metavar="DIR", help="for scripts that have it: the libraries are found"
    )
    engine: tuple[str, ...] = option(
        (), "-e", "--engine", metavar="NAME", nargs="+", help="QNN; a version may follow"
    )
    qnn_model_cpp_path: str = option(
        "", "-qmcpp", "--qnn_model_cpp_path", metavar="FILE", help="model.cpp, for the converted stage"
    )
    qnn_model_bin_path: str = option(
        "", "-qmbin", "--qnn_model_bin_path", metavar="FILE", help="model.bin, for the converted stage"
    )
    qnn_model_binary_path: str = option(
        "", "-qmb", "--qnn_model_binary_path", "--qnn_model_binary", metavar="FILE",
        help="a model library, for the compiled stage",
    )  # fmt: skip
    qnn_model_net_json: str = option(
        "", "--qnn_model_net_json", metavar="FILE", help="model_net.json, for the graph struct"
    )


@dataclass(frozen=True)
class EngineRun:
    """Inference engine: the run."""

    device_id: str = option(
        "", "--deviceId", metavar="SERIAL", help="run on the device that adb knows by this serial number"
    )
    target: str = option(
        "", "--target", metavar="DEVICE", help="run on a device: local, ssh://user@host[:port], adb[:SERIAL]"
    )
    target_os: str = option("", "--target_os", metavar="NAME", help="what the device runs, as of qnn-net-run")
    libraries: str = option(
        "", "--libraries", metavar="PATH", help="a wheel or folder with Qualcomm's libraries for the device"
    )
    place: str = option("", "--place", metavar="DIR", help="a folder on the device with room (default: /tmp)")
    host_device: str = option(
        "x86", "--host_device", metavar="NAME", choices=("x86",), help="what converts: x86"
    )
    engine_version: str = option(
        "", "--engine_version", metavar="VERSION", help="for scripts that have it: the installed one runs"
    )
    debug_mode_off: bool = option(False, "--debug_mode_off", help="outputs only, no tensors inside")
    print_version: str = option("", "--print_version", metavar="BOOL", help="print the libraries' version")
    offline_prepare: bool = option(
        False, "--offline_prepare", help="compile a context binary first, and run that"
    )
    lib_name: str = option("", "--lib_name", metavar="NAME", help="name of the model library")
    binaries_dir: str = option(
        "qnn_model_binaries", "-bd", "--binaries_dir", metavar="DIR", help="folder of the model library"
    )
    model_name: str = option(
        "model", "-mn", "-qmn", "--model_name", metavar="NAME",
        help="name of the converted model (default: model)",
    )  # fmt: skip
    use_native_input_files: bool = option(
        False, "-nif", "--use_native_input_files", help="input files have the graph's own types"
    )
    use_native_output_files: bool = option(
        False, "-nof", "--use_native_output_files", help="output files have the graph's own types"
    )
    input_data_type: str = option(
        "float", "-idt", "--input_data_type", metavar="TYPE", choices=("float", "native"),
        help="type of input files: float or native",
    )  # fmt: skip
    output_data_type: str = option(
        "float_only", "-odt", "--output_data_type", metavar="TYPE",
        choices=("float_only", "native_only", "float_and_native"), help="type of output files",
    )  # fmt: skip
    profiling_level: str = option(
        "", "--profiling_level", metavar="LEVEL", choices=("basic", "detailed", "backend"),
        help="measure the run: basic, detailed or backend",
    )  # fmt: skip
    perf_profile: str = option("", "--perf_profile", metavar="NAME", help="power profile of a device")
    log_level: str = option(
        "", "--log_level", metavar="LEVEL", choices=("error", "warn", "info", "debug", "verbose"),
        help="what the library logs",
    )  # fmt: skip
    qnn_netrun_config_file: str = option(
        "", "--qnn_netrun_config_file", "--qnn_netruntime_config_file", metavar="JSON",
        help="config file for the run",
    )  # fmt: skip
    extra_converter_args: str = option(
        "", "--extra_converter_args", metavar="ARGS", help="more for the converter: 'a=b;c=d'"
    )
    extra_contextbin_args: str = option(
        "", "--extra_contextbin_args", metavar="ARGS", help="more for the context binary generator"
    )
    extra_runtime_args: str = option("", "--extra_runtime_args", metavar="ARGS", help="more for qnn-net-run")
    compiler_config: str = option("", "--compiler_config", metavar="JSON", help="config of the compiler")
    add_layer_outputs: str = option(
        "", "--add_layer_outputs", metavar="NAMES", help="tensors to write, with commas: 1579,232"
    )
    add_layer_types: str = option(
        "", "--add_layer_types", metavar="TYPES", help="results of these types of layers, with commas"
    )
    skip_layer_types: str = option(
        "", "--skip_layer_types", metavar="TYPES", help="types of layers to leave out"
    )
    skip_layer_outputs: str = option("", "--skip_layer_outputs", metavar="NAMES", help="tensors to leave out")


@dataclass(frozen=True)
class EngineQuantization:
    """Inference engine: quantization."""

    precision: str = option(
        "", "--precision", metavar="WORD",
        help="int8 or fp16; with --compare_encodings the number of decimals that are compared (17)",
    )  # fmt: skip
    bias_bitwidth: int = option(
        8, "-bbw", "--bias_bitwidth", metavar="BITS", parse=int, choices=(8, 32), help="of biases: 8 or 32"
    )
    act_bitwidth: int = option(
        8, "-abw", "--act_bitwidth", metavar="BITS", parse=int, choices=(8, 16), help="of data: 8 or 16"
    )
    weights_bitwidth: int = option(
        8, "-wbw", "--weights_bitwidth", metavar="BITS", parse=int, choices=(4, 8), help="of weights: 8 or 4"
    )
    float_bitwidth: int = option(
        32, "--float_bitwidth", metavar="BITS", parse=int, choices=(32, 16), help="of floats: 32 or 16"
    )
    float_bias_bitwidth: int | None = option(
        None, "-fbw", "--float_bias_bitwidth", metavar="BITS", parse=int, choices=(16, 32),
        help="of biases in floats",
    )  # fmt: skip
    param_quantizer: str = option(
        "", "-pq", "--param_quantizer", metavar="NAME", choices=QUANTIZERS, help="ranges of weights"
    )
    act_quantizer: str = option(
        "", "--act_quantizer", metavar="NAME", choices=QUANTIZERS, help="ranges of data"
    )
    quantization_overrides: str = option(
        "", "-qo", "--quantization_overrides", metavar="JSON", help="encodings that take precedence"
    )
    restrict_quantization_steps: str = option(
        "", "-rqs", "--restrict_quantization_steps", metavar='"MIN MAX"', help="the stored integers to use"
    )
    algorithms: str = option("", "--algorithms", metavar="NAME", help="cle")
    ignore_encodings: bool = option(False, "--ignore_encodings", help="use calibration alone")
    per_channel_quantization: bool = option(
        False, "--per_channel_quantization", help="a scale for each channel of weights"
    )


@dataclass(frozen=True)
class VerificationOptions:
    """Verification."""

    default_verifier: tuple[tuple[str, ...], ...] = option(
        (), "--default_verifier", "--defaultVerifier", metavar="WORD", nargs="+", repeat=True, row=tuple,
        help="RtolAtol, AdjustedRtolAtol, TopK, L1Error, CosineSimilarity, MSE, MAE, SQNR, MeanIOU or"
        " ScaledDiff, with parameters: rtolatol,rtolmargin,0.01; repeat for several",
    )  # fmt: skip
    golden_output_reference_directory: str = option(
        "", "--golden_output_reference_directory", "--goldenOutputReferenceDirectory", "--framework_results",
        "--frameworkResults", "--golden_dir_for_mapping", "--golden_directory", metavar="DIR",
        help="golden tensors: skips the diagnosis, and serves mapping and comparison",
    )  # fmt: skip
    inference_results: str = option(
        "", "--inference_results", "--inferenceResults", metavar="DIR", help="the engine's tensors"
    )
    tensor_mapping: str = option(
        "", "--tensor_mapping", "--tensorMapping", metavar="JSON", help="golden names by the engine's names"
    )
    verifier_config: str = option(
        "", "--verifier_config", "--verifierConfig", metavar="JSON", help="verifiers for single tensors"
    )
    graph_struct: str = option(
        "", "--graph_struct", "--graphStruct", metavar="JSON", help="order and types of the layers"
    )
    qnn_model_json_path: str = option(
        "", "--qnn_model_json_path", "--qnnModelJsonPath", metavar="JSON",
        help="model_net.json: the order of axes",
    )  # fmt: skip


@dataclass(frozen=True)
class CompareEncodings:
    """Comparison of encodings."""

    input: str = option("", "--input", metavar="FILE", help="model_net.json, a DLC or an .oqnn graph")
    aimet_encodings_json: str = option(
        "", "--aimet_encodings_json", metavar="JSON", help="an encodings file of AIMET's, of any version"
    )
    params_only: bool = option(
        False, "--params_only", exclusive="part", help="compare weights and biases only"
    )
    activations_only: bool = option(False, "--activations_only", exclusive="part", help="compare data only")
    specific_node: str = option("", "--specific_node", metavar="NAME", help="compare this tensor only")


@dataclass(frozen=True)
class InspectionOptions:
    """Tensor inspection."""

    golden_data: str = option("", "--golden_data", metavar="DIR", help="golden tensors")
    target_data: str = option("", "--target_data", metavar="DIR", help="target tensors")
    verifier: tuple[tuple[str, ...], ...] = option(
        (), "--verifier", metavar="WORD", nargs="+", repeat=True, row=tuple,
        help="as --default_verifier; repeat for several",
    )  # fmt: skip
    data_type: str = option(
        "float32", "--data_type", metavar="TYPE", choices=TYPES, help="of the target files (float32)"
    )
    target_encodings: str = option(
        "", "--target_encodings", metavar="JSON", help="encodings: calibrated ranges for the density plots"
    )


@dataclass(frozen=True)
class WholeRun:
    """The whole run."""

    debugging_algorithm: str = option(
        "oneshot-layerwise", "--debugging_algorithm", metavar="NAME", choices=ALGORITHMS,
        help="oneshot-layerwise (default), cumulative-layerwise or layerwise",
    )  # fmt: skip
    enable_tensor_inspection: bool = option(
        False, "--enable_tensor_inspection", help="plots and extremes for every tensor"
    )
    deep_analyzer: str = option(
        "", "--deep_analyzer", metavar="NAME", choices=("modelDissectionAnalyzer",),
        help="modelDissectionAnalyzer: also write the report of openqnn debug",
    )  # fmt: skip
    start_layer: str = option(
        "", "--start_layer", metavar="NAME", help="layerwise and cumulative: from this layer's output on"
    )
    end_layer: str = option(
        "", "--end_layer", metavar="NAME", help="layerwise and cumulative: up to this layer's output"
    )
