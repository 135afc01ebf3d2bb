#!/usr/bin/env -S python3 -B
"""Every C file says in its first line what it is for: "name - what it is for"; to name another file
says nothing."""
import re
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
            if not re.match(rf"/\* {re.escape(path.name)} - (?!see \w+\.h)", text.readline()):
                rules.broken(RULE, path.relative_to(top))
    return rules.report()


sys.exit(main())
