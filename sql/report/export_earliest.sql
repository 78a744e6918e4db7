-- When the first thing of that step or of a later one began; clocks that are not placed may lie anywhere.
SELECT min(coalesce((SELECT min(begin_ns) FROM rank_step WHERE step >= :first), (SELECT min(first_arrival_ns) FROM collective)),
           coalesce((SELECT min(first_arrival_ns) FROM raw_collective WHERE step >= :first), (SELECT min(first_arrival_ns) FROM collective),
                    (SELECT min(begin_ns) FROM rank_step))) AS at_ns;
