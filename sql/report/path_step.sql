-- What is known of a step's path; one row at most.
SELECT s.step, p.begin_ns, p.dur_ns, p.dur_err_ns, p.complete AS "complete:bool", coalesce(p.kept, 0) AS "kept:bool",
       min(s.begin_ns, coalesce(p.begin_ns, s.begin_ns)) AS from_ns,
       max(s.begin_ns + s.dur_ns, coalesce(p.begin_ns + p.dur_ns, 0)) AS to_ns
FROM step s LEFT JOIN step_path p USING (step) WHERE s.step = :step;
