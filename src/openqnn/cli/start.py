"""Where console scripts begin: until a command runs, Ctrl-C ends them without a word.

Python would answer with a traceback through whatever it is importing. So this comes before all that takes
time to import, and `openqnn.cli.execute` takes over from it.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from openqnn.cli.streams import mend_descriptors

PREWARMED = ("qnn-net-run", "qnn-context-binary-generator")  # a library opens while they import
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
"""Names that the original has and this package has not, and what to use."""

mend_descriptors()
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is to be ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def openqnn() -> int:
    from openqnn.cli.main import main

    return main()


def tool() -> int:
    """The tool under whose name the process was started."""
    name = Path(sys.argv[0]).stem
    if name in ELSEWHERE:
        print(f"error: {name} is not part of openqnn\n  hint: {ELSEWHERE[name]}", file=sys.stderr)
        return 2
    if name in PREWARMED:
        from openqnn.cli.prewarm import run_prewarmed

        return run_prewarmed(name)
    from openqnn.cli.registry import run_tool

    return run_tool(name)
