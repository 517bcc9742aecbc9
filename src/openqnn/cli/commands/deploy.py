"""openqnn deploy: a bundle that runs a model without OpenQNN, and sending it to a device."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from openqnn.cli.command import Command, Report
from openqnn.errors import UsageError
from openqnn.options.deploy import DeployOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.source import SourceOptions


def run_deploy(arguments: Namespace) -> Report:
    from openqnn.api.files import open_graph
    from openqnn.vendor.deploy.bundle import make_bundle
    from openqnn.vendor.deploy.devices import find_device

    source, options = read_options(arguments, SourceOptions), read_options(arguments, DeployOptions)
    if options.target:
        find_device(options.target)  # said before anything is made
    made = make_bundle(
        open_graph(source.model, **source.settings()),
        options.output or f"{Path(source.model).stem}_bundle",
        soc=options.soc or None,
        target=options.target_os,
        sample=_sample(options.data),
        libraries=options.libraries,
        overwrite=options.overwrite,
    )
    said = ""
    if options.target:
        from openqnn.vendor.deploy.send import send_bundle

        said = send_bundle(made.folder, options.target, options.place)
    lines = [f"{made.folder}: {len(made.files) + 1} files", *filter(None, [said])]
    record = {"output": str(made.folder), "files": dict(made.files), "device": options.target, "result": said}
    return Report(record, lambda: print("\n".join(lines)))


def _sample(path: str) -> dict[str, Any] | None:
    import numpy as np

    if not path:
        return None
    try:
        return dict(np.load(path))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--data {path}: not an .npz file with an array for each input: {error}") from error


COMMAND = Command(
    "deploy",
    "Make a bundle that runs a model without OpenQNN, and send it to a device.",
    (SourceOptions, OwnOps, DeployOptions),
    run_deploy,
    examples=(
        "openqnn deploy model.oqnn --soc SM8650 -o bundle/",
        "openqnn deploy model.oqnn --soc SM8650 --target ssh://user@device",
    ),
)
