-- Communicators that files of NCCL tell of, the largest first.
SELECT c.comm, c.n_ranks AS ranks, c.n_seen AS ranks_seen, c.n_complete AS ranks_set_up, c.n_channels AS channels,
       c.n_rings AS rings, c.n_open AS rings_open, c.n_contradict AS rings_contradict,
       c.rings_complete AS "rings_complete:bool", c.ambiguous AS "ambiguous:bool",
       k.n_calls AS calls, k.n_ranks AS ranks_with_calls, k.first_odd AS first_odd_call, k.shortest AS fewest_calls_rank
FROM nccl_comm c LEFT JOIN nccl_call_check k USING (comm)
ORDER BY c.n_ranks DESC, c.comm LIMIT 256;
