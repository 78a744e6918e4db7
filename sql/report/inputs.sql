-- Files of an import, in the order in which they were named.
SELECT file, format, outcome, rank, n_events AS events FROM input ORDER BY id;
