// The labels of a workload as one text, and Kubernetes label selectors that match it:
// docs/reference.md "Label selectors". Pure.
import { isFailure } from '../runtime/actor.ts';
import { fail } from './errors.ts';

export const LABEL_KEY = /^([a-z0-9A-Z.-]{1,253}\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
export const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

/** Labels beyond this length are left out; real objects have far fewer. */
const MAX_TEXT = 4_096;
const MAX_SELECTOR = 1_024;
const MAX_REQUIREMENTS = 32;

/**
 * Labels as lines `key=value`, with a line feed before and after each; '' for none. A hundred thousand such
 * texts take a fraction of the memory of as many objects, and a search in one is a single `includes`.
 */
export type LabelText = string;

/** The text for the labels of an untrusted cluster. Invalid labels are left out. */
export function labelText(labels: unknown): LabelText {
  if (typeof labels !== 'object' || labels === null) return '';
  let text = '';
  for (const [key, value] of Object.entries(labels)) {
    if (typeof value !== 'string' || !LABEL_KEY.test(key) || !LABEL_VALUE.test(value)) continue;
    if (text.length + key.length + value.length > MAX_TEXT) break;
    text += `${text === '' ? '\n' : ''}${key}=${value}\n`;
  }
  return text;
}

/** The labels in `text`. */
export const labelsIn = (text: LabelText): Record<string, string> =>
  Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );

/** Whether the labels in a text match. */
export type LabelMatch = (text: LabelText) => boolean;

/** One requirement: `app=web`, `app==web`, `app!=web`, `tier in (a,b)`, `tier notin (a,b)`, `app`, `!app`. */
const REQUIREMENT =
  /^\s*(?:(!)\s*([^\s!=,()]+)|([^\s!=,()]+)(?:\s*(==|=|!=)\s*([^\s!=,()]*)|\s+(in|notin)\s*\(([^()]*)\))?)\s*$/;

/** The requirements of `selector`, separated by commas outside parentheses. */
const requirementsOf = (selector: string): string[] => selector.split(/,(?![^()]*\))/);

const wrong = (message: string) =>
  fail('invalid_spec', `selector ${message}`, { details: [{ path: 'selector', message }] });

/** One requirement as data. */
export interface Requirement {
  readonly key: string;
  /** null: whether there is the key matters, not its value. */
  readonly values: readonly string[] | null;
  readonly isNegated: boolean;
}

function parseRequirement(text: string): Requirement {
  const found = REQUIREMENT.exec(text);
  const [, not, absentKey, key = absentKey ?? '', equality, value, setOperator, set] = found ?? [];
  if (!found) throw wrong(`has an invalid requirement: ${JSON.stringify(text.slice(0, 100))}`);
  if (!LABEL_KEY.test(key)) throw wrong(`has an invalid key: ${JSON.stringify(key.slice(0, 100))}`);
  if (setOperator && set?.trim() === '') throw wrong(`has no values for ${JSON.stringify(key)}`);
  const values = equality ? [value ?? ''] : (set ?? '').split(',').map((one) => one.trim());
  const bad = equality || setOperator ? values.find((one) => !LABEL_VALUE.test(one)) : undefined;
  if (bad !== undefined) throw wrong(`has an invalid value: ${JSON.stringify(bad.slice(0, 100))}`);
  if (!equality && !setOperator) return { key, values: null, isNegated: not !== undefined };
  return { key, values, isNegated: equality === '!=' || setOperator === 'notin' };
}

function requirementMatch({ key, values, isNegated }: Requirement): LabelMatch {
  const texts = values ? values.map((one) => `\n${key}=${one}\n`) : [`\n${key}=`];
  return (labels) => texts.some((text) => labels.includes(text)) !== isNegated;
}

/** The requirements of `selector`, which must all hold. Throws invalid_spec. */
export function requirementsIn(selector: string): Requirement[] {
  if (selector.length > MAX_SELECTOR) throw wrong(`must have at most ${MAX_SELECTOR} characters`);
  const parts = requirementsOf(selector);
  if (parts.length > MAX_REQUIREMENTS) throw wrong(`must have at most ${MAX_REQUIREMENTS} requirements`);
  return parts.map(parseRequirement);
}

/**
 * Parses `selector`; every requirement must hold. As in Kubernetes, `!=` and `notin` also match objects
 * without the label. Throws invalid_spec. docs/reference.md "Label selectors".
 */
export function parseSelector(selector: string): LabelMatch {
  const matches = requirementsIn(selector).map(requirementMatch);
  return (labels) => matches.every((isMatch) => isMatch(labels));
}

/** What is wrong with `selector`; null if nothing. */
export function selectorFault(selector: string): string | null {
  try {
    parseSelector(selector);
    return null;
  } catch (error) {
    if (!isFailure(error)) throw error;
    return error.message.replace(/^selector /, '');
  }
}
