-- A file of an import, in the order in which they were named.
INSERT INTO raw_input (file, format, outcome, rank, n_events)
VALUES (:file, :format, :outcome, :rank, :n_events);
