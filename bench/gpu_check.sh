#!/usr/bin/env bash
# Checks infeed on a real GPU, in at most 5 minutes, and writes one JSON file.
#
#   bench/gpu_check.sh prepare DEPS        here, with a network: what the build needs, as packages of this Debian (20 MB)
#   bench/gpu_check.sh run DEPS OUT.json   there: GPU, CUDA 13, CMake, a compiler, dpkg-deb, Python with torch; no network
#   bench/gpu_check.sh dry OUT.json        here, from build/release, over the stand-in for CUDA's runtime: all that can run does
#
# It builds libinfeed.so, the CUDA plugin and the Python package, runs the list that every device keeps on "cuda:0" (and the kernels' tests,
# where the build has them), measures copies page-locked and not, overlap and loaders (bench/gpu/gpu_check.cpp), and trains with torch
# (bench/gpu/train_check.py). The exit status is 0 where nothing failed; each part's output is in OUT.json.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
mode=${1:?prepare, run or dry}
packages=(libboost1.74-dev libfmt-dev libfmt9 libspdlog-dev libspdlog1.10 nlohmann-json3-dev libjpeg62-turbo-dev libjpeg62-turbo
  libpng-dev libpng16-16 zlib1g-dev zlib1g libtbb-dev libtbb12 libtbbmalloc2 libtbbbind-2-5 libhwloc15 libgtest-dev libgmock-dev
  libdnnl-dev libdnnl2 ninja-build)

prepare() {
  mkdir -p "$1/debs" "$1/wheels"
  (cd "$1/debs" && apt-get download -q "${packages[@]}")
  "$here/.venv/bin/pip" download -q --no-deps -d "$1/wheels" nanobind==3.1.0
  du -sm "$1"
}

# Everything that is missing there is unpacked beside the build; nothing is installed.
build() {
  local root=$build/deps
  mkdir -p "$root" "$build/python-deps"
  for deb in "$1"/debs/*.deb; do dpkg-deb -x "$deb" "$root"; done
  # Links that name a place of the system (libz.so) name ours.
  find "$root" -type l -lname '/*' | while read -r link; do
    if [ -e "$root$(readlink "$link")" ]; then ln -sf "$root$(readlink "$link")" "$link"; fi
  done
  for wheel in "$1"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$build/python-deps"; done
  local lib
  lib=$root/usr/lib/$(gcc -print-multiarch):$root/lib/$(gcc -print-multiarch)
  export PATH="$root/usr/bin:$PATH" PYTHONPATH="$build/python-deps" LD_LIBRARY_PATH="$lib:${LD_LIBRARY_PATH:-}"
  cmake -S "$here" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_PREFIX_PATH="$root/usr" -D BOOST_ROOT="$root/usr" \
    -D CMAKE_EXE_LINKER_FLAGS="-Wl,-rpath,$lib" -D CMAKE_SHARED_LINKER_FLAGS="-Wl,-rpath,$lib" \
    -D INFEED_CUDA=ON -D INFEED_BUILD_TESTS=ON -D INFEED_GPU_CHECK=ON -D INFEED_BUILD_BENCH=OFF -D INFEED_BUILD_EXAMPLES=OFF \
    -D INFEED_BUILD_TOOLS=OFF -D INFEED_BUILD_PYTHON=ON -D Python_EXECUTABLE="$(command -v python3)" -D CMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON
  local targets=(infeed-gpu-check infeed_cuda cuda_own_runtime_test infeed_python)
  if ninja -C "$build" -t targets all | grep -q '^cuda_kernels_test:'; then targets+=(cuda_kernels_test); fi
  ninja -C "$build" "${targets[@]}"
}

failed=0
# part NAME COMMAND...: its output and status go into the report; the others go on.
part() {
  local name=$1 begin=$SECONDS status=0
  shift
  echo "== $name"
  "$@" >"$report/$name.out" 2>"$report/$name.err" || status=$?
  echo "$status $((SECONDS - begin))" >"$report/$name.status"
  if [ "$status" != 0 ]; then
    failed=1
    tail -n 20 "$report/$name.err" "$report/$name.out" >&2
  fi
}

# The report's parts as one JSON object; what is JSON itself stays so.
join_parts() {
  python3 - "$report" "$1" "$mode" <<'END'
import json, pathlib, platform, sys
report, out, mode = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
result = {"mode": mode, "machine": platform.platform(), "parts": {}}
for status in sorted(report.glob("*.status"), key=lambda file: file.stat().st_mtime):
    code, seconds = status.read_text().split()
    output = status.with_suffix(".out").read_text()
    try:
        output = json.loads(output)
    except ValueError:
        output = (output + status.with_suffix(".err").read_text())[-4000:]
    result["parts"][status.stem] = {"status": int(code), "seconds": int(seconds), "output": output}
pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")
END
  echo "Written: $1"
}

case $mode in
  prepare) prepare "$(mkdir -p "${2:?a folder}" && cd "$2" && pwd)"; exit ;;
  run) build=$here/build/gpu deps=$(cd "${2:?the prepared folder}" && pwd) out=${3:?the file to write} quick=() stand_in= ;;
  dry) build=$here/build/release deps= out=${2:?the file to write} quick=(--quick) stand_in=$here/build/release/tests/fake_cudart/libcudart.so.13 ;;
  *) echo "prepare, run or dry, not $mode" >&2; exit 2 ;;
esac
report=$build/gpu_check
rm -rf "$report"
mkdir -p "$report"

if [ "$mode" = run ]; then
  build "$deps" >"$report/build.out" 2>&1 || { tail -n 40 "$report/build.out" >&2; exit 1; }
  nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current --format=csv,noheader || true
fi
export INFEED_PLUGIN_PATH=$build/src
part devices env LD_PRELOAD="$stand_in" "$build/tests/cuda/cuda_own_runtime_test" --gtest_brief=1 --gtest_filter='Real/*'
if [ -x "$build/tests/cuda/cuda_kernels_test" ] && [ "$mode" = run ]; then part kernels "$build/tests/cuda/cuda_kernels_test" --gtest_brief=1; fi
part measure env LD_PRELOAD="$stand_in" "$build/bench/gpu/infeed-gpu-check" "${quick[@]}"
python=python3
if [ "$mode" = dry ]; then python=$here/.venv/bin/python; fi
if [ -d "$build/python/infeed" ]; then
  part train env PYTHONPATH="$build/python" "$python" "$here/bench/gpu/train_check.py" "${quick[@]}"
else
  echo "no Python package in $build/python: training is left out"
fi
join_parts "$out"
exit "$failed"
