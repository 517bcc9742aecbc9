"""Options of the tools about context binaries."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options import vendor
from openqnn.options.field import option, refused
from openqnn.options.source import shapes

NO_BACKEND_BINARY = "the libraries for this machine have no other form of a context than the binary itself"
NO_MEMHANDLE = "memory handles are a matter of the device: the binary takes either"


@dataclass(frozen=True)
class GeneratorModel:
    """The model."""

    model: tuple[str, ...] = vendor.model_files()
    dlc_path: tuple[str, ...] = vendor.dlc_files("DLC files")
    model_prefix: str = vendor.model_prefix()
    backend: str = vendor.backend_library("the library that compiles")
    soc: str = vendor.soc_name()
    htp_arch: str = option(
        "", "--htp_arch", metavar="N", help="the HTP architecture to compile for, such as 75"
    )
    config_file: str = option(
        "", "--config_file", metavar="JSON", help="settings of contexts, graphs and the backend"
    )
    op_packages: str = vendor.op_packages()
    platform_options: None = vendor.no_platform_options()


@dataclass(frozen=True)
class GeneratorOutput:
    """The result."""

    binary_file: str = option(
        "",
        "--binary_file",
        metavar="NAME",
        help="name of the context binary, .bin is added; a name that ends so already is written both ways",
    )
    output_dir: str = option("output", "--output_dir", metavar="DIR", help="where it goes (default: output)")
    enable_intermediate_outputs: bool = option(
        False, "--enable_intermediate_outputs", exclusive="tensors", help="all layers become outputs"
    )
    set_output_tensors: tuple[tuple[str, tuple[str, ...]], ...] = vendor.extra_outputs("that become outputs")
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
        help="raw or memhandle (no effect here: " + NO_MEMHANDLE + ")",
    )
    profiling_level: str = vendor.profiling_level(
        ("basic", "detailed", "backend"), "basic, detailed, backend (HTP: linting)"
    )
    profiling_option: str = vendor.profiling_option()
    verbose: bool = option(False, "--verbose", help="older form of --log_level verbose")


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
    version: bool = vendor.print_version()


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
    shapes: str = shapes()
    separate_weights: bool = option(
        False, "--separate_weights",
        help="give each of several graphs its own copy of the weights: HTP's simulator loads no shared ones",
    )  # fmt: skip


@dataclass(frozen=True)
class ExtractOptions:
    """The context binary."""

    file: str = option(
        "", "file", metavar="MODEL", help="an EPContext model (.onnx), a .pte or a compiled .tflite file"
    )
    output: str = option(
        "", "-o", "--output", metavar="FILE", help="where the binary goes (default: MODEL.bin)"
    )
