/* theme.ts - light or dark, as the system says. */

import { signal } from '@preact/signals';

const query = window.matchMedia('(prefers-color-scheme: dark)');

export const dark = signal(query.matches);
query.addEventListener('change', (e) => { dark.value = e.matches; });
