"""Options about the source model."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from openqnn.options.field import option


def named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """NAME=1,3,224,224; the name may itself contain `=`."""
    name, sign, dims = text.rpartition("=")
    try:
        shape = tuple(int(d) for d in dims.split(",")) if dims.strip() else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=1,3,224,224") from None
    if not sign or not name or any(d < 0 for d in shape):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=1,3,224,224")
    return name, shape


def named_size(text: str) -> tuple[str, int]:
    """SYMBOL=8."""
    name, sign, size = text.rpartition("=")
    if not sign or not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: expected SYMBOL=8")
    return name, int(size)


def named_values(text: str) -> tuple[str, float | int | tuple[float | int, ...]]:
    """NAME=10 or NAME=0.5,0.5."""
    name, sign, values = text.rpartition("=")
    try:
        numbers = tuple(int(v) if v.strip().lstrip("+-").isdigit() else float(v) for v in values.split(","))
    except ValueError:
        numbers = ()
    if not sign or not name or not numbers:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=10 or NAME=0.5,0.5")
    return name, numbers[0] if len(numbers) == 1 else numbers


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of at least 1")
    return int(text)


def custom_ops(*more: str) -> Any:
    """`more` are other names of the option."""
    return option(
        (), "--custom_ops", *more, metavar="FILE", repeat=True,
        help="a Python file that declares operations of the model (@openqnn.composite, @openqnn.custom_op),"
        " or the XML of an op package; repeat for several",
    )  # fmt: skip


def input_shapes() -> Any:
    return option(
        (), "--input_shape", metavar="NAME=DIMS", parse=named_shape, repeat=True,
        help="shape of an input, such as x=1,3,224,224; repeat for several inputs",
    )  # fmt: skip


def dims() -> Any:
    return option(
        (), "--dim", metavar="SYMBOL=N", parse=named_size, repeat=True,
        help="size of a symbolic dimension wherever it appears; repeat for several",
    )  # fmt: skip


def batch() -> Any:
    return option(None, "--batch", metavar="N", parse=positive, help="first dimension of every input")


def shapes() -> Any:
    return option(
        "", "--shapes", metavar="YAML",
        help="make several graphs of a dynamic model, by name and with their shapes, that share weights",
    )  # fmt: skip


def shape_settings(
    input_shapes: Iterable[tuple[str, tuple[int, ...]]], dims: Iterable[tuple[str, int]], batch: int | None
) -> dict[str, Any]:
    return {"input_shapes": dict(input_shapes), "dims": dict(dims), "batch": batch}


@dataclass(frozen=True)
class SourceOptions:
    """The source model."""

    model: str = option(
        "", "model", metavar="MODEL", help="a model of any framework that can be read, or an .oqnn graph"
    )
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = input_shapes()
    dims: tuple[tuple[str, int], ...] = dims()
    batch: int | None = batch()
    input_values: tuple[tuple[str, float | int | tuple[float | int, ...]], ...] = option(
        (), "--input_value", metavar="NAME=NUMBERS", parse=named_values, repeat=True,
        help="make an input a constant, such as k=10, which decides a shape; repeat for several inputs",
    )  # fmt: skip
    signature: str = option(
        "", "--signature", metavar="NAME", help="which signature of a model that has several"
    )
    caffemodel: str = option(
        "", "--caffemodel", metavar="FILE",
        help="the weights of a Caffe network (default: the .caffemodel beside the .prototxt)",
    )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `convert` and `open_graph` that the options stand for."""
        own = {"signature": self.signature, "caffemodel": self.caffemodel}
        given = {name: value for name, value in own.items() if value}
        more: dict[str, Any] = {"source_options": given} if given else {}
        if self.input_values:
            more["input_values"] = dict(self.input_values)
        return shape_settings(self.input_shapes, self.dims, self.batch) | more
