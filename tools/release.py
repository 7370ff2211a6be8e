"""Make a release: `python tools/release.py 0.2.0` prints obstacles and planned changes; `--do` changes files, builds wheels, commits and tags.

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
# file that contains the version -> pattern of the version
PLACES = {
    "pyproject.toml": r'^version = "(.*)"$',
    "python/sarrus/_build.py": r'^__version__ = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
}
CHANGELOG = "CHANGELOG.md"
NEW = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## \[|\Z)", re.MULTILINE | re.DOTALL)


def git(*arguments: str) -> str:
    """Run git and return its output."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def number(version: str) -> tuple[int, ...]:
    """Return a version such as 1.2.3 as numbers, (1, 2, 3)."""
    return tuple(map(int, version.split(".")))


def versions(read: dict[str, str]) -> dict[str, str]:
    """Return the version in each file."""
    versions_found = {}
    for path, pattern in PLACES.items():
        match = re.search(pattern, read[path], re.MULTILINE)
        versions_found[path] = match[1] if match else "none"
    return versions_found


def faults(version: str, read: dict[str, str], tags: list[str], status: str) -> list[str]:
    """Return the reasons why a release is not possible; an empty list if it is possible."""
    versions_found, obstacles = versions(read), []
    if len({*versions_found.values()}) > 1:
        obstacles.append(
            "the version is not the same everywhere: " + ", ".join(f"{k} {v}" for k, v in versions_found.items())
        )
    current = versions_found["pyproject.toml"]
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        obstacles.append(f"{version} is no version of three numbers, such as 0.2.0")
    elif number(version) <= number(current):
        obstacles.append(f"{version} is not later than {current}")
    if f"v{version}" in tags:
        obstacles.append(f"there is a tag v{version}")
    if status:
        obstacles.append("the checkout has changes that are not committed:\n" + status)
    unreleased = NEW.search(read[CHANGELOG])
    if not (unreleased and unreleased[1].strip()):
        obstacles.append(f"{CHANGELOG} has no entry under [Unreleased]")
    return obstacles


def changed(version: str, read: dict[str, str], today: str) -> dict[str, str]:
    """Return the changed texts of a release, file to text."""
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
    """Write texts into the checkout."""
    for path, text in texts.items():
        (ROOT / path).write_text(text, encoding="utf-8")


def main() -> int:
    """Print obstacles and changes; make the release if --do is set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="version of the release, such as 0.2.0")
    parser.add_argument("--do", action="store_true", help="change the files, commit and tag, without pushing")
    parser.add_argument(
        "--without-ci", action="store_true", help="with --do: skip .ci/run, which has passed on this commit"
    )
    arguments = parser.parse_args()
    read = {path: (ROOT / path).read_text(encoding="utf-8") for path in (*PLACES, CHANGELOG)}
    obstacles = faults(arguments.version, read, git("tag").split(), git("status", "--porcelain"))
    if obstacles:
        print("\n".join(f"obstacle: {fault}" for fault in obstacles), file=sys.stderr)
        return 1
    made = changed(arguments.version, read, datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    for path in made:
        before, after = read[path].splitlines(), made[path].splitlines()
        print(*(f"{path}: {line}" for line in after if line and line not in before), sep="\n")
    if not arguments.do:
        print("no file was changed; --do runs .ci/run, changes files, commits and tags")
        return 0
    if not arguments.without_ci:
        subprocess.run([ROOT / ".ci" / "run"], check=True)
    write(made)
    wheels = ROOT / "tools" / "build_wheels.sh"
    if wheels.exists() and subprocess.run([wheels], check=False).returncode:
        write({path: read[path] for path in made})
        print("failed: the wheels were not built; the files are restored", file=sys.stderr)
        return 1
    git("commit", "--quiet", "--message", f"Release {arguments.version}", *made)
    git("tag", "--annotate", f"v{arguments.version}", "--message", f"sarrus {arguments.version}")
    print(f"done; to publish: git push origin main v{arguments.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
