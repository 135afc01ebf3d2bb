#!/usr/bin/env -S python3 -B
"""The first line of every C file is "name - what the file is for". A reference to a header does not
count."""
import re
import sys

from common import Rules, files, root

RULE = "the first line says what a file is for"


def main():
    top = root()
    rules = Rules(RULE)
    for path in files(top, ".c", ".h"):
        if "tests" in path.relative_to(top).parts:
            continue  # the names of test files and of their tests suffice
        with path.open() as text:
            if not re.match(rf"/\* {re.escape(path.name)} - (?!see \w+\.h)", text.readline()):
                rules.broken(RULE, path.relative_to(top))
    return rules.report()


sys.exit(main())
