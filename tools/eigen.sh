# Source this file: it sets EIGEN to a folder with Eigen's headers, from pkg-config or from cmeel-eigen of the interpreter PYTHON.
if [ -z "${EIGEN:-}" ]; then
  EIGEN=$(pkg-config --variable=includedir eigen3 2>/dev/null || true)
  [ -z "$EIGEN" ] || EIGEN=$EIGEN/eigen3
  [ -d "$EIGEN" ] || EIGEN=$("${PYTHON:-python3}" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/cmeel.prefix/include/eigen3
fi
[ -d "$EIGEN/Eigen" ] || { echo "Eigen was not found: pip install cmeel-eigen, or set EIGEN=" >&2; exit 1; }
