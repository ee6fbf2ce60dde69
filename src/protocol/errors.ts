// The one table of errors that a client of the daemon can get. A test compares it with the README's table in
// both directions.
import { Failure } from '../runtime/actor.ts';

interface ErrorRow {
  status: number;
  hint: string;
}

/** Code to HTTP status and default hint: docs/reference.md "Errors". */
export const ERRORS = {
  invalid_spec: { status: 400, hint: 'Correct the fields named in the message and send the request again.' },
  unauthorized: { status: 401, hint: 'Send the header Authorization: Bearer <token>.' },
  forbidden_host: {
    status: 403,
    hint: 'Use http://localhost or http://127.0.0.1 with the port of the daemon.',
  },
  forbidden_origin: {
    status: 403,
    hint: 'From a page, only this daemon, allowed_extensions and allowed_origins may call it.',
  },
  forbidden_owner: {
    status: 403,
    hint: 'An agent may only use its own stack. Ask the user who runs it for anything else.',
  },
  forbidden_token: {
    status: 403,
    hint: 'A share token can only watch the terminal of its agent and read its screen.',
  },
  forbidden: {
    status: 403,
    hint: 'Ask the administrator of that Berth for the role in the message.',
  },
  not_found: { status: 404, hint: 'GET /openapi.json lists every path.' },
  unknown_service: { status: 404, hint: 'GET /v1/services lists the registered services.' },
  unknown_group: { status: 404, hint: 'GET /v1/groups lists the groups.' },
  unknown_stack: { status: 404, hint: 'GET /v1/stacks lists the stacks.' },
  unknown_agent: { status: 404, hint: 'GET /v1/agents lists the agents.' },
  unknown_cluster: { status: 404, hint: 'GET /k8s/clusters lists the clusters.' },
  unknown_workload: {
    status: 404,
    hint: 'GET /k8s/workloads lists the workloads; sync the cluster if it is new.',
  },
  unknown_policy: { status: 404, hint: 'GET /k8s/policies lists the policies.' },
  unknown_token: { status: 404, hint: 'GET /k8s/tokens lists the tokens.' },
  unknown_grant: { status: 404, hint: 'GET /k8s/grants lists the grants.' },
  unknown_operation: {
    status: 404,
    hint: 'Operations are kept for a day; GET /k8s/events/history keeps events longer.',
  },
  unknown_tether: { status: 404, hint: 'GET /k8s/tethers lists the tethers.' },
  method_not_allowed: { status: 405, hint: 'The header Allow lists the methods of this path.' },
  request_timeout: { status: 408, hint: 'Send the whole body within 8 seconds of its head.' },
  wait_timeout: { status: 408, hint: 'Try again with a longer timeout.' },
  already_running: { status: 409, hint: 'Stop it first, or use restart.' },
  port_in_use: { status: 409, hint: 'Stop what holds the port, or register another port.' },
  name_in_use: { status: 409, hint: 'Choose another name, or remove the one that uses it.' },
  hook_refused: {
    status: 409,
    hint: '`berth up` runs the hook create, and `berth rm --stack` runs remove.',
  },
  not_running: { status: 409, hint: 'Start it first.' },
  no_prompt: { status: 409, hint: 'Agents of this type are servers: use their API instead.' },
  agent_blocked: {
    status: 409,
    hint: 'Answer the question in `details` with keys or by attaching; then try again.',
  },
  agent_working: { status: 409, hint: 'Wait until it is idle, or send the prompt with "queue": true.' },
  no_session: { status: 409, hint: 'Use force=true to begin a new conversation.' },
  writer_attached: { status: 409, hint: 'Observe it, or take over with takeover=true.' },
  sleep_refused: { status: 409, hint: 'This workload is protected from being scaled to zero.' },
  wake_refused: { status: 409, hint: 'The message says why. Scale it with kubectl, or wake it explicitly.' },
  workload_conflict: { status: 409, hint: 'Something else keeps changing the workload; try again.' },
  tether_elsewhere: {
    status: 409,
    hint: 'Set cloud.remote of your own Berth to this one, or use `berth k8s tether --remote`.',
  },
  relay_off: { status: 409, hint: 'Set cloud.bind and cloud.relay_port on that Berth.' },
  quota_exceeded: {
    status: 429,
    hint: 'Close what you no longer need, or ask an administrator to raise the quota.',
  },
  key_reused: { status: 422, hint: 'Send each new request with its own Idempotency-Key.' },
  payload_too_large: { status: 413, hint: 'Send a smaller body.' },
  unsupported_media_type: { status: 415, hint: 'Send the header Content-Type: application/json.' },
  internal: { status: 500, hint: 'This is a bug in berth; the daemon log on stderr says more.' },
  ready_timeout: { status: 502, hint: 'Check the log of the service and its ready-check.' },
  start_failed: { status: 502, hint: 'Check the log of the service.' },
  agent_stalled: { status: 502, hint: 'The prompt was typed: check the screen of the agent.' },
  dependency_failed: { status: 502, hint: 'Check the log of the service in the message.' },
  cluster_unreachable: { status: 502, hint: 'Check that the API server of the cluster can be reached.' },
  cluster_denied: { status: 502, hint: 'Give the account of the kubeconfig the right in the message.' },
  admission_denied: {
    status: 502,
    hint: 'The admission webhook or policy belongs to the cluster: ask its administrator.',
  },
  remote_unreachable: { status: 502, hint: 'Check cloud.remote, and that the Berth there can be reached.' },
  remote_denied: {
    status: 502,
    hint:
      'Put the cloud token of that Berth, or an API token, into remote-token in the state directory. One in ' +
      'cloud.remote_token or BERTH_REMOTE_TOKEN comes first, and is read when the daemon starts.',
  },
  standing_by: {
    status: 503,
    hint: 'Use the Berth in the message, or try again: a standby takes over when it ends.',
  },
  database_unusable: {
    status: 503,
    hint: 'Check cloud.database_url, and that the database can be reached.',
  },
  daemon_busy: { status: 503, hint: 'Try again shortly.' },
  storage_lost: {
    status: 500,
    hint: 'The log of the daemon says more. Restart the daemon; it explains how to recover.',
  },
  key_unusable: { status: 500, hint: 'Restore the key file that encrypted the stored data.' },
  storage_full: { status: 503, hint: 'Free disk space in the state directory and try again.' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** Whether the table has `code`. */
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code);

/** In the message of an error about a change that has begun. Other refused changes have done nothing. */
export const MAY_TAKE_EFFECT = 'the request may still take effect';

/** The additional data of a Failure with a code of the table. */
export interface FailureDetail {
  hint?: string;
  details?: { path: string; message: string }[];
  /** The process host was lost meanwhile: `host_loss.ts`. Not shown to clients. */
  isHostLost?: boolean;
}

/** A Failure with a code of the table; `throw fail(...)` in a handler answers the caller. */
export function fail(code: ErrorCode, message: string, detail: FailureDetail = {}): Failure {
  return new Failure(code, message, detail);
}
