import { defineConfig } from 'vite';

/* Relative addresses only: the page is opened through tunnels and proxies with a
 * path of their own. No inline code: the collector sends a strict policy. */
export default defineConfig({
  base: './',
  publicDir: false,
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2021',
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
  worker: { format: 'es' },
});
