// A page. Its port is in $PORT, as that of every service.
import { createServer } from 'node:http';

const server = createServer((_request, response) => {
  response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>site</title><h1>It runs</h1>');
});
server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('the site listens'));
