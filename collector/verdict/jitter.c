#include "members.h"
int jitter_look(struct rules *r)
{
	(void)r;
	return 0;
}
