"""Names of tools that the original has elsewhere and this package has not, with what to use."""

from __future__ import annotations

ELSEWHERE = {
    "snpe-onnx-to-dlc": "qairt-converter writes the same kind of file",
    "snpe-dlc-quantize": "qairt-quantizer quantizes a DLC",
    "snpe-dlc-quant": "qairt-quantizer quantizes a DLC",
    "snpe-dlc-graph-prepare": "qnn-context-binary-generator --dlc_path compiles a DLC for a SoC",
    "snpe-dlc-diff": "qairt-dlc-diff compares two DLC files",
    "snpe-dlc-viewer": "openqnn view shows a DLC in the browser",
    "snpe-net-run": "qnn-net-run --dlc_path runs a DLC",
    "snpe-throughput-net-run": "qnn-net-run --duration measures here; openqnn estimate, for a chip",
    "snpe-diagview": "qnn-net-run --profiling_level detailed, and openqnn inspect on the log",
}
