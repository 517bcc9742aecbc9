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
HELP = {"-h", "--help"}

mend_descriptors()
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is to be ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def openqnn() -> int:
    from openqnn.cli.main import main

    return main()


def tool() -> int:
    """The tool under whose name the process was started."""
    name = Path(sys.argv[0]).stem
    from openqnn.cli.elsewhere import ELSEWHERE

    if name in ELSEWHERE:
        print(f"error: {name} is not part of openqnn [OQ140]\n  hint: {ELSEWHERE[name]}", file=sys.stderr)
        return 2
    if name in PREWARMED and not HELP & set(sys.argv):
        from openqnn.cli.prewarm import run_prewarmed

        return run_prewarmed(name)
    from openqnn.cli.registry import run_tool

    return run_tool(name)
