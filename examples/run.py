"""Run an example: every `sh` block of its README, line by line, from the root of the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commands(readme: Path) -> list[str]:
    """The command lines of a README in order; a backslash at the end joins a line with the next."""
    blocks = re.findall(r"^```sh\n(.*?)^```", readme.read_text(encoding="utf-8"), re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#")]


def main(example: str) -> int:
    for command in commands(ROOT / example / "README.md"):
        print(f"\n$ {command}", flush=True)
        done = subprocess.run(command, shell=True, cwd=ROOT, check=False)
        if done.returncode:
            print(f"error: exit code {done.returncode} from: {command}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
