/* web.h - the page, inside the binary. web.c is made by tools/embed_web.py. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct web_file {
	const char *name; /* "assets/index-4f2a91bc.js" */
	const char *type;
	const char *etag; /* with its quotes */
	const unsigned char *data;
	size_t n_data;
	const unsigned char *gz; /* NULL when packing does not help */
	size_t n_gz;
	bool hashed; /* the name changes with the content */
};

extern const struct web_file web_files[]; /* by name */
extern const size_t web_n_files;
extern const bool web_built; /* false: only a page that says how to build it */
