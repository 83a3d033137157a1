# SPDX-License-Identifier: Apache-2.0
"""What whole-number weights make of an evaluation on cpu: each instruction's least time in a run of bench_cpu_kernels, the modes of
compress.quantize in turns, all on one thread. What makes the whole numbers of weights is left out: where they are deployed it is
done. Beside it stands how far one can get where only dense layers are faster: twice, since an AVX2 instruction multiplies 16 pairs of
int16 and 8 of float32. HEADROOM_BEFORE names a bench_cpu_kernels of an earlier commit, whose int8 of
many rows runs in the same turns."""
import os

from measure import bench_program, figures, json_of, output_of, wanted

CASES = [("mlp", 128), ("mlp", 1), ("bert_base_tiny", 128)]
MODES = ["none", "int8", "int8_weights", "int4_weights"]
STEPS, RATIO_WANTED, PRODUCTS_AT_ONCE = 7, 1.5, 2


def times_of(program, preset, batch, mode):
    """Milliseconds of all instructions but those that make whole numbers of weights, and of dense layers."""
    text, _ = output_of([program, preset, str(STEPS), "1", "1", "evaluate", "device.kind=cpu", "device.vram=8GiB",
                         "threads.count=1", "batch.size=%d" % batch, "compress.quantize=" + mode], HEADROOM_DATA="presets")
    rows = [line.split() for line in text.splitlines() if "/" in line.split()[0] and "quantize_" not in line]
    return [sum(float(row[2]) for row in some) for some in (rows, [row for row in rows if "/dense" in row[0]])]


def programs():
    before = os.environ.get("HEADROOM_BEFORE")
    return {"now": bench_program("cpu_kernels"), **({"before": before} if before else {})}


def measure_case(preset, batch, options):
    taken = {(which, mode): [] for which in programs() for mode in MODES if which == "now" or (mode, batch > 1) == ("int8", True)}
    for _ in range(options.rounds):
        for which, mode in taken:
            taken[which, mode].append(times_of(programs()[which], preset, batch, mode))
    base = taken["now", "none"]
    rows = [{"mode": mode, "of": which, **figures([all_ms for all_ms, _ in times], "milliseconds"),
             **figures([dense_ms for _, dense_ms in times], "dense_milliseconds"),
             **figures([plain[0] / all_ms for plain, (all_ms, _) in zip(base, times)], "times_as_fast")}
            for (which, mode), times in taken.items()]
    share = sorted(dense_ms / all_ms for all_ms, dense_ms in base)[len(base) // 2]
    return {"preset": preset, "batch": batch, "dense_share_of_float32": share,
            "bound_times_as_fast": 1 / (1 - share + share / PRODUCTS_AT_ONCE), "rows": rows}


def measure(options):
    rate = json_of([bench_program("ceiling"), "1"])[0]["product_flops_per_second"]
    cases = [measure_case(preset, batch, options) for preset, batch in CASES[:1 if options.quick else None]]
    return {"product_flops_per_second": rate, "threads": 1, "ratio_wanted": RATIO_WANTED, "rounds": options.rounds, "cases": cases}


def table(result):
    lines = ["%-20s %5s %-13s %-7s %9s %9s %7s" % ("", "batch", "mode", "", "ms", "dense ms", "ratio")]
    for case in result["cases"]:
        for row in case["rows"]:
            ratio = row["times_as_fast"]
            lines.append("%-20s %5d %-13s %-7s %9.3f %9.3f %7.2f%s" % (
                case["preset"], case["batch"], row["mode"], row["of"], row["milliseconds"], row["dense_milliseconds"], ratio,
                " (want %.1f: %s)" % (RATIO_WANTED, wanted(ratio, RATIO_WANTED, True))
                if (row["mode"], row["of"]) == ("int8", "now") else ""))
        lines.append("%-20s dense layers are %.0f %% of float32: at most %.2f with int8" % (
            case["preset"], case["dense_share_of_float32"] * 100, case["bound_times_as_fast"]))
    return lines
