#!/usr/bin/env bash
# Builds the C++ tests with sanitizers and runs them:  tools/sanitize.sh [address,undefined | thread]
#   CXX     the compiler (default: c++)
#   EIGEN   a folder with Eigen's headers (default: tools/eigen.sh looks for it)
#   PYTHON  whose cmeel-eigen may have them (default: python3)
#   JOBS    how many files to compile at once (default: as many as there are processors)
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizers=${1:-address,undefined}
out=build/sanitize-${sanitizers//,/-}
mkdir -p "$out"

. tools/eigen.sh

# What a compiler inlines everywhere a sanitizer checks everywhere: seven minutes a file instead of half of one.
flags=(-std=c++17 -O1 -g1 -fno-inline -Dalways_inline=unused -DEIGEN_DONT_VECTORIZE -isystem "$EIGEN" "-fsanitize=$sanitizers" -pthread)
level=baseline
case $sanitizers in
  *undefined*) flags+=(-fno-sanitize-recover=undefined) ;;
esac
case $sanitizers in
  *address*) flags+=(-march=native) level=native ;;  # wide registers: an array that is not aligned shows
esac

# No test takes derivatives of steps: they are made for one state, in a third of the time. Where the tests spend little time, and under the
# sanitizer of threads, which runs little, nothing is optimised, in half of the time.
compile() {
  local faster=
  case $1 in *step*) faster=-DSARRUS_FALLBACK ;; esac
  case $1-$out in *mechanism/*|*tests/*|*step*|*rate*|*control*|*contact*|*thread) faster+=" -O0" ;; esac
  ${CXX:-c++} $flags_text $faster "-DSARRUS_LEVEL=\"$level\"" -Wall -Wextra -c "$1" -o "$out/$(basename "$1" .cpp).o"
}
kernels=({tree,loop,derivative,rate,simulation,control,contact,step}_kernels shared_{one,joints,rates,steps} table)
case $sanitizers in
  *thread*) flags+=(-DSARRUS_FALLBACK) ;;  # one state and many share the same between threads: what goes side by side would double the build
  *) kernels+=({tree,loop,derivative,simulation,variant}_batches variant_simulation shared_{many,variants}) ;;
esac
parts=("${kernels[@]/#/cpp/kernels/}" cpp/mechanism/{mechanism,closing,bake,variants,elimination,fronts,substructures} tests/cpp/test_core)
export -f compile
export flags_text="${flags[*]}" level out CXX
printf '%s\n' "${parts[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'compile {}.cpp'
objects=("${parts[@]/#*\//$out/}")
"${CXX:-c++}" "${flags[@]}" "${objects[@]/%/.o}" -o "$out/test_core"
case $sanitizers in *thread*) only=threads ;; esac
UBSAN_OPTIONS=print_stacktrace=1 "$out/test_core" ${only:-}
