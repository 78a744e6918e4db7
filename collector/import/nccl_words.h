/* nccl_words.h - reading along a line of NCCL's log. Where what is asked for does not stand
 * there, the place stays where it was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void nccl_blanks(const char **p);
/* Behind blanks, as the others. */
bool nccl_literal(const char **p, const char *text);
bool nccl_number(const char **p, int64_t lowest, int64_t highest, int64_t *ret);
/* -1 or a rank. */
bool nccl_rank_of(const char **p, int32_t *ret);
/* A word, to a blank or one of stops; cut where it does not fit. */
bool nccl_word(const char **p, const char *stops, char *out, size_t n_out);
/* The word behind a key that stands as a word of its own. */
bool nccl_after(const char *text, const char *key, char *out, size_t n_out);
/* TRACE_NULL when there is none up to highest. */
int64_t nccl_number_after(const char *text, const char *key, int64_t highest);
/* Are only blanks left? */
bool nccl_ends(const char *p);
