"""qnn-pytorch-converter: a PyTorch model as C++ source, weights, and a description for viewers."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from openqnn.cli.command import Tool
from openqnn.cli.shared.convert_source import CONVERTER_GROUPS, SourceRequest, convert_source
from openqnn.cli.shared.converting import convert_settings
from openqnn.options.converter import ConverterOutput
from openqnn.options.field import read_options
from openqnn.options.pytorch import PytorchSource

OUT_NAMES = "model_output_names.json"


def run_pytorch_converter(arguments: Namespace, command: str) -> int:
    source = read_options(arguments, PytorchSource)
    settings = convert_settings(source.input_dim, None, (), source.out_names)
    settings |= {"frontend": "torch", "source_options": {"libraries": source.pytorch_custom_op_lib}}
    done = convert_source(arguments, command, SourceRequest(source.input_network, settings))
    if source.dump_out_names and not done:
        output = read_options(arguments, ConverterOutput).output_path or source.input_network
        _dump_out_names(source.input_network, settings, Path(output).with_name(OUT_NAMES))
    return done


def _dump_out_names(model: str, settings: dict[str, Any], target: Path) -> None:
    from openqnn.api.convert import describe_borders
    from openqnn.formats.atomic import replacing

    _, outputs = describe_borders(model, **settings)
    names = {f"output_{i}": described.name for i, described in enumerate(outputs)}
    with replacing(target) as file:
        file.write(json.dumps(names, indent=2).encode() + b"\n")
    print(f"{target}: {len(names)} outputs")


TOOL = Tool(
    "qnn-pytorch-converter",
    "Convert a PyTorch model to QNN: C++ source, weights, and a description for viewers. Inputs have the "
    "names that -d gives, in order. A .pt2 file is read without torch; pickled weights are refused.",
    "-i MODEL -d NAME DIMS [-o MODEL.cpp] [options]",
    (PytorchSource, *CONVERTER_GROUPS),
    run_pytorch_converter,
    takes_shapes=True,
    examples=("qnn-pytorch-converter -i model.pt2 -d x 1,3,224,224 -o model.cpp",),
)
