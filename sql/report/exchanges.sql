-- Every stored exchange in the order in which it came, a host after the other.
SELECT h.name, e.host_t0_ns, e.t1_ns, e.t2_ns, e.host_t3_ns
FROM raw_exchange e JOIN raw_host h USING (host_id) WHERE NOT h.same_clock
ORDER BY h.name, h.host_id, e.t1_ns;
