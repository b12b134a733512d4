#!/bin/bash
# Builds and runs everything on a machine with the device: ./run.sh OUT [ROWS]
# OUT/first and OUT/second hold two measurements of ROWS. Each experiment runs in a process of its own, but for
# launch_graph: the kernels of a graph follow one another later once a process has used many streams, and the rows of
# ../h200 were measured in such a process.
# A run that breaks its process is left out, and the next process goes on behind it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
rows=${2:-$here/rows.csv}
mkdir -p "$out"/first "$out"/second "$out"/settle
nvcc -O3 -arch=sm_90 "$here/measure.cu" -o "$out/measure" &
nvcc -O3 -arch=sm_90 "$here/settle.cu" -o "$out/settle/settle" &
wait
measure() {  # FOLDER: every experiment of the rows
  local process
  for process in $(tail -n +2 "$rows" | cut -d, -f2 | sed 's/^launch_graph$/streams/' | awk '!seen[$0]++'); do
    mkdir -p "$1/$process"
    (
      head -1 "$rows"
      awk -F, -v of="$process" '$2 == of' "$rows"
      [ "$process" = streams ] && awk -F, '$2 == "launch_graph"' "$rows"
    ) >"$1/$process/rows.csv"
    one "$1/$process"
  done
  for table in runs blocks asked; do
    cat "$1"/*/$table.csv | awk 'NR == 1 || !/^run,/' >"$1/$table.csv"
  done
}
one() {  # FOLDER: the rows in it
  local from=0 status
  for _ in 1 2 3 4 5 6; do
    if [ "$from" = 0 ]; then timeout 60 "$out/measure" "$1/rows.csv" "$1" >>"$1/log" 2>"$1/progress"
    else timeout 60 "$out/measure" "$1/rows.csv" "$1" "$from" >>"$1/log" 2>"$1/progress"; fi
    status=$?
    [ $status = 0 ] && break
    echo "ended with $status at $(tail -1 "$1/progress")" >>"$1/log"
    from=$(($(grep -E '^[0-9]+$' "$1/progress" | tail -1) + 1))
  done
}
measure "$out/first"
(cd "$out/settle" && timeout 100 ./settle . >log 2>&1)
for connections in 1 8 32; do
  (cd "$out/settle" && CUDA_DEVICE_MAX_CONNECTIONS=$connections timeout 30 ./settle . queues >>log 2>&1)
done
measure "$out/second"
