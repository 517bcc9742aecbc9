"""Devices that a bundle is sent to: this machine, one behind ssh, one behind adb. Push, run, pull."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from openqnn.errors import BackendError, UsageError

SECONDS = 1800.0
SSH, ADB = "OPENQNN_SSH", "OPENQNN_ADB"
"""Variables with the commands to use instead of plain ssh and adb, options and all."""


class Device(Protocol):
    """A place that files go to and commands run on."""

    def push(self, folder: Path, place: str) -> None:
        """The content of a folder, to a place that is made for it."""
        ...

    def run(self, command: str) -> str:
        """A shell command's output; BackendError where it fails."""
        ...

    def pull(self, place: str, folder: Path) -> None: ...


def find_device(target: str) -> Device:
    """By what --target says: local, ssh://[user@]host[:port], adb or adb:serial."""
    if target == "local":
        return LocalDevice()
    if target.startswith("ssh://"):
        parts = urlsplit(target)
        if not parts.hostname or parts.netloc.startswith("-"):  # ssh would take that for an option
            raise UsageError(
                f"{target}: there is no host in it", hint="ssh://user@host, or ssh://user@host:22"
            )
        user = f"{parts.username}@" if parts.username else ""
        return SshDevice(f"{user}{parts.hostname}", parts.port)
    if target == "adb" or target.startswith("adb:"):
        return AdbDevice(target.partition(":")[2])
    raise UsageError(f"there is no target {target!r}", hint="local, ssh://user@host, adb or adb:SERIAL")


def target_of(device: str) -> str:
    """What --target calls a device that is known by its serial number, or by an address of ssh."""
    return device if device.startswith("ssh://") else f"adb:{device}"


def system_of(device: Device) -> str:
    """What runs on a device, as a target of qnn-model-lib-generator."""
    words = device.run("uname -m; getprop ro.build.version.release 2>/dev/null || true").split()
    machine, android = words[0] if words else "", words[1:]
    if android:
        raise UsageError(
            f"the device runs Android {android[0]}, and no package has Qualcomm's libraries for it",
            hint="a device with Linux, or an SDK's qnn-net-run on the device itself",
        )
    known = {"x86_64": "x86_64-linux-clang", "aarch64": "aarch64-linux", "arm64": "aarch64-linux"}
    if machine not in known:
        raise UsageError(
            f"the device says that its machine is {machine or 'nothing'}, for which nothing can be built",
            hint="--target_os names what to build for",
        )
    return known[machine]


HERE = "this machine"


@dataclass(frozen=True, slots=True)
class LocalDevice:
    """This machine."""

    def push(self, folder: Path, place: str) -> None:
        _copied(folder, place)

    def run(self, command: str) -> str:
        return _output(["sh", "-c", command], HERE)

    def pull(self, place: str, folder: Path) -> None:
        _copied(place, folder)


@dataclass(frozen=True, slots=True)
class SshDevice:
    """A machine behind ssh, which needs sh and tar there, and keys that ask for no password."""

    host: str
    port: int | None = None

    @property
    def _ssh(self) -> list[str]:
        command = shlex.split(os.environ.get(SSH, "ssh"))
        port = ["-p", str(self.port)] if self.port else []
        return [*command, "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", *port, self.host]

    def push(self, folder: Path, place: str) -> None:
        where = shlex.quote(place)
        unpack = f"mkdir -p {where} && tar -xf - -C {where}"
        _piped(["tar", "-cf", "-", "-C", str(folder), "."], [*self._ssh, unpack], self.host)

    def run(self, command: str) -> str:
        return _output([*self._ssh, command], self.host)

    def pull(self, place: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        pack = f"tar -cf - -C {shlex.quote(place)} ."
        _piped([*self._ssh, pack], ["tar", "-xf", "-", "-C", str(folder)], self.host)


@dataclass(frozen=True, slots=True)
class AdbDevice:
    """A phone or board behind adb: the one with this serial number, or the only one.

    `host` is where its adb server runs, if that is not this machine.
    """

    serial: str = ""
    host: str = ""

    @property
    def _adb(self) -> list[str]:
        command = shlex.split(os.environ.get(ADB, "adb"))
        there = ["-H", self.host] if self.host else []
        return [*command, *there, *(["-s", self.serial] if self.serial else [])]

    @property
    def _name(self) -> str:
        there = f" at {self.host}" if self.host else ""
        return f"adb device {self.serial}".strip() + there

    def push(self, folder: Path, place: str) -> None:
        self.run(f"mkdir -p {shlex.quote(place)}")
        _output([*self._adb, "push", f"{folder}/.", place], self._name)
        # Not every version of adb keeps the right to run a file.
        self.run(f"chmod +x {shlex.quote(place)}/bin/* {shlex.quote(place)}/*.sh 2>/dev/null || true")

    def run(self, command: str) -> str:
        return _output([*self._adb, "shell", command], self._name)

    def pull(self, place: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _output([*self._adb, "pull", f"{place}/.", str(folder)], self._name)


def _copied(source: str | Path, target: str | Path) -> None:
    """A folder's files; the first that cannot be written ends it, where shutil would go on and list all."""

    def copy(file: str, place: str) -> str:
        try:
            return shutil.copy2(file, place)
        except OSError as error:
            raise _failure(HERE, f"{place}: {error.strerror or error}", 1) from error

    try:
        shutil.copytree(source, target, dirs_exist_ok=True, copy_function=copy)
    except OSError as error:
        raise _failure(HERE, f"{error.filename or target}: {error.strerror or error}", 1) from error


def _output(command: Sequence[str], where: str) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise _missing(command[0]) from error
    except subprocess.TimeoutExpired as error:
        raise BackendError(f"{where} gave no answer in {SECONDS:g} s") from error
    if done.returncode:
        raise _failure(where, done.stderr or done.stdout, done.returncode)
    return done.stdout


def _piped(source: Sequence[str], sink: Sequence[str], where: str) -> None:
    """The output of one command into another; both have ended when this does."""
    with tempfile.TemporaryFile() as words:
        try:
            first = subprocess.Popen(source, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words)
        except FileNotFoundError as error:
            raise _missing(str(source[0])) from error
        try:
            last = subprocess.run(
                sink, stdin=first.stdout, stdout=words, stderr=words, timeout=SECONDS, check=False
            )
        except FileNotFoundError as error:
            raise _missing(str(sink[0])) from error
        except subprocess.TimeoutExpired as error:
            raise BackendError(f"{where} gave no answer in {SECONDS:g} s") from error
        finally:
            assert first.stdout is not None
            first.stdout.close()  # who still writes into it has nobody to read
            first.wait()
        words.seek(0)
        said = words.read().decode(errors="replace")
    code = last.returncode or first.returncode
    if code:
        raise _failure(where, said, code)


def _missing(program: str) -> BackendError:
    name = Path(program).name
    package = {"ssh": "openssh-client"}.get(name, name)
    return BackendError(f"{name} is not installed", hint=f"apt-get install {package}")


def _failure(where: str, said: str, code: int) -> BackendError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    hints = {
        "No space left": "free some memory there, or send to another folder with --place",
        "Exec format error": "the bundle is for another architecture: --target_os says for which",
        "cannot execute binary": "the bundle is for another architecture: --target_os says for which",
        "Permission denied (": "ssh must log in without a password: ssh-copy-id puts a key there",
        "no devices": "plug a device in and allow debugging; `adb devices` lists those that are there",
    }
    known = next((words for words in hints if words in said), "")
    # Programs tell their progress on the same stream, and what went wrong need not be the last line of it.
    told = [line for line in lines if known in line and not line.startswith("[")] or lines
    last = told[-1].removeprefix("adb: ").removeprefix("error: ") if told else f"exit code {code}"
    return BackendError(f"{where}: {last}", hint=hints[known] if known else "")
