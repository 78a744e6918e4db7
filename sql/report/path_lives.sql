-- How often the job was started, as far as is known.
SELECT count(DISTINCT restart_count) FROM raw_process WHERE rank IS NOT NULL;
