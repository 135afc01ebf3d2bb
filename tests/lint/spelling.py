#!/usr/bin/env -S python3 -B
"""Finds common misspellings with codespell. OURS lists words that are not mistakes here."""
import shutil
import subprocess
import sys

from common import Rules, files, root

RULE = "no common misspelling"
OURS = "alse,ans,crate,fals,fo,nam,nd,nome,nulk,ot,otu,ser,te,tru,ue"


def main():
    top = root()
    rules = Rules(RULE)
    if not shutil.which("codespell"):
        rules.broken(RULE, "codespell is not installed")
        return rules.report()
    paths = [str(path.relative_to(top)) for path in files(top)
             if path.name != "package-lock.json"]  # hashes
    paths += [name for name in ("README.md", "CMakeLists.txt") if (top / name).exists()]
    check = subprocess.run(["codespell", "-L", OURS, *paths], cwd=top,
                           capture_output=True, text=True)
    for line in check.stdout.splitlines():
        rules.broken(RULE, line)
    if check.returncode and not check.stdout:
        rules.broken(RULE, check.stderr.strip() or f"codespell ended with {check.returncode}")
    return rules.report()


sys.exit(main())
