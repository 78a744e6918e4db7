/* setting.c - config.setting_differs: a variable of the environment that matters differs.
 *
 * What it says: the variable, its values and who has which; odd ranks and host as
 * for versions. A variable that some ranks have and others lack differs too.
 *
 * How it decides: the records of the environment compared over the ranks of this
 * life. What is each rank's or host's own by its nature (ranks, addresses,
 * interfaces, adapters, paths, what is logged) is not compared. Those that the
 * communication library reads can keep a job from starting; those and the ones for
 * computing can make the odd ranks late. In a job that runs it is a notice.
 *
 * Neighbours: config.version_mismatch (looked for first: another version reads
 * other variables), init.wrong_interface (the variable is the same everywhere, and
 * wrong), net.transport_corruption (the transport complains and no setting differs).
 */
#include "rules.h"

int setting_look(struct rules *r)
{
	return config_hold_look(r, CONFIG_SETTING);
}

int setting_slow_look(struct rules *r)
{
	return config_slow_look(r, CONFIG_SETTING);
}
