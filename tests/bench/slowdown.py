"""What tracing costs a training: the demo's model, runs with and without the probe by turns.

    slowdown.py BUILD [PAIRS] [SECONDS]

Each pair is one run without (SYNCLINE_OFF=1) and one with probe, agent and collector on the same
machine, in changing order. Prints the ratio of the step times (median over pairs, with the range of
its bootstrap's middle 95 %), and the ranks' own CPU time a step, which contention disturbs less.
"""
import os
import random
import re
import subprocess
import sys
import tempfile


def run(build, seconds, traced):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")}
    env["OMP_NUM_THREADS"] = "1"
    if not traced:
        env["SYNCLINE_OFF"] = "1"
    with tempfile.TemporaryDirectory() as d:
        command = [os.path.join(build, "syncline"), "run", "--db", os.path.join(d, "run.db"), "--nproc", "4", "--",
                   "/usr/bin/python3", os.path.join(build, "cli", "demo_train.py"), "--seconds", str(seconds), "--cpu-time"]
        text = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    steps, wall = map(float, re.search(r"trained (\d+) steps in ([\d.]+) s", text).groups())
    cpu = [float(v) for v in re.findall(r"CPU ([\d.]+) ms a step", text)]
    return 1000 * wall / steps, sum(cpu) / len(cpu)


def median(v):
    v = sorted(v)
    return (v[len(v) // 2] + v[(len(v) - 1) // 2]) / 2


def interval(ratios):
    rng = random.Random(1)
    boot = sorted(median(rng.choices(ratios, k=len(ratios))) for _ in range(4000))
    return boot[100], boot[-100]


def main():
    build = os.path.abspath(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    wall, cpu = [], []
    for i in range(pairs):
        both = {}
        for traced in ((False, True) if i % 2 == 0 else (True, False)):
            both[traced] = run(build, seconds, traced)
        wall.append(both[True][0] / both[False][0])
        cpu.append(both[True][1] / both[False][1])
        print(f"pair {i + 1}: step {both[False][0]:.1f} -> {both[True][0]:.1f} ms, CPU of a rank {both[False][1]:.2f} -> "
              f"{both[True][1]:.2f} ms", flush=True)
    for name, ratios in (("step time", wall), ("CPU of a rank", cpu)):
        lo, hi = interval(ratios)
        print(f"{name}: traced / untraced = {median(ratios):.4f} (95 % of the bootstrap: {lo:.4f} to {hi:.4f})")


main()
