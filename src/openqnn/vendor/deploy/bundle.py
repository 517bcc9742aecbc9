"""Making a bundle: a folder that runs a model where OpenQNN is not, and can say whether it does."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openqnn.emit import lower
from openqnn.emit.toolchain import find_compiler
from openqnn.errors import OutputError, UsageError
from openqnn.formats.atomic import full_disk, partial_folder
from openqnn.ir import Array, DType, Graph
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Net
from openqnn.qnn.soc import Soc, find_soc
from openqnn.runtime.boundary import accepted, random_inputs
from openqnn.vendor.compiled_context import compile_graphs
from openqnn.vendor.deploy.runner_folder import HOST, put_libraries, put_model, put_runner
from openqnn.vendor.library_worker import shared_worker
from openqnn.vendor.source import suited

HERE = Path(__file__).resolve().parent
TOLERANCE = {"fixed": 0.01, "float": 0.02}
RUNNING = 1800.0  # seconds
_RUN = """#!/bin/sh
# Runs the model on the golden inputs, or on those of another folder: run.sh [INPUTS] [OUTPUTS]
here=$(cd "$(dirname "$0")" && pwd)
out=${{2:-$here/outputs}}
mkdir -p "$out"
cd "$out"
export LD_LIBRARY_PATH="$here/lib:$LD_LIBRARY_PATH" ADSP_LIBRARY_PATH="$here/lib"
exec $OPENQNN_EMULATOR "$here/bin/runner" "$here/{backend}" \\
  "$here/model_optimized.so" "${{1:-$here/golden/inputs}}" "$out" {soc} run
"""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was made."""

    folder: Path
    files: Mapping[str, str]
    """sha256 by name."""


def make_bundle(
    graph: Graph,
    folder: str | os.PathLike[str],
    *,
    soc: str | int | None = None,
    target: str = HOST,
    sample: Mapping[str, Any] | None = None,
    libraries: str | os.PathLike[str] = "",
    overwrite: bool = False,
) -> Bundle:
    """Write a bundle for a chip and a target of qnn-model-lib-generator; the folder appears whole or not.

    `libraries` is a folder or a wheel with Qualcomm's libraries for the target. They are copied from what the
    user has; OpenQNN brings none. The golden results are those of libQnnHtp on this machine.
    """
    chip, place = find_soc(soc), Path(folder)
    if place.exists() and not overwrite:
        raise OutputError(f"{place} exists", hint="--overwrite replaces it")
    if place.exists() and not (place / "manifest.json").is_file():
        raise OutputError(f"{place} is no bundle, and is not replaced", hint="give another folder")
    if "android" in target:
        raise UsageError(
            f"{target}: no package has Qualcomm's libraries for Android",
            hint="aarch64-linux, or --libraries with those of an SDK and --target_os of Linux",
        )
    find_compiler(target)  # said before anything is made
    place.absolute().parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial_folder(place) as made:
            backend = put_libraries(made, target, chip, libraries)
            _fill(made, graph, chip, target, backend, sample)
            files = _write_manifest(made, graph.name, chip, target, backend)
            if place.exists():
                shutil.rmtree(place)
            os.rename(made, place)
    except OSError as error:  # which names a file that is copied, or one of the folder in the making
        reason = error.strerror or str(error)
        raise OutputError(f"{place}: cannot be written: {reason}", hint=full_disk(error)) from error
    return Bundle(place, files)


def _fill(
    made: Path, graph: Graph, chip: Soc, target: str, backend: str, sample: Mapping[str, Any] | None
) -> None:
    library = str(find_library("htp"))
    adapted = suited(graph, library)
    names: dict[str, str] = {}
    net = lower(adapted, names)
    put_model(made, [net], target)
    put_runner(made, target)
    (made / "context_binaries").mkdir()
    compile_graphs([graph], library, chip.model).save(made / "context_binaries" / "htp_context.bin")
    arrays = accepted(graph, sample or random_inputs(graph))
    read = [value for value in adapted.inputs if value.name in names]
    inputs = {
        name: arrays[value.name].astype(value.dtype.numpy, copy=False).reshape(net.tensors[name].dims)
        for value, name in zip(read, net.inputs, strict=True)
    }
    outputs = shared_worker().run(net, inputs, library, soc=chip.model, timeout=RUNNING)
    for kind, found in (("inputs", inputs), ("outputs", outputs)):
        (made / "golden" / kind).mkdir(parents=True)
        for name, array in found.items():
            (made / "golden" / kind / f"{name}.raw").write_bytes(array.tobytes())
    _put_json(made, net, inputs, outputs)
    script = made / "run.sh"
    script.write_text(_RUN.format(backend=backend, soc=chip.model))
    script.chmod(0o755)
    shutil.copyfile(HERE / "selftest.py", made / "selftest.py")


# -- descriptions --------------------------------------------------------------------------------------------


def _put_json(made: Path, net: Net, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> None:
    fixed = any(net.tensors[name].quant is not None for name in net.outputs)
    specs = {
        "graph": net.name,
        "inputs": [_spec(net, name, array) for name, array in inputs.items()],
        "outputs": [_spec(net, name, array) for name, array in outputs.items()],
        "tolerance": TOLERANCE["fixed" if fixed else "float"],
    }
    encodings = {
        name: {
            "bitwidth": DType(t.dtype).bits,
            "scale": list(t.quant.scales),
            "offset": list(t.quant.offsets),
        }
        for name, t in net.tensors.items()
        if t.quant is not None
    }
    static = {name for name, t in net.tensors.items() if t.data is not None}
    sections = {
        "activation_encodings": {n: e for n, e in encodings.items() if n not in static},
        "param_encodings": {n: e for n, e in encodings.items() if n in static},
    }
    backend = {"htp_config": {"device_id": 0, "performance_mode": "high_performance"}}
    for name, content in (
        ("input_specs", specs),
        ("quantization_config", sections),
        ("backend_config", backend),
    ):
        (made / f"{name}.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def _spec(net: Net, name: str, array: Array) -> dict[str, Any]:
    return {"name": name, "shape": list(net.tensors[name].dims), "dtype": array.dtype.name}


def _write_manifest(made: Path, model: str, chip: Soc, target: str, backend: str) -> dict[str, str]:
    files = sorted(file for file in made.rglob("*") if file.is_file())
    digests = {str(f.relative_to(made)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    content = {
        "model": model, "target": target, "soc": chip.model, "soc_name": chip.name, "backend": backend,
        "files": digests,
    }  # fmt: skip
    (made / "manifest.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    return digests
