// berth doctor
import { defineCommand } from '../kit/command.ts';
import { sanitize } from '../kit/sanitize.ts';
import { DOCTOR_CHECKS } from './doctor_checks.ts';
import type { DoctorFinding } from './doctor_finding.ts';

const MARKS = { ok: ['green', '✓'], warning: ['yellow', '!'], wrong: ['red', '✗'] } as const;

export const doctorCommand = defineCommand({
  about: 'Changes nothing. Exit code 1 if something is wrong; a warning alone does not count.',
  run: async (context) => {
    const findings: DoctorFinding[] = [];
    for (const check of DOCTOR_CHECKS) findings.push(...(await check(context)));
    const text = findings.map(({ state, about, fix }) => {
      const [style, mark] = MARKS[state];
      return `${context.out.style(style, mark)} ${sanitize(about)}${fix ? `\n    ${sanitize(fix)}` : ''}`;
    });
    context.out.record(findings, () => text.join('\n'));
    return findings.some(({ state }) => state === 'wrong') ? 1 : 0;
  },
});
