"""The table of the ATen frontend: which function translates which overload.

A key is an overload as torch writes it, without the namespace aten and without `.default`: "mean.dim",
"conv2d". A key without overload stands for all overloads that have no line of their own. The parameters of a
translator have the names of the ATen schema, but for the first, which is called `x`.
"""

from __future__ import annotations

from typing import Final

from openqnn.frontends.registry import Registry, Translator

TABLE: Final = Registry()
translates = TABLE.translates


def split_target(target: str) -> tuple[str, str]:
    """Domain and key of an overload: "torch.ops.aten.mean.dim" is ("", "mean.dim")."""
    parts = target.removeprefix("torch.ops.").split(".")
    domain = parts[0] if len(parts) > 1 else ""
    key = ".".join(parts[1:] if len(parts) > 1 else parts).removesuffix(".default")
    return "" if domain == "aten" else domain, key


def find(target: str) -> Translator | None:
    """The translator of an overload; that of its op where the overload has no line."""
    domain, key = split_target(target)
    if key.endswith(("_out", ".out", ".names_out")):
        return None
    return TABLE.find(key, domain=domain) or TABLE.find(key.split(".")[0], domain=domain)
