// berth login
import { isBerthError } from '../../client/errors.ts';
import { changeLogin, readLogin, type StoredLogin, writeLogin } from '../../client/login_file.ts';
import { connectRemote } from '../../client/remote_berth.ts';
import { apiTokenId } from '../../protocol/api_token.ts';
import { isBerthAddress } from '../../settings/config.ts';
import { readSecret } from '../../settings/state_dir.ts';
import { defineCommand, flagOption, textOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, EXIT_CODE, UsageError } from '../kit/exit_codes.ts';

const BUSY_RETRY_MS = 10_000;
const MAX_TOKEN_TEXT = 10_000;
const ADDRESS_HINT = 'Give an origin such as https://berth.example.com.';

/** The Berth to log in to: the named one, or the one already in use. */
async function chosenUrl(context: CommandContext, named: string | undefined): Promise<string> {
  const { settings, stateDir } = await context.local();
  const text = named ?? (settings.cloud.remote || readLogin(stateDir)?.url);
  if (text === undefined) throw new UsageError('name the Berth: berth login <url>', ADDRESS_HINT);
  const address = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`;
  const origin = URL.canParse(address) ? new URL(address).origin : address;
  const isOrigin = URL.canParse(address) && [origin, `${origin}/`].includes(new URL(address).href);
  if (isOrigin && isBerthAddress(origin)) return origin;
  throw new UsageError(`${text} is not the address of a Berth with https`, ADDRESS_HINT);
}

async function readStdin(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MAX_TOKEN_TEXT) throw new UsageError('stdin is too long for a token');
  }
  return text;
}

async function readToken(file: string): Promise<string> {
  const text = file === '-' ? await readStdin() : readSecret(file, 'put the token into it')?.toString();
  if (text === undefined) throw new UsageError(`${file} does not exist`);
  const token = text.trim();
  if (apiTokenId(token) !== null) return token;
  throw new UsageError(
    `${file === '-' ? 'stdin' : file} has no API token`,
    '`berth k8s tokens create` makes one; it begins with brt_.',
  );
}

async function logInAsPerson(context: CommandContext, url: string, opens: boolean): Promise<StoredLogin> {
  if (!url.startsWith('https:')) {
    // Over http a server must prove that it knows the token, but it cannot know a person's.
    const hint = 'For an API token: berth login --token-file.';
    throw new UsageError(`people log in over https, and ${url} has none`, hint);
  }
  const settings = await connectRemote({ url, token: null }).cloud.loginSettings();
  // Loaded here because a login with a token file needs no issuer.
  const { logInByDevice } = await import('../kit/device_login.ts');
  return logInByDevice(context, url, settings, { opens });
}

/** Whether the Berth accepts the token of `login`, and the user may see anything there. */
async function isUseful({ url, token }: StoredLogin): Promise<boolean> {
  try {
    await connectRemote({ url, token }, BUSY_RETRY_MS).cloud.clusters();
    return true;
  } catch (error) {
    if (!isBerthError(error)) throw error;
    if (error.code === 'forbidden') return false;
    if (error.status !== 401) throw error;
    throw new CommandError(`the Berth at ${url} does not take the token`, '', EXIT_CODE.unauthorized);
  }
}

export const loginCommand = defineCommand({
  about:
    'Logs in at the Berth of your team, as its issuer (Keycloak, Entra, Dex) knows you: it prints a code and ' +
    'the page to enter it. From then on `berth k8s` is about that Berth, and so are the remote tethers of ' +
    'your own one with cloud.remote. The login lies in the state directory and is renewed by itself. With ' +
    '--url, BERTH_CLOUD_URL or cloud.remote `berth k8s` is about the Berth that is named.',
  args: [
    {
      syntax: '[url]',
      about: 'as https://berth.example.com; default: cloud.remote, or where you are logged in',
    },
  ],
  options: {
    tokenFile: textOption(
      '--token-file <file>',
      'log in with the API token in it; - reads it from stdin',
      'file',
    ),
    opens: flagOption('--open', 'open the page in the browser'),
  },
  examples: [
    ['berth login berth.example.com', 'log in in a browser, on any device'],
    ['berth login https://berth.example.com --token-file -', 'with an API token, for a program'],
  ],
  run: async (context, [named], { tokenFile, opens }) => {
    const { out } = context;
    const url = await chosenUrl(context, named);
    const { stateDir } = await context.local();
    const login =
      tokenFile === undefined
        ? await logInAsPerson(context, url, opens)
        : { url, token: await readToken(tokenFile), source: null };
    if (!(await isUseful(login)))
      out.warn('you may do nothing there yet: an administrator adds a grant (berth k8s grants add)');
    await changeLogin(stateDir, async () => writeLogin(stateDir, login));
    out.record({ url }, () => `logged in at ${url}`);
  },
});
