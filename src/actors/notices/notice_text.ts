// The text of an event in a notice.
import type { NoticeMessage, StoredNotice } from '../../protocol/notices.ts';
import { NOTICE } from '../../settings/limits.ts';

/** Characters that a terminal or a desktop might interpret as a command. */
const UNSAFE = /[\p{C}\u2028\u2029]+/gu;

const fieldsOf = (data: string): string => {
  const fields: Record<string, unknown> = JSON.parse(data);
  return Object.entries(fields)
    .filter(([key, value]) => key !== 'name' && value !== null && typeof value !== 'object')
    .map(([key, value]) => `${key} ${value}`)
    .join(', ');
};

/** The message of a notice. */
export function messageOf({ id, event, count }: StoredNotice): NoticeMessage {
  const { type, name, at, data } = event;
  const fields = fieldsOf(data);
  const times = count === 1 ? '' : `, ${count} times`;
  const text = `${name}: ${type}${fields === '' ? '' : ` (${fields})`}${times}`;
  return { id, type, name, at, count, data, text: text.replace(UNSAFE, ' ').slice(0, NOTICE.maxTextLength) };
}

/** A notice that only proves that notices arrive. */
export const testMessage = (id: string, at: number): NoticeMessage => ({
  ...{ id, type: 'notice.test', name: 'berth', at, count: 1, data: '{}' },
  text: 'berth: this is a test; notices arrive here',
});
