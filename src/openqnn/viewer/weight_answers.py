"""Statistics of a weight for a page that is served: read when somebody looks at the node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from threading import Lock

from openqnn.viewer.server import JSON, Answer, Query
from openqnn.viewer.view import View, ViewTensor

PATH = "/weight"


class WeightAnswers:
    """Answers for the weights of some views, by the number of the pane and the tensor's name."""

    def __init__(self, views: Sequence[View]) -> None:
        self._views = views
        self._tensors: dict[int, dict[str, ViewTensor]] = {}
        self._lock = Lock()

    def __call__(self, query: Query) -> Answer | None:
        number = query.get("pane", [""])[0]
        if not number.isdecimal() or len(number) > 4 or int(number) >= len(self._views):
            return None
        with self._lock:
            tensor = self._known(int(number)).get(query.get("tensor", [""])[0])
            figures = None if tensor is None else tensor.figures()
        return None if figures is None else Answer(json.dumps(figures), JSON)

    def _known(self, number: int) -> dict[str, ViewTensor]:
        if number not in self._tensors:
            nodes = self._views[number].nodes
            held = (t for node in nodes for t in (*node.inputs, *node.outputs))
            self._tensors[number] = {t.name: t for t in held if t.weight is not None or t.statistics}
        return self._tensors[number]
