#!/bin/sh
# Starts an agent through the API and prints the address of its page. Usage: sh spinup.sh [name]
# BERTH_URL is the address of the daemon; BERTH_AUTH_TOKEN its token, if it has one.
set -eu
curl -fsS "${BERTH_URL:-http://localhost:11611}/v1/agents/spinup" \
  -H 'Content-Type: application/json' \
  ${BERTH_AUTH_TOKEN:+-H "Authorization: Bearer $BERTH_AUTH_TOKEN"} \
  -d "{\"name\": \"${1:-bot}\", \"cmd\": \"exec python3 -m http.server \$PORT --bind 127.0.0.1\", \"ready\": \"http://localhost:\$PORT/\"}"
