"""The scripts that an SDK has beside its tools: environment and dependency checks."""

from __future__ import annotations

import shlex
import sys

_PYTHON = shlex.quote(sys.executable)
_PYTHON_FOR_POWERSHELL = "'" + sys.executable.replace("'", "''") + "'"

SETUP_SCRIPT = """#!/bin/bash
# Source this: it sets QNN_SDK_ROOT and puts the tools and libraries of this tree first.
here="${BASH_SOURCE[0]:-$0}"
QNN_SDK_ROOT="$(cd "$(dirname "$here")/.." && pwd)"
export QNN_SDK_ROOT
export QAIRT_SDK_ROOT="$QNN_SDK_ROOT"
export SNPE_ROOT="$QNN_SDK_ROOT"
export PATH="$QNN_SDK_ROOT/bin/x86_64-linux-clang:$PATH"
export LD_LIBRARY_PATH="$QNN_SDK_ROOT/lib/x86_64-linux-clang${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$QNN_SDK_ROOT/lib/python${PYTHONPATH:+:$PYTHONPATH}"
echo "[INFO] AISW SDK environment set"
echo "[INFO] QNN_SDK_ROOT: $QNN_SDK_ROOT"
"""

_POWERSHELL = """# Dot-source this: it sets QNN_SDK_ROOT and puts the tools and libraries of this tree first.
$env:QNN_SDK_ROOT = (Resolve-Path "$PSScriptRoot/..").Path
$env:QAIRT_SDK_ROOT = $env:QNN_SDK_ROOT
$env:SNPE_ROOT = $env:QNN_SDK_ROOT
$separator = [IO.Path]::PathSeparator
function First($folder, $others) { (@($folder, $others) | Where-Object { $_ }) -join $separator }
foreach ($target in "x86_64-windows-msvc", "x86_64-linux-clang") {
  if (Test-Path "$env:QNN_SDK_ROOT/bin/$target") {
    $env:PATH = First "$env:QNN_SDK_ROOT/bin/$target" $env:PATH
    $env:LD_LIBRARY_PATH = First "$env:QNN_SDK_ROOT/lib/$target" $env:LD_LIBRARY_PATH
  }
}
$env:PYTHONPATH = First "$env:QNN_SDK_ROOT/lib/python" $env:PYTHONPATH
Write-Host "[INFO] AISW SDK environment set"
Write-Host "[INFO] QNN_SDK_ROOT: $env:QNN_SDK_ROOT"
"""

# A Python program, because scripts call it both by its name and with `python3` before it.
_PYTHON_CHECK = f"""#!/usr/bin/env python3
\"\"\"What is installed and what works: OpenQNN brings its Python packages itself.\"\"\"
import subprocess
import sys

sys.exit(subprocess.call([{sys.executable!r}, "-P", "-m", "openqnn", "doctor", *sys.argv[1:]]))
"""

_ENVCHECK = f"""#!/bin/sh
# envcheck [-n] [-c] [-a]: the Android NDK, the host's compilers, everything (as without a flag).
missing=0
ndk() {{
  root="${{ANDROID_NDK_ROOT:-$ANDROID_NDK_HOME}}"
  if [ -n "$root" ] && [ -d "$root/toolchains/llvm" ]; then echo "[INFO] Android NDK: $root"
  else
    echo "[ERROR] Android NDK: set ANDROID_NDK_ROOT to its folder (needed for aarch64-android only)"
    missing=1
  fi
}}
compilers() {{
  found=0
  for program in clang++ g++; do
    if command -v "$program" > /dev/null; then echo "[INFO] $program: $(command -v "$program")"; found=1; fi
  done
  [ $found = 1 ] || {{ echo "[ERROR] no compiler (on Debian: apt-get install build-essential)"; missing=1; }}
}}
case "${{1:--a}}" in
  -n) ndk ;;
  -c) compilers ;;
  -a) ndk; missing=0; compilers; {_PYTHON} -P -m openqnn doctor || missing=1 ;;
  *) echo "usage: envcheck [-n] [-c] [-a]"; [ "$1" = "-h" ] || missing=2 ;;
esac
exit $missing
"""

_ENVCHECK_WINDOWS = f"""# What is installed and what works.
& {_PYTHON_FOR_POWERSHELL} -P -m openqnn doctor @args
exit $LASTEXITCODE
"""

_LINUX = """#!/bin/sh
# The compilers that qnn-model-lib-generator can use on this machine. With --install they are installed where
# there is apt-get; without it nothing is changed.
missing=""
for program in make g++ objcopy; do
  if command -v "$program" > /dev/null; then echo "$program: $(command -v "$program")"
  else echo "$program: missing"; missing=1; fi
done
if command -v clang++ > /dev/null; then echo "clang++: $(command -v clang++)"
else echo "clang++: missing (g++ will do)"; fi
command -v aarch64-linux-gnu-g++ > /dev/null || echo "aarch64-linux-gnu-g++: missing (for arm64 Linux only)"
[ -n "$missing" ] || exit 0
if [ "$1" = "--install" ] && command -v apt-get > /dev/null; then apt-get install -y build-essential
else echo "install them (on Debian: apt-get install build-essential)"; exit 1; fi
"""

_WINDOWS = """# The programs that qnn-model-lib-generator can use on this machine.
foreach ($program in "cl", "clang-cl", "cmake") {
  $found = Get-Command $program -ErrorAction SilentlyContinue
  if ($found) { Write-Host "$program : $($found.Source)" } else { Write-Host "$program : missing" }
}
Write-Host "OpenQNN builds no model libraries on Windows: use DLC files, or Windows Subsystem for Linux"
"""

_AIMET = """#!/bin/sh
# Source this: it makes an environment of its own for AIMET, whose dependencies differ, in the folder of
# --env_path (./aimet_env by default), and sets AIMET_ENV_PYTHON, by which qairt-quantizer finds it.
_aimet_folder=aimet_env _aimet_before=
for _aimet_word in "$@"; do
  case "$_aimet_before" in --env_path|--env-path) _aimet_folder="$_aimet_word" ;; esac
  case "$_aimet_word" in
    --env_path=*|--env-path=*) _aimet_folder="${_aimet_word#*=}" ;;
    --aimet*) echo "[INFO] $_aimet_word has no effect: aimet-onnx comes from PyPI" ;;
  esac
  _aimet_before="$_aimet_word"
done
if python3 -m venv "$_aimet_folder" && "$_aimet_folder/bin/python" -m pip install 'aimet-onnx==2.42.*'; then
  AIMET_ENV_PYTHON="$(cd "$_aimet_folder" && pwd)/bin/python"
  export AIMET_ENV_PYTHON
  echo "[INFO] AIMET_ENV_PYTHON: $AIMET_ENV_PYTHON"
else
  echo "[ERROR] there is no environment for AIMET in $_aimet_folder: see above" >&2
  false
fi
"""

SCRIPTS = {
    "envsetup.sh": SETUP_SCRIPT,
    "envsetup.ps1": _POWERSHELL,
    "check-python-dependency": _PYTHON_CHECK,
    "envcheck": _ENVCHECK,
    "envcheck.ps1": _ENVCHECK_WINDOWS,
    "check-linux-dependency.sh": _LINUX,
    "check-windows-dependency.ps1": _WINDOWS,
    "aimet_env_setup.sh": _AIMET,
}
"""File name in bin/ and text."""
