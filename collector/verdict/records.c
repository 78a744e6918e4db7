/* records.c - what a process said besides spans goes to whoever counts it. */
#include "rules.h"

#include <jansson.h>
#include <string.h>

#define MAX_BYTES 8192

static int count(struct rules *r, const struct proc *p, int64_t at_ns, const char *category,
		 const json_t *fields)
{
	uint32_t proc = (uint32_t)(p - r->ledger.roster->procs);
	int kind = losses_kind(category);
	const json_t *layout;

	if (kind >= 0)
		return losses_note(&r->losses, r->ledger.roster, proc, at_ns, (enum loss_kind)kind, fields);
	layout = json_object_get(fields, "layout");
	return rates_copy(&r->rates, proc, at_ns,
			  (int64_t)json_integer_value(json_object_get(fields, "bytes")),
			  layout && !json_is_null(layout) && !json_is_false(layout));
}

int counts_record(struct rules *r, const struct proc *p, int64_t at_ns, const char *category,
		  const char *fields_json, size_t n_fields)
{
	int e = 0;

	if (n_fields <= MAX_BYTES && (losses_kind(category) >= 0 || strcmp(category, "memcpy.bulk") == 0)) {
		json_t *fields = json_loadb(fields_json, n_fields, JSON_REJECT_DUPLICATES, NULL);

		if (json_is_object(fields))
			e = count(r, p, at_ns, category, fields);
		json_decref(fields);
	}
	return e;
}
