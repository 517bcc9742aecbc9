"""Sending a bundle to a device, running it there, and holding the results against the golden ones."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from openqnn.errors import BackendError
from openqnn.vendor.deploy.devices import find_device


def send_bundle(bundle: Path, target: str, place: str) -> str:
    """Push, run, pull, compare; gives what the comparison says. Nothing stays on the device."""
    device = find_device(target)
    where = f"{place.rstrip('/')}/openqnn_{bundle.resolve().name}"
    try:
        device.push(bundle, where)
        device.run(f"cd {shlex.quote(where)} && sh run.sh")
        with tempfile.TemporaryDirectory() as folder:
            device.pull(f"{where}/outputs", Path(folder))
            return _compared(bundle, folder)
    finally:
        _clear(device, where)


def _clear(device: object, where: str) -> None:
    try:
        device.run(f"rm -rf {shlex.quote(where)}")  # type: ignore[attr-defined]
    except BackendError:
        return  # the device is gone, which has been said


def _compared(bundle: Path, outputs: str) -> str:
    command = [sys.executable, str(bundle / "selftest.py"), "--compare", outputs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackendError(f"the device computes other results: {done.stderr.strip()}")
    return done.stdout.strip()
