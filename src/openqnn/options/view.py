"""Options of `openqnn view` and qnn-netron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openqnn.options.field import option
from openqnn.options.source import named_shape, named_size, positive, shape_settings


@dataclass(frozen=True)
class ViewOptions:
    """What is shown, and where."""

    models: tuple[str, ...] = option(
        (), "models", metavar="MODEL", nargs="+", help="models and graphs, side by side in this order"
    )
    converted: bool = option(False, "--converted", help="show the QNN graph of each source model beside it")
    passes: bool = option(
        False,
        "--passes",
        help="show the graph before and after every pass, and why each rewrite was made or not",
    )
    overlays: tuple[str, ...] = option(
        (), "--overlay", metavar="FILE", repeat=True,
        help="numbers or words to colour nodes by: {node: number}, debug.json, what estimate, lint, partition"
        " and profile print with --json, a profiling log, encodings, Model Explorer's node data; repeatable",
    )  # fmt: skip
    html: str = option("", "--html", metavar="FILE", help="write one HTML file instead of serving the page")
    port: int = option(
        0, "--port", metavar="N", parse=positive, help="port on 127.0.0.1 (default: a free one)"
    )
    no_browser: bool = option(False, "--no_browser", help="print the address, and open no browser")
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "--input_shape", metavar="NAME=DIMS", parse=named_shape, repeat=True,
        help="shape of an input of a model that is converted; repeat for several inputs",
    )  # fmt: skip
    dims: tuple[tuple[str, int], ...] = option(
        (), "--dim", metavar="SYMBOL=N", parse=named_size, repeat=True,
        help="size of a symbolic dimension wherever it appears; repeat for several",
    )  # fmt: skip
    batch: int | None = option(
        None, "--batch", metavar="N", parse=positive, help="first dimension of every input"
    )

    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `convert` and `open_graph` that the options stand for."""
        return shape_settings(self.input_shapes, self.dims, self.batch)


@dataclass(frozen=True)
class NetronOptions:
    """The folder whose models can be opened."""

    work_dir: str = option(
        "", "-w", "--work_dir", metavar="DIR", help="folder of the models (default: the current one)"
    )
    port: int = option(
        0, "--port", metavar="N", parse=positive, help="port on 127.0.0.1 (default: a free one)"
    )
    no_browser: bool = option(False, "--no_browser", help="print the address, and open no browser")
