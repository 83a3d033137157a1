# SPDX-License-Identifier: Apache-2.0
"""What the parts of tests/cuda/run share: where things are, what the machine is, commands with their output, and what a
part has to tell: what failed, and what was left out and why."""
import glob
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = 77
LATE = 124  # the exit status of a command that took longer than it may
CUT = 125   # it was not begun, or not ended, because the part's time was over
BEGIN_SECONDS = 2  # a command is not begun with less
QUESTION_SECONDS = 30
MIB = 1 << 20
LOG_BYTES = 1 << 18  # of a log that is kept: its end
REHEARSED_CARD = "h200-141g"
PEER_PYTHON = os.environ.get("HEADROOM_PEER_PYTHON", sys.executable)


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


class Tally:
    """What went wrong in a part, and what was left out: neither is lost when it is interrupted."""

    def __init__(self):
        self.failed, self.skipped = [], []

    def note(self, name, status, text):
        """What did not end well; behind the deadline it is left out, not failed."""
        (self.skipped if status == CUT else self.failed).append("%s: %s" % (name, text))

    def skip(self, name, text):
        self.skipped.append("%s: %s" % (name, text))


def why(status, out, err):
    """What a command that failed said last."""
    end = (err.strip() or out.strip())[-500:]
    if status == CUT:
        return "the part's time was over"
    if status == LATE:
        return "took too long: " + end
    return end or "exit %d" % status


def find_tool(name):
    """A tool of the CUDA Toolkit: on the path, or where NVIDIA installs it."""
    for path in (shutil.which(name), os.path.join("/usr/local/cuda/bin", name)):
        if path and os.path.exists(path):
            return path
    return None


class Machine:
    """rehearses: on the emulated card, which nvidia-smi does not know. The part may take `seconds` altogether."""

    def __init__(self, part="part", seconds=450, rehearses=False, commit=None, version=None):
        self.rehearses, self.commit, self.version = rehearses, commit, version
        self.deadline = time.monotonic() + seconds
        self.environment = dict(os.environ)
        self.bundle_libraries = self.binaries = None
        self.told = {}  # by nvidia-smi
        self.binaries_error = None  # why what was carried does not start
        self.build_folder = os.path.join(TOP, os.environ.get("HEADROOM_BUILD", "build/cuda"))
        self.use_binaries()
        self.headroom = os.path.join(self.build_folder, "headroom")
        self.logs = os.path.join(self.build_folder, "logs", part)
        shutil.rmtree(self.logs, ignore_errors=True)
        if rehearses:  # what a real cuDNN answered is not what the emulated one answers, and the other way round
            home = self.environment["XDG_CACHE_HOME"] = self.environment["XDG_DATA_HOME"] = os.path.join(self.build_folder, "logs", part + "_home")
            shutil.rmtree(home, ignore_errors=True)
        if self.binaries is None:
            self.use_bundle()
        self.use_libraries()

    def left(self, seconds):
        """What a command may take that would like so much."""
        return min(seconds, self.deadline - time.monotonic())

    def bounded(self, seconds, run):
        """run(seconds) within the part's time: CUT instead of LATE where that is what it lacked."""
        left = self.left(seconds)
        if left < BEGIN_SECONDS:
            return CUT
        status = run(left)
        return CUT if status == LATE and left < seconds else status

    def smi(self, field):
        if self.rehearses:
            return {"name": "Emulated Card", "compute_cap": "9.0"}.get(field)
        if field not in self.told:  # it takes a good part of a second
            text = words_of(["nvidia-smi", "--query-gpu=" + field, "--format=csv,noheader,nounits"])
            self.told[field] = text.splitlines()[0].strip() if text else None
        return self.told[field]

    def card(self):
        """The name in `headroom cards` of the card that is here; None where its title is in no row."""
        return REHEARSED_CARD if self.rehearses else card_of(self.smi("name"))

    def knobs(self, vram="64GiB"):
        """Of every run: the card, where its row is known, and a limit that does not depend on what it has left."""
        return ["device.kind=cuda", "device.card=" + (self.card() or ""),
                "device.vram=" + ("2GiB" if self.rehearses else vram)]

    def use_libraries(self):
        """NVIDIA's libraries where the linker does not look: the wheels of the Python that has PyTorch, and a toolkit's folder.
        Rehearsed is with the emulated card's."""
        found = []
        if self.rehearses:
            found = [os.path.join(self.build_folder, "card")]
        else:
            wheels = words_of([PEER_PYTHON, "-c", "import nvidia; print('\\n'.join(nvidia.__path__))"]) or ""
            for folder in wheels.splitlines():
                found += sorted(glob.glob(os.path.join(folder, "*", "lib")))
            found += [path for path in ("/usr/local/cuda/lib64",) if os.path.isdir(path)]
        if found:
            before = self.environment.get("LD_LIBRARY_PATH")
            self.environment["LD_LIBRARY_PATH"] = ":".join(([before] if before and not self.rehearses else []) + found)

    def use_binaries(self):
        """What scripts/dev/bundle --binaries packed, where nothing has been built: unpacked once, and used where it starts."""
        archive = first_of("build/binaries.tar.xz", ".bundle/binaries.tar.xz", ".binaries.tar.xz")
        if archive is None or self.rehearses or os.path.exists(os.path.join(self.build_folder, "CMakeCache.txt")):
            return
        folder = os.path.join(TOP, "build", "binaries")
        if not os.path.exists(os.path.join(folder, "carried.json")):
            os.makedirs(os.path.join(TOP, "build"), exist_ok=True)
            subprocess.run(["tar", "xf", archive, "-C", os.path.join(TOP, "build")], check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(
            filter(None, [os.path.join(folder, "lib"), os.environ.get("LD_LIBRARY_PATH")]))}
        status, out, err = answer_of([os.path.join(folder, "headroom"), "--version"], QUESTION_SECONDS, env=environment)
        self.binaries = {"archive": os.path.relpath(archive, TOP), "bytes": os.path.getsize(archive),
                         "start": status == 0, "said": (out if status == 0 else why(status, out, err)).strip()}
        if status == 0:
            self.build_folder, self.environment = folder, environment
        else:
            print("what was carried does not start: " + self.binaries["said"])
            self.binaries_error, self.binaries = self.binaries["said"], None

    def use_bundle(self):
        """Unpacks the libraries that scripts/dev/bundle gathered, once, and builds and runs with them."""
        archive = first_of("build/bundle.tar.xz", ".bundle.tar.xz", ".bundle/bundle.tar.xz")
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
        return {"commit": self.commit or commit, "version": self.version, "rehearsed": self.rehearses,
                "machine": {"cores": self.cores(), "card": self.smi("name"), "driver": self.smi("driver_version"),
                            "vram_mib": self.smi("memory.total"), "compute_capability": self.smi("compute_cap"),
                            "nvcc": self.nvcc_version()},
                "binaries": self.binaries or self.binaries_error, "build": words_of([self.headroom, "--version"], env=self.environment)}

    @staticmethod
    def nvcc_version():
        nvcc = find_tool("nvcc")
        text = words_of([nvcc, "--version"]) if nvcc else None
        return text.splitlines()[-1] if text else None

    def architecture(self):
        """Of the kernels to build: the card's own; 90 where there is none."""
        return (self.smi("compute_cap") or "9.0").replace(".", "")

    def run(self, argv, log, seconds, **more):
        """Exit status of a command whose output goes to a file among the logs; LATE when it takes longer, CUT as above."""
        os.makedirs(self.logs, exist_ok=True)
        with open(self.log(log), "wb") as file:
            return self.bounded(seconds, lambda left: finish(argv, left, file, env={**self.environment, **more}))

    def log(self, name):
        return os.path.join(self.logs, name if "." in name else name + ".log")

    def tail_of(self, log, lines=30):
        with open(self.log(log), encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:])

    def ask(self, argv, seconds, **more):
        """Exit status (CUT as above), stdout and stderr."""
        said = ["", ""]

        def run(left):
            status, *said[:] = answer_of(argv, left, env={**self.environment, **more})
            return status

        return (self.bounded(seconds, run), *said)

    def keep_logs(self, path):
        """The ends of all logs, in one archive."""
        if not os.path.isdir(self.logs):
            return
        with tempfile.TemporaryDirectory() as folder, lzma.open(path, "wb") as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for name in sorted(os.listdir(self.logs)):
                    end = os.path.join(folder, name)
                    with open(os.path.join(self.logs, name), "rb") as log, open(end, "wb") as file:
                        whole = name.endswith((".csv", ".json"))  # a table without its head is none
                        log.seek(0 if whole else max(0, os.path.getsize(log.name) - LOG_BYTES))
                        file.write(log.read())
                    archive.add(end, arcname="logs/" + name)

    def tests(self, pattern):
        return sorted(path for path in glob.glob(os.path.join(self.build_folder, "tests", pattern))
                      if os.access(path, os.X_OK) and not os.path.isdir(path))


def matches(options, name):
    """Is it asked for? --only is words with a comma between, of which one is in the name."""
    return options.only is None or any(word in name for word in options.only.split(","))


def first_of(*names):
    """The first of these files that is there."""
    return next((path for path in (os.path.join(TOP, name) for name in names) if os.path.exists(path)), None)


def card_of(name):
    """The row of the table of cards whose title is the card's name: {"NAME", "TITLE", …."""
    with open(os.path.join(TOP, "engine/knobs/card_table.c"), encoding="utf-8") as file:
        titles = dict(reversed(pair) for pair in re.findall(r'^    \{"([^"]+)", "([^"]+)",', file.read(), re.M))
    return titles.get(name)
