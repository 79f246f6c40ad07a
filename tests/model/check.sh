#!/usr/bin/env bash
# check.sh holds|caught|full "-DNB=2 -DDEATHS=1 ..."   Searches every state of ring.pml in these sizes (needs spin and gcc).
# holds: no property may be broken. caught: one must be. full: as holds, but only where INFEED_MODEL=full, else exit 77.
set -euo pipefail
want=$1
read -ra sizes <<<"$2"
optimise=-O2 memory_mib=2800
case "$want" in
  caught) optimise=-O0 ;;  # compiling takes longer than the search
  full)
    memory_mib=${INFEED_MODEL_MIB:-10000}
    [ "${INFEED_MODEL:-}" = full ] || { echo "INFEED_MODEL=full searches these states too: minutes, and gigabytes."; exit 77; } ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$(dirname "$0")/ring.pml" "$scratch"
cd "$scratch"
spin -a "${sizes[@]}" ring.pml >spin.log 2>&1 || { cat spin.log; exit 1; }
gcc "$optimise" -w -DSAFETY -DNOREDUCE -DNOFAIR -DCOLLAPSE -DVECTORSZ=1024 -DMEMLIM="$memory_mib" -o pan pan.c
begin=$(date +%s%N)
./pan -E -m2000000 -w23 >pan.log 2>&1 || true
tenths=$((($(date +%s%N) - begin) / 100000000))

states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log | head -n 1)
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
memory=$(sed -n 's/^ *\([0-9]*\)[0-9.]*.*total actual memory usage.*/\1/p' pan.log)
echo "$2: ${states:-?} states, ${memory:-?} MB, $((tenths / 10)).$((tenths % 10)) s, errors: ${errors:-?}"
grep -m 1 '^pan:1:' pan.log | cut -c 1-200 || true

if [ "$want" = caught ]; then
  [ "$errors" = 1 ] || { echo "No property is broken: the model does not see this fault."; exit 1; }
elif [ "$errors" != 0 ]; then
  spin -t -p "${sizes[@]}" ring.pml | grep 'proc ' | tail -n 80
  exit 1
elif grep -qE 'out of memory|max search depth too small|Search not completed|memory limit' pan.log; then
  echo "The search did not end, so it proves nothing."
  exit 1
fi
