/* version.c - config.version_mismatch: a library or driver has another version on some ranks.
 *
 * What it says: the library, the versions and who has which; the odd ranks where
 * one version has a majority, nobody where the camps are equal; the host where
 * the odd ranks are just its.
 *
 * How it decides: the records of versions compared over the ranks of this life. Of
 * several that differ the one that speaks on the wire is named (NCCL before its
 * plug-ins, before the framework, the runtime, the driver). It is the cause where
 * the job does not get off the ground and nothing more direct explains it: certain
 * with an error of the set-up beside it and an odd one out, otherwise likely. It is
 * slow where exactly the odd ranks come last. In a job that runs it is a notice.
 *
 * Neighbours: init.* (an address, a name, a port, a way that is closed: those are
 * looked for first and say more), config.setting_differs, stuck.localised_cause_unknown
 * (all are inside a call and nothing is known to differ).
 */
#include "rules.h"

int version_look(struct rules *r)
{
	int e = config_compare(r);

	return e < 0 ? e : config_hold_look(r, CONFIG_VERSION);
}

int version_slow_look(struct rules *r)
{
	return config_slow_look(r, CONFIG_VERSION);
}
