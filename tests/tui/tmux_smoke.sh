#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The workbench in a real terminal: start, keys, resize, Ctrl-Z and fg, crash, quit; the terminal is as before.
# tmux_smoke.sh PROGRAM. Exit 77: skipped.
program=$1
command -v tmux >/dev/null || { echo "skipped: tmux is not installed"; exit 77; }
socket=headroom-smoke-$$
folder=$(mktemp -d)
trap 'tmux -L $socket kill-server 2>/dev/null; rm -rf "$folder"' EXIT

fail() {
    echo "FAILED: $1"
    tmux -L $socket capture-pane -p
    exit 1
}
keys() { tmux -L $socket send-keys "$@"; }
screen() { tmux -L $socket capture-pane -p; }
# Waits until the screen shows the text (or, with `gone`, does not).
shows() {
    for _ in $(seq 100); do
        screen | grep -qF -- "$1" && return 0
        sleep 0.1
    done
    fail "the screen never showed: $1"
}
gone() {
    for _ in $(seq 100); do
        screen | grep -qF -- "$1" || return 0
        sleep 0.1
    done
    fail "the screen still shows: $1"
}

tmux -L $socket -f /dev/null new-session -d -x 80 -y 24 "env PS1='ready$ ' LC_ALL=C.UTF-8 bash --norc --noprofile" || exit 77
shows 'ready$'
keys "stty -g > $folder/before" Enter "$program" Enter
shows 'turn batch size'
shows 'running'

tmux -L $socket resize-window -x 120 -y 40
shows 'zoom-in'
for size in "40 10" "20 4" "200 60" "1 1" "60 16" "80 24"; do
    tmux -L $socket resize-window -x ${size% *} -y ${size#* }
done
shows 'vram'

keys C-z
shows 'Stopped'
keys "fg" Enter
shows 'turn batch size'
gone 'Stopped'

keys Right
shows 'OUT OF MEMORY'
keys z
shows 'running'

keys q
shows 'it is training'
keys y
shows 'ready$'
gone 'vram'
keys "clear; stty -g > $folder/after; echo code \$?" Enter
shows 'code 0'
cmp -s "$folder/before" "$folder/after" || fail "stty differs after leaving"

for signal in SEGV TERM; do
    keys "clear; $program" Enter
    shows 'turn batch size'
    pkill_target=$(pgrep -P "$(tmux -L $socket display-message -p '#{pane_pid}')" | tail -1)
    kill -$signal "$pkill_target"
    gone 'turn batch size'
    rm "$folder/after"
    keys Enter "clear; stty -g > $folder/after; echo fin\\ished $signal" Enter
    shows "finished $signal"
    cmp -s "$folder/before" "$folder/after" || fail "stty differs after SIG$signal"
done

keys "clear; TERM=no-such-terminal $program; echo code \$?" Enter
shows 'code 4'
shows 'TERM=no-such-terminal is in no terminal description'
keys "clear; TERM=dumb $program; echo code \$?" Enter
shows 'run PRESET --plain'
shows 'code 4'
keys "clear; LC_ALL=C $program" Enter
shows 'turn batch size'
screen | grep -q '[^ -~]' && fail "a C locale was sent more than ASCII"
keys q y
shows 'ready$'
echo "tmux smoke: passed"
