-- Names never change; an agent that starts again tells them again.
INSERT INTO raw_name (process_id, id, text)
VALUES (:process_id, :id, :text)
ON CONFLICT DO NOTHING;
