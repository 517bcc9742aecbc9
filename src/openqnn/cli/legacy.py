"""The tools under the names that QNN users know: each is a list of option groups and a command."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from openqnn.cli import context_tools, converters, platform, quantizing, runners
from openqnn.cli.main import execute
from openqnn.errors import DynamicShapeError
from openqnn.options.context_tools import GeneratorModel, GeneratorOutput, UtilityOptions
from openqnn.options.converter import ConverterIo, ConverterOutput, ConverterSource, ConverterSteps
from openqnn.options.field import add_options, options_of
from openqnn.options.model_lib import ModelLib
from openqnn.options.net_run import (
    NetRunExecution,
    NetRunInputs,
    NetRunModel,
    NetRunOutputs,
    NetRunProfiling,
    Tooling,
)
from openqnn.options.packages import Checker, Packages, QairtPackages
from openqnn.options.platform import ValidatorOptions
from openqnn.options.qairt import QairtOnnx, QairtOthers, QairtOutput, QairtSource
from openqnn.options.quantizer import (
    KeptNodes,
    QairtQuantizer,
    QairtQuantizerFiles,
    QuantizerChoices,
    QuantizerData,
    QuantizerEncodings,
)

HELP_WIDTH = 100


@dataclass(frozen=True)
class Tool:
    """A command line of its own. `run` gets the parsed arguments and the line that results record."""

    name: str
    doc: str
    usage: str
    groups: tuple[type[Any], ...]
    run: Callable[[Namespace, str], int]
    takes_shapes: bool = False


TOOLS = (
    Tool(
        "qnn-onnx-converter",
        "Convert an ONNX model to QNN: C++ source, weights, and a description for viewers. Images become "
        "channel-last unless --preserve_io or --custom_io say otherwise.",
        "-i MODEL [-o MODEL.cpp] [options]",
        (
            ConverterSource, ConverterIo, ConverterSteps, ConverterOutput,
            QuantizerData, QuantizerChoices, QuantizerEncodings, KeptNodes, Packages, Checker,
        ),
        converters.run_onnx_converter,
        takes_shapes=True,
    ),
    Tool(
        "qairt-converter",
        "Convert a model to a DLC file. Layouts stay as they are in the source model.",
        "-i MODEL [-o MODEL.dlc] [options]",
        (QairtSource, QairtOutput, QairtOnnx, QairtOthers, QairtQuantizer, QairtPackages),
        converters.run_qairt_converter,
        takes_shapes=True,
    ),
    Tool(
        "qairt-quantizer",
        "Quantize a DLC file: a DLC whose tensors are in fixed point.",
        "--input_dlc MODEL.dlc (--input_list FILE | --float_fallback) [options]",
        (QairtQuantizerFiles, QuantizerData, QuantizerChoices, QuantizerEncodings),
        quantizing.run_qairt_quantizer,
    ),
    Tool(
        "qnn-model-lib-generator",
        "Compile what qnn-onnx-converter wrote into libraries that applications load.",
        "-c MODEL.cpp [-b MODEL.bin] [options]",
        (ModelLib,),
        converters.run_model_lib_generator,
    ),
    Tool(
        "qnn-net-run",
        "Run a model on a backend, with inputs and results in files.",
        "(--model FILES | --dlc_path FILES | --retrieve_context FILE) --backend LIBRARY --input_list FILES "
        "[options]",
        (NetRunModel, NetRunInputs, NetRunOutputs, NetRunExecution, NetRunProfiling, Tooling),
        lambda arguments, _: runners.run_net_run(arguments),
    ),
    Tool(
        "qnn-context-binary-generator",
        "Compile graphs for a backend into one context binary.",
        "(--model FILES | --dlc_path FILES) --backend LIBRARY --binary_file NAME [options]",
        (GeneratorModel, GeneratorOutput, Tooling),
        lambda arguments, _: context_tools.run_generator(arguments),
    ),
    Tool(
        "qnn-context-binary-utility",
        "Validate a context binary and write its description as JSON.",
        "--context_binary FILE [--json_file FILE]",
        (UtilityOptions,),
        lambda arguments, _: context_tools.run_utility(arguments),
    ),
    Tool(
        "qnn-platform-validator",
        "Tell what of QNN works on this machine, on the console and in a CSV file.",
        "--backend NAME [options]",
        (ValidatorOptions,),
        lambda arguments, _: platform.run_validator(arguments),
    ),
)  # fmt: skip


class _Help(argparse.HelpFormatter):
    """The same help on every Python: newer ones name the value of an option once, older ones each time."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_WIDTH, max_help_position=34)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, action.dest.upper())
        return f"{', '.join(action.option_strings)} {value}"


def tool_named(name: str) -> Tool:
    return next(t for t in TOOLS if t.name == name)


def tool_parser(tool: Tool) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        tool.name, f"{tool.name} {tool.usage}", tool.doc, formatter_class=_Help, allow_abbrev=False
    )
    for group in tool.groups:
        add_options(made, group)
    return made


def recorded(tool: Tool, arguments: Namespace) -> str:
    """The command line as results keep it: every argument in alphabetical order, defaults too."""
    names = sorted(name for group in tool.groups for name, _ in options_of(group))
    repeating = {name for group in tool.groups for name, o in options_of(group) if o.repeats}
    values = {name: getattr(arguments, name) for name in names}
    shown = {n: [] if v is None and n in repeating else v for n, v in values.items()}
    return "; ".join([tool.name, *(f"{n}={None if v == '' else v}" for n, v in shown.items())])


def run_tool(name: str, argv: Sequence[str] | None = None) -> int:
    """Exit codes as everywhere: 0 done, 1 the user's problem, 2 usage, 3 ours."""
    tool = tool_named(name)
    arguments = tool_parser(tool).parse_args(argv)
    return execute(lambda: _in_its_words(tool, arguments))


def _in_its_words(tool: Tool, arguments: Namespace) -> int:
    """The tool's exit code. What it says names options that it has."""
    try:
        return tool.run(arguments, recorded(tool, arguments))
    except DynamicShapeError as error:
        said = " ".join(f"-d {name} {shape}" for name, shape in error.shapes.items())
        if tool.takes_shapes:
            error.hint = f"say it: {said}"
        else:
            error.hint = f"convert it first: qairt-converter -i MODEL {said}"
        raise
