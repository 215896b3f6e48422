import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv, type ProxyOptions } from 'vite';

/** One origin for the page, the gateway and the sandbox's controls: sessions want it, and it is the fastest. */
export default defineConfig(({ mode }) => {
  const urls = loadEnv(mode, import.meta.dirname, ['GATEWAY_URL', 'SANDBOX_URL', 'DISTANCE_URL']);
  const way: ProxyOptions = {
    changeOrigin: false,
    // The proxy ends its own connections; the browser's stay.
    configure: (server) => server.on('proxyRes', ({ headers }) => delete headers.connection),
  };
  const proxy = {
    '^/(api|bff|problems)(/|$)': { target: urls['GATEWAY_URL'] ?? 'http://127.0.0.1:8787', ...way },
    '^/_sandbox/': { target: urls['SANDBOX_URL'] ?? 'http://127.0.0.1:8789', ...way },
    '^/_distance/': { target: urls['DISTANCE_URL'] ?? 'http://127.0.0.1:8790', ...way },
  };
  const at = { host: '127.0.0.1', strictPort: true, proxy };
  // The comparison calls through lines to here, on other ports of this machine.
  const policy = {
    'default-src': "'self'",
    'connect-src': "'self' http://127.0.0.1:*",
    'frame-src': 'http://127.0.0.1:*',
    'base-uri': "'none'",
    'frame-ancestors': 'http://127.0.0.1:*',
  };
  const csp = Object.entries(policy).map((directive) => directive.join(' '));
  const headers = { 'Content-Security-Policy': csp.join('; ') };
  const build = { rolldownOptions: { input: ['index.html', 'far.html'] } };
  return { plugins: [react()], build, server: at, preview: { ...at, headers } };
});
