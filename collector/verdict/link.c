#include "members.h"
int link_look(struct rules *r)
{
	(void)r;
	return 0;
}
