// What `berth doctor` says of the targets of notices: docs/reference.md "Notices".
import type { Client } from '../../client/create_client.ts';
import type { DoctorFinding } from './doctor_checks.ts';

/** A finding for each target whose last attempt has failed, or one for all of them. */
export async function noticeFindings(client: Client): Promise<DoctorFinding[]> {
  const { notices } = await client.system();
  const failing = notices.flatMap(({ target, error, pending }): DoctorFinding[] => {
    if (error === null) return [];
    const about = `notices do not arrive at ${target}: ${error} (waiting: ${pending})`;
    return [{ state: 'warning', about, fix: '`berth notify test` tries every target.' }];
  });
  if (failing.length > 0 || notices.length === 0) return failing;
  return [{ state: 'ok', about: `notices arrive (targets: ${notices.length})` }];
}
