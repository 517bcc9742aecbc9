"""The Caffe frontend: recognizes networks in .prototxt files, and opens them with the weights beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Source, check_options, head_of

if TYPE_CHECKING:
    from openqnn.frontends.caffe.importer import Importer

name: Final = "caffe"
title: Final = "Caffe"
suffixes: Final = (".prototxt", ".caffemodel")
_OPTIONS = ("caffemodel",)
_HEAD = 1 << 14
_NETWORK = re.compile(rb"^\s*(layers?|input_shape)\s*:?\s*\{|^\s*input(_dim)?\s*:", re.MULTILINE)


def recognizes(source: Source) -> bool:
    """Whether it is text with layers in it, or the weights of such a network."""
    from openqnn.frontends.caffe.caffemodel import is_caffemodel

    head = head_of(source, _HEAD)
    return is_caffemodel(source) or (b"\0" not in head and _NETWORK.search(head) is not None)


def open(
    source: Source,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    prune: bool = True,
    keep_quant_nodes: bool = True,
    **options: Any,
) -> Importer:
    """An importer for a network, not yet run. The option `caffemodel` is the file of its weights."""
    from openqnn.frontends.caffe.open_caffe import open_importer

    check_options(title, options, _OPTIONS)
    return open_importer(source, dimensions, outputs, **options)
