"""The files of a converted model: model.cpp, model.bin and model_net.json, consistent with each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from openqnn.emit.cpp import DEFAULT_PREFIX, SDK_VERSION, CppOptions, write_cpp
from openqnn.emit.emission_order import WeightNames, anonymous, with_package
from openqnn.emit.net_json import NetJsonOptions, write_net_json
from openqnn.emit.weights import write_weights
from openqnn.qnn.net import Net, qnn_name


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The converter's flags that shape the files.

    `own_prefix` is --overwrite_model_prefix, `counted_names` --exclude_named_tensors, `package` -p,
    `copyright` the content of --copyright_file, and `validate` the contrary of --disable_node_validation.
    """

    own_prefix: bool = False
    counted_names: bool = False
    package: str = ""
    copyright: str = ""
    command: str = ""
    validate: bool = True
    sdk_version: str = SDK_VERSION


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What was written. `bin` is None for a model without weights, `net_json` for several graphs at once."""

    cpp: Path
    bin: Path | None
    net_json: Path | None


def write_model_source(
    nets: Sequence[Net], path: str | os.PathLike[str], options: SourceOptions | None = None
) -> ModelSource:
    """Writes `<stem>.cpp`, `<stem>.bin` and `<stem>_net.json` for a path like `out/model` or `out/model.cpp`.

    A single graph takes the name of the file, as the original converter has it.
    """
    options = options or SourceOptions()
    target = Path(path)
    stem = target.with_suffix("") if target.suffix == ".cpp" else target
    named = [replace(nets[0], name=qnn_name(stem.name))] if len(nets) == 1 else list(nets)
    nets = [_styled(net, options) for net in named]
    weights = WeightNames(nets)
    cpp, binary = Path(f"{stem}.cpp"), Path(f"{stem}.bin") if weights.weights else None
    prefix = qnn_name(stem.name) if options.own_prefix else DEFAULT_PREFIX
    seal = str(write_weights(weights, binary)) if binary is not None else ""
    source = CppOptions(
        prefix, options.copyright, options.command, options.validate, options.sdk_version, seal
    )  # fmt: skip
    write_cpp(nets, cpp, source, weights)
    if len(nets) > 1:
        return ModelSource(cpp, binary, None)
    about = Path(f"{stem}_net.json")
    files = str(cpp), str(binary or "")
    write_net_json(nets[0], about, NetJsonOptions(*files, options.command, options.copyright))
    return ModelSource(cpp, binary, about)


def _styled(net: Net, options: SourceOptions) -> Net:
    net = anonymous(net) if options.counted_names else net
    return with_package(net, options.package) if options.package else net
