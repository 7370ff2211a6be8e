#!/usr/bin/env bash
# What is looked at before a release, beyond .ci/run: tools/soak.sh [MINUTES of fuzzing, 60 unless told]. An hour and a half on two cores.
#   fuzz     every public function, file reader and command line with hostile arguments
#   wide     laws over many more mechanisms, sizes and states than the tests draw, and simulations of a million steps
#   wheel    as a release has it, for this processor's architecture, by Clang: built, looked at, installed elsewhere, all tests
#   threads  C++ tests by Clang's thread sanitizer, with the kernels that put states side by side
#   oldest   the oldest Python that is promised, with its oldest NumPy, where the machine has it: as it compiles everything again
# It needs a virtual environment with sarrus[dev] on the PATH, and Clang 19. It goes on after a failure and exits with 1 then.
set -uo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-60}
logs=build/soak
mkdir -p "$logs"
failed=0

stage() {  # stage NAME COMMAND...: its output goes to a log
  local name=$1 start=$SECONDS verdict=passed status=0
  shift
  "$@" </dev/null >"$logs/$name.log" 2>&1 || status=1 verdict=FAILED
  printf '%-6s %5d s  %-8s %s\n' "$verdict" $((SECONDS - start)) "$name" "$(tail -n 1 "$logs/$name.log")"
  return $status
}

wheel() {
  local there=$PWD/$logs/wheel
  rm -rf "$there" && git clone -q . "$there" && python3 -m venv "$there/.venv" &&
    (cd "$there" && PYTHONS=$PWD/.venv/bin/python ARCHITECTURES=$(uname -m) tools/build_wheels.sh &&
      .venv/bin/pip install -q "$(echo wheelhouse/*.whl)[test,plot]" &&
      .venv/bin/python tools/check_wheel.py wheelhouse/*.whl &&
      .venv/bin/pytest -q -n 1 -p no:cacheprovider)
}
wide() { SARRUS_SOAK=1 pytest -q -n 1 -p no:cacheprovider tests/laws tests/core tests/api/dynamics tests/api/viewer/test_screenshots.py; }
threads() { CXX=${CXX:-clang++-19} tools/sanitize.sh thread; }
oldest() {
  local python there=$PWD/$logs/oldest
  python=$(command -v python3.10 || ls ~/.pyenv/versions/3.10.*/bin/python3.10 2>/dev/null | tail -n 1)
  [ -n "$python" ] || { echo "Python 3.10 is not there" && return; }
  rm -rf "$there" && git clone -q . "$there" && "$python" -m venv "$there/.venv" &&
    (cd "$there" && .venv/bin/pip install -q "numpy==1.24.*" && .venv/bin/pip install -q ".[test]" && .venv/bin/pytest -q -n 1 -p no:cacheprovider)
}

stage fuzz python -m tools.fuzz --minutes "$minutes" &
fuzz=$!
for name in wide wheel threads oldest; do stage $name $name || failed=1; done
wait $fuzz || failed=1
exit $failed
