import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../scripts/free-port.ts';
import { folder, type Server, start } from './servers.ts';

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** One that keeps answers for each credential; undefined where nginx is not installed. */
export async function startNginx(upstream: string): Promise<Server | undefined> {
  if (spawnSync('nginx', ['-v']).error) return undefined;
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, configOf(port, upstream));
  return start({ command: ['nginx', '-p', folder, '-c', file], port });
}

function configOf(port: number, upstream: string): string {
  const user = process.getuid?.() === 0 ? 'user root;' : ''; // its workers could not write into the folder otherwise
  return `${user}
worker_processes 1;
daemon off;
pid nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
  access_log off;
  ${TEMPORARY.map((name) => `${name}_temp_path ${name};`).join('\n  ')}
  proxy_cache_path copies keys_zone=copies:64m;
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000000;
    location / {
      proxy_pass ${upstream};
      proxy_cache copies;
      proxy_cache_key $http_authorization$request_uri;
      proxy_cache_valid 200 1h;
      add_header X-Request-Id $request_id;
      add_header Cache-Status "nginx; $upstream_cache_status";
    }
  }
}
`;
}
