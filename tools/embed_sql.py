#!/usr/bin/env python3
"""Make sql.c and sql.h from SQL files: embed_sql.py ROOT OUT.c OUT.h FILE...

sql/store/put_run.sql becomes `sql_store_put_run`; files below migrations/ also
become the table `sql_migrations`, in the order of their numbers.
"""
import os
import sys


def literal(text):
    out = []
    for line in text.splitlines():
        line = line.replace('\\', '\\\\').replace('"', '\\"')
        out.append('\t"' + line + '\\n"')
    return '\n'.join(out) or '\t""'


def main():
    root, out_c, out_h = sys.argv[1:4]
    names, migrations, body = [], [], []
    for path in sorted(sys.argv[4:]):
        rel = os.path.relpath(path, root)
        name = 'sql_' + rel[:-len('.sql')].replace(os.sep, '_')
        with open(path, encoding='utf-8') as f:
            text = f.read()
        body.append('const char %s[] =\n%s;\n' % (name, literal(text)))
        names.append(name)
        if rel.startswith('migrations' + os.sep):
            version = int(os.path.basename(rel).split('_')[0])
            if version != len(migrations) + 1:
                sys.exit('%s: migrations are numbered 1, 2, 3, ... without gaps' % path)
            migrations.append((version, name))
    with open(out_h, 'w', encoding='utf-8') as f:
        f.write('/* Made by tools/embed_sql.py from sql/: edit there. */\n#pragma once\n\n')
        f.write('struct sql_migration {\n\tint version;\n\tconst char *text;\n};\n')
        f.write('extern const struct sql_migration sql_migrations[];\n')
        f.write('#define SQL_N_MIGRATIONS %d\n\n' % len(migrations))
        for name in names:
            f.write('extern const char %s[];\n' % name)
    with open(out_c, 'w', encoding='utf-8') as f:
        f.write('/* Made by tools/embed_sql.py from sql/: edit there. */\n#include "sql.h"\n\n')
        f.write('\n'.join(body))
        f.write('\nconst struct sql_migration sql_migrations[] = {\n')
        for version, name in migrations:
            f.write('\t{ %d, %s },\n' % (version, name))
        f.write('\t{ 0, 0 },\n};\n')


main()
