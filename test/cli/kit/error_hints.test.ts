import { describe, expect, it } from 'vitest';
import { hintOf } from '../../../src/cli/kit/error_hints.ts';
import { EXIT_CODE, exitCodeOf } from '../../../src/cli/kit/exit_codes.ts';
import { BerthError } from '../../../src/client/errors.ts';
import { ERRORS, type ErrorCode } from '../../../src/protocol/errors.ts';

/** A command line that sends correct requests meets these only as defects. */
const OF_PROGRAMS: readonly ErrorCode[] = [
  ...(['not_found', 'method_not_allowed', 'request_timeout', 'unsupported_media_type'] as const),
  ...(['payload_too_large', 'forbidden_host', 'forbidden_origin'] as const),
];
const CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => !OF_PROGRAMS.includes(code));

describe('the hint of the command line', () => {
  it.each(CODES)('for %s names no HTTP request', (code) => {
    const hint = hintOf(new BerthError(code, 'message', { hint: ERRORS[code].hint }));
    expect(hint).not.toMatch(/\b(GET|POST|PATCH|DELETE|PUT) \/|\/v1|\/k8s\/|\b(header|request|body)\b/);
  });

  it('for an agent that asks a question begins with the lines of the question', () => {
    const details = ['May I?', '1. Yes'].map((message) => ({ path: 'question', message }));
    const hint = hintOf(new BerthError('agent_blocked', 'message', { details, hint: 'see details' }));
    expect(hint.split('\n').slice(0, 2)).toEqual(['May I?', '1. Yes']);
    expect(hint).toContain('berth agent keys');
  });
});

it('an error of the daemon about the arguments of a call exits like a usage error', () => {
  expect(exitCodeOf(new BerthError('invalid_spec', 'since must be a time'))).toBe(EXIT_CODE.usage);
});
