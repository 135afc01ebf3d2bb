#!/usr/bin/env -S python3 -B
"""Files and functions of a size that can be read.

The aim is 500 lines a file and 60 a function; a longer function is reported as a comment. 800
and 80 are the limit. A function is what clang-format leaves between `{` and `}` in the first column,
plus the lines of its signature. """
import sys

from common import Rules, files, root

FILE_LIMIT, FUNCTION_AIM, FUNCTION_LIMIT = 800, 60, 80


def functions(text):
    """Yields (line, length, first line of the signature) of each function."""
    begin = 0  # the line after the last one that ended a declaration
    opened = None
    for index, line in enumerate(text):
        if line == "{":
            opened = begin
        elif line == "}" and opened is not None:
            yield opened + 1, index - opened + 1, text[opened]
            opened = None
        if opened is None and (not line or line[-1] in ";}/" or line[0] in "#}"):
            begin = index + 1


def main():
    top = root()
    rules = Rules(f"files of at most {FILE_LIMIT} lines",
                  f"functions of at most {FUNCTION_LIMIT} lines")
    for path in files(top, ".c", ".h", ".js", ".mjs", ".py", ".sh"):
        name = path.relative_to(top)
        text = path.read_text(errors="replace").splitlines()
        if len(text) > FILE_LIMIT:
            rules.broken(f"files of at most {FILE_LIMIT} lines", f"{name} has {len(text)}")
        if path.suffix not in (".c", ".h"):
            continue
        for number, length, signature in functions(text):
            what = f"{name}:{number} {signature} ({length} lines)"
            if length > FUNCTION_LIMIT:
                rules.broken(f"functions of at most {FUNCTION_LIMIT} lines", what)
            elif length > FUNCTION_AIM:
                print(f"# long: {what}")
    return rules.report()


sys.exit(main())
