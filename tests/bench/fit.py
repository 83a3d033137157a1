# SPDX-License-Identifier: Apache-2.0
"""What the search behind Fit finds against every legal combination of the knobs that it turns (bench_fit): how much slower its
fastest is than the fastest there is, at eleven peaks from the least to that of the fastest, and how many plans each took."""
import os

from measure import TOP, bench_program, json_of

CARD = ["device.kind=plan", "device.card=rtx3070-8g", "device.vram="]
CASES = [("demo", []),  # 201,600 of them: three minutes of a processor
         ("gpt2_124m_tiny", ["batch.size=16", "keep:workspace,execution.fuse,offload.optimizer"])]


def measure(options):
    cases = []
    for preset, knobs in CASES[:1 if options.quick else None]:
        words = [*CARD, *knobs, *options.set]
        cases.append({"knobs": words, **json_of([bench_program("fit"), preset, *words],
                                                HEADROOM_DATA=os.path.join(TOP, "presets"))[0]})
    return {"cases": cases}


def table(result):
    lines = ["%-18s %12s %8s %7s %8s %9s %8s %6s" % ("", "combinations", "seconds", "plans", "seconds", "fewer", "slower",
                                                     "missed")]
    for case in result["cases"]:
        slower = [limit["slower"] for limit in case["limits"]]
        lines.append("%-18s %12d %8.1f %7d %8.2f %8.0fx %7.2f%% %6d" % (
            case["preset"], case["combinations"], case["seconds"], case["plans"], case["search_seconds"],
            case["combinations"] / case["plans"], 100 * max(s for s in slower if s is not None), slower.count(None)))
    return lines
