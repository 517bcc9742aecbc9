"""check_backend_support: which of Qualcomm's backends are there and work."""

from __future__ import annotations

from openqnn.analysis.doctor import TINY
from openqnn.api.session import Session
from openqnn.errors import OpenQnnError
from openqnn.ir.graph_text import parse_graph
from openqnn.runtime.boundary import random_inputs

_BACKENDS = {"HTP": "htp", "GPU": "libQnnGpu.so", "CPU": "libQnnCpu.so"}


def check_backend_support() -> dict[str, bool]:
    """Print a line for each backend, and tell which can be used.

    Each runs a small graph in a process of its own: a library may load and still refuse the machine.
    """
    found = {name: _runs(library) for name, library in _BACKENDS.items()}
    for name, works in found.items():
        print(f"{name} backend {'' if works else 'not '}available")
    return {name.lower(): works for name, works in found.items()}


def _runs(library: str) -> bool:
    graph = parse_graph(TINY)
    try:
        with Session(graph, backend=library) as session:
            session.run(random_inputs(graph))
    except OpenQnnError:
        return False
    return True
