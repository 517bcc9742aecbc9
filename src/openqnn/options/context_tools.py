"""Options of the tools about context binaries."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option, refused
from openqnn.options.net_run import NO_OP_PACKAGES, NO_PLATFORM_OPTIONS, tensors, words

NO_BACKEND_BINARY = "the libraries for this machine have no other form of a context than the binary itself"
NO_MEMHANDLE = "memory handles need the memory of a device; graphs take plain memory (raw)"


@dataclass(frozen=True)
class GeneratorModel:
    """The model."""

    model: tuple[str, ...] = option(
        (),
        "--model",
        metavar="FILES",
        parse=words,
        help="model libraries (.so), separated by commas; also .onnx and .oqnn files. libQnnModelDlc.so "
        "stands for the files of --dlc_path",
    )
    dlc_path: tuple[str, ...] = option(
        (), "--dlc_path", metavar="FILES", parse=words, help="DLC files, separated by commas"
    )
    model_prefix: str = option(
        "QnnModel",
        "--model_prefix",
        metavar="NAME",
        help="what the functions of a model library start with (default: QnnModel)",
    )
    backend: str = option(
        "",
        "--backend",
        metavar="LIBRARY",
        help="the library that compiles: a path, a file name such as libQnnHtp.so, or cpu, htp",
    )
    soc: str = option(
        "", "--soc", metavar="NAME", help="the SoC that HTP compiles for, by name or number (default: SM8650)"
    )
    htp_arch: str = option(
        "", "--htp_arch", metavar="N", help="the HTP architecture to compile for, such as 75"
    )
    config_file: str = option(
        "", "--config_file", metavar="JSON", help="settings of contexts, graphs and the backend"
    )
    op_packages: None = refused(
        "--op_packages", why=NO_OP_PACKAGES, metavar="LIST", help="op packages to register"
    )
    platform_options: None = refused(
        "--platform_options", why=NO_PLATFORM_OPTIONS, metavar="LIST", help="options for the platform"
    )


@dataclass(frozen=True)
class GeneratorOutput:
    """The result."""

    binary_file: str = option(
        "",
        "--binary_file",
        metavar="NAME",
        help="name of the context binary, .bin is added; without it, none is written",
    )
    output_dir: str = option("output", "--output_dir", metavar="DIR", help="where it goes (default: output)")
    enable_intermediate_outputs: bool = option(
        False, "--enable_intermediate_outputs", exclusive="tensors", help="all layers become outputs"
    )
    set_output_tensors: tuple[tuple[str, tuple[str, ...]], ...] = option(
        (),
        "--set_output_tensors",
        metavar="LIST",
        parse=tensors,
        exclusive="tensors",
        help="intermediate tensors that become outputs: graph0:tensor0,tensor1;graph1:tensor2",
    )
    backend_binary: None = refused(
        "--backend_binary",
        why=NO_BACKEND_BINARY,
        metavar="NAME",
        help="the context in the backend's own form",
    )
    input_output_tensor_mem_type: str = option(
        "raw",
        "--input_output_tensor_mem_type",
        metavar="TYPE",
        choices=("raw", "memhandle"),
        help="raw; memhandle is not available: " + NO_MEMHANDLE,
    )
    profiling_level: str = option(
        "",
        "--profiling_level",
        metavar="LEVEL",
        choices=("basic", "detailed", "backend"),
        help="write qnn-profiling-data_0.log: basic, detailed, backend (HTP: linting)",
    )
    profiling_option: str = option(
        "",
        "--profiling_option",
        metavar="NAME",
        choices=("optrace",),
        help="optrace: with detailed, a trace of operations",
    )


@dataclass(frozen=True)
class UtilityOptions:
    """The binary and its description."""

    context_binary: str = option("", "--context_binary", metavar="FILE", help="the context binary")
    json_file: str = option(
        "",
        "--json_file",
        metavar="FILE",
        help="write its description to this file; without it, the binary is only validated",
    )
    version: bool = option(
        False, "--version", help="print the version of the tool and of the libraries found"
    )


@dataclass(frozen=True)
class CompileOptions:
    """The result."""

    output: str = option(
        "",
        "-o",
        "--output",
        metavar="FILE",
        help="the context binary (default: MODEL.bin); an .onnx "
        "name writes an EPContext model for ONNX Runtime",
    )
    backend: str = option(
        "htp", "--backend", metavar="LIBRARY", help="the library that compiles (default: htp)"
    )
    soc: str = option("", "--soc", metavar="NAME", help="the SoC, by name or number (default: SM8650)")
    htp_arch: str = option("", "--htp_arch", metavar="N", help="the HTP architecture instead, such as 75")
    config_file: str = option(
        "", "--config_file", metavar="JSON", help="settings as qnn-context-binary-generator has them"
    )
    external: bool = option(False, "--external", help="with .onnx: the binary in a file beside the model")


@dataclass(frozen=True)
class ExtractOptions:
    """The context binary."""

    file: str = option(
        "", "file", metavar="MODEL", help="an EPContext model: an .onnx file that holds a binary"
    )
    output: str = option(
        "", "-o", "--output", metavar="FILE", help="where the binary goes (default: MODEL.bin)"
    )
