// The texts of checks, in registrations and project files alike: docs/reference.md "Checks".
import { CHECK, SERVICE } from '../settings/limits.ts';
import { PLACEHOLDER } from './stacks.ts';

/** Headers of the connection itself, which only Berth may set. */
const OWN_HEADERS = ['connection', 'content-length', 'transfer-encoding', 'upgrade', 'expect'];
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;

/** `value` with its placeholders replaced by samples, so that it can be parsed. */
function sampleUrl(value: string): string {
  const samples: Record<string, string> = { port: '1', url: 'http://localhost:1', host: 'localhost' };
  return value.replace(PLACEHOLDER, (whole, dollar: string, body: string) =>
    dollar === '' ? (samples[body.split('.')[0] ?? ''] ?? 'x') : whole,
  );
}

/** Whether `given` is an http, https or tcp URL, as a ready-check takes it. */
export function isReadyUrl(given: string): boolean {
  const value = sampleUrl(given);
  if (!URL.canParse(value)) return false;
  // The URL parser tolerates spaces and a missing host; here both are mistakes.
  if (/^https?:\/\/[^\s/?#]\S*$/i.test(value)) return true;
  return /^tcp:\/\/[^\s/?#@]+$/.test(value) && Number(new URL(value).port) > 0;
}

const isShort = (value: string): boolean => Buffer.byteLength(value) <= SERVICE.maxReadyUrlBytes;

/** Whether `value` is a complete check: a URL of at most 4 KiB. */
export const isCheckUrl = (value: string): boolean => isShort(value) && isReadyUrl(value);

/** Whether `value` is a path on the service's own port. */
export const isCheckPath = (value: string): boolean => isShort(value) && /^\/(?!\/)\S*$/.test(value);

/** Whether a check can send a GET request to `value`. */
export const isHttpTarget = (value: string): boolean =>
  isCheckPath(value) || (isCheckUrl(value) && /^https?:/i.test(sampleUrl(value)));

/** Whether `value` is the `host:port` of a check. It may be written as a URL. */
export const isTcpTarget = (value: string): boolean =>
  isShort(value) && isReadyUrl(`tcp://${value.replace(/^tcp:\/\//, '')}`);

/** Whether a check may send a header with this name. */
export const isCheckHeader = (name: string): boolean =>
  HEADER_NAME.test(name) && !OWN_HEADERS.includes(name.toLowerCase());

const CONTROLS = /[\0-\x1f\x7f-\x9f]/;

/** Whether a header of a check may have this value. */
export const isCheckHeaderValue = (value: string): boolean =>
  value.length <= CHECK.maxHeaderBytes && !CONTROLS.test(value);

/** Whether `value` has a valid length for a pattern. Its syntax is checked in linear_regex.ts. */
export const isPatternLength = (value: string): boolean =>
  value !== '' && Buffer.byteLength(value) <= CHECK.maxPatternBytes;

/** Whether `value` is a valid command for a check. */
export const isCheckCommand = (value: string): boolean =>
  value.trim() !== '' && Buffer.byteLength(value) <= SERVICE.maxCmdBytes;
