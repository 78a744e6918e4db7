/* interface.c - init.wrong_interface: a rank announces an address that its peers cannot reach.
 *
 * What it says: the address, the interface and the setting that chose it; the
 * ranks where only some of them do so, nobody where all do: then it is the setting.
 *
 * How it decides: the communicator's set-up says which interface and address each
 * rank announced. A loopback address reaches only its own host, a link-local one
 * only its own wire; where the ranks of this life are on several hosts that cannot
 * work. No rank may have left start-up.
 *
 * Neighbours: init.dataplane_blocked (the addresses are fine, the way is closed:
 * there connections to proper addresses time out), init.name_resolution,
 * init.route_asymmetry.
 */
#include "rules.h"
#include "start.h"

#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return text && strncmp(text, with, strlen(with)) == 0;
}

static bool is_loopback(const char *addr)
{
	return begins(addr, "127.") || begins(addr, "::ffff:127.") ||
	       (addr && strcmp(addr, "::1") == 0);
}

static bool is_local(const char *addr)
{
	return is_loopback(addr) || begins(addr, "169.254.") || begins(addr, "fe80:") ||
	       begins(addr, "FE80:");
}

int interface_look(struct rules *r)
{
	struct finding f = { .class_name = "init.wrong_interface", .severity = SEVERITY_STUCK,
			     .confidence = CONFIDENCE_CERTAIN, .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE };
	const char *host = NULL, *addr = NULL, *name = NULL;
	bool several = false, all = true;
	char sentence[600], detail[160], who[160];

	if (!start_hangs(r, START_FIXED_NS))
		return 0;
	for (size_t i = 0; i < r->side.n; i++) {
		const char *at = start_host(r, i), *v;

		if (!start_record(r, i, SIDE_INTERFACE) || start_is_repeated(r, i))
			continue;
		several |= host && strcmp(host, at) != 0;
		host = host ? host : at;
		v = side_text(&r->side.v[i], "addr");
		if (!is_local(v)) {
			all = false;
			continue;
		}
		if (!is_loopback(v))
			f.confidence = CONFIDENCE_LIKELY;
		addr = v;
		name = side_text(&r->side.v[i], "if");
		f.setting = side_text(&r->side.v[i], "env");
		finding_rank(&f, start_rank(r, i));
	}
	if (!addr || !several)
		return 0;
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(detail, sizeof detail, "interface %.40s, address %.60s", name ? name : "unknown", addr);
	snprintf(sentence, sizeof sentence,
		 "%s announce%s the address %.60s of interface %.40s, which no other host can reach, and the "
		 "job is on several hosts.%s%.100s%s",
		 all ? "Every rank" : who, all || f.n_ranks == 1 ? "s" : "", addr,
		 name ? name : "unknown", f.setting ? " It was chosen with " : "",
		 f.setting ? f.setting : "", f.setting ? "." : "");
	if (all)
		f.n_ranks = 0;
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"nccl.bootstrap_if\"}]";
	f.rules_out_json = "[\"init.dataplane_blocked: the address itself leads nowhere\"]";
	return rules_tell(r, &f);
}
