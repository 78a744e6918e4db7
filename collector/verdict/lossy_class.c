#include "members.h"
int lossy_class_look(struct rules *r)
{
	(void)r;
	return 0;
}
