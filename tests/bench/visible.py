"""How long after a step's end does the page know of it?

    visible.py BUILD [STEPS]

A real 4-rank training stamps the unix time after each step; a client of the collector's event
stream, as the page is one, stamps the news of that step and then fetches the step's cells. The time from
the last rank's stamp to the fetched answer is printed: median, 99th percentile, worst.
"""
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse


def main():
    build = os.path.abspath(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    here = os.path.dirname(os.path.abspath(__file__))
    script = os.path.join(here, "..", "system", "spine_train.py")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SYNCLINE_")}
    env["OMP_NUM_THREADS"] = "1"
    seen = {}
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "out")
        os.mkdir(out)
        job = subprocess.Popen([os.path.join(build, "syncline"), "run", "--db", os.path.join(d, "run.db"), "--nproc", "4", "--",
                                "/usr/bin/python3", script, out, str(steps), "pace=60"], env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in job.stdout:
            url = re.search(r"dashboard (http://\S+)", line)
            if url:
                break
        threading.Thread(target=job.stdout.read, daemon=True).start()
        netloc = urllib.parse.urlparse(url.group(1)).netloc
        stream, fetch = http.client.HTTPConnection(netloc), http.client.HTTPConnection(netloc)
        stream.request("GET", "/api/v1/events")
        answer, event, known = stream.getresponse(), None, -1
        try:
            while True:
                line = answer.fp.readline().decode()
                if not line:
                    break
                if line.startswith("event:"):
                    event = line.split(":", 1)[1].strip()
                elif line.startswith("data:") and event == "step":
                    step = json.loads(line.split(":", 1)[1])["step"]
                    fetch.request("GET", f"/api/v1/heat/cols?metric=self&baseline=peers&agg=max&from={step}&to={step}&rows=4")
                    fetch.getresponse().read()
                    now = time.time_ns()
                    for s in range(known + 1, step + 1):
                        seen[s] = now
                    known = max(known, step)
                    if step >= steps - 1:
                        break
        except (OSError, http.client.HTTPException):
            pass
        if job.wait() != 0:
            raise SystemExit("the training failed")
        ends = [json.load(open(os.path.join(out, f"rank{r}.json")))["marks_unix_ns"] for r in range(4)]
    late = sorted((seen[s] - max(e[s] for e in ends)) / 1e6 for s in seen if s < steps)
    print(f"{len(late)} of {steps} steps: fetched {late[len(late) // 2]:.0f} ms after their end at the median, "
          f"{late[int(0.99 * (len(late) - 1))]:.0f} ms at the 99th percentile, {late[-1]:.0f} ms at worst")


main()
