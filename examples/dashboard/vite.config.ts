import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv } from 'vite';

/** One origin for the page, the gateway and the sandbox's controls: sessions want it, and it is the fastest. */
export default defineConfig(({ mode }) => {
  const { GATEWAY_URL, SANDBOX_URL } = loadEnv(mode, import.meta.dirname, ['GATEWAY_URL', 'SANDBOX_URL']);
  const proxy = {
    '^/(api|bff|problems)(/|$)': { target: GATEWAY_URL ?? 'http://127.0.0.1:8787', changeOrigin: false },
    '^/_sandbox/': { target: SANDBOX_URL ?? 'http://127.0.0.1:8789', changeOrigin: false },
  };
  const at = { host: '127.0.0.1', strictPort: true, proxy };
  const headers = { 'Content-Security-Policy': "default-src 'self'; base-uri 'none'; frame-ancestors 'none'" };
  return { plugins: [react()], server: at, preview: { ...at, headers } };
});
