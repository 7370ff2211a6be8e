"""Make a release: `python tools/release.py 0.2.0` says what stands in its way and what would change; `--do` changes, builds wheels, commits, tags.

A pushed tag builds the wheels of all platforms and publishes them (.github/workflows/release.yml).
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# where the version stands, and how
PLACES = {
    "pyproject.toml": r'^version = "(.*)"$',
    "python/sarrus/_build.py": r'^__version__ = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
}
CHANGELOG = "CHANGELOG.md"
NEW = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## \[|\Z)", re.MULTILINE | re.DOTALL)


def git(*arguments: str) -> str:
    """What git answers."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def number(version: str) -> tuple[int, ...]:
    """(1, 2, 3) of 1.2.3."""
    return tuple(map(int, version.split(".")))


def versions(read: dict[str, str]) -> dict[str, str]:
    """The version that each place says."""
    found = {}
    for path, pattern in PLACES.items():
        match = re.search(pattern, read[path], re.MULTILINE)
        found[path] = match[1] if match else "none"
    return found


def faults(version: str, read: dict[str, str], tags: list[str], status: str) -> list[str]:
    """What stands in the way of a release."""
    found, said = versions(read), []
    if len({*found.values()}) > 1:
        said.append("the version is not the same everywhere: " + ", ".join(f"{k} {v}" for k, v in found.items()))
    now = found["pyproject.toml"]
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        said.append(f"{version} is no version of three numbers, as 0.2.0")
    elif number(version) <= number(now):
        said.append(f"{version} is not later than {now}")
    if f"v{version}" in tags:
        said.append(f"there is a tag v{version}")
    if status:
        said.append("the checkout has changes that are not committed:\n" + status)
    unreleased = NEW.search(read[CHANGELOG])
    if not (unreleased and unreleased[1].strip()):
        said.append(f"{CHANGELOG} says nothing under [Unreleased]")
    return said


def changed(version: str, read: dict[str, str], today: str) -> dict[str, str]:
    """The texts of a release."""
    made = {
        path: re.sub(pattern, lambda m: m[0].replace(m[1], version), read[path], count=1, flags=re.MULTILINE)
        for path, pattern in PLACES.items()
    }
    heading = f"## [Unreleased]\n\n## [{version}] - {today}\n"
    made[CHANGELOG] = read[CHANGELOG].replace("## [Unreleased]\n", heading, 1)
    dated = re.sub(r"^date-released: .*\n", "", made["CITATION.cff"], flags=re.MULTILINE)
    made["CITATION.cff"] = re.sub(r"^(version: .*\n)", rf"\1date-released: {today}\n", dated, flags=re.MULTILINE)
    return made


def write(texts: dict[str, str]) -> None:
    """Into the checkout."""
    for path, text in texts.items():
        (ROOT / path).write_text(text, encoding="utf-8")


def main() -> int:
    """Look; then, if asked to, do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="of the release, as 0.2.0")
    parser.add_argument("--do", action="store_true", help="change the files, commit and tag; push nothing")
    parser.add_argument("--without-ci", action="store_true", help="with --do: .ci/run has passed on this very commit")
    arguments = parser.parse_args()
    read = {path: (ROOT / path).read_text(encoding="utf-8") for path in (*PLACES, CHANGELOG)}
    said = faults(arguments.version, read, git("tag").split(), git("status", "--porcelain"))
    if said:
        print("\n".join(f"no: {fault}" for fault in said), file=sys.stderr)
        return 1
    made = changed(arguments.version, read, datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    for path in made:
        before, after = read[path].splitlines(), made[path].splitlines()
        print(*(f"{path}: {line}" for line in after if line and line not in before), sep="\n")
    if not arguments.do:
        print("nothing was changed; --do runs .ci/run, changes, commits and tags")
        return 0
    if not arguments.without_ci:
        subprocess.run([ROOT / ".ci" / "run"], check=True)
    write(made)
    wheels = ROOT / "tools" / "build_wheels.sh"
    if wheels.exists() and subprocess.run([wheels], check=False).returncode:
        write({path: read[path] for path in made})
        print("no: the wheels were not built; the files are as they were", file=sys.stderr)
        return 1
    git("commit", "--quiet", "--message", f"Release {arguments.version}", *made)
    git("tag", "--annotate", f"v{arguments.version}", "--message", f"sarrus {arguments.version}")
    print(f"done; to publish: git push origin main v{arguments.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
