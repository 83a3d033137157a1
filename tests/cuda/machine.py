# SPDX-License-Identifier: Apache-2.0
"""What the parts of tests/cuda/run share: where things are, what the machine is, commands with their output."""
import glob
import os
import shutil
import subprocess

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = 77


class Skip(Exception):
    """A part that cannot be measured here; the text says why."""


def words_of(argv, **more):
    """stdout of a command, or None where it is not there or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=TOP, **more)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


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
        self.environment = dict(os.environ)
        self.use_bundle()

    def use_bundle(self):
        """Unpacks the libraries that scripts/dev/bundle gathered, once, and builds and runs with them."""
        archives = [os.path.join(TOP, name) for name in ("build/bundle.tar.xz", ".bundle.tar.xz", ".bundle/bundle.tar.xz")]
        archive = next((path for path in archives if os.path.exists(path)), None)
        if archive is None:
            return
        folder = os.path.join(TOP, "build")
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(os.path.join(folder, "bundle/use")):
            subprocess.run(["tar", "xf", archive, "-C", folder], check=True)
        shown = subprocess.run(["bash", "-c", ". build/bundle/use && env -0"], cwd=TOP, capture_output=True, check=True)
        self.environment = dict(pair.split("=", 1) for pair in shown.stdout.decode().split("\0") if "=" in pair)

    def about(self):
        commit = words_of(["git", "rev-parse", "--short=12", "HEAD"])
        if commit and words_of(["git", "status", "--porcelain", "--untracked-files=no"]):
            commit += "-dirty"
        return {"commit": commit,
                "machine": {"cores": len(os.sched_getaffinity(0)), "card": smi("name"), "driver": smi("driver_version"),
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
        """Exit status of a command whose output goes to a file; 124 when it takes longer."""
        with open(log, "w", encoding="utf-8") as file:
            try:
                return subprocess.run(argv, cwd=TOP, stdout=file, stderr=subprocess.STDOUT, timeout=seconds,
                                      env={**self.environment, **more}, check=False).returncode
            except subprocess.TimeoutExpired:
                return 124

    def tests(self, pattern):
        return sorted(path for path in glob.glob(os.path.join(self.build_folder, "tests", pattern))
                      if os.access(path, os.X_OK) and not os.path.isdir(path))


def card_of(name):
    """The card file whose title is the card's name."""
    for path in sorted(glob.glob(os.path.join(TOP, "presets/cards/*.yaml"))):
        with open(path, encoding="utf-8") as file:
            title = next((line.partition(":")[2].strip() for line in file if line.startswith("title:")), None)
        if title == name:
            return os.path.basename(path)[:-len(".yaml")]
    return None


def tail_of(path, lines=30):
    with open(path, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-lines:])
