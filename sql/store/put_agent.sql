-- An agent and its own cost; told again with every few heartbeats.
INSERT INTO raw_agent (agent, agent_id, host_id, version, first_seen_ns, last_seen_ns, n_given_up,
  cpu_ns, rss_bytes)
VALUES (:agent, :agent_id, :host_id, :version, :seen_ns, :seen_ns, :n_given_up, :cpu_ns, :rss_bytes)
ON CONFLICT (agent) DO UPDATE SET
  last_seen_ns = excluded.last_seen_ns, n_given_up = max(n_given_up, excluded.n_given_up),
  cpu_ns = excluded.cpu_ns, rss_bytes = excluded.rss_bytes;
