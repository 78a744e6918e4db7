-- Committed with what it carried: a second copy of this batch is not news.
INSERT INTO raw_batch (agent, seq) VALUES (:agent, :seq) ON CONFLICT DO NOTHING;
