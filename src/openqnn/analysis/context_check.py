"""Whether a context binary will load, told before it happens on the device."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from openqnn.analysis.context_summary import read_context
from openqnn.errors import BackendError, LibraryError, OpenQnnError
from openqnn.qnn import abi
from openqnn.qnn.context_info import ContextInfo
from openqnn.qnn.library import find_library
from openqnn.qnn.load_errors import explain_load
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.probe import Probe, probe_library
from openqnn.qnn.soc import Soc, find_soc
from openqnn.vendor.remote import run_context

OK, NOTE, PROBLEM = "ok", "note", "problem"
_LIBRARIES = {abi.BACKEND_CPU: "cpu", abi.BACKEND_GPU: "gpu", abi.BACKEND_HTP: "htp"}
_BUILD = re.compile(rb"v\d+\.\d+\.\d+\.\d{6,14}")
_LOAD_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was compared; `hint` says what to do about a problem."""

    level: str
    what: str
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What is in a binary, and what speaks for or against loading it."""

    info: ContextInfo
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.level != PROBLEM for finding in self.findings)


def check_context(
    path: str | PathLike[str], soc: str | int | None = None, against: str | PathLike[str] | None = None
) -> ContextReport:
    """Compare a binary with a SoC and with a library: by default, the installed one of the same backend."""
    chip = None if soc is None else find_soc(soc)
    library = None if against is None else find_library(against)
    info = read_context(path)
    found = _chip_findings(info, chip) if chip else []
    if library is None:
        try:
            library = find_library(_LIBRARIES.get(info.backend_id, abi.backend_name(info.backend_id)))
        except LibraryError as error:
            found.append(Finding(NOTE, "library", f"not compared: {error.message}", error.hint))
    if library is not None:
        found += _library_findings(info, library, path, chip)
    return ContextReport(info, tuple(found))


def _chip_findings(info: ContextInfo, chip: Soc) -> list[Finding]:
    if info.backend_id != abi.BACKEND_HTP:
        name = abi.backend_name(info.backend_id)
        return [Finding(NOTE, "SoC", f"a binary for {name} is not bound to a SoC")]
    return [_arch(info, chip), _model(info, chip), *_vtcm(info, chip)]


def _arch(info: ContextInfo, chip: Soc) -> Finding:
    made, has = info.dsp_arch, chip.arch
    advice = f"compile again with --soc {chip.name}"
    if made is None or has is None:
        unknown = "the binary does not tell its" if made is None else f"{chip.name} is not in our table: no"
        return Finding(NOTE, "architecture", f"not compared: {unknown} HTP architecture")
    if made > has:
        text = f"compiled for HTP v{made}, and {chip.name} has v{has}, which is older"
        return Finding(PROBLEM, "architecture", text, advice)
    if made < has:
        text = f"compiled for HTP v{made}: {chip.name} has v{has} and would not be used fully, if it loads it"
        return Finding(NOTE, "architecture", text, advice)
    return Finding(OK, "architecture", f"HTP v{made}, as {chip.name} has")


def _model(info: ContextInfo, chip: Soc) -> Finding:
    if not info.soc_model:
        return Finding(NOTE, "SoC", "the binary does not tell for which SoC it was compiled")
    if info.soc_model == chip.model:
        return Finding(OK, "SoC", f"compiled for {chip}")
    made = find_soc(info.soc_model)
    text = f"compiled for {made}, not for {chip.name}"
    return Finding(NOTE, "SoC", text, f"--soc {chip.name} fits memory and threads to the chip")


def _vtcm(info: ContextInfo, chip: Soc) -> list[Finding]:
    found: list[Finding] = []
    for graph in info.graphs:
        if graph.htp is None or chip.vtcm_mb is None:
            continue
        wanted = graph.htp.vtcm_size >> 20
        text = f"graph '{graph.name}' takes {wanted} MB, {chip.name} has {chip.vtcm_mb} MB"
        if wanted > chip.vtcm_mb:
            hint = f"compile again with vtcm_mb {chip.vtcm_mb} or less, or 0 for what the chip has"
            found.append(Finding(PROBLEM, "VTCM", text, hint))
        else:
            found.append(Finding(OK, "VTCM", text))
    return found


def _library_findings(
    info: ContextInfo, library: Path, path: str | PathLike[str], chip: Soc | None
) -> list[Finding]:
    probe = probe_library(library)
    if probe.error:
        reason, _ = explain_load(probe.path, probe.error)
        note = Finding(NOTE, "library", f"{library.name} was not tried here: {reason}")
        return [note, _version(info, library, build_in_file(library), "")]
    if probe.backend_id != info.backend_id:
        made, has = abi.backend_name(info.backend_id), abi.backend_name(probe.backend_id)
        text = f"compiled for {made}, and {library.name} is {has}"
        return [Finding(PROBLEM, "backend", text, f"load it with the library for {made}")]
    found = [
        Finding(OK, "backend", f"{abi.backend_name(info.backend_id)}, as {library.name} is"),
        _version(info, library, probe.build_id, probe.core_api),
    ]
    return [*found, _tried(info, library, path, chip, probe)]


def _version(info: ContextInfo, library: Path, build: str, core: str) -> Finding:
    """Builds are compared where both tell theirs, else the versions of the core API."""
    made, has = info.build_id, build
    older = _numbers(has)[:3] < _numbers(made)[:3]
    if not made or not has:
        made, has = f"API {'.'.join(map(str, info.core_api))}", f"API {core}" if core else ""
        older = _numbers(has) < info.core_api
    if not has:
        return Finding(NOTE, "version", f"{library.name} does not tell its version")
    if older:
        text = f"made by QNN {made}, and {library.name} is {has}: libraries refuse binaries of newer versions"
        return Finding(PROBLEM, "version", text, "compile with the version that the device has, or update it")
    return Finding(OK, "version", f"made by QNN {made}, {library.name} is {has}")


def _tried(
    info: ContextInfo, library: Path, path: str | PathLike[str], chip: Soc | None, probe: Probe
) -> Finding:
    """The last word: let the library load it. The simulator does not look at the architecture, though."""
    device = DeviceOptions(chip.model) if chip and probe.backend_id == abi.BACKEND_HTP else None
    graph = info.graphs[0].name if info.graphs else None
    try:
        run_context(path, [], library, graph=graph, device=device, timeout=_LOAD_SECONDS)
    except BackendError as error:
        return Finding(PROBLEM, "loading", error.message)
    except OpenQnnError as error:
        return Finding(PROBLEM, "loading", str(error))
    return Finding(OK, "loading", f"{library.name} loads it here")


def build_in_file(path: Path) -> str:
    """The build id that a library for another machine carries as text; empty where there is none."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            found = _BUILD.search(memory)
            return found[0].decode() if found else ""
    except (OSError, ValueError):
        return ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))
