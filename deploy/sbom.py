"""sbom.py - prints the parts of a program as an SPDX 2.3 document.

    python3 sbom.py PROGRAM PACKAGE-LOCK.JSON NAME

It lists the libraries that the program loads here, with the Debian packages that they belong to. It
also lists parts that are compiled in: llhttp, if the release lacks it as a library, and the npm
packages in the dashboard."""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def package_of(path):
    """The Debian package that a file belongs to; /lib and /usr/lib are one folder."""
    for name in (path, os.path.realpath(path), path.removeprefix("/usr")):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        owners = [line.split(": ")[0] for line in found.stdout.splitlines()
                  if not line.startswith("diversion by ")]
        if owners:
            return owners[0].split(",")[0]
    raise SystemExit(f"sbom.py: {path} is not part of a package")


def libraries(program):
    lines = output("ldd", program).splitlines()
    paths = [found[1] for line in lines if (found := re.search(r"(/\S+) \(0x", line))]
    return sorted({package_of(path) for path in paths})


def debian_package(name):
    fields = "${binary:Package}\t${Version}\t${Architecture}\t${source:Package}\t${Homepage}"
    binary, version, architecture, source, home = output(
        "dpkg-query", "-W", f"-f={fields}", name).split("\t")
    plain = binary.split(":")[0]
    return {"name": plain, "version": version, "home": home, "source": source,
            "purl": f"pkg:deb/debian/{plain}@{version.replace(':', '%3A')}?arch={architecture}"}


def compiled_in(lockfile):
    found = [debian_package("node-llhttp")] if os.path.exists("/usr/share/llhttp/llhttp.c") else []
    with open(lockfile, encoding="utf8") as file:
        packages = json.load(file)["packages"]
    for path in ("preact", "uplot"):
        entry = packages[f"node_modules/{path}"]
        found.append({"name": path, "version": entry["version"], "home": "", "source": path,
                      "purl": f"pkg:npm/{path}@{entry['version']}", "license": entry["license"]})
    return found


def entry(package):
    return {"SPDXID": spdx_id(package), "name": package["name"], "versionInfo": package["version"],
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "homepage": package["home"] or "NOASSERTION",
            "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
            "licenseDeclared": package.get("license", "NOASSERTION"),
            "sourceInfo": f"source package {package['source']}",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": package["purl"]}]}


def spdx_id(package):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", package["name"])


def document(program, lockfile, name):
    with open(program, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
                                           datetime.timezone.utc)
    loaded = [debian_package(one) for one in libraries(program)]
    inside = compiled_in(lockfile)
    itself = {"SPDXID": "SPDXRef-runcast", "name": "runcast", "versionInfo": name.split("-")[-1],
              "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
              "primaryPackagePurpose": "APPLICATION",
              "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
              "copyrightText": "NOASSERTION",
              "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}
    related = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-runcast")]
    related += [("SPDXRef-runcast", "DYNAMIC_LINK", spdx_id(one)) for one in loaded]
    related += [("SPDXRef-runcast", "CONTAINS", spdx_id(one)) for one in inside]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": name, "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": ["Tool: runcast-sbom"]},
            "packages": [itself] + [entry(one) for one in loaded + inside],
            "relationships": [{"spdxElementId": one, "relationshipType": kind,
                               "relatedSpdxElement": other} for one, kind, other in related]}


if len(sys.argv) != 4:
    raise SystemExit(__doc__)
json.dump(document(*sys.argv[1:]), sys.stdout, indent=2)
print()
