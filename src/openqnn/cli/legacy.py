"""The tools under the names that QNN users know, each in the module that runs it: a command imports little
of what the others need."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module

from openqnn.cli.declare_ops import declare_ops
from openqnn.cli.execute import execute
from openqnn.cli.tool import Tool, recorded, tool_parser
from openqnn.errors import DynamicShapeError

HOMES = {
    "qnn-onnx-converter": "converters",
    "qairt-converter": "converters",
    "qairt-quantizer": "quantizing",
    "qnn-model-lib-generator": "converters",
    "qnn-net-run": "runners",
    "qnn-context-binary-generator": "context_tools",
    "qnn-context-binary-utility": "context_tools",
    "qnn-platform-validator": "platform",
    "qnn-netron": "view",
    "qnn-architecture-checker": "architecture",
}


def tool_named(name: str) -> Tool:
    home = import_module(f"openqnn.cli.{HOMES[name]}")
    return next(tool for tool in home.TOOLS if tool.name == name)


def run_tool(name: str, argv: Sequence[str] | None = None) -> int:
    """Exit codes as everywhere: 0 done, 1 the user's problem, 2 usage, 3 ours."""
    tool = tool_named(name)
    arguments = tool_parser(tool).parse_args(argv)
    return execute(lambda: _in_its_words(tool, arguments))


def _in_its_words(tool: Tool, arguments: Namespace) -> int:
    """The tool's exit code. What it says names options that it has."""
    try:
        declare_ops(arguments)
        return tool.run(arguments, recorded(tool, arguments))
    except DynamicShapeError as error:
        said = " ".join(f"-d {name} {shape}" for name, shape in error.shapes.items())
        if tool.takes_shapes:
            error.hint = f"say it: {said}"
        else:
            error.hint = f"convert it first: qairt-converter -i MODEL {said}"
        raise
