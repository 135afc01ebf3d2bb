#!/usr/bin/env -S python3 -B
"""Every C file is as clang-format 14 leaves it."""
import shutil
import subprocess
import sys

from common import Rules, files, root

RULE = "formatted by clang-format 14"


def main():
    top = root()
    rules = Rules(RULE)
    tool = shutil.which("clang-format-14")
    if not tool:
        rules.broken(RULE, "clang-format-14 is not installed")
        return rules.report()
    for path in files(top, ".c", ".h"):
        check = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", path],
                               capture_output=True, text=True)
        if check.returncode:
            rules.broken(RULE, check.stderr.splitlines()[0].replace(f"{top}/", ""))
    return rules.report()


sys.exit(main())
