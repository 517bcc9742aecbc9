"""Options of `openqnn wrap`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class WrapOptions:
    """The context binary and the model around it."""

    file: str = option("", "file", metavar="BINARY", help="a context binary, whoever made it")
    output: str = option(
        "", "-o", "--output", metavar="FILE", help="the EPContext model (default: BINARY_ctx.onnx)"
    )
    external: bool = option(False, "--external", help="leave the binary in a file beside the model")
    overwrite: bool = option(False, "--overwrite", help="replace a file that is there")
