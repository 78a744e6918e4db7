/* members.h - whose calls a cell has, and where they sit: for rules on links and cards. */
#pragma once

#include "rules.h"

uint32_t members_n(const struct rules *r, const struct rates_cell *c);
int32_t members_rank(const struct rules *r, const struct rates_cell *c, uint32_t i);
/* By index; UINT32_MAX = unknown. */
uint32_t members_proc(const struct rules *r, const struct rates_cell *c, uint32_t i);
uint32_t members_host(const struct rules *r, const struct rates_cell *c, uint32_t i);
bool members_has(const struct rules *r, const struct rates_cell *c, int32_t rank);
bool members_on(const struct rules *r, const struct rates_cell *c, uint32_t host);
/* "0-4", "group tp3 (ranks 0, 1 and 2)". */
void members_words(const struct rules *r, const struct rates_cell *c, char *out, size_t n_out);
const char *members_host_name(const struct rules *r, uint32_t host);

/* For a quarter of its time at least the other cell transfers too; on one host's clock. */
bool cells_overlap(const struct rates_sample *s, const struct rates_cell *other);

/* Is someone of it told to be slow for another reason? */
bool members_explained(const struct rules *r, const struct rates_cell *c);

/* Is another class about links, cards or paths told? One way has one cause. */
bool path_told(const struct rules *r, const char *except);

/* The step of its first call since which all took as long. */
uint32_t members_since(const struct rates_cell *c, double limit_ns);

/* What a contrast says, without class, culprit and sentence: steps, cost, margin. */
void contrast_finding(const struct contrast *c, struct finding *ret);
/* "10.1 ms against 5.02 ms of 3 others". */
void contrast_words(const struct contrast *c, char *out, size_t n_out);
