#include "members.h"
int retransmits_look(struct rules *r)
{
	(void)r;
	return 0;
}
