// berth doctor
import { command } from './command.ts';
import { CHECKS, type Finding } from './doctor_checks.ts';
import { plain } from './plain.ts';

const MARKS = { ok: ['green', '✓'], warning: ['yellow', '!'], wrong: ['red', '✗'] } as const;

export const doctor = command({
  about: 'Changes nothing. Exit code 1 when something is wrong; what is only worth knowing is a warning.',
  run: async (cli) => {
    const findings: Finding[] = [];
    for (const check of CHECKS) findings.push(...(await check(cli)));
    const text = findings.map(({ state, about, fix }) => {
      const [style, mark] = MARKS[state];
      return `${cli.out.style(style, mark)} ${plain(about)}${fix ? `\n    ${plain(fix)}` : ''}`;
    });
    cli.out.record(findings, () => text.join('\n'));
    return findings.some(({ state }) => state === 'wrong') ? 1 : 0;
  },
});
