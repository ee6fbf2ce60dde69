// Answers /health for the ready-check, and the time for everything else.
import { createServer } from 'node:http';

createServer((request, response) => {
  const body = request.url === '/health' ? { ok: true } : { now: new Date().toISOString() };
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
}).listen(Number(process.env.PORT), '127.0.0.1');
