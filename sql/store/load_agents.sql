SELECT agent, agent_id, host_id, version, last_seen_ns, n_given_up, cpu_ns, rss_bytes
FROM raw_agent ORDER BY agent;
