// berth __man: the manual page, made from the table of commands. The build adds it to the package.
import { VERSION } from '../../settings/version.ts';
import { type Command, defineCommand } from '../kit/command.ts';
import type { CommandTable } from '../kit/command_table.ts';
import { exitCodesHelp } from '../kit/exit_codes.ts';
import { GLOBAL_OPTIONS } from '../kit/global_options.ts';

/** Escapes text for roff, where a backslash, a hyphen, and a dot or quote that begins a line are special. */
const escapeRoff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');

const definition = (term: string, about: string): string =>
  `.TP\n.B ${escapeRoff(term)}\n${escapeRoff(about)}\n`;

const ENVIRONMENT: readonly (readonly [name: string, about: string])[] = [
  ['BERTH_URL', 'the address of the daemon'],
  ['BERTH_CLOUD_URL', 'the address of its cloud API, where that has a listener of its own'],
  ['BERTH_STATE_DIR', 'the state directory'],
  ['BERTH_CONFIG', 'the configuration file'],
  ['BERTH_AUTH_TOKEN', 'the token of the daemon'],
  ['BERTH_CLOUD_TOKEN', 'the token of the cloud API'],
  ['BERTH_DATABASE_URL', 'the Postgres that several Berths share'],
];

async function commandsText({ rows }: CommandTable): Promise<string> {
  let heading = '';
  let text = '';
  for (const row of rows.filter(({ isHidden }) => !isHidden)) {
    if (row.heading !== heading) text += `.SS ${row.heading}\n`;
    heading = row.heading;
    const { about, args = [], options = {}, examples = [] } = await row.load();
    const summary = `${row.summary[0]?.toUpperCase()}${row.summary.slice(1)}.`;
    text += definition(['berth', row.name, ...args.map(({ syntax }) => syntax)].join(' '), summary);
    if (about) text += `${escapeRoff(about)}\n`;
    const parts = [
      ...args.map((arg) => definition(arg.syntax, arg.about)),
      ...Object.values(options).map((option) => definition(option.flags, option.about)),
      ...examples.map(([line, what]) => definition(line, what)),
    ];
    if (parts.length > 0) text += `.RS\n${parts.join('')}.RE\n`;
  }
  return text;
}

/** The command that prints the manual page of the commands in `table`. */
export const manPageCommand = (table: CommandTable): Command =>
  defineCommand({
    run: async (context) => {
      const codes = escapeRoff(exitCodesHelp());
      context.out.raw(
        `.TH BERTH 1 "" "berth ${VERSION}"\n` +
          '.SH NAME\nberth \\- run and supervise local services and AI agents\n' +
          '.SH SYNOPSIS\n.B berth\n.I command\n[\\fIarguments\\fR] [\\fIoptions\\fR]\n' +
          `.SH COMMANDS\n${await commandsText(table)}` +
          `.SH OPTIONS OF EVERY COMMAND\n${GLOBAL_OPTIONS.map((one) => definition(one.flags, one.about)).join('')}` +
          `.SH EXIT STATUS\n.nf\n${codes}\n.fi\n` +
          `.SH ENVIRONMENT\n${ENVIRONMENT.map(([name, about]) => definition(name, about)).join('')}` +
          '.SH FILES\n' +
          definition('~/.config/berth/config.toml', 'the configuration') +
          definition('~/.local/state/berth', 'the state directory') +
          definition('berth.yaml', 'the services of a project'),
      );
    },
  });
