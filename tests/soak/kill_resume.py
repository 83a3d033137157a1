# SPDX-License-Identifier: Apache-2.0
"""Kills a training run with SIGKILL at a random moment, resumes it from its save, and so on until it has done all
its steps: the weights must be those of a run that was never interrupted.

usage: kill_resume.py HEADROOM --seconds S --seed N [--kills K]
Ends after S seconds or K kills, whichever comes first; prints one JSON line; exit 1 on the first difference.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

STEPS = 60
PRESETS = [
    ["cifar10_separable_cnn", "batch.size=32", "optimizer.kind=adam"],
    ["cifar10_separable_cnn", "batch.size=48", "optimizer.kind=momentum", "batch.remainder=keep"],
    ["mlp", "batch.size=16", "optimizer.kind=sgd"],
]


def command(headroom, preset, save, resume):
    line = [headroom, "run", preset[0], "--json", "--steps", str(STEPS)]
    knobs = preset[1:] + ["train.steps=%d" % STEPS, "train.save_every=3", "train.save=" + save, "threads.count=2",
                          "pipeline.shuffle=500"]
    if resume:
        knobs.append("train.resume=" + save)
    for knob in knobs:
        line += ["-s", knob]
    if resume:
        line[line.index("--steps"):line.index("--steps") + 2] = []
    return line


def weights_of(output):
    return json.loads(output)["train"]["weights_sha256"]


def uninterrupted(headroom, preset, folder):
    begin = time.monotonic()
    done = subprocess.run(command(headroom, preset, os.path.join(folder, "whole.safetensors"), False),
                          capture_output=True, check=True)
    return weights_of(done.stdout), time.monotonic() - begin


def killed_until_done(headroom, preset, folder, whole_seconds, dice, budget):
    """Returns (sha256, kills)."""
    save = os.path.join(folder, "killed.safetensors")
    if os.path.exists(save):
        os.unlink(save)
    kills = 0
    while True:
        run = subprocess.Popen(command(headroom, preset, save, os.path.exists(save)), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        try:
            if kills >= budget:
                output, _ = run.communicate()
            else:
                output, _ = run.communicate(timeout=dice.uniform(0.0, whole_seconds))
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            kills += 1
            continue
        if run.returncode != 0:
            sys.exit("a resumed run ended with exit code %d" % run.returncode)
        return weights_of(output), kills


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headroom")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kills", type=int, default=10**9)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    end = time.monotonic() + args.seconds
    kills = rounds = 0
    with tempfile.TemporaryDirectory() as folder:
        wholes = [uninterrupted(args.headroom, preset, folder) for preset in PRESETS]
        while (time.monotonic() < end and kills < args.kills) or rounds == 0:
            which = rounds % len(PRESETS)
            whole, seconds = wholes[which]
            sha, here = killed_until_done(args.headroom, PRESETS[which], folder, seconds, dice, 6)
            kills += here
            rounds += 1
            if sha != whole:
                sys.exit("round %d: weights %s after %d kills, %s without" % (rounds, sha, here, whole))
    print(json.dumps({"name": "kill_resume", "seed": args.seed, "rounds": rounds, "kills": kills, "findings": 0}))


if __name__ == "__main__":
    main()
