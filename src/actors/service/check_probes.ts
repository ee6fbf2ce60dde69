// How each kind of check probes: docs/reference.md "Checks". URLs are probed here. Commands and notification
// sockets belong to the host, so that none is left behind when the daemon is killed.
import { linearRegex, RegexError } from '../../adapters/linear_regex.ts';
import type { AskProbe, Probe, ProbeResult } from '../../adapters/ready_probe.ts';
import type { CheckPlan, Probing } from '../../protocol/checks.ts';
import type { ExecReport, Notice } from '../../protocol/host.ts';
import { type Clock, isFailure } from '../../runtime/actor.ts';
import { loadPart } from '../../settings/load_part.ts';
import type { HostQuestions } from './host_questions.ts';
import { LogProbe } from './log_probe.ts';
import type { LiveRun } from './run.ts';
import type { ServiceLog } from './service_log.ts';

/** Makes one probe of a check, with the time limit `limitMs`. Returns a function that aborts it. */
export type AskCheck = (limitMs: number, onDone: (result: ProbeResult) => void) => () => void;

/** A request to the host that is answered within `limitMs`. */
type HostQuestion = (limitMs: number) => Promise<ProbeResult>;

/** Makes one request to the host. `limitProbes` limits how many processes this starts at once. */
export const askHost: AskProbe<HostQuestion> = (question, limitMs, onDone) => {
  let isOver = false;
  const finish = (result: ProbeResult): void => {
    if (!isOver) onDone(result);
  };
  void question(limitMs).then(finish);
  return () => {
    isOver = true;
  };
};

/** Shared by all services of a thread. */
export interface ProbeMeans {
  /** `limitProbes(socketProbe(clock))`. */
  probe: Probe;
  /** `limitProbes(askHost, ...)`, for probes that start a process. */
  execProbe: AskProbe<HostQuestion>;
}

/** What the probes of one service need. */
export interface ProbeContext extends ProbeMeans {
  clock: Clock;
  host: HostQuestions;
  log: ServiceLog;
  /** Receives errors other than Failures. */
  onDefect: (error: unknown) => void;
}

/** The number of characters of a command's output shown in the message of a failed probe. */
const SHOWN_OUTPUT = 200;

type CheckKind = 'ready' | 'live';

function execError({ exitCode, output, signal, timedOut }: ExecReport, limitMs: number): string | null {
  if (exitCode === 0) return null;
  const text = output.replace(/\s+/g, ' ').trim().slice(0, SHOWN_OUTPUT);
  const printed = text === '' ? '' : `; it printed: ${text}`;
  if (timedOut) return `it did not end within ${Math.round(limitMs)} ms${printed}`;
  return `it ended with ${signal ?? `exit code ${exitCode}`}${printed}`;
}

/** Failures of a request to the host that it has not answered, such as when it was killed. */
const UNANSWERED: ReadonlySet<string> = new Set(['overloaded', 'deadline', 'crashed', 'gone']);

/** `work` as a probe: the message of a Failure becomes its error. */
function answered({ onDefect }: ProbeContext, work: Promise<string | null>): Promise<ProbeResult> {
  return work.then(
    (error) => ({ status: null, error }),
    (error: unknown) => {
      if (!isFailure(error)) onDefect(error);
      if (!isFailure(error)) return { status: null, error: 'the daemon has failed' };
      return { status: null, error: error.message, ...(UNANSWERED.has(error.code) && { isUnknown: true }) };
    },
  );
}

const ASKED: {
  readonly [K in Probing['kind']]: (
    probing: Extract<Probing, { kind: K }>,
    run: LiveRun,
    means: ProbeContext,
    kind: CheckKind,
    intervalMs: number | null,
  ) => AskCheck;
} = {
  url({ url, expected: { body, header, status } }, _run, { probe, onDefect }) {
    if (body === null) return (limitMs, onDone) => probe({ url, header, status }, limitMs, onDone);
    return afterwards(
      loadPart(() => linearRegex(body)),
      onDefect,
      (regex) => (limitMs, onDone) => probe({ url, header, status, body: regex }, limitMs, onDone),
    );
  },
  exec({ cmd }, { id }, means) {
    const { host, execProbe } = means;
    const question: HostQuestion = (limitMs) =>
      answered(
        means,
        host.exec(id, cmd, limitMs).then((report) => execError(report, limitMs)),
      );
    return (limitMs, onDone) => execProbe(question, limitMs, onDone);
  },
  log({ pattern }, { id, logFrom }, { clock, log, onDefect }, kind) {
    const made = loadPart(() => linearRegex(pattern)).then(
      (regex) => new LogProbe({ log, run: id, from: logFrom, regex, clock, isLasting: kind === 'ready' }),
    );
    return afterwards(made, onDefect, (probe) => (limitMs, onDone) => probe.ask(limitMs, onDone));
  },
  notify(_, { id }, means, kind, intervalMs) {
    const what: Notice = kind === 'ready' ? { is: 'ready' } : { is: 'watchdog', withinMs: intervalMs ?? 0 };
    const word = kind === 'ready' ? 'READY=1' : 'WATCHDOG=1';
    const question: HostQuestion = (limitMs) =>
      answered(
        means,
        means.host.notified(id, what, limitMs).then(({ holds, status }) => {
          const said = status === '' ? '' : `; its status: ${status}`;
          return holds ? null : `it has not sent ${word}${said}`;
        }),
      );
    return (limitMs, onDone) => askHost(question, limitMs, onDone);
  },
};

/** A check that waits for the value of `made` before it probes with `ask`. */
function afterwards<T>(
  made: Promise<T>,
  onDefect: ProbeContext['onDefect'],
  ask: (value: T) => AskCheck,
): AskCheck {
  // A stored expression was valid for the version that accepted it, but may not be now.
  made.catch((error: unknown) => error instanceof RegexError || onDefect(error));
  return (limitMs, onDone) => {
    let giveUp = (): void => {};
    let isOver = false;
    void made.then(
      (value) => {
        if (!isOver) giveUp = ask(value)(limitMs, onDone);
      },
      (error: unknown) => {
        if (!isOver) onDone({ status: null, error: `its expression is not valid: ${error}` });
      },
    );
    return () => {
      isOver = true;
      giveUp();
    };
  };
}

function askOf<K extends Probing['kind']>(
  probing: Extract<Probing, { kind: K }>,
  run: LiveRun,
  means: ProbeContext,
  kind: CheckKind,
  intervalMs: number | null,
): AskCheck {
  return ASKED[probing.kind as K](probing, run, means, kind, intervalMs);
}

/** The probe of `check` for `run`. */
export const checkProbe = (
  { probing, intervalMs }: CheckPlan,
  run: LiveRun,
  means: ProbeContext,
  kind: CheckKind,
): AskCheck => askOf(probing, run, means, kind, intervalMs);
