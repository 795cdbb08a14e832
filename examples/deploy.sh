#!/usr/bin/env bash
# Ask a person before you deploy, with bash, curl (7.71 or newer) and jq alone.
#
#   NOD_URL=http://127.0.0.1:8080 NOD_TOKEN=… examples/deploy.sh 1.4
#
# curl asks again while Nod restarts. The key makes it one question, however often this script is started
# for one run; RUN_ID is your pipeline's.
set -euo pipefail
version=$1

nod() { # METHOD PATH [BODY]: the request that the answer is about
    local answer
    answer=$(curl -sS -X "$1" --retry 9 --retry-all-errors --max-time 75 "$NOD_URL$2" \
        -H "Authorization: Bearer $NOD_TOKEN" -H "Content-Type: application/json" \
        -H "Idempotency-Key: deploy-$version-${RUN_ID:-$$}" ${3:+-d "$3"})
    jq -e .proposal <<<"$answer" || { jq -r '.error // .' <<<"$answer" >&2; return 4; }
}

body=$(jq -n --arg version "$version" '{summary: "Deploy \($version)?", fields: {version: $version}}')
request=$(nod POST /api/approvals "$body")
id=$(jq -r .id <<<"$request")
while [ "$(jq -r .end <<<"$request")" = waiting ]; do
    request=$(nod GET "/api/approvals/$id?wait=60")
done

case $(jq -r .end <<<"$request") in
approved) echo "Deploying $(jq -r .arguments.fields.version <<<"$request"), approved by $(jq -r .decided_by <<<"$request")" ;;
declined) echo "Declined: $(jq -r '.decline_reason // "no reason given"' <<<"$request")"; exit 1 ;;
*) echo "No one decided: $(jq -r .end <<<"$request")"; exit 3 ;;
esac
