// The findings of `berth doctor` about the targets of notices: docs/reference.md "Notices".
import type { Client } from '../../client/create_client.ts';
import { isBerthError } from '../../client/errors.ts';
import { REMOVED_RULES } from '../../protocol/notices.ts';
import type { DoctorFinding } from './doctor_finding.ts';

/** The targets; none if the daemon does not answer, which another check reports. */
async function targetsOf(client: Client) {
  try {
    // A daemon of an earlier version has no notices.
    return ((await client.system()).notices ?? []).filter(({ target }) => target !== REMOVED_RULES);
  } catch (error) {
    if (isBerthError(error)) return [];
    throw error;
  }
}

/** A finding for each target whose last attempt failed, or a single one if all succeeded. */
export async function noticeFindings(client: Client): Promise<DoctorFinding[]> {
  const notices = await targetsOf(client);
  const failing = notices.flatMap(({ target, error, pending }): DoctorFinding[] => {
    if (error === null) return [];
    const about = `notices do not arrive at ${target}: ${error} (waiting: ${pending})`;
    return [{ state: 'warning', about, fix: '`berth notify test` tries every target.' }];
  });
  if (failing.length > 0 || notices.length === 0) return failing;
  return [{ state: 'ok', about: `notices arrive (targets: ${notices.length})` }];
}
