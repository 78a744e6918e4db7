-- How clocks were placed where it was not by a collector's probes.
SELECT value AS method FROM meta WHERE key = 'clock_method';
