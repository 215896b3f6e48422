import { type AddressInfo, createServer } from 'node:net';
import { exampleBody } from '../../test/support/examples.ts';

/** The cheapest upstream there is: any bytes are one call, and every answer is the same. Prints its URL. */
const delayMs = Number(process.argv[2] ?? 0);
const body = exampleBody('getSubscription');
const answer = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.on('data', () => (delayMs > 0 ? setTimeout(() => socket.write(answer), delayMs) : socket.write(answer)));
});

server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
