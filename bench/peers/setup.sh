#!/usr/bin/env bash
# Makes build/peers-venv: the loaders that bench/compare.py sets beside infeed, in the pinned versions of requirements*.txt; about
# 2.3 GB on disk, a minute or two. It also sees what .venv holds (torch, infeed). Quick when all is there.
# With `ffcv` FFCV too, which is compiled against OpenCV.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=build/peers-venv
here=bench/peers
log=build/peers-venv.log
install=("$venv/bin/pip" install --disable-pip-version-check --retries 1 --timeout 30)

fail() { echo "bench/peers/setup.sh: $*" >&2; exit 1; }
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
debian() { # debian PACKAGE...: Debian's or Ubuntu's, as root or with sudo
  $([ "$(id -u)" = 0 ] || echo sudo) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >>"$log" 2>&1
}
is_done() { cat "$here/setup.sh" "$@" | cmp -s - "$stamp"; }

make_venv() {
  local main=.venv/bin/python
  [ -x "$main" ] || main=$(command -v python3) || fail "python3 is not installed"
  mkdir -p build
  "$main" -m venv "$venv" >"$log" 2>&1 || fail "python3 -m venv failed: $(tail -n 1 "$log")"
  # The last place looked in: .venv, with the .pth files there.
  [ "$main" != .venv/bin/python ] ||
    echo "import site; site.addsitedir('$(site "$main")')" >"$(site "$venv/bin/python")/zz_main.pth"
}

install_peers() {
  echo "Installing the peers into $venv: $(cat "$here"/requirements.txt "$here"/requirements-bare.txt | grep -v '^#' | tr '\n' ' ')"
  { "${install[@]}" -r "$here/requirements.txt" && "${install[@]}" --no-deps -r "$here/requirements-bare.txt"; } >"$log" 2>&1 ||
    fail "the packages cannot be had: $(grep ERROR "$log" | tail -n 1). Is PyPI reachable? All: $log"
  # SPDL loads FFmpeg's shared libraries; without them it alone is left out.
  for package in libavdevice59 libavdevice60 libavdevice61; do
    ! ldconfig -p | grep -q 'libavdevice\.so' || break
    apt-cache show "$package" >/dev/null 2>&1 && debian "$package" || true
  done
  ldconfig -p | grep -q 'libavdevice\.so' || echo "FFmpeg's libraries could not be installed: SPDL is left out. See $log" >&2
}

install_ffcv() {
  echo "Building FFCV into $venv"
  debian libopencv-core-dev libopencv-imgproc-dev libturbojpeg0-dev pkg-config ||
    debian libopencv-core-dev libopencv-imgproc-dev libturbojpeg-dev pkg-config || fail "OpenCV cannot be installed: see $log"
  # FFCV asks for all of OpenCV and uses these two parts.
  local opencv
  opencv=$(pwd)/build/peers-opencv
  mkdir -p "$opencv/opencv2"
  printf '#include <opencv2/%s.hpp>\n' core imgproc >"$opencv/opencv2/opencv.hpp"
  printf '%s\n' 'Name: opencv4' 'Description: core and imgproc' 'Version: 4' 'Libs: -lopencv_imgproc -lopencv_core' \
    "Cflags: -I$opencv -I/usr/include/opencv4" >"$opencv/opencv4.pc"
  { "${install[@]}" -r "$here/requirements-ffcv.txt" &&
    PKG_CONFIG_PATH=$opencv "${install[@]}" --no-deps --no-build-isolation -r "$here/requirements-ffcv-bare.txt"; } >>"$log" 2>&1 ||
    fail "FFCV cannot be built: $(grep -i error "$log" | tail -n 1). All: $log"
}

stamp=$venv/installed
lists=("$here/requirements.txt" "$here/requirements-bare.txt")
if ! is_done "${lists[@]}"; then
  [ -x "$venv/bin/pip" ] || make_venv
  install_peers
  cat "$here/setup.sh" "${lists[@]}" >"$stamp"
fi
stamp=$venv/installed-ffcv
lists=("$here/requirements-ffcv.txt" "$here/requirements-ffcv-bare.txt")
if [ "${1:-}" = ffcv ] && ! is_done "${lists[@]}"; then
  install_ffcv
  cat "$here/setup.sh" "${lists[@]}" >"$stamp"
fi
