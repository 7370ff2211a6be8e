#!/usr/bin/env bash
# Release checks beyond .ci/run: tools/soak.sh [MINUTES of fuzzing, default 60]. They take an hour and a half on two cores.
#   fuzz     every public function, file reader and command line with hostile arguments
#   wide     laws over many more mechanisms, sizes and states than in the tests, and simulations of a million steps
#   wheel    a release wheel for this architecture, by Clang: built, checked, installed in another environment, all tests
#   device   sizes of recorded steps of the gallery on a GPU, from NVIDIA's compiler; fails without nvidia-cuda-nvrtc and cuda-bindings
#   threads  C++ tests with Clang's thread sanitizer, including the batch kernels
#   oldest   the oldest supported Python with its oldest NumPy, if it is installed; compiles everything again
# It needs a virtual environment with sarrus[dev] on the PATH, and Clang 19. It continues after a failure, and then exits with 1.
set -uo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-60}
logs=build/soak
mkdir -p "$logs"
failed=0

stage() {  # stage NAME COMMAND...: runs a command with its output in a log
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
wide() { SARRUS_SOAK=1 pytest -q -n 1 -p no:cacheprovider tests/laws tests/core tests/api/dynamics tests/api/cuda tests/api/viewer/test_screenshots.py; }
device() {
  python -c "import cuda.bindings.nvrtc" || { echo "NVRTC is missing: pip install cuda-bindings nvidia-cuda-nvrtc" && return 1; }
  python tools/device_code.py
}
threads() { CXX=${CXX:-clang++-19} tools/sanitize.sh thread; }
oldest() {
  local python there=$PWD/$logs/oldest
  python=$(command -v python3.10 || ls ~/.pyenv/versions/3.10.*/bin/python3.10 2>/dev/null | tail -n 1)
  [ -n "$python" ] || { echo "Python 3.10 is not installed" && return; }
  rm -rf "$there" && git clone -q . "$there" && "$python" -m venv "$there/.venv" &&
    (cd "$there" && .venv/bin/pip install -q "numpy==1.24.*" && .venv/bin/pip install -q ".[test]" && .venv/bin/pytest -q -n 1 -p no:cacheprovider)
}

stage fuzz python -m tools.fuzz --minutes "$minutes" &
fuzz=$!
for name in wide wheel device threads oldest; do stage $name $name || failed=1; done
wait $fuzz || failed=1
exit $failed
