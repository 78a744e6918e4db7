/* spill.h - how much of memory an import may use for what it keeps, and the file that
 * takes the rest.
 *
 * The file is made when it is first needed and has no name, so nothing stays behind.
 * Several threads may use one spill: places in the file are handed out, never shared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPILL_MEMORY_BYTES (48u << 20)

struct spill;

/* The one reference is the caller's. dir is copied. NULL without memory. */
struct spill *spill_new(const char *dir, size_t memory_bytes);
struct spill *spill_ref(struct spill *s);
void spill_unref(struct spill *s); /* NULL is fine */

/* May n_bytes more be used, keeping one part in of free? What was granted is returned by
 * spill_release(). What is small is asked for by nobody: spill_take(). */
bool spill_ask(struct spill *s, size_t n_bytes, size_t of);
void spill_take(struct spill *s, size_t n_bytes);
void spill_release(struct spill *s, size_t n_bytes);

/* A place for n_bytes in the file. False, here and below, when the file failed. */
bool spill_place(struct spill *s, uint64_t n_bytes, uint64_t *ret_at);
bool spill_write(struct spill *s, uint64_t at, const void *bytes, size_t n_bytes);
bool spill_read(struct spill *s, uint64_t at, void *bytes, size_t n_bytes);
/* What is there is not read again. */
void spill_drop(struct spill *s, uint64_t at, uint64_t n_bytes);

uint64_t spill_written_bytes(const struct spill *s);
/* A sentence when the file failed, else false. */
bool spill_explain(const struct spill *s, char *why, size_t n_why);
