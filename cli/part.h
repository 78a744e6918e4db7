/* part.h - files that are not whole yet: a signal that ends the program takes them away. */
#pragma once

/* From now on, with what SQLite lays beside a database of that name. One at a time. */
void part_watch(const char *path);
/* mkostemp(), watched before any signal can come. */
int part_make(char *template);
void part_forget(void);
