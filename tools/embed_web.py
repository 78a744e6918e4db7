#!/usr/bin/env python3
"""Make web.c from the built page: embed_web.py DIST NO_PAGE.html OUT.c [OUT.d]

Every file of DIST becomes an entry of web_files (collector/serve/web.h) with its
content type, entity tag, a gzip variant where that is smaller, and whether its
name carries a hash (then browsers may keep it for ever). Without a built page,
NO_PAGE.html is the page. OUT.c is only rewritten when its content changes, so
that asking at every build costs nothing.
"""
import gzip
import hashlib
import os
import re
import sys

TYPES = {
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.mjs': 'text/javascript; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.json': 'application/json',
    '.map': 'application/json',
    '.svg': 'image/svg+xml',
    '.png': 'image/png',
    '.ico': 'image/x-icon',
    '.txt': 'text/plain; charset=utf-8',
    '.webmanifest': 'application/manifest+json',
    '.wasm': 'application/wasm',
}
HASHED = re.compile(r'[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$')


def array(name, data):
    lines = [','.join(str(b) for b in data[i:i + 32]) for i in range(0, len(data), 32)]
    return 'static const unsigned char %s[] = {\n%s\n};\n' % (name, ',\n'.join(lines) or '0')


def collect(dist):
    files = []
    for folder, subfolders, names in os.walk(dist):
        subfolders.sort()
        for name in names:
            path = os.path.join(folder, name)
            if os.path.splitext(name)[1] in TYPES:
                files.append((os.path.relpath(path, dist).replace(os.sep, '/'), path))
    return sorted(files)


def main():
    dist, no_page, out = sys.argv[1:4]
    files = collect(dist)
    built = any(name == 'index.html' for name, _ in files)
    if not built:
        files = [('index.html', no_page)]

    arrays, entries = [], []
    for i, (name, path) in enumerate(files):
        with open(path, 'rb') as f:
            data = f.read()
        gz = gzip.compress(data, 9, mtime=0)
        hashed = name.startswith('assets/') and bool(HASHED.search(name))
        tag = hashlib.sha256(data).hexdigest()[:16]
        arrays.append(array('file_%d' % i, data))
        gz_entry = 'NULL, 0'
        if len(gz) < len(data):
            arrays.append(array('file_%d_gz' % i, gz))
            gz_entry = 'file_%d_gz, %d' % (i, len(gz))
        entries.append('\t{ "%s", "%s", "\\"%s\\"", file_%d, %d, %s, %s },\n' % (
            name.replace('\\', '\\\\').replace('"', '\\"'),
            TYPES[os.path.splitext(path)[1]], tag, i, len(data), gz_entry,
            'true' if hashed else 'false'))

    text = ('/* Made by tools/embed_web.py. */\n#include "web.h"\n\n' + '\n'.join(arrays) +
            '\nconst struct web_file web_files[] = {\n' + ''.join(entries) + '};\n'
            'const size_t web_n_files = %d;\nconst bool web_built = %s;\n'
            % (len(entries), 'true' if built else 'false'))
    try:
        with open(out, encoding='utf-8') as f:
            if f.read() == text:
                return
    except OSError:
        pass
    with open(out + '.new', 'w', encoding='utf-8') as f:
        f.write(text)
    os.replace(out + '.new', out)


main()
