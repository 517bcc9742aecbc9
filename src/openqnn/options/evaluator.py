"""Options of `openqnn evaluate` and qnn-accuracy-evaluator."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from openqnn.options.field import option


def sized_symbol(text: str) -> tuple[str, int]:
    """SYMBOL:8, or SYMBOL=8."""
    name, sign, size = text.rpartition(":" if ":" in text else "=")
    if not sign or not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: expected SYMBOL:8")
    return name, int(size)


def said_global(text: str) -> tuple[str, str]:
    """SYMBOL:VALUE."""
    name, sign, value = text.partition(":")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r}: expected SYMBOL:VALUE")
    return name, value


@dataclass(frozen=True)
class EvaluatorMinimal:
    """Minimal mode: all 32 ways to quantize, ranked."""

    model: str = option("", "-model", "--model", metavar="PATH", help="a model, or a folder of models")
    target_arch: str = option(
        "x86_64-linux-clang", "-target_arch", "--target_arch", metavar="ARCH",
        help="x86_64-linux-clang, or aarch64-android, which is computed here",
    )  # fmt: skip
    backend: str = option(
        "htp", "-backend", "--backend", metavar="NAME",
        help="htp or dspv68 to dspv79 (HTP's arithmetic, simulated), libQnnHtp, cpu (libQnnCpu), or built-in",
    )  # fmt: skip
    preproc_file: str = option(
        "", "-preproc_file", "--preproc_file", metavar="FILE",
        help="a list of preprocessed raw files; with -config in place of the config's",
    )  # fmt: skip
    comparator: str = option(
        "", "-comparator", "--comparator", metavar="NAME",
        help="abs, cos, topk, avg (default), l1norm, l2norm, std, rme, snr, maxerror, kld, pixelbypixel, box",
    )  # fmt: skip
    tol_thresh: float | None = option(
        None, "-tol_thresh", "--tol_thresh", metavar="X", parse=float,
        help="tolerance of the comparator: relative for abs, k for topk, overlap for box",
    )  # fmt: skip
    act_bw: int = option(
        8, "-act_bw", "--act_bw", metavar="BITS", parse=int, choices=(8, 16), help="width of activations"
    )
    bias_bw: int = option(
        8, "-bias_bw", "--bias_bw", metavar="BITS", parse=int, choices=(8, 32), help="width of biases"
    )
    box_input: str = option(
        "", "-box_input", "--box_input", metavar="JSON", help="which outputs comparator box compares"
    )
    input_info: tuple[tuple[str, str], ...] = option(
        (), "-input_info", "--input_info", metavar=("NAME", "DIMS"), nargs=2, repeat=True,
        help="an input and its dimensions, such as data 1,224,224,3; PyTorch models need it",
    )  # fmt: skip


@dataclass(frozen=True)
class EvaluatorConfig:
    """Config mode: a dataset, plugins and inference schemas from a YAML file."""

    config: str = option("", "-config", "--config", metavar="YAML", help="the model config")
    calib_file: str = option(
        "", "-calib_file", "--calib_file", metavar="FILE",
        help="a list of preprocessed raw files to calibrate with, in place of the config's",
    )  # fmt: skip
    inference_schema: str = option(
        "", "-inference_schema", "--inference_schema", metavar="NAME",
        help="run schemas of this name only: qnn, onnxrt, ...",
    )  # fmt: skip
    inference_schema_tag: str = option(
        "", "-inference_schema_tag", "--inference_schema_tag", metavar="TAG",
        help="run the schema of this tag only",
    )  # fmt: skip
    batchsize: int | None = option(
        None, "-batchsize", "--batchsize", metavar="N", parse=int, help="in place of the config's batch size"
    )
    set_global: tuple[tuple[tuple[str, str], ...], ...] = option(
        (), "-set_global", "--set_global", metavar="SYMBOL:VALUE", parse=said_global, nargs="+", repeat=True,
        help="the value of a symbol of the config's globals",
    )  # fmt: skip
    use_memory_plugins: bool = option(
        False, "-use_memory_plugins", "--use_memory_plugins",
        help="take the plugins' memory variants: nothing is written between the stages",
    )  # fmt: skip
    trust: bool = option(
        False, "-trust", "--trust", help="load pickle files that the config names: only ones that you trust"
    )


@dataclass(frozen=True)
class EvaluatorShared:
    """What both modes have."""

    onnx_symbol: tuple[tuple[tuple[str, int], ...], ...] = option(
        (), "-onnx_symbol", "--onnx_symbol", metavar="SYMBOL:N", parse=sized_symbol, nargs="+", repeat=True,
        help="the size of a symbolic dimension (default 1)",
    )  # fmt: skip
    device_id: str = option(
        "", "-device_id", "--device_id", metavar="ID",
        help="a device's serial number; everything is computed on this machine",
    )  # fmt: skip
    work_dir: str = option(
        "./qacc_temp", "-work_dir", "--work_dir", metavar="DIR",
        help="where results go; a second run goes on from what is there",
    )  # fmt: skip
    silent: bool = option(False, "-silent", "--silent", help="print errors only")
    debug: bool = option(False, "-debug", "--debug", help="also tell what is done, step by step")
    jobs: int = option(
        0, "-jobs", "--jobs", metavar="N", parse=int, help="inferences at a time (default: one a core)"
    )
    on: str = option(
        "", "-on", "--on", metavar="ADDRESS", help="run on a cluster: dask://host:port or ray://host:port"
    )
