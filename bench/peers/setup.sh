#!/usr/bin/env bash
# Makes build/peers-venv: the loaders that bench/compare.py sets beside infeed, in the pinned versions of requirements*.txt; about 2.3 GB
# on disk, a minute or two. It also sees what .venv holds (torch, infeed). Quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=build/peers-venv
here=bench/peers
stamp=$venv/installed
wanted() { cat "$here"/requirements*.txt "$here/setup.sh"; }
if [ -e "$stamp" ] && wanted | cmp -s - "$stamp"; then exit 0; fi

fail() { echo "bench/peers/setup.sh: $*" >&2; exit 1; }
main=.venv/bin/python
[ -x "$main" ] || main=$(command -v python3) || fail "python3 is not installed"
mkdir -p build
log=build/peers-venv.log
[ -x "$venv/bin/python" ] || "$main" -m venv "$venv" >"$log" 2>&1 || fail "python3 -m venv failed: $(tail -n 1 "$log")"
echo "Installing the peers into $venv: $(cat "$here"/requirements*.txt | grep -v '^#' | tr '\n' ' ')"
install=("$venv/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 30)
{ "${install[@]}" -r "$here/requirements.txt" && "${install[@]}" --no-deps -r "$here/requirements-bare.txt"; } >"$log" 2>&1 ||
  fail "the packages cannot be had: $(grep ERROR "$log" | tail -n 1). Is PyPI reachable? All: $log"

# The last place looked in: .venv, with the .pth files there.
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
[ "$main" != .venv/bin/python ] || echo "import site; site.addsitedir('$(site "$main")')" >"$(site "$venv/bin/python")/zz_main.pth"

# SPDL loads FFmpeg's shared libraries; without them it alone is left out.
if ! ldconfig -p | grep -q 'libavdevice\.so'; then
  root=$([ "$(id -u)" = 0 ] || echo sudo)
  for package in libavdevice59 libavdevice60 libavdevice61; do
    apt-cache show "$package" >/dev/null 2>&1 || continue
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$package" >>"$log" 2>&1 && break
  done
  ldconfig -p | grep -q 'libavdevice\.so' || echo "FFmpeg's libraries could not be installed: SPDL will be left out. See $log" >&2
fi
wanted >"$stamp"
