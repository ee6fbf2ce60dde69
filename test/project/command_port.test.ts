// The port that a command names, in files of other tools.
import { expect, it } from 'vitest';
import { portInCommand, workerSign } from '../../src/project/command_port.ts';

const SERVERS: Record<string, number> = {
  'PORT=4001 node x.js': 4001,
  'env PORT=4001 node x.js': 4001,
  'PORT="4001" node x.js': 4001,
  'export PORT=4001 && node x.js': 4001,
  'export A=1 PORT=4001; exec node x.js': 4001,
  'bin/rails s -p 3000': 3000,
  'rm -f tmp/pids/server.pid && bin/rails server -b 0.0.0.0 -p 3001': 3001,
  'bundle exec puma -b tcp://0.0.0.0:9292': 9292,
  'next dev -p4007': 4007,
  'next start -p 3000 2>&1 | tee log/next.log': 3000,
  'vite --port=4008 --host': 4008,
  'API_URL=http://localhost:4000 vite --port 5173': 5173,
  'cd web && (npx vite --port 5173)': 5173,
  'npm run dev -- --port 5173': 5173,
  'npx http-server -p 8096 ./dist': 8096,
  'npx serve -l 3000 dist': 3000,
  'serve dist -l tcp://0.0.0.0:3000': 3000,
  'uvicorn app:app --host 0.0.0.0 --port 8001': 8001,
  'gunicorn -b 0.0.0.0:8000 app': 8000,
  'gunicorn --bind "0.0.0.0:8000" app': 8000,
  'gunicorn --bind ${HOST:-0.0.0.0}:8000 app': 8000,
  'python3 -m http.server 8003 --bind 127.0.0.1': 8003,
  'exec python manage.py runserver 0.0.0.0:8000': 8000,
  'php -S localhost:8002 -t public': 8002,
  'php artisan serve --port=8000': 8000,
  'dotnet run --urls "http://localhost:5000;https://localhost:5001"': 5000,
  'ASPNETCORE_URLS=http://localhost:5000 dotnet run': 5000,
  './server -listen :8100': 8100,
  './server --listen 127.0.0.1:8100': 8100,
  './server -addr localhost:8100 -db localhost:5432': 8100,
  './server --metrics-port 9100 --port 8099': 8099,
  'docker run --rm -p 8090:80 nginx': 8090,
  'docker run --rm -e PORT=80 -p 127.0.0.1:8090:80 nginx': 8090,
  'postgres -D data -p 5544': 5544,
  'redis-server --port 6380': 6380,
  'memcached -p 11212 -U 0': 11_212,
  'node --inspect=0.0.0.0:9229 server.js --port 3000': 3000,
  'sh -c "npm run build && node server.js --port 3000"': 3000,
  "bash -lc 'exec node server.js --port 3000'": 3000,
  'concurrently -n web,types "vite --port 5173" "tsc -w"': 5173,
  'concurrently "stripe listen --forward-to localhost:3000/hook" "next dev -p 3000"': 3000,
  'stripe listen --forward-to localhost:3000/hook & next dev -p 3000': 3000,
  'psql -h localhost -p 5432 -c "select 1; select 2" && node server.js --port 3000': 3000,
  'wait-on tcp:5432\nnode server.js \\\n  --port 3000 # -p 4000': 3000,
  './wait-for-it.sh -p 5432 -h db -- node server.js --port 3000': 3000,
  'node server.js --port 3000 & wait': 3000,
  'if [ -x ./server ]; then ./server --port 3000; fi': 3000,
  'bundle check || bundle install; rails s -p 3000 || exit 1': 3000,
  'streamlit run app.py --server.port 3054': 3054,
  'java -jar app.jar --management.server.port=8081 --server.port=3042': 3042,
  'java -Dserver.port=3043 -jar app.jar': 3043,
  'mvn spring-boot:run -Dspring-boot.run.arguments=--server.port=3045': 3045,
  "mvn spring-boot:run -Dspring-boot.run.jvmArguments='-Xmx1g -Dserver.port=3045'": 3045,
  "./gradlew bootRun --args='--server.port=3044'": 3044,
  './mvnw quarkus:dev -Dquarkus.http.port=4086': 4086,
  'elasticsearch -E http.port=3062 -E transport.port=9300': 3062,
  'air -- -port 3046': 3046,
  'go run . -port 4083': 4083,
  'node server.js --PORT 4088': 4088,
  'node server.js --PORT=4088': 4088,
  'typesense-server --api-port=4047': 4047,
  'node server.js --metrics-port 9100 --http-port 3000': 3000,
  'meilisearch --http-addr 127.0.0.1:4046': 4046,
  'minio server ./data --address :3029 --console-address :9001': 3029,
  'esbuild --serve=4016': 4016,
  'esbuild src/app.js --watch --serve=localhost:4017': 4017,
  'mkdocs serve -a 127.0.0.1:4035': 4035,
  'bundle exec jekyll serve -P 3022 --livereload_port 35729': 3022,
  'python -m debugpy --listen 5678 manage.py runserver 4006': 4006,
  'python -m debugpy --listen=0.0.0.0:5678 -m uvicorn main:app --port 4059': 4059,
  'rdbg --open --port 12345 -- bin/rails s -p 4007': 4007,
  'rdbg --host 0.0.0.0 --port=12345 server.rb --port 4007': 4007,
  'rdbg server.rb --port 4007': 4007,
  'dlv debug --headless --listen=:2345 ./cmd -- -addr :4008': 4008,
  'dlv debug ./cmd -- --port 4008': 4008,
  'PORT=3000 node web.js --api-port 4000': 3000,
  'export PORT=3000; node web.js --api-port 4000': 3000,
  'node api.js --api-port 4000 & vite --port 5173': 5173,
};

const NO_PORT = [
  'node --inspect=0.0.0.0:9229 server.js',
  'node --inspect 127.0.0.1:9229 server.js',
  'DATABASE_URL=postgres://localhost:5432/shop node server.js',
  'API_URL="http://localhost:4000" vite',
  './consume -b redis://localhost:6379/0',
  'browser-sync start --proxy localhost:3000',
  'node proxy.js --target http://127.0.0.1:3000 --url=http://localhost:3001',
  'node server.js --db-port 5433',
  'node client.js localhost:8080',
  'PORT=70000 node server.js',
  "psql -h localhost -p 5432 -c 'select 1' && node server.js",
  'psql -p 5432 -c "select 1; select 2" || true; node server.js',
  'DB=$(psql -p 5432 -c "select 1") node server.js',
  'until pg_isready -p 5432; do sleep 1; done; node server.js',
  'while ! nc -z localhost 5432; do sleep 1; done && node server.js',
  'redis-cli -p 6379 flushall; node worker.js',
  "mysql --port 3306 -e 'x' && exec node server.js",
  'docker compose exec db psql -p 5432 && node server.js',
  'wait-on tcp:5432 http://localhost:3000 && node server.js',
  'curl -s http://localhost:8093/ ; node server.js',
  'mkdir -p 8080 && node server.js',
  'npx kill-port -p 3000 && node server.js',
  'wait-for-it localhost:5432 -- node server.js',
  'yarn https',
  'kubectl port-forward svc/web 8080:80',
  'node client.js --server-port 3000',
  'chromium --remote-debugging-port=9222',
  'java -Dmanagement.server.port=8081 -Dspring.data.redis.port=6379 -jar app.jar',
  'DSN="host=db port=5432" ./server',
  'dlv debug --headless --listen=:2345 ./cmd',
  'python worker.py --address localhost:7233',
];

const CLIENTS = [
  'stripe listen --forward-to localhost:3000/webhooks',
  'cloudflared tunnel --url http://localhost:3000',
  'exec ngrok http --url x.ngrok.app 3000',
  'npx localtunnel --port 3000',
  'smee -u https://smee.io/x --port 3000',
  'sleep 5 && stripe listen --forward-to http://127.0.0.1:3000/hook',
  'ssh -p 2222 -N host',
  'ssh -L 8095:db:5432 -p 2222 host -N',
  'sudo -u postgres psql -p 5432 -f setup.sql',
  'sh -c "redis-cli -p 6379 monitor"',
  'docker exec -it db psql -p 5432',
  'timeout 30 curl -N http://localhost:8093/events',
  'nc -lk 8097',
  'temporal worker --address localhost:7233',
];

it.each(Object.entries(SERVERS))('the server %s names its port', (command, port) => {
  expect(portInCommand(command)).toEqual({ port });
});

it.each(NO_PORT)('a port that %s only talks to is not its own', (command) => {
  expect(portInCommand(command)).toBeNull();
  expect(workerSign('web', command)).toBeNull();
});

it.each(CLIENTS)('%s has no port', (command) => {
  expect(portInCommand(command)).toBeNull();
  expect(workerSign('web', command)).toBe('program');
});

it.each([
  'bundle exec puma -p ${PORT:-3000}',
  'node server.js --PORT $PORT',
  'java -jar app.jar --server.port=$PORT',
  'node -e "listen(process.env.PORT)"',
  'psql -p 5432 -f setup.sql & exec python3 -m http.server $PORT',
])('the port of %s is the one in $PORT', (command) => {
  expect(portInCommand(command)).toEqual({ port: 'auto' });
});

it('a client of $PORT serves nothing there, but needs the variable', () => {
  const command = 'stripe listen --forward-to localhost:$PORT/webhooks';
  expect(portInCommand(command)).toBeNull();
  expect(workerSign('stripe', command)).toBeNull();
});
