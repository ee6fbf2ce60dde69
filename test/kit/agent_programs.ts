// Real coding agents for tests: codex, gemini and opencode, against the model of `modelServer`.
//
// BERTH_TEST_AGENTS names a folder with their packages under `node_modules`. .ci/run makes it, outside of the
// repository, with the versions that it pins. By hand:
//
//   npm install --prefix /tmp/agents @openai/codex@0.169.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33
//   BERTH_TEST_AGENTS=/tmp/agents npx vitest run test/e2e/agent_sessions.test.ts
//
// A program gets a home of its own, in which every question of a first start is answered: it trusts its
// folder, asks nobody but the model, looks for no update and reports nothing.
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe } from 'vitest';

export const PROGRAM_NAMES = ['codex', 'gemini', 'opencode'] as const;
export type ProgramName = (typeof PROGRAM_NAMES)[number];

/** Where a program is started, and how. */
export interface PreparedAgent {
  /** The command line; its program is in the PATH of `env`. */
  cmd: string;
  /** Whole: nothing else of the test's own environment is needed. */
  env: Record<string, string>;
  /** The folder it works in. */
  cwd: string;
}

/** The files of a home that make a program use the model at `url`, and its variables. */
interface Setup {
  files: { readonly [path: string]: string };
  env: Record<string, string>;
}

const MODEL = 'test-model';

/** `cwd`: the folder to be trusted; `asks`: it asks a person before it runs a command. */
type SetUp = (at: { url: string; cwd: string; asks: boolean }) => Setup;

const codex: SetUp = ({ url, cwd, asks }) => ({
  files: {
    '.codex/config.toml': `
model = "${MODEL}"
model_provider = "test"
approval_policy = "${asks ? 'on-request' : 'never'}"
sandbox_mode = "${asks ? 'read-only' : 'danger-full-access'}"
check_for_update_on_startup = false
[model_providers.test]
name = "test"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "TEST_MODEL_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[projects.${JSON.stringify(cwd)}]
trust_level = "trusted"
[tui]
show_tooltips = false
`,
  },
  env: { TEST_MODEL_KEY: 'none' },
});

const gemini: SetUp = ({ url, cwd, asks }) => ({
  files: {
    '.gemini/settings.json': JSON.stringify({
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false, previewFeatures: false },
      security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      model: { name: 'gemini-2.5-pro' },
      tools: asks ? {} : { approvalMode: 'yolo' },
      ui: { hideTips: true, hideBanner: true },
      ide: { enabled: false, hasSeenNudge: true },
    }),
    '.gemini/trustedFolders.json': JSON.stringify({ [cwd]: 'TRUST_FOLDER' }),
  },
  env: { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url, NO_BROWSER: 'true' },
});

const opencode: SetUp = ({ url, asks }) => ({
  files: {
    '.config/opencode/opencode.json': JSON.stringify({
      autoupdate: false,
      share: 'disabled',
      model: `test/${MODEL}`,
      small_model: `test/${MODEL}`,
      enabled_providers: ['test'],
      provider: {
        test: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: `${url}/v1`, apiKey: 'none' },
          models: { [MODEL]: { tool_call: true, limit: { context: 100_000, output: 10_000 } } },
        },
      },
      permission: { bash: asks ? 'ask' : 'allow' },
    }),
  },
  env: {
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    // It installs what plugins need, and would try again for 70 s.
    npm_config_fetch_retries: '0',
  },
});

/** codex would leave a server behind, with a copy of itself in the home. */
const COMMANDS: { readonly [P in ProgramName]: string } = {
  codex: 'codex --no-daemon',
  gemini: 'gemini',
  opencode: 'opencode',
};

const SETUPS: { readonly [P in ProgramName]: SetUp } = { codex, gemini, opencode };

const folder = process.env['BERTH_TEST_AGENTS'];
const binaries = folder === undefined ? null : join(folder, 'node_modules', '.bin');

/** `describe`, skipped by name where there are no agents. */
export function describeWithAgents(name: string, tests: () => void): void {
  const reason = binaries === null ? ' (skipped: no agents; BERTH_TEST_AGENTS names their folder)' : '';
  describe.skipIf(binaries === null)(`${name}${reason}`, tests);
}

/**
 * Makes a home under `root` for `program`, which works in `root`/work. `asks`, unless false: the program asks
 * a person before it runs a command. Throws without BERTH_TEST_AGENTS.
 */
export function prepareAgent(
  program: ProgramName,
  { root, url, asks = true }: { root: string; url: string; asks?: boolean },
): PreparedAgent {
  if (binaries === null) throw new Error('BERTH_TEST_AGENTS names no folder');
  const home = join(root, 'home');
  const cwd = join(root, 'work');
  const temporary = join(root, 'tmp');
  for (const made of [home, cwd, temporary]) mkdirSync(made, { recursive: true });
  const { env, files } = SETUPS[program]({ url, cwd, asks });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(home, path, '..'), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  // Every connection but those of loopback is refused at once.
  const proxy = 'http://127.0.0.1:9';
  const network = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: 'localhost,127.0.0.1,::1' };
  const PATH = [binaries, process.env['PATH'] ?? ''].join(delimiter);
  // codex makes no helpers for a home inside of TMPDIR.
  const own = { HOME: home, PATH, TMPDIR: temporary, TERM: 'xterm-256color', LANG: 'C.UTF-8' };
  return { cmd: COMMANDS[program], cwd, env: { ...own, ...network, ...env } };
}
