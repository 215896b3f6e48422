import { json, startUpstream } from 'portico/testing';

const upstream = await startUpstream();
upstream.on('GET /', json(200, {}));
const answer = await fetch(upstream.url);
console.log(answer.status, upstream.calls.length);
await upstream.close();
