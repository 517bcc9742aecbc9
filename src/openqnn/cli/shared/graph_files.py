"""Graph files that commands write: where they may go, and in which form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.errors import OutputError

if TYPE_CHECKING:
    from openqnn.ir import Graph
    from openqnn.options.output import SplitOptions

SOURCE = ".cpp"


def split_as_asked(graph: Graph, asked: SplitOptions, *, quiet: bool = False) -> Graph:
    """The graph, or one that ends before joined outputs, and which outputs it has then."""
    from openqnn.api.split_outputs import split_outputs

    if asked.split_outputs is None:
        return graph
    made = split_outputs(graph, tuple(asked.split_outputs))
    if not quiet:
        shown = ", ".join(f"{v.name} {list(v.shape)}" for v in made.outputs)
        print(f"outputs: {shown}", file=sys.stderr)
    return made


def write_graph_file(graph: Graph, target: Path) -> None:
    """The file that its name asks for: C++ source with weights beside it, or what `Graph.save` writes."""
    if target.suffix != SOURCE:
        graph.save(target)
        return
    from openqnn.emit import lower
    from openqnn.emit.model_source import write_model_source
    from openqnn.formats.atomic import together
    from openqnn.targets.htp import convolve_blocks

    convolve_blocks(graph)
    with together():
        write_model_source([lower(graph)], target)


def check_graph_file(target: Path, source: Path, overwrite: bool) -> None:
    """Before the work is done. Nothing of the user's is replaced unasked: only a graph file of ours."""
    from openqnn.formats.oqnn import is_oqnn
    from openqnn.ir.oqnn import check_name

    if target.is_dir():
        raise OutputError(f"{target} is a directory", hint=f"-o {target / source.with_suffix('.oqnn').name}")
    if target.exists() and source.exists() and target.samefile(source):
        raise OutputError(f"{target} is the source model itself", hint="give another file with -o")
    if target.suffix != SOURCE:
        check_name(target)
    if target.exists() and not is_oqnn(target) and not overwrite:
        raise OutputError(f"{target} exists and is not an OpenQNN graph", hint="--overwrite replaces it")
