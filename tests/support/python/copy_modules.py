#!/usr/bin/env -S python3 -B
"""Installs the packages of a lockfile by hard links to those that another folder has installed.

    copy_modules.py FOLDER FROM

FROM's lockfile must list every package of FOLDER's in the same version. A copy takes a second; npm
takes ten to thirty seconds of CPU."""
import json
import pathlib
import shutil
import subprocess
import sys


def packages(folder):
    listed = json.loads((folder / "package-lock.json").read_text())["packages"]
    return {path: about for path, about in listed.items() if path}


def main():
    folder, source = map(pathlib.Path, sys.argv[1:])
    wanted, installed = packages(folder), packages(source)
    different = [path for path, about in wanted.items() if installed.get(path) != about]
    if different:
        return f"{source}/package-lock.json lists other versions than {folder} of {', '.join(different)}"
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    # A package that is inside of another's folder is copied with it.
    for path in [".bin"] + [path.removeprefix("node_modules/") for path in wanted
                            if path.count("node_modules/") == 1]:
        target = folder / "node_modules" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / "node_modules" / path).exists():
            subprocess.run(["cp", "-al", source / "node_modules" / path, target], check=True)
    return 0


sys.exit(main())
