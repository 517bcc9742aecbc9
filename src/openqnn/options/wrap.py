"""Options of `openqnn wrap`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class WrapOptions:
    """The context binary and the model around it."""

    file: str = option("", "file", metavar="BINARY", help="a context binary, whoever made it")
    output: str = option(
        "", "-o", "--output", metavar="FILE",
        help="the EPContext model, or with --dlc the DLC (default: BINARY_ctx.onnx or BINARY_ctx.dlc)",
    )  # fmt: skip
    dlc: str = option(
        "", "--dlc", metavar="FILE",
        help="the DLC that the binary was compiled from: the result is that DLC with the binary in it",
    )  # fmt: skip
    external: bool = option(False, "--external", help="leave the binary in a file beside the model")
    overwrite: bool = option(False, "--overwrite", help="replace a file that is there")
