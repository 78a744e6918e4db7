-- Means over all ranks and steps; kernels are of ranks whose device tells what ran; idle is what no phase and no exposed communication covers.
WITH part AS (
  SELECT dur_ns, coalesce(input_wait_ns, 0) AS data, coalesce(fwd_ns, 0) AS fwd,
         coalesce(bwd_ns, 0) AS bwd, coalesce(exposed_comm_ns, 0) AS comm,
         coalesce(opt_ns, 0) AS opt, coalesce(eval_ns, 0) AS eval,
         compute_ns AS kernels
  FROM rank_step)
SELECT CAST(avg(data) AS INTEGER) AS data_ns, CAST(avg(fwd) AS INTEGER) AS forward_ns,
       CAST(avg(bwd) AS INTEGER) AS backward_ns, CAST(avg(comm) AS INTEGER) AS exposed_comm_ns,
       CAST(avg(opt) AS INTEGER) AS optimizer_ns, CAST(avg(eval) AS INTEGER) AS eval_ns,
       CAST(avg(kernels) AS INTEGER) AS kernels_ns,
       CAST(avg(max(0, dur_ns - coalesce(kernels, 0) - data - fwd - bwd - comm - opt - eval)) AS INTEGER) AS idle_ns
FROM part;
