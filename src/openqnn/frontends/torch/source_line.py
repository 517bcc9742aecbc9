"""Where a node comes from in the user's Python: "model.py:41, Block.forward", and the path of the module."""

from __future__ import annotations

import re
from pathlib import PurePath

from openqnn.frontends.torch.program import ProgramNode

_FRAME = re.compile(r'File "([^"]*)", line (\d+), in (\S+)')
_LIBRARIES = ("/site-packages/", "/dist-packages/", "torch/fx/", "<eval_with_key>")
_LONGEST = 1 << 16


def module_path(node: ProgramNode) -> str:
    """The attribute path of the innermost module: "layer1.0.conv1"."""
    entries = node.modules[:_LONGEST].split(";")
    parts = entries[-1].split(",")
    return parts[1] if len(parts) == 3 and not parts[0].startswith("_empty") else ""


def source_line(node: ProgramNode) -> str:
    """The innermost line that is the user's own; the innermost at all where none is."""
    frames = _FRAME.findall(node.trace[:_LONGEST])
    if not frames:
        return ""
    own = [f for f in frames if not any(word in f[0] for word in _LIBRARIES)]
    file, line, function = (own or frames)[-1]
    return f"{PurePath(file).name}:{line}, {_qualified(node, function, bool(own))}"


def _qualified(node: ProgramNode, function: str, own: bool) -> str:
    """A method with its class, which is that of the innermost module of the user's own."""
    kinds = [e.split(",")[-1] for e in node.modules[:_LONGEST].split(";") if e.count(",") == 2]
    kinds = [k for k in kinds if not own or not k.startswith(("torch.", "_empty"))]
    return f"{kinds[-1].rsplit('.', 1)[-1]}.{function}" if kinds and kinds[-1] else function


def describe_source(node: ProgramNode, label: str) -> str:
    """How messages name a node: its name, the user's line and the module."""
    more = [text for text in (source_line(node), module_path(node)) if text]
    return f"torch node {label}" + (f" ({'; '.join(more)})" if more else "")
