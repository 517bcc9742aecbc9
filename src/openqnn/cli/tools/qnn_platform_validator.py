"""qnn-platform-validator: what of a platform can be validated on a host."""

from __future__ import annotations

import csv
import io
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openqnn.cli.command import Tool
from openqnn.cli.shared.vendor_setup import required, say
from openqnn.errors import LibraryError, OpenQnnError, UsageError
from openqnn.formats.atomic import replacing
from openqnn.options.field import read_options
from openqnn.options.platform import ValidatorOptions
from openqnn.qnn import abi
from openqnn.qnn.library import find_library
from openqnn.qnn.load_errors import explain_load
from openqnn.qnn.net import Net, NetNode, NetTensor, TensorKind
from openqnn.qnn.probe import probe_library
from openqnn.qnn.soc import soc_of_arch
from openqnn.vendor.library_worker import shared_worker

HOST = "x86_64-linux-clang"
FILE = "platform_validator.csv"
_LIBRARIES = {"cpu": "libQnnCpu.so", "gpu": "libQnnGpu.so", "dsp": "libQnnHtp.so", "htp": "libQnnHtp.so"}
_COLUMNS = ("Backend", "Hardware", "Library", "Core Version", "Library Version", "Unit Test", "Reason")


@dataclass(frozen=True, slots=True)
class Row:
    backend: str
    library: str
    core: str
    version: str
    test: str
    reason: str

    def cells(self) -> tuple[str, ...]:
        return self.backend, "host", self.library, self.core, self.version, self.test, self.reason


def run_validator(arguments: Namespace) -> int:
    options = read_options(arguments, ValidatorOptions)
    required(options.backend, "--backend")
    if options.build_variant != HOST:
        raise UsageError(
            f"--buildVariant {options.build_variant}: such libraries run on a device only",
            hint=f"--buildVariant {HOST} validates the libraries for this machine",
        )
    if options.dsp_type:
        soc_of_arch(options.dsp_type)  # a wrong one is said before anything is tried
    names = ("cpu", "gpu", "htp") if options.backend == "all" else (options.backend,)
    rows = [_validated(name, options) for name in names]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(row.cells() for row in rows)
    with replacing(Path(options.output_dir) / FILE) as file:
        file.write(text.getvalue().encode())
    print(text.getvalue(), end="")
    say("note: what a device has (its DSP, drivers, signed libraries) can only be validated on the device")
    return 0 if all(not row.reason for row in rows) else 1


def _validated(name: str, options: ValidatorOptions) -> Row:
    try:
        path = _path(_LIBRARIES[name], options.directory)
    except OpenQnnError as error:
        return Row(name, _LIBRARIES[name], "", "", "not run", error.message)
    found = probe_library(path)
    core = found.core_api if options.core_version else ""
    version = found.build_id if options.lib_version else ""
    if options.debug:
        say(f"debug: {name}: {found}")
    if found.error:
        return Row(name, path.name, core, version, "not run", explain_load(found.path, found.error)[0])
    if not options.test_backend:
        return Row(name, path.name, core, version, "not run", "")
    reason = _try(path, name, options.dsp_type)
    if options.debug and reason:
        say(f"debug: {name}: {reason}")
    return Row(name, path.name, core, version, "failed" if reason else "passed", reason.partition("\n")[0])


def _path(library: str, directory: str) -> Path:
    if not directory:
        return find_library(library)
    path = Path(directory) / "lib" / HOST / library
    if not path.is_file():  # another one in its place would say nothing of this folder
        raise LibraryError(f"{library} not found: there is no file {path}")
    return path.absolute()


def _try(path: Path, backend: str, dsp_type: str) -> str:
    """Run a small graph; gives why it did not work, or nothing."""
    tensors = {
        name: NetTensor(name, kind, abi.FLOAT_32, (1, 4))
        for name, kind in (("x", TensorKind.APP_WRITE), ("y", TensorKind.APP_READ))
    }
    net = Net("validator", tensors, ("x",), ("y",), (NetNode("relu", "qti.aisw", "Relu", ("x",), ("y",)),))
    x = np.array([[-2, -1, 1, 2]], np.float32)
    soc = soc_of_arch(dsp_type).model if dsp_type and backend in ("dsp", "htp") else None
    try:
        result = shared_worker().run(net, {"x": x}, path, soc=soc)["y"]
    except OpenQnnError as error:
        return error.message
    return "" if np.allclose(result, np.maximum(x, 0), rtol=1e-2) else f"it computed {result.tolist()}"


TOOL = Tool(
    "qnn-platform-validator",
    "Tell what of QNN works on this machine, on the console and in a CSV file.",
    "--backend NAME [options]",
    (ValidatorOptions,),
    lambda arguments, _: run_validator(arguments),
)
