"""How hard the random tests look. ``pytest --hypothesis-profile=soak`` looks for hours, at new examples every time."""

import os
import re
import signal
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


def pytest_terminal_summary(terminalreporter):
    """Tests that were skipped, a line each, for ``pytest @file`` where what they lacked is there: the file that SARRUS_SKIPPED names."""
    if path := os.environ.get("SARRUS_SKIPPED"):
        # where there was nothing to try a test on, it has other names once there is
        skipped = sorted({re.sub(r"\[.*NOTSET.*", "", r.nodeid) for r in terminalreporter.stats.get("skipped", [])})
        Path(path).write_text("".join(f"{test}\n" for test in skipped), encoding="utf-8")
