# SPDX-License-Identifier: Apache-2.0
"""What the parts of tests/cuda/run share: where things are, what the machine is, commands with their output."""
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = 77
LATE = 124  # the exit status of a command that took longer than it may
PART_SECONDS = 450  # of one part altogether
QUESTION_SECONDS = 30


class Skip(Exception):
    """A part that cannot be measured here; the text says why."""


running = set()


def start(argv, **more):
    """A process as a session of its own, so that it ends with all that it started."""
    process = subprocess.Popen(argv, cwd=TOP, start_new_session=True, **more)
    running.add(process)
    return process


def end_group(process):
    running.discard(process)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def end_all():
    for process in list(running):
        end_group(process)


def finish(argv, seconds, stdout, stderr=subprocess.STDOUT, **more):
    """Exit status of a command whose output goes to open files; LATE when it takes longer, 127 when it is not there."""
    try:
        process = start(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, **more)
    except OSError as error:
        (stdout if stderr == subprocess.STDOUT else stderr).write(str(error).encode())
        return 127
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return LATE
    finally:
        end_group(process)


def answer_of(argv, seconds, **more):
    """Exit status, stdout and stderr of a command, which may hang."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status = finish(argv, seconds, out, err, **more)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return (status, *texts)


def words_of(argv, **more):
    """stdout of a command, or None where it is not there, fails or hangs."""
    status, out, _ = answer_of(argv, QUESTION_SECONDS, **more)
    return out.strip() if status == 0 else None


def why(status, out, err):
    """What a command that failed said last."""
    end = (err.strip() or out.strip())[-500:]
    if status == LATE:
        return "took too long: " + end
    return end or "exit %d" % status


def smi(field):
    text = words_of(["nvidia-smi", "--query-gpu=" + field, "--format=csv,noheader,nounits"])
    return text.splitlines()[0].strip() if text else None


def has_card():
    return smi("name") is not None


def find_tool(name):
    """A tool of the CUDA Toolkit: on the path, or where NVIDIA installs it."""
    for path in (shutil.which(name), os.path.join("/usr/local/cuda/bin", name)):
        if path and os.path.exists(path):
            return path
    return None


class Machine:
    def __init__(self):
        self.build_folder = os.path.join(TOP, os.environ.get("HEADROOM_BUILD", "build/cuda"))
        self.headroom = os.path.join(self.build_folder, "headroom")
        self.logs = os.path.join(self.build_folder, "logs")
        self.deadline = time.monotonic() + PART_SECONDS
        self.environment = dict(os.environ)
        self.bundle_libraries = None
        self.use_bundle()

    def left(self, seconds):
        """What a command may take that would like so much; at least a second."""
        return max(1.0, min(seconds, self.deadline - time.monotonic()))

    def use_bundle(self):
        """Unpacks the libraries that scripts/dev/bundle gathered, once, and builds and runs with them."""
        names = ("build/bundle.tar.xz", ".bundle.tar.xz", ".bundle/bundle.tar.xz")
        archives = [os.path.join(TOP, name) for name in names]
        archive = next((path for path in archives if os.path.exists(path)), None)
        if archive is None:
            return
        folder = os.path.join(TOP, "build")
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(os.path.join(folder, "bundle/use")):
            subprocess.run(["tar", "xf", archive, "-C", folder], check=True)
        shown = subprocess.run(["bash", "-c", ". build/bundle/use && env -0"], cwd=TOP, capture_output=True, check=True)
        self.environment = dict(pair.split("=", 1) for pair in shown.stdout.decode().split("\0") if "=" in pair)
        self.bundle_libraries = self.environment["LIBRARY_PATH"]

    @staticmethod
    def cores():
        return len(os.sched_getaffinity(0))

    def about(self):
        commit = words_of(["git", "rev-parse", "--short=12", "HEAD"])
        if commit and words_of(["git", "status", "--porcelain", "--untracked-files=no"]):
            commit += "-dirty"
        return {"commit": commit,
                "machine": {"cores": self.cores(), "card": smi("name"), "driver": smi("driver_version"),
                            "vram_mib": smi("memory.total"), "compute_capability": smi("compute_cap"),
                            "nvcc": self.nvcc_version()},
                "build": words_of([self.headroom, "--version"], env=self.environment)}

    @staticmethod
    def nvcc_version():
        nvcc = find_tool("nvcc")
        text = words_of([nvcc, "--version"]) if nvcc else None
        return text.splitlines()[-1] if text else None

    def architecture(self):
        """Of the kernels to build: the card's own; 90 where there is none."""
        return (smi("compute_cap") or "9.0").replace(".", "")

    def run(self, argv, log, seconds, **more):
        """Exit status of a command whose output goes to a file among the logs; LATE when it takes longer."""
        os.makedirs(self.logs, exist_ok=True)
        with open(self.log(log), "wb") as file:
            return finish(argv, self.left(seconds), file, env={**self.environment, **more})

    def log(self, name):
        return os.path.join(self.logs, name + ".log")

    def tail_of(self, log, lines=30):
        with open(self.log(log), encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:])

    def ask(self, argv, seconds, **more):
        """Exit status, stdout and stderr."""
        return answer_of(argv, self.left(seconds), env={**self.environment, **more})

    def tests(self, pattern):
        return sorted(path for path in glob.glob(os.path.join(self.build_folder, "tests", pattern))
                      if os.access(path, os.X_OK) and not os.path.isdir(path))


def card_of(name):
    """The row of the table of cards whose title is the card's name: {"NAME", "TITLE", …."""
    with open(os.path.join(TOP, "engine/knobs/card_table.c"), encoding="utf-8") as file:
        titles = dict(reversed(pair) for pair in re.findall(r'^    \{"([^"]+)", "([^"]+)",', file.read(), re.M))
    return titles.get(name)
