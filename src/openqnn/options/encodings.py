"""Options of `openqnn encodings`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class EncodingsOptions:
    """Encodings; MODEL may also be an encodings file of AIMET's."""

    lint: str = option(
        "", "--lint", metavar="FILE",
        help="hold an encodings file against the model: missing, unused and impossible entries",
    )  # fmt: skip
    to: str = option(
        "", "--to", metavar="VERSION",
        help="write the encodings of the model, or of the file, in this version of the format, such as 1.0.0",
    )  # fmt: skip
    output: str = option("", "-o", "--output", metavar="FILE", help="what to write")
    source: str = option(
        "", "--source", metavar="ONNX",
        help="the ONNX model that the names are of: only its tensors are written, and it tells what a "
        "version leaves open",
    )  # fmt: skip
    json: bool = option(False, "--json", help="print the list as JSON")
