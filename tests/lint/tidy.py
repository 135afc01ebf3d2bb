#!/usr/bin/env -S python3 -B
"""The findings of clang-tidy 14 in our own C, with the checks that .clang-tidy names."""
import concurrent.futures
import re
import shutil
import subprocess
import sys

from common import Rules, files, root

RULE = "no finding of clang-tidy 14"
FLAGS = ["-std=c17", "-D_GNU_SOURCE", '-DRUNCAST_VERSION="lint"', "-DLLHTTP_STRICT_MODE=1",
         "-isystem", "/usr/share/include/llhttp", "-isystem", "/usr/include/postgresql",
         "-Isrc", "-Iinclude", "-Ibench"]
PROGRAMS_AT_ONCE, FILES_EACH = 2, 16


def main():
    top = root()
    rules = Rules(RULE)
    tool = shutil.which("clang-tidy-14")
    if not tool:
        rules.broken(RULE, "clang-tidy-14 is not installed")
        return rules.report()
    paths = [str(path.relative_to(top)) for path in files(top, ".c")
             if path.relative_to(top).parts[0] in ("src", "bench")]

    def check(part):
        return subprocess.run([tool, "--quiet", *part, "--", *FLAGS], cwd=top,
                              capture_output=True, text=True)

    parts = [paths[i:i + FILES_EACH] for i in range(0, len(paths), FILES_EACH)]
    found = set()
    with concurrent.futures.ThreadPoolExecutor(PROGRAMS_AT_ONCE) as pool:
        for result in pool.map(check, parts):
            messages = re.findall(r"^.*: (?:warning|error): .*$", result.stdout, re.MULTILINE)
            if result.returncode and not messages:
                messages = [result.stderr.strip() or f"clang-tidy ended with {result.returncode}"]
            found.update(line.replace(f"{top}/", "") for line in messages)
    for line in sorted(found):
        rules.broken(RULE, line)
    return rules.report()


sys.exit(main())
