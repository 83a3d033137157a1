# SPDX-License-Identifier: Apache-2.0
"""A program in a pseudo-terminal, and what the system says of it and of the processes it has started.

A frame has ended when nothing more comes for FRAME_GAP_SECONDS. CPU times are the scheduler's own nanoseconds.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from measure import TOP, Unavailable, environment

FRAME_GAP_SECONDS = 0.025
START_SECONDS = 5.0
GRACE_SECONDS = 5.0


class Terminal:
    """A program in a pseudo-terminal of its own, with a home of its own."""

    def __init__(self, argv, rows, columns, home):
        variables = environment(TERM="xterm-256color", LANG="C.UTF-8", LC_ALL="C.UTF-8", HOME=home,
                                XDG_CONFIG_HOME=home, XDG_STATE_HOME=home, XDG_CACHE_HOME=home,
                                XDG_RUNTIME_DIR=home, GIT_OPTIONAL_LOCKS="0")
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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

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

    def answer_seconds(self, key, wanted_byte, patience=5.0):
        """Seconds from a key to a byte on the screen that nothing else writes."""
        begin = time.monotonic()
        self.press(key)
        while time.monotonic() - begin < patience:
            if wanted_byte in self.read(patience):
                return time.monotonic() - begin
        raise Unavailable("key %r was not answered within %.0f seconds" % (key, patience))

    def listen_until(self, holds, patience):
        """Listens until holds() is true; false when it was not in time."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self.listen(0.1)
            if holds():
                return True
        return False

    def close(self):
        """Ends the program. What it has started may finish (a git of tig's holds a lock), but not for long."""
        started = family(self.pid)[1:]
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)
        end = time.monotonic() + GRACE_SECONDS
        while any(map(is_alive, started)) and time.monotonic() < end:
            time.sleep(0.01)
        for pid in filter(is_alive, started):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def lines_of(path):
    """Of a file below /proc; nothing when the process has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid):
    return any(line.startswith("State:") and "Z" not in line for line in lines_of("/proc/%d/status" % pid))


def threads_of(pid):
    try:
        return os.listdir("/proc/%d/task" % pid)
    except FileNotFoundError:
        return []


def family(pid):
    """A process and its descendants."""
    pids = [pid]
    for parent in pids:
        for thread in threads_of(parent):
            for line in lines_of("/proc/%d/task/%s/children" % (parent, thread)):
                pids += [int(child) for child in line.split()]
    return pids


def thread_cpu_seconds(pid, thread):
    lines = lines_of("/proc/%d/task/%s/schedstat" % (pid, thread))
    return int(lines[0].split()[0]) * 1e-9 if lines else 0.0


def cpu_seconds(pid):
    """Of a process with all its threads. What ended threads had computed is not in it."""
    return sum(thread_cpu_seconds(pid, thread) for thread in threads_of(pid))


def name_of(pid):
    """What a process was started as: "headroom @worker"."""
    words = " ".join(lines_of("/proc/%d/cmdline" % pid)).split("\0")
    return " ".join([os.path.basename(words[0])] + [word for word in words[1:] if word.startswith("@")])


def resident(pid):
    """Bytes in memory: all, a fair share of what others map too, and what is nobody else's."""
    names = {"Rss": "resident_bytes", "Pss": "proportional_bytes", "Private_Clean": "private_bytes",
             "Private_Dirty": "private_bytes"}
    found = dict.fromkeys(names.values(), 0)
    for line in lines_of("/proc/%d/smaps_rollup" % pid):
        key, _, value = line.partition(":")
        if key in names:
            found[names[key]] += int(value.split()[0]) * 1024
    return found


def watch(terminal, seconds):
    """What a program writes and computes over some time: its own process, the thread of it that draws (the first),
    and the processes it has started, apart."""
    drawing, before = thread_cpu_seconds(terminal.pid, terminal.pid), {
        pid: cpu_seconds(pid) for pid in family(terminal.pid)}
    begin = time.monotonic()
    count = len(terminal.listen(seconds))
    took = time.monotonic() - begin
    own, *children = family(terminal.pid)
    used = {pid: (cpu_seconds(pid) - before.get(pid, 0.0)) / took for pid in [own, *children]}
    return {"bytes_per_second": count / took, "cpu_frac": used[own],
            "drawing_cpu_frac": (thread_cpu_seconds(own, own) - drawing) / took, **resident(own),
            "children": [{"name": name_of(pid), "cpu_frac": used[pid], **resident(pid)} for pid in children]}
