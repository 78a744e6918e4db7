-- What processes said of themselves and their settings, like lines once.
SELECT kind, key, text, count(*) AS lines, count(DISTINCT host || ' ' || pid || ' ' || device) AS processes
FROM nccl_line WHERE kind <> 'bootstrap' GROUP BY kind, key, text
ORDER BY kind = 'warning' DESC, kind = 'version' DESC, kind = 'network' DESC, lines DESC, key, text LIMIT 200;
