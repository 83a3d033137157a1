# SPDX-License-Identifier: Apache-2.0
"""What every measurement needs: where the programs are, what the machine is, medians, one command with its memory."""
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.join(TOP, os.environ.get("HEADROOM_BUILD", "build/release"))
HEADROOM = os.path.join(BUILD, "headroom")
ROUNDS = 11
MIB = 1 << 20


class Unavailable(Exception):
    """Something that the measurement needs is not here; the text says what to try."""


def environment(**more):
    """Passive waiting: on two cores a spinning thread steals the other program's time."""
    return {**os.environ, "OMP_WAIT_POLICY": "passive", **more}


def bench_program(name):
    path = os.path.join(BUILD, "bench", "bench_" + name)
    if not os.path.exists(path):
        raise Unavailable("%s is not built; try: scripts/test" % os.path.relpath(path, TOP))
    return path


def headroom_program():
    if not os.path.exists(HEADROOM):
        raise Unavailable("%s is not built; try: scripts/test" % os.path.relpath(HEADROOM, TOP))
    return HEADROOM


def peer_python(*words):
    python = subprocess.run([os.path.join(TOP, "tests/bench/peers/setup"), *words], stdout=subprocess.PIPE, text=True,
                            check=False)
    if python.returncode != 0:
        raise Unavailable("nothing to compare with; try: " + " ".join(["tests/bench/peers/setup", *words]))
    return python.stdout.strip()


def output_of(argv, **variables):
    """stdout, and the peak of resident bytes. Linux counts the parent's pages at the fork towards that peak, so this
    driver must stay smaller than what it measures: it imports little."""
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=complaints, env=environment(**variables),
                                 cwd=TOP)
        output = child.stdout.read()
        child.stdout.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip()
            raise Unavailable("%s: exit %d: %s" % (" ".join(argv[:3]), child.returncode, said[-2000:]))
    return output.decode(), usage.ru_maxrss * 1024


def json_of(argv, **variables):
    text, resident_bytes = output_of(argv, **variables)
    return json.loads(text), resident_bytes


def median(values):
    return statistics.median(values)


def geometric_mean(values):
    return statistics.geometric_mean(values)


def figures(values, unit):
    """A row of measured values under names with their unit."""
    return {unit: median(values), unit + "_fastest": min(values), unit + "_slowest": max(values),
            unit + "_all": [float("%.6g" % v) for v in values]}


def first_line(argv):
    try:
        return output_of(argv)[0].splitlines()[0].strip()
    except (Unavailable, OSError, IndexError):
        return None


def field(path, key):
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, _, value = line.replace("=", ":", 1).partition(":")
            if name.strip() == key:
                return value.strip().strip('"')
    return None


# As the kernel names them: CPUID leaf 0 on x86; Arm's processors say a number.
MAKERS = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}


def processor_maker():
    """The word in a result's name: figures of two makers' processors stand side by side."""
    return MAKERS.get(field("/proc/cpuinfo", "vendor_id"), "other")


def processor_model():
    """Family, model and stepping, since a virtual machine's processor may have no name of its own."""
    return "/".join(field("/proc/cpuinfo", key) or "?" for key in ("cpu family", "model", "stepping"))


def machine():
    return {"cpu": field("/proc/cpuinfo", "model name"), "cpu_model": processor_model(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": int(field("/proc/meminfo", "MemTotal").split()[0]) * 1024,
            "system": field("/etc/os-release", "PRETTY_NAME"), "kernel": platform.release()}


def versions():
    return {"headroom": first_line([HEADROOM, "--version"]), "compiler": first_line(["cc", "--version"]),
            "python": sys.version.split()[0]}


def load():
    return [round(value, 2) for value in os.getloadavg()]


def commit():
    """The commit that was measured; with "-dirty" when files differ from it, other than these results."""
    name = first_line(["git", "rev-parse", "--short=12", "HEAD"])
    differs = ["git", "diff", "--quiet", "HEAD", "--", ".", ":!tests/bench/results"]
    if name and subprocess.run(differs, cwd=TOP, check=False).returncode != 0:
        name += "-dirty"
    return name


def result_of(name, measurement, options):
    """Runs a measurement; the result as it is written to a file. Of the options each takes what concerns it: rounds,
    quick (short runs), set (knobs for every run of headroom), compiled."""
    began = datetime.datetime.now(datetime.timezone.utc)
    head = {"schema": "headroom.bench/1", "name": name, "date": began.strftime("%Y-%m-%dT%H:%MZ"),
            "commit": commit(), "machine": machine(), "versions": versions(), "load_before": load()}
    body = measurement(options)
    head["load_after"] = load()
    head["seconds"] = round((datetime.datetime.now(datetime.timezone.utc) - began).total_seconds(), 1)
    head["versions"].update(body.pop("versions", {}))
    return {**head, **body}


def keep(path, result):
    """Writes a result's file whole or not at all."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def knob_words(knobs):
    return [word for knob in knobs for word in ("-s", knob)]


def wanted(value, bound, at_least):
    """The verdict that the table shows; a measurement never fails."""
    return "ok" if (value >= bound if at_least else value <= bound) else "BELOW" if at_least else "ABOVE"
