# SPDX-License-Identifier: Apache-2.0
"""The input pipeline against tf.data and PyTorch's DataLoader: JPEG files, decoded, resized and batched; CIFAR-10's
records, augmented and batched. All give shuffled batches of float32 on two cores and nobody reads them.

Interleaved: in every round each subject does one whole epoch, in turn there and back, workers alive. Each library runs
in its best setting, the fastest of a pilot; what its documentation shows with PIL stands beside it. The data is made
anew each time.

The floor of an epoch of JPEG is libjpeg-turbo's own time for the same files in two threads, measured in the same
rounds; of CIFAR-10 its bytes, read and written, at the rate of the fastest large copy.

Memory is measured apart, one process tree alive at a time: the peak of its proportional set (pages that several
processes of a tree share count once), sampled, and the same before it opened anything, with everything imported.
"""
import json
import os
import random
import select
import subprocess
import tempfile
import time

from measure import (MIB, TOP, Unavailable, bench_program, environment, figures, json_of, load, median, output_of,
                     peer_python, wanted)
from terminal import family, resident

THREADS = 2
IMAGES, CLASSES, SIDE = 2000, 10, 224
RECORDS_PER_FILE, RECORD_BYTES, CIFAR_SIDE, CROP = 4000, 3073, 32, 4
BESIDE_EVERY = 4  # rounds: what is told apart is slow
MEMORY_RUNS = 3
SAMPLE_SECONDS = 0.02
RESIDENT_WANTED = 0.5    # of the leaner peer's, at most
PIXELS_WANTED = 12e-3    # seconds of 256 x 224 x 224 x 3 bytes as float16, at most
OURS = ["pipeline.map_threads=%d" % THREADS, "pipeline.prefetch=2", "batch.remainder=keep"]

# peers: library, workers and variant of each candidate; the fastest of a library is its best. beside: told apart.
CASES = [
    {"name": "jpeg", "batch": 64, "side": SIDE, "speedup_wanted": 1.3,
     "knobs": ["pipeline.source=images"],
     "peers": [[("tensorflow", "auto", "plain"), ("tensorflow", "2", "plain"), ("tensorflow", "2", "accurate")],
               [("pytorch", "2", "plain"), ("pytorch", "2", "floats"), ("pytorch", "2", "antialias")]],
     "beside": [("pytorch", "2", "pil")]},
    {"name": "cifar", "batch": 128, "side": CIFAR_SIDE, "speedup_wanted": 5.0,
     "knobs": ["pipeline.source=cifar10", "pipeline.augment=flip,crop:%d" % CROP],
     "peers": [[("tensorflow", "auto", "plain"), ("tensorflow", "2", "plain")],
               [("pytorch", "2", "plain"), ("pytorch", "2", "batched"), ("pytorch", "0", "batched")]],
     "beside": [("pytorch", "2", "pil")]},
]


class Subject:
    """A process that answers each line with an epoch."""

    def __init__(self, name, argv):
        self.name, self.argv, self.answers, self.about, self.process = name, argv, [], None, None

    def start(self):
        self.complaints = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=TOP,
                                        stderr=self.complaints, env=environment(), text=True)
        self.answer()  # it has its imports

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.complaints.seek(0)
            raise Unavailable("%s ended with exit %d: %s" % (
                self.name, self.process.returncode, self.complaints.read().decode(errors="replace").strip()[-1000:]))
        return json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def run(self):
        self.ask("epoch")
        self.answers.append(self.answer())

    def finish(self):
        self.process.stdin.close()
        self.about = self.answer()
        self.process.wait()
        self.complaints.close()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def seconds(self):
        return [answer["seconds"] for answer in self.answers]

    def result(self):
        samples = self.answers[0]["samples"]
        return {"name": self.name, "samples": samples, "samples_per_second": samples / median(self.seconds()),
                **figures(self.seconds(), "epoch_seconds"),
                "first_batch_seconds": median([answer["first_batch_seconds"] for answer in self.answers]), **self.about}


def ours(case, folder, more):
    knobs = ["pipeline.path=" + folder, "batch.size=%d" % case["batch"], *OURS, *case["knobs"], *more]
    return Subject("headroom", [bench_program("epochs"), str(case["side"]), str(CLASSES), "float32", *knobs])


def peer(case, folder, python, words):
    library, workers, variant = words
    name = "%s, %s" % (library, "AUTOTUNE" if workers == "auto" else workers + " workers")
    return Subject(name + ("" if variant == "plain" else ", " + variant),
                   [python, "tests/bench/peers/pipelines.py", library, case["name"], folder, str(case["batch"]),
                    workers, variant])


# ---- data --------------------------------------------------------------------------------------------------------


def make_jpeg(folder, python, quick):
    images = IMAGES // 10 if quick else IMAGES
    output_of([python, "tests/bench/peers/make_images.py", folder, str(images), str(CLASSES)])
    files = [os.path.join(top, name) for top, _, names in os.walk(os.path.join(folder, "train")) for name in names]
    return {"files": sorted(files), "bytes_read": sum(os.path.getsize(name) for name in files)}


def make_cifar(folder, _, quick):
    dice, records = random.Random(1), RECORDS_PER_FILE // 10 if quick else RECORDS_PER_FILE
    names = ["data_batch_%d.bin" % k for k in range(1, 6)] + ["test_batch.bin"]
    for name in names:
        content = bytearray(dice.randbytes(records * RECORD_BYTES))
        content[::RECORD_BYTES] = bytes(byte % CLASSES for byte in content[::RECORD_BYTES])
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    return {"files": names, "bytes_read": 5 * records * RECORD_BYTES}


MAKERS = {"jpeg": make_jpeg, "cifar": make_cifar}

# ---- measuring ---------------------------------------------------------------------------------------------------


class Decoder:
    """libjpeg-turbo alone, as one more subject of a round."""

    def __init__(self, files):
        self.names, self.seconds = "".join(name + "\n" for name in files), []

    def run(self):
        with tempfile.TemporaryFile("w+") as names:
            names.write(self.names)
            names.seek(0)
            found = subprocess.run([bench_program("jpeg"), str(THREADS), str(SIDE), "1"], stdin=names, check=True,
                                   stdout=subprocess.PIPE, text=True)
        self.seconds += json.loads(found.stdout)["seconds"]


def run_rounds(subjects, beside, rounds):
    for index in range(rounds):
        all_of_it = subjects + (beside if index % BESIDE_EVERY == 0 else [])
        for subject in all_of_it if index % 2 == 0 else all_of_it[::-1]:
            subject.run()


def fastest_of(subjects, quick):
    """Of a pilot of two epochs each; its process goes on, the others end."""
    best = None
    try:
        for subject in subjects:
            subject.start()
        for _ in range(1 if quick else 2):
            for subject in subjects:
                subject.run()
        best = min(subjects, key=lambda subject: min(subject.seconds()))
    finally:
        for subject in subjects:
            if subject is not best:
                subject.stop()
    pilot = {subject.name: min(subject.seconds()) for subject in subjects}
    best.answers = []
    return best, pilot


def tree_bytes(pid):
    return sum(resident(one)["proportional_bytes"] for one in family(pid))


def watch_epoch(subject):
    """The peak of its tree over one epoch."""
    peak = 0
    subject.ask("epoch")
    while not select.select([subject.process.stdout], [], [], SAMPLE_SECONDS)[0]:
        peak = max(peak, tree_bytes(subject.process.pid))
    subject.answer()
    return max(peak, tree_bytes(subject.process.pid))


def memory_of(subject, runs):
    """Medians of processes that live alone."""
    idle, peak = [], []
    for _ in range(runs):
        subject.start()
        idle.append(tree_bytes(subject.process.pid))
        peak.append(watch_epoch(subject))
        subject.finish()
    return {"peak_tree_bytes": median(peak), "imported_tree_bytes": median(idle),
            "peak_tree_bytes_beyond_imports": median([b - a for a, b in zip(idle, peak)])}


def distances(case, folder, subjects):
    """How far our pixels are from each library's, in levels: of the first batch in the order of names."""
    own = ours({**case, "knobs": case["knobs"] + ["pipeline.shuffle=0"]}, folder, [])
    path = os.path.join(folder, "first.batch")
    own.start()
    try:
        own.ask(path)
        own.answer()
        found = {}
        for subject in subjects:
            subject.ask(path)
            found[subject.name.partition(",")[0]] = subject.answer()
    finally:
        own.stop()
    return found


def measure_case(case, python, copy_rate, options):
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        data = MAKERS[case["name"]](folder, python, options.quick)
        candidates = [[peer(case, folder, python, words) for words in library] for library in case["peers"]]
        beside = [peer(case, folder, python, words) for words in case["beside"]]
        subjects, pilots, decoder = [ours(case, folder, options.set)], {}, None
        try:
            for library in candidates:
                best, pilot = fastest_of(library, options.quick)
                subjects.append(best)
                pilots.update(pilot)
            for subject in [subjects[0], *beside]:
                subject.start()
                subject.run()
                subject.answers = []
            decoder = Decoder(data["files"]) if case["name"] == "jpeg" else None
            run_rounds(subjects + ([decoder] if decoder else []), beside, options.rounds)
            apart = distances(case, folder, subjects[1:]) if decoder else {}
            subjects += beside
            for subject in subjects:
                subject.finish()
        finally:
            for subject in subjects + beside:
                subject.stop()
        memory = [memory_of(subject, 1 if options.quick or subject in beside else MEMORY_RUNS) for subject in subjects]
    samples = subjects[0].answers[0]["samples"]
    bytes_written = samples * case["side"] ** 2 * 3 * 4
    return compare({"name": case["name"], "batch": case["batch"], "side": case["side"], "load": load(),
                    "samples": samples, "bytes_read": data["bytes_read"], "bytes_written": bytes_written,
                    "pilot_epoch_seconds": pilots, "levels_apart": apart, "peers_that_count": len(candidates),
                    "floor_by": "libjpeg-turbo" if decoder else "copy",
                    "floor_seconds": median(decoder.seconds) if decoder else
                    (data["bytes_read"] + bytes_written) / copy_rate,
                    "subjects": [{**subject.result(), **taken} for subject, taken in zip(subjects, memory)]}, case)


def compare(result, case):
    """Adds floors and ratios, against the faster and against the leaner of the libraries' best."""
    own, *peers = result["subjects"]
    peers = peers[:result["peers_that_count"]]
    for subject in result["subjects"]:
        subject["floor_frac"] = result["floor_seconds"] / subject["epoch_seconds"]
        if "peer" in subject:
            subject["speedup"] = subject["epoch_seconds"] / own["epoch_seconds"]
            if subject in peers:
                subject["speedup_rounds"] = [round(b / a, 3) for a, b in zip(own["epoch_seconds_all"],
                                                                             subject["epoch_seconds_all"])]
            subject["resident_ratio"] = own["peak_tree_bytes"] / subject["peak_tree_bytes"]
            subject["resident_ratio_beyond_imports"] = (own["peak_tree_bytes_beyond_imports"] /
                                                        subject["peak_tree_bytes_beyond_imports"])
    return {**result, "speedup": min(p["speedup"] for p in peers), "speedup_wanted": case["speedup_wanted"],
            "resident_ratio": max(p["resident_ratio"] for p in peers), "resident_ratio_wanted": RESIDENT_WANTED}


def measure_pixels(rounds):
    """256 x 224 x 224 x 3 bytes as float16."""
    found, _ = json_of([bench_program("pixels"), str(THREADS), str(rounds)])
    ways = {way: found[way]["seconds"] for way in ("float16", "float16_past_caches", "copy_of_as_many")}
    return {"values": found["values"], **{way + "_seconds": seconds for way, seconds in ways.items()},
            "seconds": ways["float16_past_caches"], "seconds_wanted": PIXELS_WANTED}


def scheduling_group():
    """Of all subjects; a machine that has other work to do may be asked by it to put these first. None: none."""
    try:
        with open("/proc/self/autogroup", encoding="utf-8") as file:
            return file.read().partition(" ")[2].strip()
    except OSError:
        return None


def measure(options):
    python = peer_python("pipeline")
    pixels = measure_pixels(3 if options.quick else 101)
    copy_rate = json_of([bench_program("ceiling"), str(THREADS)])[0]["copy_bytes_per_second"]
    cases = [measure_case(case, python, copy_rate, options) for case in CASES]
    names = sorted({s["peer"] for case in cases for s in case["subjects"] if "peer" in s})
    return {"versions": {"peers": names}, "threads": THREADS, "rounds": options.rounds, "group": scheduling_group(),
            "copy_bytes_per_second": copy_rate, "pixels": pixels, "cases": cases}


# ---- the table -----------------------------------------------------------------------------------------------------


def subject_line(s):
    line = "  %-34s %9.0f samples/s  %5.1f %% of the floor  %5.0f MiB, %.0f beyond its imports" % (
        s["name"], s["samples_per_second"], 100 * s["floor_frac"], s["peak_tree_bytes"] / MIB,
        s["peak_tree_bytes_beyond_imports"] / MIB)
    return line if "peer" not in s else line + "   ours %.2fx as fast, %.2fx the memory (%.2fx beyond imports)" % (
        s["speedup"], s["resident_ratio"], s["resident_ratio_beyond_imports"])


def table(result):
    pixels, lines = result["pixels"], []
    lines.append("%d bytes as float16: %.2f ms (want %.0f ms: %s), a copy of as many bytes %.2f ms" % (
        pixels["values"], pixels["seconds"] * 1e3, pixels["seconds_wanted"] * 1e3,
        wanted(pixels["seconds"], pixels["seconds_wanted"], False), pixels["copy_of_as_many_seconds"] * 1e3))
    for case in result["cases"]:
        lines.append("%s: %d samples, batch %d; floor %.3f s by %s" % (
            case["name"], case["samples"], case["batch"], case["floor_seconds"], case["floor_by"]))
        lines += [subject_line(subject) for subject in case["subjects"]]
        lines += ["  pixels from those of %s: %.3f levels at most, %.3f in the mean of %d images" % (
            name, far["largest"], far["mean"], far["images"]) for name, far in case["levels_apart"].items()]
        lines.append("  the faster peer: %.2fx (want %.1fx: %s); the leaner: %.2fx the memory (want %.1fx: %s)" % (
            case["speedup"], case["speedup_wanted"], wanted(case["speedup"], case["speedup_wanted"], True),
            case["resident_ratio"], case["resident_ratio_wanted"],
            wanted(case["resident_ratio"], case["resident_ratio_wanted"], False)))
    return lines
