-- Imported profiles.
SELECT rank, rank_from, n_work AS work, n_steps AS steps, n_launched AS launched, n_early AS early, early_ns,
       n_left_out AS left_out, n_groups_cut AS groups_cut
FROM profile ORDER BY rank;
