# SPDX-License-Identifier: Apache-2.0
"""The workbench in a pseudo-terminal: how soon it is there, what it writes and computes when nothing changes and
while it trains, how soon it answers a key. Other terminal programs stand beside it when they are installed.

A frame has ended when nothing more comes for FRAME_GAP_SECONDS. CPU times are the scheduler's own nanoseconds.
"""
import fcntl
import os
import pty
import random
import select
import shutil
import signal
import struct
import tempfile
import termios
import time

from measure import TOP, Unavailable, environment, figures, headroom_program, knob_words, median, wanted

FRAME_GAP_SECONDS = 0.025
START_SECONDS = 5.0
# at most
WANTED = {"first_frame_seconds": 0.050, "idle_bytes_per_second": 0.0, "idle_cpu_frac": 0.002, "key_seconds": 0.050}
SIZES = [(24, 80), (50, 160)]
KEYS = 24
PEERS = {"htop": ["htop"], "btop": ["btop"], "tig": ["tig"]}


class Terminal:
    """A program in a pseudo-terminal of its own, with a home of its own."""

    def __init__(self, argv, rows, columns, home):
        variables = environment(TERM="xterm-256color", LANG="C.UTF-8", LC_ALL="C.UTF-8", HOME=home,
                                XDG_CONFIG_HOME=home, XDG_STATE_HOME=home, XDG_CACHE_HOME=home)
        self.begin = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            self.become(argv, rows, columns, variables)

    @staticmethod
    def become(argv, rows, columns, variables):
        try:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(TOP)
            os.execvpe(argv[0], argv, variables)
        finally:
            os._exit(127)

    def read(self, seconds):
        """What comes within that time, or nothing; stops at the first piece."""
        ready, _, _ = select.select([self.fd], [], [], max(0.0, seconds))
        try:
            return os.read(self.fd, 65536) if ready else b""
        except OSError:
            raise Unavailable("the program in the terminal ended by itself") from None

    def first_frame(self):
        """Seconds from the start to the last byte of the first frame, and its bytes."""
        last, count = None, 0
        while True:
            piece = self.read(START_SECONDS if last is None else last + FRAME_GAP_SECONDS - time.monotonic())
            if not piece:
                break
            last = time.monotonic()
            count += len(piece)
        if last is None:
            raise Unavailable("nothing on the screen after %.0f seconds" % START_SECONDS)
        return last - self.begin, count

    def listen(self, seconds):
        """All bytes that come within that time."""
        end, pieces = time.monotonic() + seconds, []
        while time.monotonic() < end:
            pieces.append(self.read(end - time.monotonic()))
        return b"".join(pieces)

    def press(self, text):
        os.write(self.fd, text)

    def answer_seconds(self, key, wanted_byte, patience=2.0):
        """Seconds from a key to a byte on the screen that nothing else writes."""
        begin = time.monotonic()
        self.press(key)
        while time.monotonic() - begin < patience:
            if wanted_byte in self.read(patience):
                return time.monotonic() - begin
        raise Unavailable("key %r was not answered within %.0f seconds" % (key, patience))

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def family(pid):
    """A process and its descendants."""
    pids = [pid]
    for pid in pids:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, thread), encoding="ascii") as file:
                pids += [int(child) for child in file.read().split()]
    return pids


def cpu_seconds(pid, thread=None):
    """CPU time of one thread, or of a process with all its threads and descendants."""
    total = 0
    for process in [pid] if thread else family(pid):
        for task in [str(thread)] if thread else os.listdir("/proc/%d/task" % process):
            with open("/proc/%d/task/%s/schedstat" % (process, task), encoding="ascii") as file:
                total += int(file.read().split()[0])
    return total * 1e-9


def watch(terminal, seconds):
    """What a program writes and computes over some time; the first thread is the one that draws."""
    before, before_drawing = cpu_seconds(terminal.pid), cpu_seconds(terminal.pid, terminal.pid)
    begin = time.monotonic()
    count = len(terminal.listen(seconds))
    took = time.monotonic() - begin
    return {"bytes_per_second": count / took, "cpu_frac": (cpu_seconds(terminal.pid) - before) / took,
            "drawing_cpu_frac": (cpu_seconds(terminal.pid, terminal.pid) - before_drawing) / took}


def first_frames(argv, size, home, rounds):
    times, sizes = [], []
    for _ in range(rounds):
        terminal = Terminal(argv, *size, home)
        try:
            seconds, count = terminal.first_frame()
        finally:
            terminal.close()
        times.append(seconds)
        sizes.append(count)
    return {**figures(times, "first_frame_seconds"), "first_frame_bytes": median(sizes)}


def key_latencies(terminal):
    """Into the command line goes a character that no screen shows, at moments that the frames do not know."""
    dice = random.Random(1)
    terminal.press(b":")
    terminal.listen(0.5)
    seconds = []
    for _ in range(KEYS):
        terminal.listen(dice.uniform(0.05, 0.3))
        seconds.append(terminal.answer_seconds(b"~", b"~"))
        terminal.press(b"\x7f")
    terminal.press(b"\x1b")
    return figures(seconds, "key_seconds")


def measure_headroom(size, home, rounds, seconds, knobs):
    argv = [headroom_program(), "presets/demo.yaml", *knob_words(knobs)]
    result = {"rows": size[0], "columns": size[1], **first_frames(argv, size, home, rounds)}
    terminal = Terminal(argv, *size, home)
    try:
        terminal.listen(2.0)
        result["running"] = watch(terminal, seconds)
        result.update(key_latencies(terminal))
        terminal.listen(0.5)
        terminal.press(b"r")
        terminal.listen(2.0)  # the step ends, the message is written, the plans in the background are done
        result["idle"] = watch(terminal, seconds)
    finally:
        terminal.close()
    return result


def measure_peer(name, size, home, rounds, seconds):
    result = {"name": name, "rows": size[0], "columns": size[1], **first_frames(PEERS[name], size, home, rounds)}
    terminal = Terminal(PEERS[name], *size, home)
    try:
        terminal.listen(2.0)
        result["steady"] = watch(terminal, seconds)
    finally:
        terminal.close()
    return result


def measure(options):
    rounds, seconds = options.rounds, 2.0 if options.quick else 10.0
    with tempfile.TemporaryDirectory() as home:
        screens = [measure_headroom(size, home, rounds, seconds, options.set) for size in SIZES]
        peers = [measure_peer(name, size, home, rounds, seconds) for name in PEERS if shutil.which(name)
                 for size in SIZES]
    return {"rounds": rounds, "wanted": WANTED, "screens": screens, "peers": peers,
            "peers_not_installed": [name for name in PEERS if not shutil.which(name)]}


def table(result):
    lines = []
    for s in result["screens"]:
        found = {"first_frame_seconds": s["first_frame_seconds"], "key_seconds": s["key_seconds"],
                 "idle_bytes_per_second": s["idle"]["bytes_per_second"], "idle_cpu_frac": s["idle"]["cpu_frac"]}
        verdict = {key: wanted(value, result["wanted"][key], False) for key, value in found.items()}
        lines.append("%dx%d  first frame %.0f ms (%s), %d bytes   key while training %.1f ms, slowest %.1f (%s)" % (
            s["columns"], s["rows"], s["first_frame_seconds"] * 1e3, verdict["first_frame_seconds"],
            s["first_frame_bytes"], s["key_seconds"] * 1e3, s["key_seconds_slowest"] * 1e3, verdict["key_seconds"]))
        lines.append("       idle %.0f B/s (%s), CPU %.2f %% (%s)   training %.0f B/s, drawing %.2f %% of a core" % (
            s["idle"]["bytes_per_second"], verdict["idle_bytes_per_second"], s["idle"]["cpu_frac"] * 100,
            verdict["idle_cpu_frac"], s["running"]["bytes_per_second"], s["running"]["drawing_cpu_frac"] * 100))
    for p in result["peers"]:
        lines.append("%dx%d  %s: first frame %.0f ms, steady %.0f B/s, CPU %.2f %%" % (
            p["columns"], p["rows"], p["name"], p["first_frame_seconds"] * 1e3, p["steady"]["bytes_per_second"],
            p["steady"]["cpu_frac"] * 100))
    if result["peers_not_installed"]:
        lines.append("not installed, not measured: " + ", ".join(result["peers_not_installed"]))
    return lines
