#!/usr/bin/env bash
# Builds the C++ tests with sanitizers and runs them:  tools/sanitize.sh [address,undefined | thread]
#   CXX     the compiler (default: c++)
#   EIGEN   a folder with Eigen's headers (default: that of tools/eigen.sh)
#   PYTHON  interpreter whose cmeel-eigen may have them (default: python3)
#   JOBS    number of groups of files to compile at once (default: number of processors)
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizers=${1:-address,undefined}
out=build/sanitize-${sanitizers//,/-}
mkdir -p "$out"

. tools/eigen.sh

# Inlining is disabled, because a sanitizer instruments every inlined copy: a file would take seven minutes instead of half a minute.
flags=(-std=c++17 -g1 -fno-inline -Dalways_inline=unused -DEIGEN_DONT_VECTORIZE -isystem "$EIGEN" -I. "-fsanitize=$sanitizers" -pthread -Wall -Wextra -Wno-missing-field-initializers)
level=baseline tests=-O1
case $sanitizers in
  *undefined*) flags+=(-fno-sanitize-recover=undefined) ;;
esac
case $sanitizers in
  *address*) flags+=(-march=native -DSARRUS_POISON) level=native ;;  # wide registers, so that misaligned arrays are detected
  *thread*) flags+=(-DSARRUS_ONE_STATE) tests=-O0 ;;  # without batch kernels, which share the same data and would double the build
esac
flags+=("-DSARRUS_LEVEL=\"$level\"")

# Each group is compiled as one file, so that shared code is compiled only once; this takes four fifths of the time. Groups in which the tests spend
# little time are not optimised, which halves their compile time. Derivatives of steps are compiled for one state only, because no test needs more.
groups() {  # NAME OPTION... FILE...
  echo "one $tests" cpp/kernels/{{tree,loop,derivative,simulation}_kernels,shared_{one,joints},table} cpp/loops/pivoted_qr
  case $sanitizers in *thread*) ;; *)
    echo "many $tests" cpp/kernels/{{tree,loop,derivative,simulation}_batches,shared_many}
    echo "variants $tests" cpp/kernels/{variant_{batches,simulation},shared_variants}
  esac
  echo "rates -O0" cpp/kernels/{rate,control,contact}_kernels
  echo "mechanism -O0" cpp/mechanism/{mechanism,closing,bake,variants,elimination,fronts,substructures}
  echo "test_core -O0" tests/cpp/test_core
  echo "model -O0" cpp/model/{value,text,values,joint_type,builder,beam,document,core_description,contacts}
  echo "test_model -O0" tests/cpp/test_model
  echo "steps -O0 -DSARRUS_ONE_STATE" cpp/kernels/{step_kernels,shared_steps}
}
compile() {
  local name=$1 options=()
  shift
  while [[ $1 = -* ]]; do options+=("$1") && shift; done
  printf '#include "%s.cpp"\n' "$@" | ${CXX:-c++} $flags_text "${options[@]}" -x c++ -c - -o "$out/$name.o"
}
export -f compile
export flags_text="${flags[*]}" out CXX
groups | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'compile {}'
mapfile -t objects < <(groups | grep -v model | sed "s|\([^ ]*\).*|$out/\1.o|")
"${CXX:-c++}" "${flags[@]}" "${objects[@]}" -o "$out/test_core"
"${CXX:-c++}" "${flags[@]}" "$out"/{mechanism,model,test_model}.o -o "$out/test_model"
case $sanitizers in *thread*) only=threads ;; esac
UBSAN_OPTIONS=print_stacktrace=1 "$out/test_core" ${only:-}
UBSAN_OPTIONS=print_stacktrace=1 "$out/test_model" tests/data/every_part.json
