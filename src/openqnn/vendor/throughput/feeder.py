"""What a thread of a throughput run puts into its graphs: random numbers, or the files of a list."""

from __future__ import annotations

import numpy as np

from openqnn.formats.input_list import InputList
from openqnn.formats.throughput_config import ModelEntry, ThreadEntry
from openqnn.qnn import abi
from openqnn.qnn.binding import Binding
from openqnn.qnn.graph import Graph
from openqnn.qnn.net import Array, NetTensor
from openqnn.vendor.net_run.feed import DEFAULT_CACHE, Feed
from openqnn.vendor.net_run.run_graphs import RunSettings


class Feeder:
    """The bindings of one graph for one thread. Sets of inputs that fit into memory are bound once each, and
    cost nothing to change between; others are copied, or read again where the thread asks for it."""

    def __init__(
        self, graph: Graph, given: InputList | None, model: ModelEntry, thread: ThreadEntry, seed: int
    ) -> None:
        self.graph = graph
        self._feed: Feed | None = None
        if given is None or thread.random:
            inputs = {tensor.name: random_array(tensor, seed) for tensor in graph.inputs}
            self._bound = [graph.bind(inputs)]
            self.sets = 1
            return
        settings = RunSettings(
            (given,),
            native_inputs=model.input_type == "NATIVE",
            cache_sets=0 if thread.load_in_loop else None,
        )
        feed = Feed(graph, given, settings)
        self.sets = len(feed.groups)
        size = sum(array.nbytes for array in feed.blank().values()) * self.sets
        if thread.load_in_loop or size > DEFAULT_CACHE:
            self._feed = feed
            self._bound = [graph.bind(feed.blank())]
            return
        self._bound = [graph.bind(feed.blank()) for _ in range(self.sets)]
        for turn, binding in enumerate(self._bound):
            feed.fill(turn, binding.inputs)

    def binding(self, turn: int) -> Binding:
        """The binding with a set of inputs in it."""
        if self._feed is None:
            return self._bound[turn]
        self._feed.fill(turn, self._bound[0].inputs)
        return self._bound[0]


def random_array(tensor: NetTensor, seed: int) -> Array:
    """Numbers that every graph survives: the whole range in fixed point, 0 and 1 where integers may be
    places in another tensor."""
    random, dtype = np.random.default_rng(seed), abi.numpy_dtype(tensor.dtype)
    if dtype.kind == "f":
        return random.random(tensor.dims).astype(dtype)
    if dtype.kind == "b" or tensor.quant is None:
        return random.integers(0, 2, tensor.dims).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, int(limits.max) + 1, tensor.dims).astype(dtype)
