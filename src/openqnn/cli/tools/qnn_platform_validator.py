"""qnn-platform-validator: what of QNN works on this machine, or on a device."""

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
from openqnn.qnn.soc import find_soc, soc_of_arch
from openqnn.targets.registry import target_of_library
from openqnn.vendor.deploy.devices import AdbDevice, Device, find_device
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
    hardware: str = "host"

    def cells(self) -> tuple[str, ...]:
        return self.backend, self.hardware, self.library, self.core, self.version, self.test, self.reason


def run_validator(arguments: Namespace) -> int:
    options = read_options(arguments, ValidatorOptions)
    required(options.backend, "--backend")
    device = _device(options)
    if options.build_variant != HOST:
        raise UsageError(
            f"--buildVariant {options.build_variant}: such libraries run on a device only",
            hint=f"--buildVariant {HOST} validates the libraries for this machine",
        )
    if options.dsp_type:
        soc_of_arch(options.dsp_type)  # a wrong one is said before anything is tried
    names = ("cpu", "gpu", "htp") if options.backend == "all" else (options.backend,)
    if device is None:
        rows = [_validated(name, options) for name in names]
    else:
        rows = [_validated_there(name, options, device) for name in names]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(row.cells() for row in rows)
    with replacing(Path(options.output_dir) / FILE) as file:
        file.write(text.getvalue().encode())
    print(text.getvalue(), end="")
    if device is None:
        say("note: what a device has (DSP, drivers, signatures) is validated there: --target, --deviceId")
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
    reason = _try(path, options.dsp_type)
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


def _try(path: Path, dsp_type: str) -> str:
    """Run a small graph; gives why it did not work, or nothing."""
    net, x = _small_graph()
    soc = soc_of_arch(dsp_type).model if dsp_type and target_of_library(path).compiles else None
    try:
        result = shared_worker().run(net, {"x": x}, path, soc=soc)["y"]
    except OpenQnnError as error:
        return error.message
    return _unlike(x, result)


def _small_graph() -> tuple[Net, np.ndarray]:
    tensors = {
        name: NetTensor(name, kind, abi.FLOAT_32, (1, 4))
        for name, kind in (("x", TensorKind.APP_WRITE), ("y", TensorKind.APP_READ))
    }
    net = Net("validator", tensors, ("x",), ("y",), (NetNode("relu", "qti.aisw", "Relu", ("x",), ("y",)),))
    return net, np.array([[-2, -1, 1, 2]], np.float32)


def _unlike(x: np.ndarray, result: np.ndarray) -> str:
    return "" if np.allclose(result, np.maximum(x, 0), rtol=1e-2) else f"it computed {result.tolist()}"


# -- devices -------------------------------------------------------------------------------------------------


def _device(options: ValidatorOptions) -> Device | None:
    """The device that the options name, if they name one."""
    if options.target and (options.device_id or options.remote_host):
        raise UsageError("--target names a device, as --deviceId and --remoteHost do", hint="leave one out")
    if options.device_id or options.remote_host:
        return AdbDevice(options.device_id, options.remote_host)
    return find_device(options.target) if options.target else None


def _validated_there(name: str, options: ValidatorOptions, device: Device) -> Row:
    """A small graph on the device: there is no other way to find out what works on it."""
    from openqnn.vendor.deploy.device_run import try_on_device

    net, x = _small_graph()
    chip = soc_of_arch(options.dsp_type) if options.dsp_type else find_soc()
    core = version = ""
    try:
        library = _library_there(name, options)
        found = try_on_device(
            net, {"x": x}, library, chip, device, place=options.target_path,
            libraries=options.libraries or options.directory,
        )  # fmt: skip
        core, version, reason = found.core_api, found.build, _unlike(x, found.outputs["y"])
    except OpenQnnError as error:
        reason = error.message.partition("\n")[0]
        if options.debug:
            say(f"debug: {name}: {error}")
    where = options.target or f"adb:{options.device_id}".rstrip(":")
    core, version = core if options.core_version else "", version if options.lib_version else ""
    test = "failed" if reason else "passed"
    return Row(name, _LIBRARIES[name], core, version, test, reason, where)


def _library_there(name: str, options: ValidatorOptions) -> Path:
    """The library's name, and where it lies on this machine unless others go to the device."""
    given = options.libraries or options.directory
    return Path(given) / _LIBRARIES[name] if given else find_library(_LIBRARIES[name])


TOOL = Tool(
    "qnn-platform-validator",
    "Tell what of QNN works on this machine or on a device, on the console and in a CSV file.",
    "--backend NAME [options]",
    (ValidatorOptions,),
    lambda arguments, _: run_validator(arguments),
    examples=("qnn-platform-validator --backend dsp --testBackend",),
)
