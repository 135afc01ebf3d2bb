#!/usr/bin/env -S python3 -B
"""Every C file is as clang-format 14 leaves it."""
import shutil
import subprocess
import sys

from common import Rules, files, root

RULE = "formatted by clang-format 14"
AT_ONCE = 50  # files for each start of the tool, since a start takes longer than reading a file


def main():
    top = root()
    rules = Rules(RULE)
    tool = shutil.which("clang-format-14")
    if not tool:
        rules.broken(RULE, "clang-format-14 is not installed")
        return rules.report()
    paths = list(files(top, ".c", ".h"))
    for some in (paths[i:i + AT_ONCE] for i in range(0, len(paths), AT_ONCE)):
        check = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", *some],
                               capture_output=True, text=True)
        errors_of = {line.split(":")[0]: line for line in reversed(check.stderr.splitlines())
                if ": error: " in line}
        if check.returncode and not errors_of:
            rules.broken(RULE, check.stderr.strip())
        for path in some:
            if str(path) in errors_of:
                rules.broken(RULE, errors_of[str(path)].replace(f"{top}/", ""))
    return rules.report()


sys.exit(main())
