"""Fetch the library that lays out graphs in pages from the npm registry: `make layout-library`.

`dagre.yaml` records the package, its version and licence, and the checksum of each of its files
that pages hold. A file with another checksum is refused; for a new version change the record.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from pathlib import Path
from urllib.request import urlopen

import yaml

VENDOR = Path(__file__).resolve().parents[1] / "src/hloopt/reports/html/assets/vendor"


def main() -> int:
    """Write the files; 1 where one is not what the record says."""
    record = yaml.safe_load((VENDOR / "dagre.yaml").read_text(encoding="utf-8"))
    url = record["url"].format(version=record["version"])
    with urlopen(url, timeout=60) as answer:
        content = answer.read()
    contents = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as package:
        for path, wanted in record["files"].items():
            try:
                member = package.extractfile(f"package/{path}")
            except KeyError:
                member = None
            if member is None:
                print(f"{url} has no file {path}: change dagre.yaml", file=sys.stderr)
                return 1
            contents[path] = member.read()
            found = hashlib.sha256(contents[path]).hexdigest()
            if found != wanted:
                print(f"{path}: SHA-256 is {found}, not {wanted}", file=sys.stderr)
                return 1
    for path, content in contents.items():
        (VENDOR / Path(path).name).write_bytes(content)
    print(f"{record['package']} {record['version']}: {', '.join(contents)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
