#!/usr/bin/env bash
# Checks infeed on a real GPU, in at most 5 minutes, and writes one JSON file.
#
#   bench/gpu_check.sh prepare DEPS             here, with a network: what the build needs, as packages of this Debian (22 MiB)
#   bench/gpu_check.sh run DEPS OUT.json        there: GPU, CUDA 13, CMake, a compiler, dpkg-deb, Python with torch; no network
#   bench/gpu_check.sh rehearse DEPS OUT.json   here: each step of run, from the same folder; CUDA's stand-in takes the GPU's place
#   bench/gpu_check.sh dry BUILD OUT.json       here: the same without the build
#
# It builds libinfeed.so, the CUDA plugin and the Python package, runs on "cuda:0" the list that every device keeps, the kernels' tests and
# the companion's (two models train beside the CPU's), measures copies page-locked and not, overlap and loaders (bench/gpu/gpu_check.cpp),
# and trains with torch (bench/gpu/train_check.py). Every step has a limit in seconds, and so have all together; the build, 7 CPU minutes,
# wants 4 cores. Here the limits are longer. A step that fails leaves the others (but for those of the build); the exit status is 0 where
# none did. OUT.json is written in any case: each step's status, seconds and output, and what was left out and why.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
mode=${1:?prepare, run, rehearse or dry}
packages=(libboost1.74-dev libfmt-dev libfmt9 libspdlog-dev libspdlog1.10 nlohmann-json3-dev libjpeg62-turbo-dev libjpeg62-turbo
  libpng-dev libpng16-16 zlib1g-dev zlib1g libtbb-dev libtbb12 libtbbmalloc2 libtbbbind-2-5 libhwloc15 libgtest-dev libgmock-dev
  libdnnl-dev libdnnl2 ninja-build)
most_mib=64

prepare() {
  mkdir -p "$1/debs" "$1/wheels"
  (cd "$1/debs" && apt-get download -q "${packages[@]}")
  "$here/.venv/bin/pip" download -q --no-deps -d "$1/wheels" nanobind==3.1.0
  du -sm "$1"
  if [ "$(du -sm "$1" | cut -f1)" -gt $most_mib ]; then
    echo "$1 is larger than $most_mib MiB" >&2
    return 1
  fi
}

# Everything that is missing there is unpacked beside the build; nothing is installed.
unpack() {
  mkdir -p "$root" "$build/python-deps"
  for deb in "$deps"/debs/*.deb; do dpkg-deb -x "$deb" "$root"; done
  # Links that name a place of the system (libz.so) name ours.
  find "$root" -type l -lname '/*' | while read -r link; do
    if [ -e "$root$(readlink "$link")" ]; then ln -sf "$root$(readlink "$link")" "$link"; fi
  done
  for wheel in "$deps"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$build/python-deps"; done
}

configure() {
  local cuda=() nvcc
  nvcc=$(command -v nvcc)
  if [ "$mode" = run ]; then  # for this GPU alone
    cuda=(-D CMAKE_CUDA_ARCHITECTURES="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)-real")
  fi
  cmake -S "$here" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_PREFIX_PATH="$root/usr" -D BOOST_ROOT="$root/usr" \
    -D CMAKE_EXE_LINKER_FLAGS="-Wl,-rpath,$lib" -D CMAKE_SHARED_LINKER_FLAGS="-Wl,-rpath,$lib" -D CMAKE_MODULE_LINKER_FLAGS="-Wl,-rpath,$lib" \
    -D INFEED_CUDA=ON -D CudaRuntime_ROOT="$(dirname "$(dirname "$(readlink -f "$nvcc")")")" "${cuda[@]}" \
    -D INFEED_BUILD_TESTS=ON -D INFEED_GPU_CHECK=ON -D INFEED_BUILD_BENCH=OFF -D INFEED_BUILD_EXAMPLES=OFF \
    -D INFEED_BUILD_TOOLS=OFF -D INFEED_BUILD_PYTHON="$with_python" -D Python_EXECUTABLE="$python" -D CMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON
}

compile() {
  local targets=(infeed-gpu-check infeed_cuda cuda_own_runtime_test) extra
  for extra in cuda_kernels_test cuda_train_own_test fake_cudart infeed_cuda_twins infeed_python; do
    if ninja -C "$build" -t targets all | grep -q "^$extra:"; then targets+=("$extra"); fi
  done
  ninja -C "$build" "${targets[@]}"
}

failed=0
# part NAME LIMIT COMMAND...: its output and status go into the report; the others go on. Nothing begins when the time is over.
part() {
  local name=$1 limit=$(($2 * slack)) begin=$SECONDS status=0 left=$((300 * slack - SECONDS))
  shift 2
  echo "== $name"
  if [ $left -lt "$limit" ]; then limit=$((left > 0 ? left : 0)); fi
  if [ "$limit" = 0 ]; then
    echo "no time was left" >"$report/$name.out"
    status=124
  else
    timeout -k 5 "$limit" "$@" >"$report/$name.out" 2>"$report/$name.err" || status=$?
  fi
  echo "$status $((SECONDS - begin))" >"$report/$name.status"
  if [ "$status" != 0 ]; then
    failed=1
    tail -n 20 "$report/$name.err" "$report/$name.out" >&2 || true
  fi
  return 0
}

leave_out() {
  echo "== $1 is left out: $2"
  echo "$2" >"$report/$1.left_out"
}

# The report's parts as one JSON object; what is JSON itself stays so.
join_parts() {
  "$python" - "$report" "$1" "$mode" "$SECONDS" <<'END'
import json, pathlib, platform, sys
report, out, mode, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
result = {"mode": mode, "machine": platform.platform(), "seconds": seconds, "parts": {}, "left_out": {}}
for status in sorted(report.glob("*.status"), key=lambda file: file.stat().st_mtime):
    code, seconds = status.read_text().split()
    texts = [status.with_suffix(end) for end in (".out", ".err")]
    output, errors = (text.read_text(errors="replace") if text.exists() else "" for text in texts)
    try:
        output = json.loads(output)
    except ValueError:
        output = (output + errors)[-4000:]
    result["parts"][status.stem] = {"status": int(code), "seconds": int(seconds), "output": output}
for why in report.glob("*.left_out"):
    result["left_out"][why.stem] = why.read_text().strip()
pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")
END
  echo "Written: $1"
}

build_parts() {
  root=$build/deps
  lib=$root/usr/lib/$(gcc -print-multiarch):$root/lib/$(gcc -print-multiarch)
  export PATH="$root/usr/bin:$PATH:/usr/local/cuda/bin" PYTHONPATH="$build/python-deps" LD_LIBRARY_PATH="$lib:${LD_LIBRARY_PATH:-}"
  export CPLUS_INCLUDE_PATH=$root/usr/include/$(gcc -print-multiarch)  # jconfig.h
  with_python=ON
  if ! "$python" -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null; then with_python=OFF; fi
  export -f unpack configure compile
  export mode here build deps root lib python with_python
  local step
  for step in "unpack 30" "configure 60" "compile 200"; do
    # shellcheck disable=SC2086 # a name and a number
    set -- $step
    if [ $failed = 0 ]; then part "$1" "$2" bash -euo pipefail -c "$1"; fi
  done
  export PYTHONPATH=
}

check_parts() {
  local preload=(env LD_PRELOAD="$stand_in")
  export INFEED_PLUGIN_PATH=$build/src
  part devices 60 "${preload[@]}" "$build/tests/cuda/cuda_own_runtime_test" --gtest_brief=1 --gtest_filter='Real/*'
  if [ -x "$build/tests/cuda/cuda_kernels_test" ]; then
    part kernels 60 "$build/tests/cuda/cuda_kernels_test" --gtest_brief=1
  else
    leave_out kernels "$build has no cuda_kernels_test"
  fi
  if [ -x "$build/tests/cuda/cuda_train_own_test" ]; then
    # The companion on the device beside the CPU: operations, gradients, and how an MLP and a CNN train.
    part companion 60 "${preload[@]}" OMP_WAIT_POLICY=passive INFEED_PLUGIN_PATH="$kernels" "$build/tests/cuda/cuda_train_own_test" --gtest_brief=1
  else
    leave_out companion "$build has no cuda_train_own_test"
  fi
  part measure 60 "${preload[@]}" "$build/bench/gpu/infeed-gpu-check" "${quick[@]}"
  if ! compgen -G "$build/python/infeed/_native*.so" >/dev/null; then
    leave_out train "$build has no Python package; to build it needs Python.h and nanobind"
  elif ! "$python" -c 'import torch' 2>/dev/null; then
    leave_out train "$python has no torch"
  else
    part train 90 env PYTHONPATH="$build/python" "$python" "$here/bench/gpu/train_check.py" "${quick[@]}"
  fi
}

slack=1 quick=() stand_in='' python=$(command -v python3)
if [ "$mode" != run ] && [ -x "$here/.venv/bin/python" ]; then python=$here/.venv/bin/python; fi
case $mode in
  prepare) prepare "$(mkdir -p "${2:?a folder}" && cd "$2" && pwd)"; exit ;;
  run) build=$here/build/gpu ;;
  rehearse) build=$here/build/gpu slack=20 quick=(--quick) ;;
  dry) build=$(cd "${2:?a build folder}" && pwd) slack=20 quick=(--quick) ;;
  *) echo "prepare, run, rehearse or dry, not $mode" >&2; exit 2 ;;
esac
out=${3:?the file to write}
if [ "$mode" != run ]; then stand_in=$build/tests/fake_cudart/libcudart.so.13; fi
kernels=$build/src  # host twins in their place, where CUDA's stand-in is in the GPU's
if [ "$mode" != run ]; then kernels=$build/tests/cuda/twins; fi
report=$build/gpu_check
rm -rf "$report"
mkdir -p "$report"

if [ "$mode" != dry ]; then
  deps=$(cd "${2:?the prepared folder}" && pwd)
  build_parts
fi
if [ "$mode" = run ]; then part gpu 10 nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current --format=csv,noheader; fi
if [ $failed = 0 ] || [ "$mode" = dry ]; then check_parts; fi
join_parts "$out"
exit "$failed"
