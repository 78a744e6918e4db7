/* wc_errors.h - what queue pairs said of their failures, by pairs of ranks. */
#pragma once

#include "onset.h"

#define WC_LOCAL_LENGTH 1
#define WC_REMOTE_INVALID 9
#define WC_RETRY_EXCEEDED 12

struct wc_error {
	size_t record; /* in the side records */
	int32_t rank, peer; /* peer -1 = not said */
	const char *host, *peer_host; /* NULL unknown */
	int64_t status;	     /* as the verbs number them; -1 unknown */
	int64_t after_bytes; /* -1 not said */
	const char *kind;    /* NULL not said */
};

/* Record i as one of this life; false when it is none. */
bool wc_error_of(const struct rules *r, size_t i, struct wc_error *ret);
