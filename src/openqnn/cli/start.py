"""Where console scripts begin: until a command runs, Ctrl-C ends them without a word.

Python would answer with a traceback through whatever it is importing. So this comes before all that takes
time to import, and `openqnn.cli.execute` takes over from it.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is to be ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def openqnn() -> int:
    from openqnn.cli.main import main

    return main()


def qnn_onnx_converter() -> int:
    return _tool("qnn-onnx-converter")


def qairt_converter() -> int:
    return _tool("qairt-converter")


def qairt_quantizer() -> int:
    return _tool("qairt-quantizer")


def qnn_model_lib_generator() -> int:
    return _tool("qnn-model-lib-generator")


def qnn_context_binary_utility() -> int:
    return _tool("qnn-context-binary-utility")


def qnn_platform_validator() -> int:
    return _tool("qnn-platform-validator")


def qnn_architecture_checker() -> int:
    return _tool("qnn-architecture-checker")


def qnn_netron() -> int:
    return _tool("qnn-netron")


def qnn_net_run() -> int:
    return _ahead("qnn-net-run")


def qnn_context_binary_generator() -> int:
    return _ahead("qnn-context-binary-generator")


def _tool(name: str) -> int:
    from openqnn.cli.legacy import run_tool

    return run_tool(name)


def _ahead(name: str) -> int:
    from openqnn.cli.ahead import run_ahead

    return run_ahead(name)
