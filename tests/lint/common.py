"""The files that the rules check, and how the rules report."""
import os
import pathlib
import sys

OURS = ("src", "include", "bench", "tests", "deploy")
OTHERS = {"node_modules", "conformance", "corpus", "pictures", "__pycache__"}


def root():
    """The folder of the project: the first argument, otherwise the one that contains this file."""
    return pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else f"{__file__}/../../..").resolve()


def files_below(folder, *suffixes, others=OTHERS):
    """The files below a folder with one of the suffixes (any, when none is given), in order. Skips
    the others, since walking through node_modules takes seconds."""
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = set(folders) - others
        found += [pathlib.Path(where, name) for name in set(names) - others]
    return [path for path in sorted(found)
            if (not suffixes or path.suffix in suffixes) and path.is_file()]


def files(top, *suffixes):
    """Our own files with one of the suffixes (any, when none is given), in order."""
    for folder in OURS:
        yield from files_below(top / folder, *suffixes)


def lines(path):
    return enumerate(path.read_text(errors="replace").splitlines(), 1)


class Rules:
    """Reports one `ok` for each rule without a violation, and one `not ok` for each violation."""

    def __init__(self, *names):
        self.violations = {name: [] for name in names}

    def broken(self, name, where):
        self.violations[name].append(where)

    def report(self):
        for name, found in self.violations.items():
            for where in found:
                print(f"not ok - {name}: {where}")
            if not found:
                print(f"ok - {name}")
        return 1 if any(self.violations.values()) else 0
