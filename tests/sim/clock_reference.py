"""clock_reference.py - the C estimator on the samples of the numpy reference.

    python3 clock_reference.py CLOCK_TABLE CLOCK_SIM [RUNS [SEED]]

The reference simulates its own clocks and paths and runs its own estimator; the same
samples, as whole nanoseconds, go to clock_table. In each scenario the p99 of the C code
must not be worse than the reference's by more than 5 %, in hindsight and streaming.
Exits with 77 (skipped) where the reference or numpy is absent.
"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
SYSTEM_PYTHON = '/usr/bin/python3'
FACTOR = 1.05
LEAST_US = 0.003  # the files hold whole ns


def load(path):
    spec = importlib.util.spec_from_file_location('clock_sim', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def skip(why):
    print(f'skipped: {why}')
    sys.exit(SKIPPED)


def write(path, np, samples, host, theta):
    ns = [np.round(v * 1e9).astype(np.int64) for v in samples]
    order = np.argsort(ns[3], kind='stable')
    q_host, q_theta = np.round(host * 1e9).astype(np.int64), np.round(theta * 1e9).astype(np.int64)
    with open(path, 'w') as f:
        for i in order:
            f.write('s %d %d %d %d\n' % tuple(v[i] for v in ns))
        for a, t in zip(q_host, q_theta):
            f.write('q %d %d\n' % (a, t))


def row(table, title):
    m = re.search(r'\*\*syncline, %s\*\* \| ([\d.]+) \| ([\d.]+) \|' % title, table)
    return float(m[1]), float(m[2])


def main():
    program, reference = sys.argv[1], sys.argv[2]
    n_runs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 100
    if not os.path.exists(reference):
        skip(f'no {reference}')
    try:
        import numpy as np
    except ImportError:
        if sys.executable != SYSTEM_PYTHON and os.path.exists(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON] + sys.argv)
        skip('no numpy')
    cs = load(reference)
    worse = 0
    print('| scenario | reference, hindsight | here | reference, streaming | here |\n|---|---|---|---|---|')
    for name in cs.SCEN:
        errors, streaming = [], []
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i in range(n_runs):
                rng, clock, samples = cs.scenario(name, seed + i)
                host, theta = cs.grid_truth(clock, rng)
                paths.append(os.path.join(folder, f'{i}'))
                write(paths[-1], np, samples, host, theta)
                errors.append(cs.Recommended().run(samples)(host) - theta)
                streaming.append(cs.Recommended().run(samples, warm=False).stream(host) - theta)
            table = subprocess.run([program, '--read', name] + paths, check=True,
                                   capture_output=True, text=True).stdout
        cells = []
        for title, e in (('in hindsight', errors), ('streaming', streaming)):
            e = np.abs(np.concatenate(e)) * 1e6
            theirs, ours = float(np.percentile(e, 99)), row(table, title)
            cells.append('%.3f / %.3f | %.3f / %.3f' % (np.median(e), theirs, *ours))
            worse += ours[1] > FACTOR * theirs + LEAST_US
        print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)
    if worse:
        print(f'{worse} worse than the reference by more than 5 % (median / p99 in microseconds)')
    sys.exit(1 if worse else 0)


main()
