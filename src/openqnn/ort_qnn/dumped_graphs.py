"""The graph that the provider gives to a library, as files: net.json and DLC."""

from __future__ import annotations

from openqnn.ir import Graph
from openqnn.ort_qnn.provider_options import ProviderOptions


def dump_graph(graph: Graph, options: ProviderOptions, name: str) -> None:
    """Write what `dump_json_qnn_graph` and `dump_qnn_ir_dlc` ask for, named by the model."""
    if options.json_folder is not None:
        from openqnn.emit.net_json import write_net_json
        from openqnn.vendor.source import net_of
        from openqnn.vendor.target_setup import resolved

        write_net_json(net_of(graph, resolved(options.library)), options.json_folder / f"{name}.json")
    if options.dlc_folder is not None:
        graph.save(options.dlc_folder / f"{name}.dlc")
