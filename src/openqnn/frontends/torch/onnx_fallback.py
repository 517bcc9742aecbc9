"""Where the table cannot say a program, torch's own exporter to ONNX may: the second try, with a note."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.errors import OpenQnnError, OpenQnnWarning, Problem, UnsupportedError
from openqnn.formats.encodings import Parameter
from openqnn.frontends.dimensions import Dimensions, SourceInput
from openqnn.frontends.frontend import Importer
from openqnn.ir import Array, Graph

if TYPE_CHECKING:
    from openqnn.frontends.torch.importer import Importer as TorchImporter


class FallbackImporter:
    """An importer that is another one when the first has no row for ops of the model.

    What the first refuses for a reason stays refused: torch's exporter leaves out dropout, and computes some
    resizes otherwise.
    """

    def __init__(self, first: TorchImporter, second: Callable[[], Importer]) -> None:
        self._first = first
        self._active: Importer = first
        self._second = second
        self.on_node: Callable[[int, int], None] | None = None
        self.graph: Graph = first.graph
        self.covered: Counter[str] = first.covered

    @property
    def arrays(self) -> Mapping[str, Array]:
        return self._active.arrays

    @property
    def inputs(self) -> Sequence[SourceInput]:
        return self._active.inputs

    @property
    def names(self) -> Collection[str]:
        return self._active.names

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return self._active.parameters

    @property
    def problems(self) -> Sequence[Problem]:
        return self._active.problems

    @property
    def notes(self) -> Sequence[tuple[str, str]]:
        return self._active.notes

    def run(self) -> Graph:
        self._active.on_node = self.on_node
        try:
            return self._active.run()
        except UnsupportedError as error:
            refused = {p.op for p in error.problems}
            found = self._by_onnx() if refused <= self._first.without_row else None
            if found is None:
                raise
            ops = ", ".join(sorted(refused))
            message = f"{ops}: not in our table; the model goes through torch's exporter to ONNX instead"
            warnings.warn(message, OpenQnnWarning, stacklevel=2)
            return found

    def _by_onnx(self) -> Graph | None:
        """The graph by the other road; None where that does not lead there either."""
        try:
            other = self._second()
            graph = other.run()
        except OpenQnnError:
            return None
        self._active, self.graph, self.covered = other, other.graph, other.covered
        return graph


def onnx_importer(
    program: Any, dimensions: Dimensions, outputs: Sequence[str], *, prune: bool, keep_quant_nodes: bool
) -> Importer:
    """An importer of what torch's exporter makes of an exported program."""
    from openqnn.frontends.onnx.open_onnx import open_importer

    with tempfile.TemporaryDirectory(prefix="openqnn-") as folder:
        path = Path(folder) / "model.onnx"
        _export(program, path)
        # The weights are mapped: on Linux they stay when the file's name is gone.
        return open_importer(
            os.fspath(path), dimensions, outputs, prune=prune, keep_quant_nodes=keep_quant_nodes
        )


def _export(program: Any, path: Path) -> None:
    logger, sink = logging.getLogger("torch"), io.StringIO()
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            warnings.simplefilter("ignore")
            import_module("torch").onnx.export(program, f=os.fspath(path), dynamo=True, verbose=False)
    except Exception as e:  # it needs onnxscript, and raises whatever it meets
        raise UnsupportedError(f"torch's exporter to ONNX: {type(e).__name__}") from e
    finally:
        logger.setLevel(level)
