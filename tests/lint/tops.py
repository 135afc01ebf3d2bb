#!/usr/bin/env -S python3 -B
"""Every C file says in its first line what it is for: "name - what it is for"."""
import sys

from common import Rules, files, root

RULE = "the first line says what a file is for"


def main():
    top = root()
    rules = Rules(RULE)
    for path in files(top, ".c", ".h"):
        if "tests" in path.relative_to(top).parts:
            continue  # their names, and those of their tests, say it
        with path.open() as text:
            if not text.readline().startswith(f"/* {path.name} - "):
                rules.broken(RULE, path.relative_to(top))
    return rules.report()


sys.exit(main())
