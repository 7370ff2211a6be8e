"""Profiles of the random tests, and checks of skipped tests. ``pytest --hypothesis-profile=soak`` runs for hours, with new examples every time."""

import os
import re
import signal
from fnmatch import filter as fnfilter
from fnmatch import fnmatchcase
from pathlib import Path

# before anything loads NumPy: its threads for large products wait in busy loops, and the workers that share the processors wait for them
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings

# no deadline: the machine may be busy. Laws that do not say how many examples they take get these; a soak draws thousands
settings.register_profile("sarrus", deadline=None, print_blob=True, max_examples=40)
settings.register_profile("ci", settings.get_profile("sarrus"), derandomize=True, database=None)
settings.register_profile(
    "soak", settings.get_profile("sarrus"), max_examples=5000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "sarrus")

# a shell's jobs in the background are deaf to Ctrl-C, and so would their children be; tests press it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def skips(reports):
    """Return (test, reason) of each skipped test."""
    return sorted({(r.nodeid, str(r.longrepr[2] if isinstance(r.longrepr, tuple) else r.longrepr)) for r in reports})


def skips_beside(allowed, skipped, ran):
    """Return a line for each skip that is not in the list, and for each unused entry of the list whose tests ran."""
    lines = [line.split("|") for line in allowed.splitlines() if line.strip() and not line.startswith("#")]
    rows = [(test.strip(), reason.strip(), why.strip()) for test, reason, why in lines]
    used, unknown = set(), []
    for test, reason in skipped:
        row = next(
            (r for r in rows if fnmatchcase(test.partition("[")[0], r[0].removeprefix("? ")) and r[1] in reason), None
        )
        used.add(row)
        if row is None:
            unknown.append(f"{test}: {reason.removeprefix('Skipped: ')}")
    stale = [
        f"{test} | {reason}"
        for test, reason, _ in rows
        if (test, reason, _) not in used and not test.startswith("?") and fnfilter(ran, test)
    ]
    return unknown, stale


def pytest_sessionfinish(session):
    """Fail for a skip that is not in the list SARRUS_ALLOWED_SKIPS."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    path = os.environ.get("SARRUS_ALLOWED_SKIPS")
    if path and reporter and not hasattr(session.config, "workerinput"):
        ran = {r.nodeid.partition("[")[0] for r in reporter.stats.get("passed", [])}
        allowed = Path(path).read_text(encoding="utf-8")
        unknown, stale = skips_beside(allowed, skips(reporter.stats.get("skipped", [])), ran)
        for heading, tests in ("skipped, and not in the list", unknown), ("in the list, and not skipped", stale):
            if tests:
                reporter.write_line(f"\n{heading} {path}:\n  " + "\n  ".join(tests))
        if unknown and session.exitstatus == 0:
            session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    """Write the skipped tests, a line each, to the file SARRUS_SKIPPED, for ``pytest @file`` on a machine with their requirements."""
    if path := os.environ.get("SARRUS_SKIPPED"):
        # where there was nothing to try a test on, it has other names once there is
        names = (name for name, _ in skips(terminalreporter.stats.get("skipped", [])))
        skipped = sorted({re.sub(r"\[.*NOTSET.*", "", name) for name in names})
        Path(path).write_text("".join(f"{test}\n" for test in skipped), encoding="utf-8")
