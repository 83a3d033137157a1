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

# The clipboard: tmux takes what its set-clipboard lets it take.
tmux -L $socket set-option -s set-clipboard on
for _ in $(seq 10); do # not every pane has something to copy
    keys y
    sleep 0.3
    screen | grep -qF 'copied, where' && break
    keys Tab
done
shows 'copied, where'
for _ in $(seq 50); do
    tmux -L $socket show-buffer >"$folder/copied" 2>/dev/null && break
    sleep 0.1
done
grep -q . "$folder/copied" || fail "nothing came into tmux's buffer"

# A paste is text: in the line it stands, elsewhere it turns nothing and leaves nothing.
tmux -L $socket set-buffer -b pasted 'qyzzz'
tmux -L $socket paste-buffer -p -b pasted
shows 'pasted text'
keys Escape
keys :
tmux -L $socket paste-buffer -p -b pasted
shows 'qyzzz'
keys Escape
gone 'qyzzz'

# Every theme, and the mouse off and on.
for theme in light safe safe-light mono dark; do
    keys v
    shows "theme: $theme"
done
mouse() { tmux -L $socket display-message -p '#{mouse_any_flag}'; }
[[ $(mouse) == 1 ]] || fail 'the mouse is not taken'
keys m
shows "the mouse is the terminal's"
[[ $(mouse) == 0 ]] || fail 'the mouse is still taken'
keys m
shows 'the mouse clicks'
[[ $(mouse) == 1 ]] || fail 'the mouse is not taken again'

# The screen as files: cat of the one shows it again.
for suffix in txt ans svg; do
    keys ":save-display $folder/screen.$suffix" Enter
    shows "the screen is in"
    keys Escape
done
keys ":save-display $folder/screen.txt" Enter
shows 'the screen is in'
keys Escape
echo mine > "$folder/mine.txt"
keys ":save-display $folder/mine.txt" Enter
shows 'is there already'
keys Escape
grep -q '<path' "$folder/screen.svg" || fail 'the screenshot has no shapes'

tmux -L $socket resize-window -x 120 -y 40
for _ in $(seq 100); do
    screen | grep -q '.\{100\}' && break
    sleep 0.1
done
screen | grep -q '.\{100\}' || fail 'it does not use the larger window'
for size in "40 10" "20 4" "200 60" "1 1" "60 16" "80 24"; do
    tmux -L $socket resize-window -x ${size% *} -y ${size#* }
done
shows 'vram'

keys C-z
shows 'Stopped'
keys "fg" Enter
shows 'at_peak'
gone 'Stopped'

keys Right
shows 'OUT OF MEMORY'
keys z
shows 'running'

keys q
shows 'other keys stay'
keys y
shows 'ready$'
gone 'vram'
keys "clear; stty -g > $folder/after; echo code \$?" Enter
shows 'code 0'
cmp -s "$folder/before" "$folder/after" || fail "stty differs after leaving"

for signal in SEGV TERM HUP; do
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

keys "clear; cat $folder/screen.ans" Enter
shows 'batch.size'
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
