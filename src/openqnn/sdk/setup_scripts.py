"""The scripts that an SDK has beside its tools: environment and dependency checks."""

from __future__ import annotations

import shlex
import sys

_PYTHON = shlex.quote(sys.executable)

SETUP_SCRIPT = """#!/bin/bash
# Source this: it sets QNN_SDK_ROOT and puts the tools and libraries of this tree first.
here="${BASH_SOURCE[0]:-$0}"
export QNN_SDK_ROOT="$(cd "$(dirname "$here")/.." && pwd)"
export QAIRT_SDK_ROOT="$QNN_SDK_ROOT"
export SNPE_ROOT="$QNN_SDK_ROOT"
export PATH="$QNN_SDK_ROOT/bin/x86_64-linux-clang:$PATH"
export LD_LIBRARY_PATH="$QNN_SDK_ROOT/lib/x86_64-linux-clang${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
echo "[INFO] AISW SDK environment set"
echo "[INFO] QNN_SDK_ROOT: $QNN_SDK_ROOT"
"""

_POWERSHELL = """# Dot-source this: it sets QNN_SDK_ROOT and puts the tools of this tree first.
$env:QNN_SDK_ROOT = (Resolve-Path "$PSScriptRoot/..").Path
$env:QAIRT_SDK_ROOT = $env:QNN_SDK_ROOT
$env:PATH = "$env:QNN_SDK_ROOT/bin/x86_64-linux-clang;$env:PATH"
Write-Host "[INFO] QNN_SDK_ROOT: $env:QNN_SDK_ROOT"
"""

_DOCTOR = f"""#!/bin/sh
# What is installed and what works: OpenQNN brings its Python packages itself.
exec {_PYTHON} -P -m openqnn doctor "$@"
"""

_LINUX = """#!/bin/sh
# The compilers that qnn-model-lib-generator can use on this machine.
missing=0
for program in make g++ objcopy; do
  if command -v "$program" > /dev/null; then echo "$program: $(command -v "$program")"
  else echo "$program: missing (on Debian: apt-get install build-essential)"; missing=1; fi
done
command -v aarch64-linux-gnu-g++ > /dev/null || echo "aarch64-linux-gnu-g++: missing (for arm64 Linux only)"
exit $missing
"""

_WINDOWS = """# The programs that qnn-model-lib-generator can use on this machine.
foreach ($program in "cl", "cmake") {
  $found = Get-Command $program -ErrorAction SilentlyContinue
  if ($found) { Write-Host "$program : $($found.Source)" } else { Write-Host "$program : missing" }
}
"""

_AIMET = """#!/bin/sh
# An environment of its own for AIMET, whose dependencies differ: pass the folder, ./aimet_env by default.
set -e
folder="${1:-aimet_env}"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install 'aimet-onnx==2.42.*'
echo "export AIMET_ENV_PYTHON=$(cd "$folder" && pwd)/bin/python"
"""

SCRIPTS = {
    "envsetup.sh": SETUP_SCRIPT,
    "envsetup.ps1": _POWERSHELL,
    "check-python-dependency": _DOCTOR,
    "envcheck": _DOCTOR,
    "check-linux-dependency.sh": _LINUX,
    "check-windows-dependency.ps1": _WINDOWS,
    "aimet_env_setup.sh": _AIMET,
}
"""File name in bin/ and text."""
